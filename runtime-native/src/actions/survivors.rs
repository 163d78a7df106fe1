//! Notes in the trace which objects are still in the heap.

use std::time::Instant;

use et_format::{HeapWalk, Nanos};

use crate::actions::present::HeapLister;
use crate::tracer::Tracer;
use crate::tracer::collector::is_concurrent;
use et_jvm::env::Env;
use et_jvm::jvmti::JvmtiError;

/// Notes what is there now.
pub fn note(tracer: &Tracer, env: Env, lister: &HeapLister) -> Result<(), JvmtiError> {
    walk(tracer, env, lister, HeapWalk::default())
}

/// Notes at the end of the trace what can be reached. Nothing is done if survivors are not asked for.
pub fn note_the_last(tracer: &Tracer, env: Env) {
    let Some(survival) = &tracer.collections.survival else { return };
    // Walks by two threads at a time would be in the trace in any order.
    if !survival.end() {
        return;
    }
    let noted = HeapLister::new(tracer, env).and_then(|lister| {
        let is_exact = finds_only_what_can_be_reached(tracer);
        let noted = is_exact.and_then(|is_exact| {
            walk(tracer, env, &lister, HeapWalk { at_the_end: true, is_exact, ..HeapWalk::default() })
        });
        lister.dispose();
        noted
    });
    if let Err(error) = noted {
        let line = format!("what was in the heap at the end is not known: {error}");
        tracer.output.queue.problem(line, 1);
    }
}

/// Has the collector free what it can. Returns whether a walk then finds only what can be reached.
fn finds_only_what_can_be_reached(tracer: &Tracer) -> Result<bool, JvmtiError> {
    // Their walks go along references. At the end of the VM, waiting for a collection would never end.
    if is_concurrent() {
        return Ok(true);
    }
    let before = tracer.collections.finished();
    tracer.machine.jvmti.collect_garbage()?;
    // Epsilon does not collect.
    Ok(tracer.collections.finished() > before)
}

fn walk(tracer: &Tracer, env: Env, lister: &HeapLister, walk: HeapWalk) -> Result<(), JvmtiError> {
    let Tracer { output, run, .. } = tracer;
    let (nanos, begin, start) = (run.nanos(), output.buffers.next_ticket(), Instant::now());
    let mut objects = Vec::new();
    lister.list(tracer, env, |id| objects.push(id))?;
    let (end, duration) = (output.buffers.next_ticket(), start.elapsed());
    objects.sort_unstable();
    objects.dedup();
    let walk = HeapWalk { begin, end, nanos, duration: Nanos(duration.as_nanos() as u64), ..walk };
    walk.encode(&objects).into_iter().for_each(|raw| output.queue.survivors(raw));
    Ok(())
}
