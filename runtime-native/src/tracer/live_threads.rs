//! The live threads of the trace, by the ids of their objects.

use std::sync::Mutex;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::buffers::ThreadIndex;
use et_jvm::sync::lock;

/// The live threads of the trace.
#[derive(Debug, Default)]
pub struct Threads {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By object id.
    live: FxHashMap<u32, ThreadIndex>,
    /// Threads that ran before they had a name. Their records are written when they get one, or end.
    nameless: FxHashSet<u32>,
    last: u32,
}

impl Threads {
    /// The index of the thread with this object, and whether it is new.
    pub fn index(&self, object: u32) -> (ThreadIndex, bool) {
        let mut state = lock(&self.state);
        if let Some(index) = state.live.get(&object) {
            return (*index, false);
        }
        state.last += 1;
        let index = ThreadIndex(state.last);
        state.live.insert(object, index);
        (index, true)
    }

    /// The index of the thread with this object, if it has one.
    pub fn known(&self, object: u32) -> Option<ThreadIndex> {
        lock(&self.state).live.get(&object).copied()
    }

    /// Notes that this thread has no name yet.
    pub fn is_nameless(&self, object: u32) {
        lock(&self.state).nameless.insert(object);
    }

    /// The thread has its name now, if it ever gets one. Returns whether its record is still to be written.
    pub fn is_named(&self, object: u32) -> bool {
        lock(&self.state).nameless.remove(&object)
    }

    /// Removes a thread that ends. Returns its index, and whether its record is still to be written.
    pub fn remove(&self, object: u32) -> (Option<ThreadIndex>, bool) {
        let mut state = lock(&self.state);
        (state.live.remove(&object), state.nameless.remove(&object))
    }
}
