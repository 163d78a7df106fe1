//! Which ids objects still have, when ids are about to be used again.
//!
//! A walk of the heap finds them in the mark words ([`et_jvm::mark_word`]); objects whose mark words are locks are tagged, and
//! asked for their hashes behind it. Where mark words are not found, all objects are tagged and asked: JVMTI shows objects by
//! their tags only. Objects that nobody can reach any more count as well: the collector may be about to find that out, but until then
//! a reference may bring them back. Those that come to be meanwhile have ids of blocks that threads hold, or of the VM's.

use rustc_hash::FxHashSet;

use crate::actions::heap;
use crate::tracer::Tracer;
use et_jvm::env::Env;
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};

/// Tag of objects that are to be asked.
const ASKED: i64 = 1;
/// So many tags, where all objects have one: those of one tag are asked at once, for each of which there is a local reference
/// then, and each time the VM looks through all tags.
const GROUPS: i64 = 16;
/// Local references that JNI is told of.
const LOCALS: i32 = 1 << 16;

/// The hashes of all objects that have one; none if they cannot be found out.
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
    heap::say_how_it_was_walked(tracer, "ids that objects still have were looked for", shift.is_some(), 1);
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
