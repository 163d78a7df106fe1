//! Object ids, under any scheme.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use et_jvm::env::{Env, Object};

use super::machine::Machine;
use crate::classes::records::Classes;
use crate::ids::{IdSpace, Tags};
use crate::proxy::Locks;

/// Number of slots of the table of known ids; HeapProxy relies on it.
const KNOWN_SLOTS: usize = 1 << 16;

/// Where ids come from and where they are stored. The cells are set at the start, while the hooks are off.
#[derive(Debug)]
pub struct ObjectIds {
    /// Ids for the runtime to give out.
    pub space: IdSpace,
    /// How far the hash is shifted in mark words, if hooks write ids there.
    pub mark_shift: OnceLock<u32>,
    /// Where the hashes of locked objects are.
    pub locks: OnceLock<Locks>,
    /// Ids as tags, if they are not identity hashes.
    pub tags: OnceLock<Tags>,
    /// Ids of announced objects, for HeapProxy.
    pub known: Box<[AtomicU32]>,
}

impl ObjectIds {
    /// The state at the beginning of a run.
    pub fn new(space: IdSpace) -> Self {
        Self {
            space,
            mark_shift: OnceLock::new(),
            locks: OnceLock::new(),
            tags: OnceLock::new(),
            known: (0..KNOWN_SLOTS).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// The id of an object; assigns one if it has none. Records nothing. `classes` has ids that must not be given out
    /// again.
    pub fn get(&self, machine: &Machine, classes: &Classes, env: Env, object: Object) -> u32 {
        match self.tags.get() {
            Some(tags) => tags.give(&self.space, env, object, |ids| classes.add_ids(ids)),
            None => machine.hotspot.identity_hash(env, object),
        }
    }

    /// The id of an object; 0 if it has none, or if that cannot be determined.
    pub fn get_if_any(&self, machine: &Machine, env: Env, object: Object) -> u32 {
        match self.tags.get() {
            Some(tags) => tags.of(object),
            None => machine.proxy.peek_hash(env, object),
        }
    }
}
