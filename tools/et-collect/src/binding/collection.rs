//! Stops the program for a collection and resumes it.

use mmtk::util::alloc::AllocationError;
use mmtk::util::{VMMutatorThread, VMThread, VMWorkerThread};
use mmtk::vm::{Collection, GCThreadContext};
use mmtk::{Mutator, memory_manager};

use super::world::world;
use super::{Replay, thread};
use crate::error;

#[derive(Debug)]
pub struct Stop;

impl Collection<Replay> for Stop {
    fn stop_all_mutators<F>(_tls: VMWorkerThread, mut visit: F)
    where
        F: FnMut(&'static mut Mutator<Replay>),
    {
        let world = world();
        let since = world.door.close();
        world.begin_collection(since);
        for place in world.mutators() {
            #[allow(unsafe_code, reason = "MMTk asks for references that outlive any lock")]
            // SAFETY: mutators are never freed, and the program, the only other user, waits.
            visit(unsafe { &mut *place.0 });
        }
    }

    fn resume_mutators(_tls: VMWorkerThread) {
        world().end_collection();
        world().door.open();
    }

    fn block_for_gc(_tls: VMMutatorThread) {
        world().door.wait();
    }

    fn spawn_gc_thread(_tls: VMThread, context: GCThreadContext<Replay>) {
        let GCThreadContext::Worker(worker) = context;
        let started = std::thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || memory_manager::start_worker(world().mmtk, VMWorkerThread(thread(0)), worker));
        if let Err(error) = started {
            error::exit(1, &format!("cannot start a thread that collects: {error}"));
        }
    }

    fn out_of_memory(_tls: VMThread, kind: AllocationError) {
        match kind {
            AllocationError::HeapOutOfMemory => world().too_small(),
            AllocationError::MmapOutOfMemory => error::exit(1, "the system has no memory for the heap"),
        }
    }
}
