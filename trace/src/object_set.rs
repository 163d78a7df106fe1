//! Which objects a trace told of.

use rustc_hash::FxHashSet;

use crate::record::ObjectId;
use crate::resolve::IdSet;

/// A set of 64-bit ids, nearly all of them small.
#[derive(Debug, Default)]
pub struct ObjectSet {
    narrow: IdSet,
    wide: FxHashSet<ObjectId>,
}

impl ObjectSet {
    /// Whether it was put in.
    pub fn contains(&self, object: ObjectId) -> bool {
        if object.0 < 1 << 31 { self.narrow.contains(object.0 as u32) } else { self.wide.contains(&object) }
    }

    /// Puts it in; whether it is new.
    pub fn insert(&mut self, object: ObjectId) -> bool {
        if object.0 < 1 << 31 { self.narrow.insert(object.0 as u32) } else { self.wide.insert(object) }
    }
}
