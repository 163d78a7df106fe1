//! Finds the ids in use before ids are given out again.
//!
//! Unreachable objects count as well: until the collector has found them, a reference may resurrect them. Objects
//! created meanwhile get ids from blocks owned by threads, or from the VM's part.

use rustc_hash::FxHashSet;

use crate::actions::heap;
use crate::actions::present::HeapLister;
use crate::tracer::Tracer;
use et_jvm::env::Env;

/// The hashes of all objects that have one; `None` if they cannot be found.
pub fn ids(tracer: &Tracer, env: Env) -> Option<FxHashSet<u32>> {
    let lister = HeapLister::new(tracer, env).ok()?;
    let mut ids = FxHashSet::default();
    let listed = lister.list(tracer, env, |id| _ = ids.insert(id));
    let by_marks = lister.reads_mark_words();
    lister.dispose();
    listed.ok()?;
    heap::say_how_it_was_walked(tracer.output.queue, "ids that objects still have were looked for", by_marks, 1);
    Some(ids)
}
