//! Finds the ids in use before ids are given out again.
//!
//! A heap walk reads them from mark words ([`et_jvm::mark_word`]); objects whose mark words are locks are tagged, and
//! asked for their hashes afterwards. If mark words cannot be found, all objects are tagged and asked, because JVMTI
//! can list objects only by tags. Unreachable objects count as well: until the collector has found them, a reference
//! may resurrect them. Objects created meanwhile get ids from blocks owned by threads, or from the VM's part.

use rustc_hash::FxHashSet;

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

/// The hashes of all objects that have one; `None` if they cannot be found.
pub fn ids(tracer: &Tracer, env: Env) -> Option<FxHashSet<u32>> {
    let walker = Jvmti::new(tracer.machine.vm)?;
    let found = walker.add_capabilities(&[Capability::TagObjects]).and_then(|()| look(tracer, env, walker));
    walker.dispose();
    found.ok()
}

fn look(tracer: &Tracer, env: Env, walker: Jvmti) -> Result<FxHashSet<u32>, JvmtiError> {
    let mut ids = FxHashSet::default();
    let shift = heap::mark_shift(tracer, env, walker)?;
    let groups = match shift {
        Some(shift) => {
            walker.heap_objects(|object| match object.hash(shift) {
                Some(0) => {}
                Some(hash) => _ = ids.insert(hash),
                None => *object.tag = ASKED,
            })?;
            ASKED..=ASKED
        }
        None => {
            let mut next = 0;
            walker.heap_objects(|object| {
                next = next % GROUPS + 1;
                *object.tag = next;
            })?;
            1..=GROUPS
        }
    };
    heap::say_how_it_was_walked(tracer.output.queue, "ids that objects still have were looked for", shift.is_some(), 1);
    for group in groups {
        env.frame(LOCALS, |env| {
            for object in walker.objects_with_tag(env, group)? {
                let id = tracer.id_if_any(env, object);
                if id != 0 {
                    ids.insert(id);
                }
                env.delete_local(object);
            }
            Ok(())
        })?;
    }
    Ok(ids)
}
