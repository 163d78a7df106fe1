//! State shared by the program and MMTk's callbacks. One per process, like MMTk itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

use et_simulate::mmtk::Plan;
use mmtk::{MMTK, Mutator};

use super::Replay;
use crate::check::Shadow;
use crate::door::Door;
use crate::error::{self, CollectError};
use crate::log::Log;
use crate::table::Table;

/// Options of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub plan: Plan,
    pub heap: u64,
    pub nursery: Option<u64>,
    pub gc_threads: usize,
    pub stress: Option<u64>,
    pub is_checking: bool,
    pub forgets_stores: bool,
}

/// The shared state.
pub struct World {
    pub options: Options,
    pub mmtk: &'static MMTK<Replay>,
    pub table: Table,
    pub door: Door,
    log: Mutex<Log>,
    mutators: OnceLock<Box<[MutatorPlace]>>,
    /// The expected contents of all slots, if the heap is checked.
    shadow: Option<Mutex<Shadow>>,
    /// Objects of the current collection that no root reaches.
    rescued: Mutex<Vec<u32>>,
    /// Operation number and size of the object being allocated.
    pub operation: AtomicU64,
    pub wanted: AtomicU64,
    pub allocated: AtomicU64,
    /// State at the beginning of the current series of collections, for [`COLLECTIONS`].
    progress: Mutex<Progress>,
}

/// Measures whether collections free enough memory.
#[derive(Debug, Default)]
struct Progress {
    collections: u64,
    allocated: u64,
}

/// Number of collections that must together free as much as the whole heap, 1.6 % each. HotSpot gives up at less than
/// 2 % (`GCHeapFreeLimit`) if it spends nearly all time collecting.
const COLLECTIONS: u64 = 64;

#[derive(Clone, Copy)]
pub struct MutatorPlace(pub *mut Mutator<Replay>);

#[allow(unsafe_code, reason = "MMTk asks for mutators from its own threads")]
// SAFETY: the program uses mutators while it runs, MMTk while the program waits.
unsafe impl Send for MutatorPlace {}
#[allow(unsafe_code, reason = "as above")]
// SAFETY: as for `Send`.
unsafe impl Sync for MutatorPlace {}

static WORLD: OnceLock<World> = OnceLock::new();

/// The world, if it has been created.
pub fn get() -> Option<&'static World> {
    WORLD.get()
}

/// The world. Ends the process if it has not been created.
pub fn world() -> &'static World {
    match WORLD.get() {
        Some(world) => world,
        None => error::exit(1, "MMTk calls before there is anything to call"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl World {
    /// Creates the world; later calls return the existing one.
    pub fn set(options: Options, mmtk: &'static MMTK<Replay>, table: Table) -> &'static Self {
        let shadow = options.is_checking.then(|| Mutex::new(Shadow::default()));
        WORLD.get_or_init(|| Self {
            options,
            mmtk,
            table,
            door: Door::default(),
            log: Mutex::default(),
            mutators: OnceLock::new(),
            shadow,
            rescued: Mutex::default(),
            operation: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
            progress: Mutex::default(),
        })
    }

    pub fn set_mutators(&self, mutators: Vec<MutatorPlace>) {
        // Called once, before the first operation.
        _ = self.mutators.set(mutators.into_boxed_slice());
    }

    pub fn mutators(&self) -> &[MutatorPlace] {
        self.mutators.get().map_or(&[], |mutators| &**mutators)
    }

    pub fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    pub fn rescued(&self) -> MutexGuard<'_, Vec<u32>> {
        lock(&self.rescued)
    }

    pub fn shadow(&self) -> Option<MutexGuard<'_, Shadow>> {
        self.shadow.as_ref().map(lock)
    }

    fn used(&self) -> u64 {
        mmtk::memory_manager::used_bytes(self.mmtk) as u64
    }

    /// A collection begins; the program waits.
    pub fn begin_collection(&self, since: std::time::Instant) {
        let begun = std::time::Instant::now();
        self.log().begin(since, self.operation.load(Relaxed), self.used());
        self.rescued().clear();
        self.table.purge_zero();
        self.log().rescued(0, begun.elapsed());
    }

    /// The collection has ended; the program still waits.
    pub fn end_collection(&self) {
        self.log().end(self.used());
        if let Some(shadow) = self.shadow()
            && let Err(wrong) = shadow.check(&self.table)
        {
            let (count, operation) = (self.log().count, self.operation.load(Relaxed));
            let plan = self.options.plan.name();
            let said = format!("{plan}: collection {count}, during operation {operation}: {wrong}");
            error::exit(et_simulate::mmtk::CHECK_FAILED, &said);
        }
        let mut progress = lock(&self.progress);
        progress.collections += 1;
        if progress.collections == COLLECTIONS {
            let allocated = self.allocated.load(Relaxed);
            let made = allocated - progress.allocated;
            *progress = Progress { collections: 0, allocated };
            // With a small nursery it suffices that collections empty it.
            let nurseries = self.options.nursery.map_or(u64::MAX, |nursery| nursery.saturating_mul(COLLECTIONS / 2));
            // Forced collections need not free anything.
            if made < self.options.heap.min(nurseries) && self.options.stress.is_none() {
                self.too_small();
            }
        }
    }

    /// Ends the process: the object being allocated does not fit.
    pub fn too_small(&self) -> ! {
        let Options { plan, heap, nursery, .. } = self.options;
        let error = CollectError::TooSmall {
            plan,
            heap,
            nursery,
            operation: self.operation.load(Relaxed),
            wanted: self.wanted.load(Relaxed),
        };
        error::exit(et_simulate::mmtk::TOO_SMALL, &error.to_string())
    }
}
