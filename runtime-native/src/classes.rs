//! Class records: written once for each class, before an event names it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use et_trace::event::{ObjectHash, Ticket};
use et_trace::file::format::{ClassRecord, class_flags};
use rustc_hash::FxHashSet;

use crate::jvm::env::{Env, Object};
use crate::jvm::jvmti::JvmtiError;
use crate::queue::Queue;
use crate::tracer::Tracer;

/// Slots of the table that HeapProxy looks into, as many as it counts on.
const SLOTS: usize = 1 << 18;
/// A fuller table would be slow to search. More classes than that are asked for again each time.
const MAX_FILLED: usize = SLOTS / 2;

/// The classes that have their record.
#[derive(Debug)]
pub struct Classes {
    defined: Mutex<FxHashSet<u32>>,
    /// The same ids, for HeapProxy: by linear probing from the id's low bits, 0 where there is none.
    table: Box<[AtomicU32]>,
}

impl Default for Classes {
    fn default() -> Self {
        Self { defined: Mutex::default(), table: (0..SLOTS).map(|_| AtomicU32::new(0)).collect() }
    }
}

impl Classes {
    /// Where HeapProxy finds the table.
    pub fn table_address(&self) -> usize {
        self.table.as_ptr() as usize
    }

    /// The id of `class`, whose record is written if it was not. Tickets of classes that were there when tracing
    /// began are 0.
    pub fn define(&self, tracer: &Tracer, env: Env, class: Object, initial: bool) -> ObjectHash {
        let id = tracer.id(env, class);
        if self.lock().contains(&id) {
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
            let ticket = || if initial { Ticket(0) } else { tracer.buffers.next_ticket() };
            self.enter(id, record, &tracer.queue, ticket);
            tracer.tag(class, id);
        });
        ObjectHash(id)
    }

    /// Queues the record of a class unless it has one. Its ticket is taken before any other thread can learn that there
    /// is a record, and so lies before whatever that thread writes about the class.
    fn enter(&self, id: u32, record: Result<ClassRecord, JvmtiError>, queue: &Queue, ticket: impl FnOnce() -> Ticket) {
        let mut defined = self.lock();
        if !defined.insert(id) {
            return;
        }
        match record {
            Ok(record) => queue.class(&ClassRecord { ticket: ticket(), ..record }),
            Err(error) => queue.problem(format!("class without a record: {error}"), 1),
        }
        self.publish(id, defined.len());
    }

    fn publish(&self, id: u32, defined: usize) {
        if defined <= MAX_FILLED {
            let start = id as usize % SLOTS;
            let mut slots = self.table[start..].iter().chain(&self.table[..start]);
            if let Some(free) = slots.find(|slot| slot.load(Ordering::Relaxed) == 0) {
                free.store(id, Ordering::Release);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, FxHashSet<u32>> {
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

    #[test]
    fn a_class_counts_as_defined_only_when_its_record_is_queued() {
        let (classes, queue) = (Classes::default(), Queue::default());
        let record = || Ok(ClassRecord { class: ObjectHash(7), signature: "La;".into(), ..ClassRecord::default() });
        classes.enter(7, record(), &queue, || {
            // Another thread cannot find out now, neither here nor in HeapProxy's table.
            assert!(classes.defined.try_lock().is_err());
            assert_eq!(classes.table[7].load(Ordering::Relaxed), 0);
            Ticket(3)
        });
        assert_eq!(classes.table[7].load(Ordering::Relaxed), 7);
        classes.enter(7, record(), &queue, || Ticket(4));
        let queued = ClassRecord::decode_block(&queue.take_classes()).unwrap();
        assert_eq!(queued.iter().map(|class| class.ticket).collect::<Vec<_>>(), [Ticket(3)]);
    }

    #[test]
    fn ids_that_want_the_same_slot_stand_in_a_row() {
        let classes = Classes::default();
        let at = |slot: usize| classes.table[slot].load(Ordering::Relaxed);
        let last = SLOTS as u32 - 1;
        for id in [last, last + SLOTS as u32, 5] {
            classes.publish(id, 1);
        }
        assert_eq!((at(SLOTS - 1), at(0), at(5)), (last, last + SLOTS as u32, 5));
    }
}
