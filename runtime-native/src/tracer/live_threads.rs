//! Which threads of the trace are alive, by their objects.

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
    /// Threads that ran before they had a name: their records are still to be written.
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

    /// The thread with this object has no name yet.
    pub fn is_nameless(&self, object: u32) {
        lock(&self.state).nameless.insert(object);
    }

    /// The thread with this object has its name now, if it ever gets one. Whether it was waited for.
    pub fn is_named(&self, object: u32) -> bool {
        lock(&self.state).nameless.remove(&object)
    }

    /// The thread with this object ends: its index, and whether it never had a name.
    pub fn remove(&self, object: u32) -> (Option<ThreadIndex>, bool) {
        let mut state = lock(&self.state);
        (state.live.remove(&object), state.nameless.remove(&object))
    }
}
