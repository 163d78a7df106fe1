//! Maps the 31-bit ids of events to the 64-bit ids of records.

use et_format::event::ObjectHash;
use rustc_hash::FxHashMap;

use super::bits::IdSet;
use crate::record::ObjectId;

const RECENT: usize = 1 << 12;

/// Maximum number of sets: a program that allocates this many times two billion objects runs for days.
const SETS: usize = 16;

/// The objects seen so far. The n-th allocation (from 0) with the 31-bit id `h` has the id `n << 31
/// h`.
#[derive(Debug)]
pub struct ObjectIds {
    /// The n-th set has the ids that were allocated more than n times. After about two billion objects ids are reused,
    /// all about equally often: each set takes a bit per id, that is 256 MB for the first two billion objects and for
    /// each further two billion.
    used: Vec<IdSet>,
    /// Number of the last allocation for ids that are in all sets.
    often: FxHashMap<u32, u32>,
    /// Recently looked up ids with the number of their last allocation, which saves most lookups in the sets.
    recent: Box<[(u32, u32); RECENT]>,
}

impl Default for ObjectIds {
    fn default() -> Self {
        Self { used: vec![IdSet::default()], often: FxHashMap::default(), recent: Box::new([(0, 0); RECENT]) }
    }
}

/// The id of the object that was given this hash after so many others.
pub(crate) fn id(hash: ObjectHash, number: u32) -> ObjectId {
    ObjectId(u64::from(number) << 31 | u64::from(hash.0))
}

impl ObjectIds {
    /// The object that has this id now, if it has been seen.
    #[inline]
    pub fn current(&mut self, hash: ObjectHash) -> Option<ObjectId> {
        let recent = &mut self.recent[hash.0 as usize % RECENT];
        if recent.0 == hash.0 && hash.0 != 0 {
            return Some(id(hash, recent.1));
        }
        let times = self.used.iter().take_while(|set| set.contains(hash.0)).count() as u32;
        let mut number = times.checked_sub(1)?;
        if times as usize == SETS {
            number = self.often.get(&hash.0).copied().unwrap_or(number);
        }
        *recent = (hash.0, number);
        Some(id(hash, number))
    }

    /// Has [`allocate`](Self::allocate) find in the cache what it needs for this id.
    #[inline]
    pub fn touch(&self, hash: ObjectHash) -> u64 {
        self.used.first().map_or(0, |used| used.touch(hash.0))
    }

    /// The id in events of an object that was not made up.
    pub fn hash(object: ObjectId) -> ObjectHash {
        ObjectHash(object.0 as u32 & 0x7fff_ffff)
    }

    /// Creates a new object with this id. Returns also the previous object with the id, if any, which no event can
    /// refer to any more.
    #[inline]
    pub fn allocate(&mut self, hash: ObjectHash) -> (ObjectId, Option<ObjectId>) {
        let number = match self.used.iter_mut().position(|set| set.insert(hash.0)) {
            Some(number) => number as u32,
            None => self.allocate_again(hash),
        };
        self.recent[hash.0 as usize % RECENT] = (hash.0, number);
        (id(hash, number), number.checked_sub(1).map(|before| id(hash, before)))
    }

    /// Number of the allocation of an id that is in all sets.
    #[cold]
    fn allocate_again(&mut self, hash: ObjectHash) -> u32 {
        if self.used.len() < SETS {
            let mut set = IdSet::default();
            set.insert(hash.0);
            self.used.push(set);
            return self.used.len() as u32 - 1;
        }
        let number = self.often.entry(hash.0).or_insert(SETS as u32 - 1);
        *number += 1;
        *number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_use_of_an_id_is_another_object() {
        let mut objects = ObjectIds::default();
        let hash = ObjectHash(7);
        assert_eq!(objects.current(hash), None);
        assert_eq!(objects.allocate(hash), (ObjectId(7), None));
        assert_eq!(objects.current(hash), Some(ObjectId(7)));
        assert_eq!(objects.allocate(hash), (ObjectId(1 << 31 | 7), Some(ObjectId(7))));
        assert_eq!(objects.current(hash), Some(ObjectId(1 << 31 | 7)));
        assert_eq!(objects.allocate(ObjectHash(8)), (ObjectId(8), None));
        assert_eq!(objects.current(ObjectHash(8)), Some(ObjectId(8)));
        assert_eq!(objects.allocate(hash), (ObjectId(2 << 31 | 7), Some(ObjectId(1 << 31 | 7))));
        assert_eq!(ObjectIds::hash(ObjectId(2 << 31 | 7)), hash);
    }
    /// Ids may be reused any number of times, and memory grows by one bit for each.
    #[test]
    fn ids_that_are_used_again_take_a_bit_each() {
        let mut objects = ObjectIds::default();
        let ids = || (1..1 << 18).map(ObjectHash);
        for lap in 0..5u64 {
            for hash in ids() {
                let before = lap.checked_sub(1).map(|before| ObjectId(before << 31 | u64::from(hash.0)));
                assert_eq!(objects.allocate(hash), (ObjectId(lap << 31 | u64::from(hash.0)), before));
            }
        }
        assert!(ids().all(|hash| objects.current(hash) == Some(ObjectId(4 << 31 | u64::from(hash.0)))));
        assert!(objects.often.is_empty());
        let bytes: usize = objects.used.iter().map(IdSet::bytes).sum();
        assert!(bytes <= 5 * (1 << 18) / 8 + 5 * 1024, "{bytes} bytes");
        // A single id may be reused more often than there are sets.
        for number in 5..40u64 {
            let id = |number: u64| ObjectId(number << 31 | 7);
            assert_eq!(objects.allocate(ObjectHash(7)), (id(number), Some(id(number - 1))));
            assert_eq!(objects.current(ObjectHash(7)), Some(id(number)));
        }
        assert_eq!(objects.used.len(), SETS);
    }
}
