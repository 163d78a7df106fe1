//! Lists the ids of all objects in the heap.
//!
//! A heap walk reads them from mark words ([`et_jvm::mark_word`]); objects whose mark words are locks are tagged, and
//! asked for their hashes afterwards. If mark words cannot be found, all objects are tagged and asked, because JVMTI
//! can list objects only by tags. If ids are tags, those are listed. What cannot be reached, but has not been freed, is
//! listed as well; ZGC and Shenandoah walk along references, and see only what can be reached.

use crate::actions::heap;
use crate::tracer::Tracer;
use et_jvm::env::Env;
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};

/// Tag of an object to be asked.
const ASKED: i64 = 1;
/// Number of different tags, if all objects are tagged. Objects with one tag are asked together: each takes a local
/// reference meanwhile, and for each tag the VM searches all objects.
const GROUPS: i64 = 16;
/// Capacity of local frames.
const LOCALS: i32 = 1 << 16;

/// Walks through the heap, as often as needed.
#[derive(Debug)]
pub struct HeapLister {
    /// `None` if ids are tags, which are listed without a walk.
    walker: Option<Jvmti>,
    /// Where hashes are in mark words; `None` if mark words cannot be found.
    shift: Option<u32>,
}

impl HeapLister {
    /// Finds out how to walk.
    pub fn new(tracer: &Tracer, env: Env) -> Result<Self, JvmtiError> {
        if tracer.ids.tags.get().is_some() {
            return Ok(Self { walker: None, shift: None });
        }
        let walker = Jvmti::new(tracer.machine.vm).ok_or(JvmtiError::NO_ENVIRONMENT)?;
        let shift =
            walker.add_capabilities(&[Capability::TagObjects]).and_then(|()| heap::mark_shift(tracer, env, walker));
        match shift {
            Ok(shift) => Ok(Self { walker: Some(walker), shift }),
            Err(error) => {
                walker.dispose();
                Err(error)
            }
        }
    }

    /// Whether ids are read from mark words.
    pub fn reads_mark_words(&self) -> bool {
        self.shift.is_some()
    }

    /// Calls `visit` with the id of each object that has one, during a safepoint and after it. An object whose mark word is a lock may be
    /// collected in between; then it is not listed.
    pub fn list(&self, tracer: &Tracer, env: Env, mut visit: impl FnMut(u32)) -> Result<(), JvmtiError> {
        if let Some(tags) = tracer.ids.tags.get() {
            return tags.list(visit);
        }
        let walker = self.walker.ok_or(JvmtiError::NO_ENVIRONMENT)?;
        let mut locked = 0_u64;
        match self.shift {
            Some(shift) => walker.heap_objects(|object| match object.hash(shift) {
                Some(0) => {}
                Some(hash) => visit(hash),
                None => {
                    *object.tag = ASKED;
                    locked += 1;
                }
            })?,
            None => walker.heap_objects(|object| {
                locked += 1;
                *object.tag = (locked as i64) % GROUPS + 1;
            })?,
        }
        if locked == 0 {
            return Ok(());
        }
        let groups = if self.reads_mark_words() { ASKED..=ASKED } else { 1..=GROUPS };
        for group in groups {
            env.frame(LOCALS, |env| {
                for object in walker.objects_with_tag(env, group)? {
                    let id = tracer.id_if_any(env, object);
                    if id != 0 {
                        visit(id);
                    }
                    // For the next walk.
                    walker.set_tag(object, 0)?;
                    env.delete_local(object);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Gives the VM back what walks took.
    pub fn dispose(self) {
        self.walker.iter().for_each(|walker| walker.dispose());
    }
}
