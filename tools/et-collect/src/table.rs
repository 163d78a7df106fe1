//! Handles of the operations: which object each names now, where it is, and how many references lead to it.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::object::{CompressedSlot, Object};

/// Is among those that may have no references.
const MAY_BE_ZERO: u8 = 1;

/// By handle. The program changes it while it runs, and the collector while the program waits.
#[derive(Debug)]
pub struct Table {
    /// Where the object is, as a slot holds it; 0: the handle names none.
    addresses: Box<[AtomicU32]>,
    /// Which of the objects that had the handle this is.
    generations: Box<[AtomicU32]>,
    /// References that lead to it, from living objects and static fields.
    counts: Box<[AtomicU32]>,
    flags: Box<[AtomicU8]>,
    /// Living objects without references are among these: a local variable holds them (a zero count table).
    zero: List,
    /// Static fields.
    pub statics: Box<[AtomicU32]>,
}

#[derive(Debug)]
struct List {
    items: Box<[AtomicU32]>,
    length: AtomicUsize,
}

fn words(count: usize) -> Box<[AtomicU32]> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

impl Table {
    pub fn new(handles: u32, statics: u32) -> Self {
        let count = handles as usize + 1;
        Self {
            addresses: words(count),
            generations: words(count),
            counts: words(count),
            flags: (0..count).map(|_| AtomicU8::new(0)).collect(),
            zero: List { items: words(count), length: AtomicUsize::new(0) },
            statics: words(statics as usize),
        }
    }

    /// Where the object is; 0 if the handle names none.
    #[inline]
    pub fn address(&self, handle: u32) -> u32 {
        self.addresses.get(handle as usize).map_or(0, |address| address.load(Relaxed))
    }

    #[inline]
    pub fn object(&self, handle: u32) -> Option<Object> {
        Object::at(self.address(handle))
    }

    /// Of the next object with that handle.
    pub fn next_generation(&self, handle: u32) -> u32 {
        self.generations[handle as usize].load(Relaxed).wrapping_add(1)
    }

    /// Whether an object is the one that its handle names, and is where the table says.
    pub fn is_known(&self, object: Object) -> bool {
        let handle = object.handle();
        self.address(handle) == object.compressed()
            && self.generations.get(handle as usize).is_some_and(|known| known.load(Relaxed) == object.generation())
    }

    /// An object is there.
    #[inline]
    pub fn born(&self, handle: u32, generation: u32, object: Object) {
        let at = handle as usize;
        self.generations[at].store(generation, Relaxed);
        self.counts[at].store(0, Relaxed);
        self.addresses[at].store(object.compressed(), Relaxed);
        self.may_be_zero(handle);
    }

    /// It is alive no more.
    #[inline]
    pub fn died(&self, handle: u32) {
        self.addresses[handle as usize].store(0, Relaxed);
    }

    /// It is elsewhere. What is dead has no place in the table, and one whose root slot MMTk changed already is right as it is.
    #[inline]
    pub fn moved(&self, handle: u32, from: Object, to: Object) {
        if let Some(address) = self.addresses.get(handle as usize)
            && address.load(Relaxed) == from.compressed()
        {
            address.store(to.compressed(), Relaxed);
        }
    }

    /// A reference more.
    #[inline]
    pub fn held(&self, handle: u32) {
        let count = &self.counts[handle as usize];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// A reference less. `None`: there was none.
    #[inline]
    pub fn dropped(&self, handle: u32) -> Option<()> {
        let count = self.counts.get(handle as usize)?;
        let left = count.load(Relaxed).checked_sub(1)?;
        count.store(left, Relaxed);
        if left == 0 {
            self.may_be_zero(handle);
        }
        Some(())
    }

    pub fn count(&self, handle: u32) -> u32 {
        self.counts[handle as usize].load(Relaxed)
    }

    #[inline]
    fn may_be_zero(&self, handle: u32) {
        let flags = &self.flags[handle as usize];
        if flags.load(Relaxed) & MAY_BE_ZERO == 0 {
            flags.store(MAY_BE_ZERO, Relaxed);
            let length = self.zero.length.load(Relaxed);
            self.zero.items[length].store(handle, Relaxed);
            self.zero.length.store(length + 1, Relaxed);
        }
    }

    /// Takes those off the list that have references, or are dead.
    pub fn purge_zero(&self) {
        let mut kept = 0;
        for at in 0..self.zero.length.load(Relaxed) {
            let handle = self.zero.items[at].load(Relaxed);
            if self.address(handle) != 0 && self.count(handle) == 0 {
                self.zero.items[kept].store(handle, Relaxed);
                kept += 1;
            } else {
                self.flags[handle as usize].store(0, Relaxed);
            }
        }
        self.zero.length.store(kept, Relaxed);
    }

    /// Static fields that hold something, and the places in the table of living objects without references.
    pub fn roots(&'static self) -> Vec<CompressedSlot> {
        let statics = self.statics.iter().filter(|field| field.load(Relaxed) != 0);
        let zero = self.zero.items[..self.zero.length.load(Relaxed)].iter();
        let places = zero.map(|handle| &self.addresses[handle.load(Relaxed) as usize]);
        statics.chain(places).map(CompressedSlot::of).collect()
    }

    /// What is alive.
    pub fn living(&self) -> impl Iterator<Item = (u32, Object)> {
        (0..).zip(&self.addresses).filter_map(|(handle, address)| Some((handle, Object::at(address.load(Relaxed))?)))
    }

    /// As [`living`](Self::living): where the object of a handle goes is written here.
    pub fn set(&self, handle: u32, object: Object) {
        self.addresses[handle as usize].store(object.compressed(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_references_is_a_root() {
        let table: &'static Table = Box::leak(Box::new(Table::new(4, 2)));
        for handle in 1..=3 {
            table.born(handle, 1, Object::at(handle * 8).unwrap());
        }
        table.statics[1].store(8, Relaxed);
        let roots = || {
            table.purge_zero();
            table.roots().into_iter().map(CompressedSlot::get).collect::<Vec<_>>()
        };
        assert_eq!(roots(), [8, 8, 16, 24]);
        table.held(2);
        table.held(1);
        assert_eq!(roots(), [8, 24]);
        assert_eq!(table.dropped(2), Some(()));
        assert_eq!(table.dropped(2), None);
        table.died(3);
        assert_eq!(roots(), [8, 16]);
        // The same handle again, twice between two collections.
        table.born(3, 2, Object::at(32).unwrap());
        table.died(3);
        table.born(3, 3, Object::at(40).unwrap());
        assert_eq!(roots(), [8, 16, 40]);
    }
}
