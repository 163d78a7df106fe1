//! Objects that may be alive, found by their ids.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

use crate::record::ObjectId;

/// An object: its place among [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

/// Ids that were looked up lately; most are looked up again at once.
const RECENT: usize = 1 << 12;

/// What is known of each object. Places of those that are freed are used again.
#[derive(Debug)]
pub struct Objects<T> {
    all: Vec<T>,
    free: Vec<Node>,
    by_id: FxHashMap<ObjectId, Node>,
    recent: Box<[(ObjectId, Node); RECENT]>,
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
            by_id: FxHashMap::default(),
            recent: Box::new([(ObjectId::NULL, Node(0)); RECENT]),
        }
    }
}

impl<T> Objects<T> {
    /// Where the object with that id is, if there is one.
    #[inline]
    pub fn node(&mut self, id: ObjectId) -> Option<Node> {
        if id.is_null() {
            return None;
        }
        let recent = &mut self.recent[id.0 as usize % RECENT];
        if recent.0 == id {
            return Some(recent.1);
        }
        let node = *self.by_id.get(&id)?;
        *recent = (id, node);
        Some(node)
    }

    /// As [`node`](Self::node), for those who look rarely.
    pub fn find(&self, id: ObjectId) -> Option<Node> {
        self.by_id.get(&id).copied()
    }

    /// Adds an object.
    pub fn insert(&mut self, id: ObjectId, object: T) -> Node {
        let node = match self.free.pop() {
            Some(node) => {
                self[node] = object;
                node
            }
            None => {
                self.all.push(object);
                Node(self.all.len() as u32 - 1)
            }
        };
        self.by_id.insert(id, node);
        self.recent[id.0 as usize % RECENT] = (id, node);
        node
    }

    /// Its id leads nowhere any more. What is known of it stays.
    pub fn forget(&mut self, id: ObjectId) -> Option<Node> {
        let node = self.by_id.remove(&id)?;
        let recent = &mut self.recent[id.0 as usize % RECENT];
        if recent.0 == id {
            recent.0 = ObjectId::NULL;
        }
        Some(node)
    }

    /// Another may take the place of one that was forgotten. What was known of it stays until then.
    pub fn free(&mut self, node: Node) {
        self.free.push(node);
    }

    /// How many there are, those included that are forgotten and not freed.
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Places, free ones included.
    pub fn places(&self) -> usize {
        self.all.len()
    }

    /// What is there, and what was in places that are free.
    pub fn iter(&self) -> impl Iterator<Item = (Node, &T)> {
        (0..).map(Node).zip(&self.all)
    }
}

impl<T> Index<Node> for Objects<T> {
    type Output = T;

    #[inline]
    fn index(&self, node: Node) -> &T {
        &self.all[node.0 as usize]
    }
}

impl<T> IndexMut<Node> for Objects<T> {
    #[inline]
    fn index_mut(&mut self, node: Node) -> &mut T {
        &mut self.all[node.0 as usize]
    }
}
