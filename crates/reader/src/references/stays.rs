//! What is stored and what dies goes in, groups of stays come out.

use super::{Arranger, End, Group, Mark, Slots};
use crate::record::{ObjectId, Slot};

/// The slots of live objects, and the stays that have ended, in their order. Each method calls `full` with the groups that are complete.
#[derive(Debug, Default)]
pub struct Stays {
    slots: Slots,
    arranger: Arranger,
}

impl Stays {
    /// An object is allocated, or found to exist.
    #[inline]
    pub fn born(&mut self, id: ObjectId) {
        self.slots.born(id);
    }

    /// A slot of an object gets a value; the origin is null for a static field.
    #[inline]
    pub fn put(
        &mut self,
        (origin, slot, target): (ObjectId, Slot, ObjectId),
        mark: Mark,
        how: End,
        full: impl FnMut(Group),
    ) {
        if let Some(stay) = self.slots.put(origin, slot, target, mark, how) {
            self.arranger.add(stay, full);
        }
    }

    /// An object dies, and with it what its slots hold.
    #[inline]
    pub fn died(&mut self, id: ObjectId, mark: Mark, mut full: impl FnMut(Group)) {
        self.slots.died(id, mark, |stay| self.arranger.add(stay, &mut full));
    }

    /// What is left lasts to the end.
    pub fn finish(self, mut full: impl FnMut(Group)) {
        let Self { slots, mut arranger } = self;
        slots.finish(|stay| arranger.add(stay, &mut full));
        arranger.finish(full);
    }
}
