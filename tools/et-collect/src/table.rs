//! The table of handles: the current object of each handle, its address and its reference count.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::object::{CompressedSlot, Object};

/// Flag: the object is in the zero count table.
const MAY_BE_ZERO: u8 = 1;

/// Indexed by handle. Modified by the program while it runs, and by the collector while the program waits.
#[derive(Debug)]
pub struct Table {
    /// Compressed address of the object; 0 for an unused handle.
    addresses: Box<[AtomicU32]>,
    /// Number of the object among those with the same handle.
    generations: Box<[AtomicU32]>,
    /// Number of references to the object from live objects and static fields.
    counts: Box<[AtomicU32]>,
    flags: Box<[AtomicU8]>,
    /// Zero count table: contains all live objects without references, which a local variable must hold.
    zero: List,
    /// Static fields, as compressed addresses.
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

    /// Compressed address of the object; 0 for an unused handle.
    #[inline]
    pub fn address(&self, handle: u32) -> u32 {
        self.addresses.get(handle as usize).map_or(0, |address| address.load(Relaxed))
    }

    #[inline]
    pub fn object(&self, handle: u32) -> Option<Object> {
        Object::at(self.address(handle))
    }

    /// Generation of the next object with that handle.
    pub fn next_generation(&self, handle: u32) -> u32 {
        self.generations[handle as usize].load(Relaxed).wrapping_add(1)
    }

    /// Whether an object is the current one of its handle and at the address in the table.
    pub fn is_known(&self, object: Object) -> bool {
        let handle = object.handle();
        self.address(handle) == object.compressed()
            && self.generations.get(handle as usize).is_some_and(|known| known.load(Relaxed) == object.generation())
    }

    /// Enters a new object.
    #[inline]
    pub fn born(&self, handle: u32, generation: u32, object: Object) {
        let at = handle as usize;
        self.generations[at].store(generation, Relaxed);
        self.counts[at].store(0, Relaxed);
        self.addresses[at].store(object.compressed(), Relaxed);
        self.may_be_zero(handle);
    }

    /// Removes a dead object.
    #[inline]
    pub fn died(&self, handle: u32) {
        self.addresses[handle as usize].store(0, Relaxed);
    }

    /// Updates the address of a moved object. Does nothing for a dead object, or if MMTk has already updated the entry
    /// as a root slot.
    #[inline]
    pub fn moved(&self, handle: u32, from: Object, to: Object) {
        if let Some(address) = self.addresses.get(handle as usize)
            && address.load(Relaxed) == from.compressed()
        {
            address.store(to.compressed(), Relaxed);
        }
    }

    /// Increments the reference count.
    #[inline]
    pub fn held(&self, handle: u32) {
        let count = &self.counts[handle as usize];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// Decrements the reference count. `None` if it was already 0.
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

    /// Removes objects from the zero count table that are dead or have references.
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

    /// Roots: static fields that are not null, and the table entries of live objects without references.
    pub fn roots(&'static self) -> Vec<CompressedSlot> {
        let statics = self.statics.iter().filter(|field| field.load(Relaxed) != 0);
        let zero = self.zero.items[..self.zero.length.load(Relaxed)].iter();
        let places = zero.map(|handle| &self.addresses[handle.load(Relaxed) as usize]);
        statics.chain(places).map(CompressedSlot::of).collect()
    }

    /// All live objects, by handle.
    pub fn living(&self) -> impl Iterator<Item = (u32, Object)> {
        (0..).zip(&self.addresses).filter_map(|(handle, address)| Some((handle, Object::at(address.load(Relaxed))?)))
    }

    /// Sets the address of a handle's object.
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
        // The same handle twice between two collections.
        table.born(3, 2, Object::at(32).unwrap());
        table.died(3);
        table.born(3, 3, Object::at(40).unwrap());
        assert_eq!(roots(), [8, 16, 40]);
    }
}
