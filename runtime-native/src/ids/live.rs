//! Which ids objects still have, when ids are about to be used again.
//!
//! JVMTI shows objects to a walk of the heap by their tags only, so the walk tags them, and then they are asked for their
//! hashes. Objects that nobody can reach any more count as well: the collector may be about to find that out, but until then
//! a reference may bring them back. Those that come to be meanwhile have ids of blocks that threads hold, or of the VM's.

use rustc_hash::FxHashSet;

use crate::jvm::env::Env;
use crate::jvm::jvmti::{Capability, Jvmti, JvmtiError};
use crate::tracer::Tracer;

/// Objects that are asked at once: for each there is a local reference then.
const AT_ONCE: i64 = 1 << 20;

/// The hashes of all objects that have one; none if they cannot be found out.
pub fn ids(tracer: &Tracer, env: Env) -> Option<FxHashSet<u32>> {
    let walker = Jvmti::new(tracer.vm)?;
    let found = walker.add_capabilities(&[Capability::TagObjects]).and_then(|()| ask(tracer, env, walker));
    walker.dispose();
    found.ok()
}

fn ask(tracer: &Tracer, env: Env, walker: Jvmti) -> Result<FxHashSet<u32>, JvmtiError> {
    let mut ids = FxHashSet::default();
    let mut objects = 0;
    walker.tag_all(|| {
        objects += 1;
        group_of(objects)
    })?;
    for group in 1..=group_of(objects) {
        env.frame(AT_ONCE as i32, |env| {
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

/// The tag of the n-th object, from 1.
fn group_of(number: i64) -> i64 {
    (number - 1) / AT_ONCE + 1
}
