//! The free pool of collectors that do not move: the smallest piece that fits is used, the lowest of these; neighbors that are free
//! become one.

use std::collections::{BTreeMap, BTreeSet};

use super::Full;

/// The free pieces of a heap.
#[derive(Debug)]
pub struct FreeList {
    by_address: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    free: u64,
}

impl FreeList {
    /// One free piece.
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

    /// Room for an object.
    pub fn take(&mut self, bytes: u64) -> Result<u64, Full> {
        let &(piece, address) = self.by_size.range((bytes, 0)..).next().ok_or(Full)?;
        self.remove(address, piece);
        if piece > bytes {
            self.add(address + bytes, piece - bytes);
        }
        self.free -= bytes;
        Ok(address)
    }

    /// Room that was taken.
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

    /// Bytes that are free.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Bytes of the largest free piece.
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

    proptest! {
        /// Against a map of bytes.
        #[test]
        fn nothing_is_given_out_twice(acts in prop::collection::vec((any::<bool>(), 1..20u64), 1..200)) {
            let (mut list, mut taken) = (FreeList::new(0, 300), [false; 300]);
            let mut pieces: Vec<(u64, u64)> = Vec::new();
            for (take, number) in acts {
                if take || pieces.is_empty() {
                    let Ok(at) = list.take(number) else {
                        let longest = taken.split(|taken| *taken).map(<[bool]>::len).max().unwrap();
                        prop_assert!((longest as u64) < number);
                        continue;
                    };
                    let room = &mut taken[at as usize..(at + number) as usize];
                    prop_assert!(room.iter().all(|taken| !taken));
                    room.fill(true);
                    pieces.push((at, number));
                } else {
                    let (at, bytes) = pieces.swap_remove(number as usize % pieces.len());
                    taken[at as usize..(at + bytes) as usize].fill(false);
                    list.give(at, bytes);
                }
                prop_assert_eq!(list.free(), taken.iter().filter(|taken| !**taken).count() as u64);
            }
        }
    }
}
