//! Class records: written once for each class, before an event names it.

use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use et_format::event::{ObjectHash, Ticket};
use et_format::{ClassRecord, class_flags};
use rustc_hash::FxHashSet;

use crate::id_table::IdTable;
use crate::jvm::env::{Env, Object};
use crate::jvm::jvmti::JvmtiError;
use crate::pages;
use crate::queue::Queue;
use crate::tracer::Tracer;

/// Slots of the table that HeapProxy looks into, as many as it counts on.
const SLOTS: usize = 1 << 18;

/// Memory that costs nothing before it is used.
static TABLE: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];

/// Where HeapProxy finds the table.
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
    /// The same ids, for HeapProxy.
    table: IdTable<AtomicU32>,
}

impl Default for Classes {
    fn default() -> Self {
        // The first few hundred classes come at once, and their ids are all over it.
        pages::populate(&TABLE);
        Self::with_table(&TABLE)
    }
}

impl Classes {
    fn with_table(slots: &'static [AtomicU32]) -> Self {
        Self { defined: Mutex::new(Defined { ids: FxHashSet::default(), table: IdTable::new(slots) }) }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().ids.len()
    }

    /// Adds their ids.
    pub fn add_ids(&self, ids: &mut FxHashSet<u32>) {
        ids.extend(&self.lock().ids);
    }

    /// The class with this id was unloaded.
    pub fn forget(&self, id: u32) {
        let mut defined = self.lock();
        if defined.ids.remove(&id) {
            defined.table.remove(id);
        }
    }

    /// The id of `class`, whose record is written if it was not. Tickets of classes that were there when tracing
    /// began are 0.
    pub fn define(&self, tracer: &Tracer, env: Env, class: Object, initial: bool) -> ObjectHash {
        let id = tracer.id(env, class);
        if self.lock().ids.contains(&id) {
            return ObjectHash(id);
        }
        env.frame(8, |env| {
            let superclass = match env.superclass(class) {
                Some(superclass) => self.define(tracer, env, superclass, initial),
                None => ObjectHash::NULL,
            };
            let known = ClassRecord { class: ObjectHash(id), superclass, ..ClassRecord::default() };
            // No lock meanwhile: if two threads do the same, the first one's record counts.
            let record = record(tracer, env, class, known);
            // The boot loader is never unloaded. Hidden classes of its are, and stay if tracing began behind them.
            let stays = initial && record.as_ref().is_ok_and(|record| record.loader == ObjectHash::NULL);
            let ticket = || if initial { Ticket(0) } else { tracer.buffers.next_ticket() };
            self.enter(id, record, &tracer.queue, ticket);
            tracer.tag(class, id);
            if let Some(unloading) = tracer.unloading.filter(|_| !stays) {
                unloading.watch(class, id);
            }
        });
        ObjectHash(id)
    }

    /// Queues the record of a class unless it has one. Its ticket is taken before any other thread can learn that there
    /// is a record, and so lies before whatever that thread writes about the class.
    fn enter(&self, id: u32, record: Result<ClassRecord, JvmtiError>, queue: &Queue, ticket: impl FnOnce() -> Ticket) {
        let mut defined = self.lock();
        if !defined.ids.insert(id) {
            return;
        }
        match record {
            Ok(record) => queue.class(&ClassRecord { ticket: ticket(), ..record }),
            Err(error) => queue.problem(format!("class without a record: {error}"), 1),
        }
        defined.table.insert(id, |_| ());
    }

    fn lock(&self) -> MutexGuard<'_, Defined> {
        self.defined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn record(tracer: &Tracer, env: Env, class: Object, known: ClassRecord) -> Result<ClassRecord, JvmtiError> {
    let jvmti = tracer.jvmti;
    let signature = jvmti.class_signature(class)?;
    let loader = match jvmti.class_loader(env, class)? {
        Some(loader) => ObjectHash(tracer.id(env, loader)),
        None => ObjectHash::NULL,
    };
    let (mut flags, mut instance_size) = (0, 0);
    if signature.starts_with('[') {
        flags |= class_flags::ARRAY;
    } else if signature.starts_with('L') {
        // `Lapp/Main$$Lambda.0x…;`: no other descriptor holds a dot.
        if signature.contains('.') {
            flags |= class_flags::HIDDEN;
        }
        if jvmti.is_interface(class)? {
            flags |= class_flags::INTERFACE;
        } else {
            match tracer.proxy.instance_size(env, class).filter(|_| tracer.sizes_known) {
                Some(size) => instance_size = size,
                None => flags |= class_flags::SIZE_UNKNOWN,
            }
        }
    }
    let mirror_size = jvmti.object_size(class)? as u32;
    Ok(ClassRecord { loader, instance_size, mirror_size, flags, signature, ..known })
}

#[cfg(test)]
mod tests {
    use super::*;
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
            // Another thread cannot find out now, neither here nor in HeapProxy's table.
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
        // The id may be that of another class one day.
        classes.enter(7, record(), &queue, || Ticket(9));
        let queued = ClassRecord::decode_block(&queue.take_classes()).unwrap();
        assert_eq!(queued.iter().map(|class| class.ticket).collect::<Vec<_>>(), [Ticket(3), Ticket(9)]);
    }
}
