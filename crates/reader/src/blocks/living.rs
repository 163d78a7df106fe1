//! Living objects that events may still name, by hash.

use rustc_hash::FxHashMap;

use crate::model::Node;

/// An object, and what may still name it. Two bits for the latter leave room for a billion places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u32);

impl Entry {
    /// Its hash is in a block that has not been passed.
    const IN_BLOCKS: u32 = 1;
    /// The VM may hold it later, or the rest of the group that made it name it.
    const OTHERWISE: u32 = 2;

    pub fn new(node: Node, in_blocks: bool, otherwise: bool) -> Self {
        let flags = if in_blocks { Self::IN_BLOCKS } else { 0 } | if otherwise { Self::OTHERWISE } else { 0 };
        Self(node.0 << 2 | flags)
    }

    pub fn node(self) -> Node {
        Node(self.0 >> 2)
    }

    pub fn is_in_blocks(self) -> bool {
        self.0 & Self::IN_BLOCKS != 0
    }

    pub fn may_be_named_otherwise(self) -> bool {
        self.0 & Self::OTHERWISE != 0
    }
}

/// Objects by hash. Those that nothing will name are missing, however long they live.
#[derive(Debug, Default)]
pub struct Living {
    by_hash: FxHashMap<u32, Entry>,
    /// Objects that were made up have ids that are no hashes.
    made_up: FxHashMap<u64, Node>,
}

impl Living {
    #[inline]
    pub fn get(&self, hash: u32) -> Option<Entry> {
        self.by_hash.get(&hash).copied()
    }

    pub fn made_up(&self, id: u64) -> Option<Node> {
        self.made_up.get(&id).copied()
    }

    /// Adds an object.
    pub fn add(&mut self, hash: u32, entry: Entry) {
        self.by_hash.insert(hash, entry);
    }

    pub fn add_made_up(&mut self, id: u64, node: Node) {
        self.made_up.insert(id, node);
    }

    /// No later block has the hash. Returns its object, as it is then.
    pub fn passed(&mut self, hash: u32) -> Option<Entry> {
        let entry = self.by_hash.get_mut(&hash)?;
        entry.0 &= !Entry::IN_BLOCKS;
        Some(*entry)
    }

    /// The hash is used again. Returns the object that had it.
    pub fn replace(&mut self, hash: u32) -> Option<Entry> {
        self.by_hash.remove(&hash)
    }

    /// An object has died. Another one may have its hash.
    pub fn died(&mut self, key: u64, node: Node) {
        match u32::try_from(key) {
            Ok(hash) => {
                if self.by_hash.get(&hash).is_some_and(|entry| entry.node() == node) {
                    self.by_hash.remove(&hash);
                }
            }
            Err(_) => _ = self.made_up.remove(&key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_its_last_object() {
        let mut living = Living::default();
        assert_eq!(living.get(7), None);
        living.add(7, Entry::new(Node(1), true, false));
        assert!(living.get(7).is_some_and(|entry| entry.is_in_blocks() && !entry.may_be_named_otherwise()));
        assert_eq!(living.passed(7), Some(Entry::new(Node(1), false, false)));
        assert_eq!(living.get(7), Some(Entry::new(Node(1), false, false)));
        assert_eq!(living.replace(7).map(Entry::node), Some(Node(1)));
        living.add(7, Entry::new(Node((1 << 30) - 1), false, true));
        living.died(7, Node(1));
        assert_eq!(living.get(7).map(Entry::node), Some(Node((1 << 30) - 1)));
        living.died(7, Node((1 << 30) - 1));
        assert_eq!(living.get(7), None);
        living.add_made_up(1 << 40, Node(3));
        living.died(1 << 40, Node(3));
        assert_eq!((living.made_up(1 << 40), living.passed(8)), (None, None));
    }
}
