//! The supply of object ids: chooses once how objects get them, and gives blocks of them to threads.

mod live;

use et_jvm::env::Env;

use crate::ids::{Block, Scheme, Tags, holder};
use crate::tracer::Tracer;

/// Chooses how objects get ids, and sets the hooks up for it. `unique`: the VM's hashes do not repeat.
pub fn begin(tracer: &Tracer, env: Env, wanted: Scheme, unique: bool, hash_shift: Option<i32>) -> Scheme {
    let write = || hash_shift.is_some_and(|shift| tracer.machine.proxy.write_ids(env, &tracer.machine.hotspot, shift));
    let scheme = Scheme::choose(wanted, unique, write);
    if scheme == Scheme::Tags {
        match Tags::new(tracer.machine.vm) {
            Ok(tags) => {
                tracer.ids.tags.get_or_init(|| tags);
                tracer.machine.proxy.use_tags(env);
            }
            Err(error) => tracer.output.queue.problem(format!("object ids may repeat: {error}"), 1),
        }
    }
    if scheme == Scheme::MarkWord
        && let Some(shift) = hash_shift
    {
        tracer.ids.mark_shift.get_or_init(|| shift as u32);
    }
    scheme
}

/// More ids for the current thread.
pub fn more(tracer: &Tracer, env: Env) -> Block {
    tracer.ids.space.take(holder(), || {
        let mut live = live::ids(tracer, env)?;
        // Only now, after the walk: a class unloaded meanwhile is either still known here, or forgotten everywhere.
        tracer.classes.records.add_ids(&mut live);
        Some(live)
    })
}
