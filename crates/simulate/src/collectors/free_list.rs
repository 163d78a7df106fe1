//! The free list of collectors that do not move objects: best fit, at the lowest address among equals; adjacent free
//! blocks are merged. Large objects are placed from the upper end, because fragmentation by small ones would soon
//! leave no room for them.

use std::collections::{BTreeMap, BTreeSet};

use super::Full;

/// The free blocks of a heap.
#[derive(Debug)]
pub struct FreeList {
    by_address: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    free: u64,
}

/// Minimum size of a large object, in bytes.
const LARGE: u64 = 16 << 10;

impl FreeList {
    /// One free block.
    pub fn new(begin: u64, bytes: u64) -> Self {
        let mut list = Self { by_address: BTreeMap::new(), by_size: BTreeSet::new(), free: 0 };
        if bytes > 0 {
            list.give(begin, bytes);
        }
        list
    }

    fn add(&mut self, address: u64, bytes: u64) {
        self.by_address.insert(address, bytes);
        self.by_size.insert((bytes, address));
    }

    fn remove(&mut self, address: u64, bytes: u64) {
        self.by_address.remove(&address);
        self.by_size.remove(&(bytes, address));
    }

    /// Allocates that many bytes and returns their address.
    pub fn take(&mut self, bytes: u64) -> Result<u64, Full> {
        let mut pieces = self.by_size.range((bytes, 0)..);
        let is_large = bytes >= LARGE;
        let found = if is_large { pieces.max_by_key(|&&(_, address)| address) } else { pieces.next() };
        let &(piece, address) = found.ok_or(Full)?;
        self.remove(address, piece);
        let left = piece - bytes;
        // A large object gets the end of the highest block that fits, a small one the beginning of the smallest.
        let (given, kept) = if is_large { (address + left, address) } else { (address, address + bytes) };
        if left > 0 {
            self.add(kept, left);
        }
        self.free -= bytes;
        Ok(given)
    }

    /// Frees bytes that were allocated.
    pub fn give(&mut self, address: u64, bytes: u64) {
        self.free += bytes;
        let (mut begin, mut end) = (address, address + bytes);
        if let Some((&before, &size)) = self.by_address.range(..address).next_back()
            && before + size == address
        {
            self.remove(before, size);
            begin = before;
        }
        if let Some(&size) = self.by_address.get(&end) {
            self.remove(end, size);
            end += size;
        }
        self.add(begin, end - begin);
    }

    /// Free bytes.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Size of the largest free block in bytes.
    pub fn largest(&self) -> u64 {
        self.by_size.last().map_or(0, |&(bytes, _)| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_grow_together() {
        let mut list = FreeList::new(0, 100);
        let taken = [16, 24, 60].map(|bytes| list.take(bytes).unwrap());
        assert_eq!((taken, list.free(), list.largest()), ([0, 16, 40], 0, 0));
        assert!(list.take(8).is_err());
        list.give(0, 16);
        list.give(40, 60);
        assert_eq!((list.free(), list.largest()), (76, 60));
        assert_eq!(list.take(16).unwrap(), 0, "the smallest that fits");
        list.give(0, 16);
        list.give(16, 24);
        assert_eq!((list.free(), list.largest()), (100, 100));
    }

    /// Surviving small objects do not fragment the room of dead large ones.
    #[test]
    fn large_objects_lie_at_the_other_end() {
        let mut list = FreeList::new(0, 4 * LARGE);
        let small = list.take(16).unwrap();
        assert_eq!((small, list.take(LARGE).unwrap(), list.take(16).unwrap()), (0, 3 * LARGE, 16));
        assert_eq!(list.take(2 * LARGE).unwrap(), LARGE);
        list.give(3 * LARGE, LARGE);
        assert_eq!(list.take(32).unwrap(), 32, "the smallest that fits");
        list.give(LARGE, 2 * LARGE);
        assert_eq!(list.take(3 * LARGE).unwrap(), LARGE);
    }

    proptest! {
        /// Compared with a map of pages of `LARGE / 8` bytes; some objects are large.
        #[test]
        fn nothing_is_given_out_twice(acts in prop::collection::vec((any::<bool>(), 1..20u64), 1..200)) {
            const PAGE: u64 = LARGE / 8;
            let (mut list, mut taken) = (FreeList::new(0, 300 * PAGE), [false; 300]);
            let mut pieces: Vec<(u64, u64)> = Vec::new();
            for (take, number) in acts {
                if take || pieces.is_empty() {
                    let Ok(at) = list.take(number * PAGE) else {
                        let longest = taken.split(|taken| *taken).map(<[bool]>::len).max().unwrap();
                        prop_assert!((longest as u64) < number);
                        continue;
                    };
                    prop_assert_eq!(at % PAGE, 0);
                    let at = at / PAGE;
                    let room = &mut taken[at as usize..(at + number) as usize];
                    prop_assert!(room.iter().all(|taken| !taken));
                    room.fill(true);
                    pieces.push((at, number));
                } else {
                    let (at, pages) = pieces.swap_remove(number as usize % pieces.len());
                    taken[at as usize..(at + pages) as usize].fill(false);
                    list.give(at * PAGE, pages * PAGE);
                }
                prop_assert_eq!(list.free(), PAGE * taken.iter().filter(|taken| !**taken).count() as u64);
            }
        }
    }
}
