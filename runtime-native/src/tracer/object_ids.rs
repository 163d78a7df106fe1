//! The ids of objects, however they are given.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use et_jvm::env::{Env, Object};

use super::machine::Machine;
use crate::classes::records::Classes;
use crate::ids::{IdSpace, Tags};
use crate::proxy::Locks;

/// Slots of the table of known ids, as many as HeapProxy counts on.
const KNOWN_SLOTS: usize = 1 << 16;

/// Where ids come from and where they are kept. What is set once is found out at the start, when the hooks are still off.
#[derive(Debug)]
pub struct ObjectIds {
    /// Ids that are ours to give out.
    pub space: IdSpace,
    /// How far the hash is shifted in mark words, if hooks write ids there.
    pub mark_shift: OnceLock<u32>,
    /// Where the hashes of locked objects are.
    pub locks: OnceLock<Locks>,
    /// Where ids are, if not in identity hashes.
    pub tags: OnceLock<Tags>,
    /// Ids of objects that were announced, for HeapProxy.
    pub known: Box<[AtomicU32]>,
}

impl ObjectIds {
    /// Of a run that begins.
    pub fn new(space: IdSpace) -> Self {
        Self {
            space,
            mark_shift: OnceLock::new(),
            locks: OnceLock::new(),
            tags: OnceLock::new(),
            known: (0..KNOWN_SLOTS).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// The id of an object, which gets one if it has none. Nothing is recorded. `classes` has ids that must not be given out again.
    pub fn get(&self, machine: &Machine, classes: &Classes, env: Env, object: Object) -> u32 {
        match self.tags.get() {
            Some(tags) => tags.give(&self.space, env, object, |ids| classes.add_ids(ids)),
            None => machine.hotspot.identity_hash(env, object),
        }
    }

    /// The id of an object; 0 if it has none, as far as can be seen.
    pub fn get_if_any(&self, machine: &Machine, env: Env, object: Object) -> u32 {
        match self.tags.get() {
            Some(tags) => tags.of(object),
            None => machine.proxy.peek_hash(env, object),
        }
    }
}
