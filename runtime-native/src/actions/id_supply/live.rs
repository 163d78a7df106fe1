//! Finds the ids that objects still have, when ids are about to be used again.
//!
//! A walk of the heap finds them in the mark words ([`et_jvm::mark_word`]); objects whose mark words are locks are tagged, and asked for
//! their hashes after it. If mark words are not found, all objects are tagged and asked: JVMTI lists objects by their tags only. Unreachable
//! objects count as well: until the collector has found them unreachable, a reference may bring them back. Objects that are created meanwhile
//! have ids of blocks that threads own, or of the VM's part.

use rustc_hash::FxHashSet;

use crate::actions::heap;
use crate::tracer::Tracer;
use et_jvm::env::Env;
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};

/// Tag of objects that are to be asked.
const ASKED: i64 = 1;
/// Number of different tags, if all objects have one. The objects of one tag are asked at once: each takes a local reference meanwhile, and
/// for each tag the VM searches all of them.
const GROUPS: i64 = 16;
/// Capacity of local frames.
const LOCALS: i32 = 1 << 16;

/// The hashes of all objects that have one; none if they cannot be found.
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
