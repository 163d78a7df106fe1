//! Scans objects and roots for MMTk.

use std::time::Instant;

use mmtk::Mutator;
use mmtk::scheduler::GCWorker;
use mmtk::util::{ObjectReference, VMWorkerThread};
use mmtk::vm::{ObjectTracer, ObjectTracerContext, RootsWorkFactory, Scanning, SlotVisitor};

use super::Replay;
use super::world::world;
use crate::counters;
use crate::object::{CompressedSlot, Object};

#[derive(Debug)]
pub struct Scan;

/// Number of roots per work packet; collector threads share the packets.
const PIECE: usize = 4096;

impl Scanning<Replay> for Scan {
    /// Otherwise scanned objects could not be counted.
    const UNIQUE_OBJECT_ENQUEUING: bool = true;

    fn scan_object<SV: SlotVisitor<CompressedSlot>>(_tls: VMWorkerThread, object: ObjectReference, visitor: &mut SV) {
        let object = Object::of(object);
        counters::scanned(object.bytes());
        object.slots().for_each(|slot| visitor.visit_slot(slot));
    }

    fn notify_initial_thread_scan_complete(_partial_scan: bool, _tls: VMWorkerThread) {}

    /// Threads have no roots of their own: objects that locals hold are among the roots below.
    fn scan_roots_in_mutator_thread(
        _tls: VMWorkerThread,
        _mutator: &'static mut Mutator<Replay>,
        _factory: impl RootsWorkFactory<CompressedSlot>,
    ) {
    }

    fn scan_vm_specific_roots(_tls: VMWorkerThread, mut factory: impl RootsWorkFactory<CompressedSlot>) {
        let begun = Instant::now();
        let roots = world().table.roots();
        let count = roots.len() as u64;
        for piece in roots.chunks(PIECE) {
            factory.create_process_roots_work(piece.to_vec());
        }
        world().log().roots(count, begun.elapsed());
    }

    fn supports_return_barrier() -> bool {
        false
    }

    fn prepare_for_roots_re_scanning() {}

    /// A live object not reached from a root is in a cycle that a local variable holds, or reachable from one.
    fn process_weak_refs(worker: &mut GCWorker<Replay>, context: impl ObjectTracerContext<Replay>) -> bool {
        let (begun, world) = (Instant::now(), world());
        let living = world.table.living();
        let unreached: Vec<(u32, ObjectReference)> = living
            .map(|(handle, object)| (handle, object.reference()))
            .filter(|(_, object)| !object.is_reachable())
            .collect();
        if !unreached.is_empty() {
            let mut rescued = world.rescued();
            context.with_tracer(worker, |tracer| {
                for &(handle, object) in &unreached {
                    // An earlier one may have reached and moved it.
                    let now = world.table.object(handle).map_or(object, Object::reference);
                    let kept = tracer.trace_object(now);
                    world.table.set(handle, Object::of(kept));
                    rescued.push(handle);
                }
            });
        }
        world.log().rescued(unreached.len() as u64, begun.elapsed());
        false
    }

    /// Called by plans that first mark and then move. They update root slots by themselves.
    fn forward_weak_refs(worker: &mut GCWorker<Replay>, context: impl ObjectTracerContext<Replay>) {
        let (begun, world) = (Instant::now(), world());
        let rescued = world.rescued();
        if !rescued.is_empty() {
            context.with_tracer(worker, |tracer| {
                for &handle in &*rescued {
                    if let Some(object) = world.table.object(handle).map(Object::reference) {
                        world.table.set(handle, Object::of(tracer.trace_object(object)));
                    }
                }
            });
        }
        world.log().rescued(0, begun.elapsed());
    }
}
