//! From the 31-bit ids of events to the 64-bit ids of records.

use rustc_hash::FxHashMap;

use super::bits::IdSet;
use crate::event::ObjectHash;
use crate::record::ObjectId;

const RECENT: usize = 1 << 12;

/// The objects met so far. The n-th allocation (from 0) with the 31-bit id `h` has the id `n << 31 | h`.
#[derive(Debug)]
pub struct Objects {
    known: IdSet,
    /// Number of the last allocation, of ids that were used more than once.
    reused: FxHashMap<u32, u32>,
    /// Ids lately found known and never reused: spares most walks to the set.
    recent: Box<[u32; RECENT]>,
}

impl Default for Objects {
    fn default() -> Self {
        Self { known: IdSet::default(), reused: FxHashMap::default(), recent: Box::new([0; RECENT]) }
    }
}

impl Objects {
    /// The object that has this id now, if it was met.
    #[inline]
    pub fn current(&mut self, hash: ObjectHash) -> Option<ObjectId> {
        let recent = &mut self.recent[hash.0 as usize % RECENT];
        if *recent == hash.0 {
            return Some(ObjectId(hash.0.into()));
        }
        if !self.known.contains(hash.0) {
            return None;
        }
        if !self.reused.is_empty()
            && let Some(&number) = self.reused.get(&hash.0)
        {
            return Some(ObjectId(u64::from(number) << 31 | u64::from(hash.0)));
        }
        *recent = hash.0;
        Some(ObjectId(hash.0.into()))
    }

    /// The id that events have for an object that is not made up.
    pub fn hash(object: ObjectId) -> ObjectHash {
        ObjectHash(object.0 as u32 & 0x7fff_ffff)
    }

    /// A new object with this id, and the one that had it before, if there was one: no event can name it any more.
    #[inline]
    pub fn allocate(&mut self, hash: ObjectHash) -> (ObjectId, Option<ObjectId>) {
        if self.known.insert(hash.0) {
            return (ObjectId(hash.0.into()), None);
        }
        let recent = &mut self.recent[hash.0 as usize % RECENT];
        if *recent == hash.0 {
            *recent = 0;
        }
        let number = self.reused.entry(hash.0).or_insert(0);
        let id = |number: u32| ObjectId(u64::from(number) << 31 | u64::from(hash.0));
        let before = id(*number);
        *number += 1;
        (id(*number), Some(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_use_of_an_id_is_another_object() {
        let mut objects = Objects::default();
        let hash = ObjectHash(7);
        assert_eq!(objects.current(hash), None);
        assert_eq!(objects.allocate(hash), (ObjectId(7), None));
        assert_eq!(objects.current(hash), Some(ObjectId(7)));
        assert_eq!(objects.allocate(hash), (ObjectId(1 << 31 | 7), Some(ObjectId(7))));
        assert_eq!(objects.current(hash), Some(ObjectId(1 << 31 | 7)));
        assert_eq!(objects.allocate(ObjectHash(8)), (ObjectId(8), None));
        assert_eq!(objects.current(ObjectHash(8)), Some(ObjectId(8)));
        assert_eq!(objects.allocate(hash), (ObjectId(2 << 31 | 7), Some(ObjectId(1 << 31 | 7))));
        assert_eq!(Objects::hash(ObjectId(2 << 31 | 7)), hash);
    }
}
