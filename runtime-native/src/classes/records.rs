//! The classes that have their record, which is written once, before an event names the class (`define`).

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use et_format::ClassRecord;
use et_format::event::Ticket;
use et_jvm::sync::lock;
use rustc_hash::FxHashSet;

use crate::base::id_table::IdTable;
use crate::base::pages;
use crate::output::queue::Queue;
use et_jvm::jvmti::JvmtiError;

/// Number of slots of the table that HeapProxy searches; HeapProxy has the same constant.
const SLOTS: usize = 1 << 18;

/// The table that HeapProxy searches. Its pages take no memory until they are used.
static TABLE: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];

/// The table's address, for HeapProxy.
pub fn table_address() -> usize {
    TABLE.as_ptr() as usize
}

/// The classes that have their record and were not unloaded.
#[derive(Debug)]
pub struct Classes {
    defined: Mutex<Defined>,
}

#[derive(Debug)]
struct Defined {
    ids: FxHashSet<u32>,
    /// The same ids, in the table that HeapProxy searches.
    table: IdTable<AtomicU32>,
}

impl Default for Classes {
    fn default() -> Self {
        // The first few hundred classes are added at once, with ids all over the table.
        pages::populate(&TABLE);
        Self::with_table(&TABLE)
    }
}

impl Classes {
    fn with_table(slots: &'static [AtomicU32]) -> Self {
        Self { defined: Mutex::new(Defined { ids: FxHashSet::default(), table: IdTable::new(slots) }) }
    }

    /// The number of classes.
    pub fn count(&self) -> usize {
        lock(&self.defined).ids.len()
    }

    /// Adds the ids of all classes to `ids`.
    pub fn add_ids(&self, ids: &mut FxHashSet<u32>) {
        ids.extend(&lock(&self.defined).ids);
    }

    /// Forgets the class with this id, which was unloaded.
    pub fn forget(&self, id: u32) {
        let mut defined = lock(&self.defined);
        if defined.ids.remove(&id) {
            defined.table.remove(id);
        }
    }

    /// Whether the class with this id has its record.
    pub fn has(&self, id: u32) -> bool {
        lock(&self.defined).ids.contains(&id)
    }

    /// Queues the record of a class unless it has one. The record's ticket is taken before any other thread can see
    /// that the record exists, so it precedes everything that such a thread records about the class.
    pub fn enter(
        &self,
        id: u32,
        record: Result<ClassRecord, JvmtiError>,
        queue: &Queue,
        ticket: impl FnOnce() -> Ticket,
    ) {
        let mut defined = lock(&self.defined);
        if !defined.ids.insert(id) {
            return;
        }
        match record {
            Ok(record) => queue.class(&ClassRecord { ticket: ticket(), ..record }),
            Err(error) => queue.problem(format!("class without a record: {error}"), 1),
        }
        defined.table.insert(id, |_| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_format::event::ObjectHash;
    use std::sync::atomic::Ordering;

    fn classes() -> (Classes, &'static [AtomicU32]) {
        let table: &[AtomicU32] = Vec::leak((0..16).map(|_| AtomicU32::new(0)).collect());
        (Classes::with_table(table), table)
    }

    fn record() -> Result<ClassRecord, JvmtiError> {
        Ok(ClassRecord { class: ObjectHash(7), signature: "La;".into(), ..ClassRecord::default() })
    }

    #[test]
    fn a_class_counts_as_defined_only_when_its_record_is_queued() {
        let ((classes, table), queue) = (classes(), Queue::default());
        classes.enter(7, record(), &queue, || {
            // Other threads cannot see it yet, neither here nor in HeapProxy's table.
            assert!(classes.defined.try_lock().is_err());
            assert_eq!(table[7].load(Ordering::Relaxed), 0);
            Ticket(3)
        });
        assert_eq!(table[7].load(Ordering::Relaxed), 7);
        classes.enter(7, record(), &queue, || Ticket(4));
        let queued = ClassRecord::decode_block(&queue.take_classes()).unwrap();
        assert_eq!(queued.iter().map(|class| class.ticket).collect::<Vec<_>>(), [Ticket(3)]);
    }

    #[test]
    fn a_class_that_was_unloaded_is_forgotten() {
        let ((classes, table), queue) = (classes(), Queue::default());
        classes.enter(7, record(), &queue, || Ticket(3));
        let ids = || {
            let mut ids = FxHashSet::default();
            classes.add_ids(&mut ids);
            ids.into_iter().collect::<Vec<_>>()
        };
        assert_eq!((ids(), classes.count()), (vec![7], 1));
        classes.forget(7);
        classes.forget(8);
        assert_eq!((ids(), classes.count(), table[7].load(Ordering::Relaxed)), (vec![], 0, 0));
        // The id may be reused for another class.
        classes.enter(7, record(), &queue, || Ticket(9));
        let queued = ClassRecord::decode_block(&queue.take_classes()).unwrap();
        assert_eq!(queued.iter().map(|class| class.ticket).collect::<Vec<_>>(), [Ticket(3), Ticket(9)]);
    }
}
