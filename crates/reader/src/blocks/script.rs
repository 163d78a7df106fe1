//! The records of a part, in which objects have the numbers that the part gives them.

use et_format::Wall;
use et_format::event::Ticket;
use rustc_hash::FxHashMap;

use super::walk::NONE;
use crate::place::Place;
use crate::record::{ObjectId, Record, Slot, ThreadId};
use crate::told::{Hold, Told};

/// In a record: what its slot held before the part.
pub const FROM_BEFORE: ObjectId = ObjectId(u64::MAX);
/// Maximum capacity of a table of slots that is kept for the next part.
const MOST_SLOTS: usize = 1 << 16;

/// A slot that a part stores into.
#[derive(Clone, Copy, Debug)]
pub struct SlotUse {
    /// `NONE` for a static field.
    pub origin: u32,
    pub slot: Slot,
    /// What it holds at the end of the part; `NONE` for null.
    pub target: u32,
    /// The record of its first store; `NONE` if the object is made in the part, so that it was null before.
    pub first: u32,
    /// What the first store put there, if it is a record only if that was another object.
    pub if_changed: Option<u32>,
}

/// What a part tells. Objects have the numbers that they have in the part, and null is `NONE`.
#[derive(Debug, Default)]
pub struct Script {
    pub told: Vec<Told>,
    /// Places, each with the index in `told` of the first item there. Items before the first of them are at the place that the part before
    /// ended with.
    pub places: Vec<(u32, Place)>,
    /// In the order of their first stores.
    pub slots: Vec<SlotUse>,
    /// Number of items that are no steps: objects that the VM holds to the end.
    pub no_steps: u32,
    /// Number of frames on the stack at the end.
    pub depth: u32,
}

/// A number in a part as it is in its records.
#[inline]
pub fn in_script(number: u32) -> ObjectId {
    ObjectId(number.into())
}

impl Script {
    #[inline]
    pub fn record(&mut self, record: Record) {
        self.told.push(Told::Record(record));
    }

    pub fn held(&mut self, number: u32, thread: ThreadId) {
        self.told.push(Told::Hold(Hold::Until { object: in_script(number), thread }));
    }

    pub fn held_to_the_end(&mut self, number: u32) {
        self.told.push(Told::Hold(Hold::ToTheEnd { object: in_script(number) }));
        self.no_steps += 1;
    }

    pub fn at(&mut self, ticket: Ticket, wall: Option<Wall>) {
        let (index, place) = (self.told.len() as u32, Place::new(ticket, wall));
        match self.places.last_mut() {
            Some(last) if last.0 == index => last.1 = place,
            _ => self.places.push((index, place)),
        }
    }

    /// A store. `is_new`: the object is made in the part.
    #[inline]
    pub fn put(
        &mut self,
        all: &mut FxHashMap<u64, u32>,
        (origin, is_new): (u32, bool),
        slot: Slot,
        target: u32,
        if_changed: bool,
        thread: ThreadId,
    ) {
        // An object either is an array or has fields, so an index and a field id cannot collide.
        let key = u64::from(origin) << 32 | u64::from(slot.number());
        let next = self.slots.len() as u32;
        let at = *all.entry(key).or_insert(next);
        let old = if at == next {
            let first = if is_new { NONE } else { self.told.len() as u32 };
            let if_changed = (if_changed && !is_new).then_some(target);
            self.slots.push(SlotUse { origin, slot, target, first, if_changed });
            if is_new { in_script(NONE) } else { FROM_BEFORE }
        } else {
            in_script(std::mem::replace(&mut self.slots[at as usize].target, target))
        };
        let (origin, target) = (in_script(origin), in_script(target));
        if !(if_changed && old == target) {
            self.record(Record::Update { old, origin, target, slot, thread });
        }
    }
}

/// Empties a table of slots for the next part.
pub fn clear(slots: &mut FxHashMap<u64, u32>) {
    if slots.capacity() > MOST_SLOTS {
        *slots = FxHashMap::default();
    }
    slots.clear();
}
