//! Objects that the rest of the group that made them may name.
//!
//! Which blocks may name an object is told by the words that they store ([`literals`](super::literals)). The block that makes
//! it need not be among them, since hashes of new objects are predicted. As long as its group goes on, it may name it all
//! the same, even if every block that stores its hash has been passed.

use rustc_hash::FxHashMap;

/// Objects by hash, and the group that each waits for.
#[derive(Debug, Default)]
pub struct Awaited {
    groups: FxHashMap<u32, u64>,
    of_group: FxHashMap<u64, Vec<u32>>,
}

impl Awaited {
    pub fn contains(&self, hash: u32) -> bool {
        self.groups.contains_key(&hash)
    }

    /// The hash is used again. Nothing can name the object that had it before.
    pub fn forget(&mut self, hash: u32) {
        self.groups.remove(&hash);
    }

    /// An object was made that the rest of its group names.
    pub fn add(&mut self, hash: u32, group: u64) {
        self.groups.insert(hash, group);
        self.of_group.entry(group).or_default().push(hash);
    }

    /// The group ends. Returns the objects that have waited for it.
    pub fn group_passed(&mut self, group: u64) -> impl Iterator<Item = u32> {
        let hashes = self.of_group.remove(&group).unwrap_or_default();
        hashes.into_iter().filter(move |hash| match self.groups.get(hash) {
            Some(of) if *of == group => self.groups.remove(hash).is_some(),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_waits_for_the_group_that_made_the_last_one_with_its_hash() {
        let mut awaited = Awaited::default();
        awaited.add(7, 1);
        awaited.add(8, 1);
        awaited.add(7, 2);
        assert!(awaited.contains(7) && awaited.contains(8) && !awaited.contains(9));
        assert_eq!(awaited.group_passed(1).collect::<Vec<_>>(), [8]);
        assert!(awaited.contains(7) && !awaited.contains(8));
        assert_eq!(awaited.group_passed(2).collect::<Vec<_>>(), [7]);
        assert_eq!(awaited.group_passed(2).count(), 0);
        assert!(!awaited.contains(7));
    }

    #[test]
    fn no_object_waits_whose_hash_is_used_again() {
        let mut awaited = Awaited::default();
        awaited.add(7, 1);
        awaited.forget(7);
        assert!(!awaited.contains(7));
        assert_eq!(awaited.group_passed(1).count(), 0, "it may be another object's by now");
    }
}
