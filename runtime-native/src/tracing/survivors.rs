//! The thread that looks, after collections, at what has survived them (`survival=5`).

use std::time::Instant;

use et_jvm::env::Env;

use crate::actions::present::HeapLister;
use crate::actions::survivors;
use crate::tracer::{Tracer, guarded};
use crate::tracing::begin::StartError;
use crate::tracing::control::Control;
use et_jvm::threads::agent_thread;

/// Starts the thread, if survivors are asked for. It ends with the trace.
pub fn begin(tracer: &'static Tracer, control: &Control, env: Env) -> Result<(), StartError> {
    if tracer.collections.survival.is_none() {
        return Ok(());
    }
    // Wait until it runs: its start must not be taken for that of a program thread.
    let (begins, has_begun) = std::sync::mpsc::channel::<()>();
    let thread = agent_thread(tracer.machine.jvmti, env, c"elephant-tracks survival", move |env| {
        drop(begins);
        guarded(Some(env), (), || watch(tracer, env));
    });
    control.own_thread(env, thread.map_err(|_| StartError::Thread)?);
    _ = has_begun.recv();
    Ok(())
}

fn watch(tracer: &Tracer, env: Env) {
    let Some(survival) = &tracer.collections.survival else { return };
    let mut budget = survival.budget();
    let mut lister = None;
    while survival.wait_for_collection() {
        let used = tracer.machine.hotspot.heap_use().used;
        let Some(walking) = survival.begin_after(budget.wait(used, Instant::now())) else { break };
        let begin = Instant::now();
        let noted = match lister.take().map_or_else(|| HeapLister::new(tracer, env), Ok) {
            Ok(there) => survivors::note(tracer, env, lister.insert(there)),
            Err(error) => Err(error),
        };
        budget.spent(used, begin, Instant::now());
        drop(walking);
        if let Err(error) = noted {
            tracer.output.queue.problem(format!("survivors are not looked for any more: {error}"), 1);
            break;
        }
    }
    lister.into_iter().for_each(HeapLister::dispose);
}
