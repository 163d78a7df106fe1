//! Live objects, found by id.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

use crate::record::ObjectId;

/// Index of an object in [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

/// Number of entries in the cache of recent lookups; most ids are looked up again soon.
const RECENT: usize = 1 << 12;

/// Data per object. Freed places are reused.
#[derive(Debug)]
pub struct Objects<T> {
    all: Vec<T>,
    free: Vec<Node>,
    /// Number of places taken by [`reserve`](Self::reserve) that are not filled yet.
    reserved: usize,
    by_id: FxHashMap<ObjectId, Node>,
    recent: Box<[(ObjectId, Node); RECENT]>,
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
            reserved: 0,
            by_id: FxHashMap::default(),
            recent: Box::new([(ObjectId::NULL, Node(0)); RECENT]),
        }
    }
}

impl<T> Objects<T> {
    /// The object with that id, if there is one. Caches lookups.
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

    /// Like [`node`](Self::node), but without the cache, for occasional lookups.
    pub fn find(&self, id: ObjectId) -> Option<Node> {
        self.by_id.get(&id).copied()
    }

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

    /// Takes a place for an object that [`fill`](Self::fill) puts there. If it is a new place, `vacant` makes what is
    /// there until then.
    pub fn reserve(&mut self, vacant: impl FnOnce() -> T) -> Node {
        self.reserved += 1;
        self.free.pop().unwrap_or_else(|| {
            self.all.push(vacant());
            Node(self.all.len() as u32 - 1)
        })
    }

    /// Puts an object into a reserved place. It cannot be found by its id.
    pub fn fill(&mut self, node: Node, object: T) {
        self.reserved -= 1;
        self[node] = object;
    }

    /// Removes an object's id. Its data stays.
    pub fn forget(&mut self, id: ObjectId) -> Option<Node> {
        let node = self.by_id.remove(&id)?;
        let recent = &mut self.recent[id.0 as usize % RECENT];
        if recent.0 == id {
            recent.0 = ObjectId::NULL;
        }
        Some(node)
    }

    /// Frees the place of an object that was forgotten. Its data stays until the place is reused.
    pub fn free(&mut self, node: Node) {
        self.free.push(node);
    }

    /// Number of objects, including those that are forgotten but not freed.
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len() - self.reserved
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of places, including free ones.
    pub fn places(&self) -> usize {
        self.all.len()
    }

    /// Data of all places, including stale data of free ones.
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
