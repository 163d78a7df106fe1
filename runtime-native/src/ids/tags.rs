//! Ids as tags of JVMTI's, where identity hashes repeat.
//!
//! Each object is tagged, not only those whose hash another one has: which these are cannot be told of an object that is
//! locked when it is first met. It is slow (a native call for every id), and exact.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;

use super::space::{Block, IdSpace};
use crate::jvm::env::{Object, Vm};
use crate::jvm::jvmti::{Capability, Jvmti, JvmtiError};

/// The tags, in an environment of their own.
#[derive(Debug)]
pub struct Tags {
    jvmti: Jvmti,
    /// Ids to give. Held while an object is tagged, which waits for safepoints; whoever waits for it does so in native code,
    /// where safepoints do not wait for threads.
    ready: Mutex<Block>,
}

impl Tags {
    /// An environment of JVMTI's is made for them.
    pub fn new(vm: Vm) -> Result<Self, JvmtiError> {
        let jvmti = Jvmti::new(vm).ok_or(JvmtiError::NO_ENVIRONMENT)?;
        jvmti.add_capabilities(&[Capability::TagObjects])?;
        Ok(Self { jvmti, ready: Mutex::default() })
    }

    /// The object's id, 0 if it has none.
    pub fn of(&self, object: Object) -> u32 {
        self.jvmti.tag(object).unwrap_or(0) as u32
    }

    /// The object's id. One that has none gets one. `add_known` adds the ids of classes that the runtime knows of.
    pub fn give(&self, space: &IdSpace, object: Object, add_known: impl Fn(&mut FxHashSet<u32>)) -> u32 {
        match self.of(object) {
            0 => self.tag(space, object, add_known),
            id => id,
        }
    }

    fn tag(&self, space: &IdSpace, object: Object, add_known: impl Fn(&mut FxHashSet<u32>)) -> u32 {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been here first.
        let there = self.of(object);
        if there != 0 {
            return there;
        }
        if ready.count == 0 {
            *ready = space.take(0, || {
                let mut live = self.live()?;
                add_known(&mut live);
                Some(live)
            });
        }
        let id = ready.pop().unwrap_or(0);
        let _ = self.jvmti.set_tag(object, id.into());
        id
    }

    fn live(&self) -> Option<FxHashSet<u32>> {
        let mut live = FxHashSet::default();
        self.jvmti.tags(|tag| _ = live.insert(tag as u32)).ok().map(|()| live)
    }
}
