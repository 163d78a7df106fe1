//! A set of object ids.

use rustc_hash::FxHashSet;

use crate::record::ObjectId;
use crate::resolve::IdSet;

/// Ids that have been reused fewer than this number of times are stored in bit sets.
const SETS: u64 = 16;

/// A set of 64-bit ids, nearly all of them small. An id has the 31-bit hash in its low half and the number of its reuse
/// in its high half (`docs/inside/events.md`); each takes about a bit.
#[derive(Debug, Default)]
pub struct ObjectSet {
    by_use: Vec<IdSet>,
    wide: FxHashSet<ObjectId>,
}

impl ObjectSet {
    fn place(object: ObjectId) -> Option<(usize, u32)> {
        let number = object.0 >> 31;
        (number < SETS).then_some((number as usize, object.0 as u32 & 0x7fff_ffff))
    }

    pub fn contains(&self, object: ObjectId) -> bool {
        match Self::place(object) {
            Some((number, hash)) => self.by_use.get(number).is_some_and(|set| set.contains(hash)),
            None => self.wide.contains(&object),
        }
    }

    /// Adds an object; returns whether it is new.
    pub fn insert(&mut self, object: ObjectId) -> bool {
        let Some((number, hash)) = Self::place(object) else { return self.wide.insert(object) };
        if number >= self.by_use.len() {
            self.by_use.resize_with(number + 1, IdSet::default);
        }
        self.by_use[number].insert(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(ids in prop::collection::vec((0..40u64, 0..9u64, 0..3u64), 0..200)) {
            let (mut set, mut model) = (ObjectSet::default(), BTreeSet::new());
            for (number, hash, high) in ids {
                let id = ObjectId(high << 61 | number << 31 | hash);
                prop_assert_eq!(set.contains(id), model.contains(&id));
                prop_assert_eq!(set.insert(id), model.insert(id));
                prop_assert!(set.contains(id));
            }
            prop_assert!(set.wide.iter().all(|id| id.0 >> 31 >= SETS));
        }
    }
}
