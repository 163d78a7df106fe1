//! The heap as the trace has it, record after record.

use std::ops::Deref;

use et_reader::lifetimes::Step;
use et_reader::model::{self, Holder, Incoming, Node};
use et_reader::record::{Alloc, AllocKind, ObjectId, Record, Slot};
use et_reader::types::TypeId;

/// Number of a record, deaths counted, and its letter.
pub type Mention = (u64, char);

/// Data about a live object according to the trace.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub ty: TypeId,
    pub kind: AllocKind,
    pub size: u64,
    pub born: u64,
    pub last: Mention,
    /// The collector freed it all the same; which of those it is.
    pub early: Option<u32>,
}

pub type Objects = model::Heap<Known>;

/// All live objects; incoming references are indexed on first use.
#[derive(Debug, Default)]
pub struct Heap {
    objects: Objects,
    incoming: Option<Incoming>,
}

impl Deref for Heap {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

impl Heap {
    /// Where the object with that id is, if there is one.
    #[inline]
    pub fn node(&mut self, id: ObjectId) -> Option<Node> {
        self.objects.node(id)
    }

    #[inline]
    pub fn data(&mut self, node: Node) -> &mut Known {
        self.objects.data(node)
    }

    /// The id leads nowhere any more.
    pub fn forget(&mut self, id: ObjectId) -> Option<Node> {
        self.objects.forget(id)
    }

    /// Frees the place of an object that was forgotten.
    pub fn free(&mut self, node: Node) {
        self.objects.free(node);
        if let Some(incoming) = &mut self.incoming {
            incoming.freed(node);
        }
    }

    /// Calls `visit` with each slot that holds the target. Walks through the heap at the first time, and not again.
    pub fn holders_of(&mut self, target: Node, visit: impl FnMut(Holder)) {
        let incoming = self.incoming.get_or_insert_with(|| Incoming::of(&self.objects));
        incoming.holders(&self.objects, target, visit);
    }

    /// Applies a step.
    #[inline]
    pub fn step(&mut self, position: u64, step: &Step) {
        match *step {
            Step::Record(Record::Alloc(Alloc { object, ty, kind, size, .. })) => {
                let last = (position, kind.letter());
                self.objects.insert(object, Known { ty, kind, size, born: position, last, early: None });
            }
            Step::Record(Record::Update { origin, target, slot, .. })
            | Step::Initial { origin, target, slot, weak: false } => self.put(origin, slot, target),
            Step::Record(
                Record::Entry { .. }
                | Record::Exit { .. }
                | Record::ExitThrow { .. }
                | Record::Throw { .. }
                | Record::Handle { .. }
                | Record::Death { .. }
                | Record::Use { .. },
            )
            | Step::WeakUpdate { .. }
            | Step::Initial { weak: true, .. }
            | Step::Held { .. } => {}
        }
    }

    fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) {
        self.objects.put(origin, slot, target);
        let Some(incoming) = &mut self.incoming else { return };
        let Some(target) = self.objects.node(target) else { return };
        let origin = if origin.is_null() { None } else { Some(self.objects.node(origin)) };
        // Where the origin is not known nothing was stored.
        if origin != Some(None) {
            incoming.stored(&self.objects, Holder { origin: origin.flatten(), slot: slot.number(), target });
        }
    }

    /// How many slots were looked at to find holders.
    #[cfg(test)]
    pub fn looked_at(&self) -> u64 {
        self.incoming.as_ref().map_or(0, Incoming::looked_at)
    }
}
