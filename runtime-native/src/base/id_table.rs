//! Hash tables keyed by class id that HeapProxy searches without a lock: by linear probing from the id's low bits, up
//! to a slot that was never used.
//!
//! A thread that changes a table holds its owner's lock. Ids are removed when their class is unloaded; such an id is
//! never looked up again. Later ids of the same run must still be found, so its slot is marked as gone. If no id
//! follows, the slot becomes empty again, so that runs do not grow with the number of unloaded classes.

use std::sync::atomic::{AtomicU32, Ordering};

/// An empty slot, which ends a search.
const NONE: u32 = 0;
/// A slot whose id was removed; a search continues after it. Ids have 31 bits.
const GONE: u32 = 1 << 31;

/// A slot of a table.
pub trait Slot {
    /// The slot's id.
    fn id(&self) -> &AtomicU32;
}

impl Slot for AtomicU32 {
    fn id(&self) -> &AtomicU32 {
        self
    }
}

/// A table. Its slots are never moved: HeapProxy has their address.
#[derive(Debug)]
pub struct IdTable<S: 'static> {
    slots: &'static [S],
    /// Number of slots that are not empty.
    taken: usize,
}

impl<S: Slot> IdTable<S> {
    /// `slots` must be zeroed and exclusive to this table; their number must be a power of two.
    pub fn new(slots: &'static [S]) -> Self {
        Self { slots, taken: 0 }
    }

    /// Adds an id that the table does not contain. `fill` stores the rest of the slot before the id can be found. A
    /// table that is half full accepts no more, because searches would be slow: HeapProxy then calls native code.
    pub fn insert(&mut self, id: u32, fill: impl FnOnce(&S)) {
        if id == NONE {
            return;
        }
        let free = self.row(id).find(|&at| matches!(self.at(at), NONE | GONE));
        let Some(free) = free else { return };
        if self.at(free) == NONE {
            if self.taken >= self.slots.len() / 2 {
                return;
            }
            self.taken += 1;
        }
        fill(&self.slots[free]);
        self.slots[free].id().store(id, Ordering::Release);
    }

    /// Removes an id if it is there.
    pub fn remove(&mut self, id: u32) {
        let found = self.row(id).take_while(|&at| self.at(at) != NONE).find(|&at| self.at(at) == id);
        let Some(mut at) = found else { return };
        let last = self.slots.len() - 1;
        if self.at((at + 1) & last) != NONE {
            return self.set(at, GONE);
        }
        self.set(at, NONE);
        self.taken -= 1;
        // Also removes gone slots before it that are no longer needed.
        loop {
            at = at.wrapping_sub(1) & last;
            if self.at(at) != GONE {
                return;
            }
            self.set(at, NONE);
            self.taken -= 1;
        }
    }

    /// All slots, in search order of an id.
    fn row(&self, id: u32) -> impl Iterator<Item = usize> + use<S> {
        let count = self.slots.len();
        (0..count).map(move |step| (id as usize + step) & (count - 1))
    }

    fn at(&self, slot: usize) -> u32 {
        self.slots[slot].id().load(Ordering::Relaxed)
    }

    fn set(&self, slot: usize, value: u32) {
        self.slots[slot].id().store(value, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn table(count: usize) -> IdTable<AtomicU32> {
        IdTable::new(Vec::leak((0..count).map(|_| AtomicU32::new(0)).collect()))
    }

    /// Searches like HeapProxy.
    fn has(table: &IdTable<AtomicU32>, id: u32) -> bool {
        table.row(id).map(|at| table.at(at)).take_while(|there| *there != NONE).any(|there| there == id)
    }

    fn all(table: &IdTable<AtomicU32>) -> Vec<u32> {
        (0..table.slots.len()).map(|at| table.at(at)).collect()
    }

    #[test]
    fn ids_that_want_the_same_slot_stand_in_a_row() {
        let mut table = table(8);
        for id in [7, 15, 3] {
            table.insert(id, |slot| assert_eq!(slot.load(Ordering::Relaxed), 0));
        }
        assert_eq!(all(&table), [15, 0, 0, 3, 0, 0, 0, 7]);
    }

    #[test]
    fn half_a_table_is_left_free() {
        let mut table = table(8);
        (1..8).for_each(|id| table.insert(id, |_| ()));
        assert_eq!((1..8).filter(|id| has(&table, *id)).count(), 4);
        table.remove(7);
        table.remove(2);
        table.insert(10, |_| ());
        assert!(has(&table, 10) && !has(&table, 2) && has(&table, 4));
    }

    #[test]
    fn what_stands_behind_a_removed_id_is_still_found() {
        let mut table = table(8);
        for id in [7, 15, 23] {
            table.insert(id, |_| ());
        }
        table.remove(7);
        table.remove(15);
        assert_eq!(all(&table), [GONE, 23, 0, 0, 0, 0, 0, GONE]);
        assert!(has(&table, 23) && !has(&table, 7));
        // Its slot is reused.
        table.insert(31, |_| ());
        assert_eq!(all(&table), [GONE, 23, 0, 0, 0, 0, 0, 31]);
        table.remove(23);
        assert_eq!(all(&table), [0, 0, 0, 0, 0, 0, 0, 31]);
        table.remove(31);
        assert_eq!((all(&table), table.taken), (vec![0; 8], 0));
    }

    #[test]
    fn a_table_holds_what_was_entered_and_not_removed() {
        let mut table = table(64);
        let mut there = BTreeSet::new();
        let mut number = 1;
        for round in 0..100_000 {
            number = et_names::hashes::next(number);
            let id = number % 1000 + 1;
            if there.remove(&id) {
                table.remove(id);
            } else if there.len() < 12 {
                there.insert(id);
                table.insert(id, |_| ());
            }
            assert!(there.iter().all(|id| has(&table, *id)), "{round}: {there:?} {:?}", all(&table));
            assert_eq!(all(&table).iter().filter(|id| **id != NONE).count(), table.taken);
            assert!(table.taken <= 32);
        }
        there.iter().for_each(|id| table.remove(*id));
        assert_eq!((all(&table), table.taken), (vec![0; 64], 0));
    }
}
