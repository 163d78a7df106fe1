//! Deaths: after a collection, a thread of the host walks the heap, and objects that were reported and are no longer
//! there are dead. `CLASS_UNLOAD`, `GC_START`, `OBJECT_FREE` and `GC_FINISH` are then delivered together, on one
//! thread, without other events in between.
//!
//! Not during the VM's pause: a thread that holds the agent's lock may be waiting for its end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use et_jvm::env::{Env, Object};
use et_jvm::jvmti::JvmtiError;
use et_jvm::sync::in_time;
use et_jvm::threads::agent_thread_in;
use rustc_hash::FxHashSet;

use crate::abi::{ClassUnload, Details, GcInfo, ObjFree, ObjectId, event};
use crate::classes::{self, Class, Shape};
use crate::deliver;
use crate::host::{Host, Phase};
use crate::ids;
use crate::objects;
use crate::records;
use crate::shown;
use crate::starts;

/// Number of collections that have not been reported.
static PENDING: AtomicU64 = AtomicU64::new(0);
static BATCH: Mutex<()> = Mutex::new(());
/// The VM goes down, with a collector that has stopped before.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Maximum time that a batch waits for a dump, which may be waiting for the agent's lock held by this thread.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum time that it waits for another batch, which may wait for a dump and then for threads inside the agent. And at the end of the VM,
/// for a walk as well: the last deaths must not be lost.
const BATCH_PATIENCE: Duration = Duration::from_secs(3);
const LAST_PATIENCE: Duration = Duration::from_secs(15);
/// Walks take at most one in this many parts of the time.
const SHARE: u32 = 20;

/// A collection is over. On the VM's thread, where nothing must be waited for.
pub fn collection_finished() {
    PENDING.fetch_add(1, Ordering::Release);
}

/// Starts the thread that reports deaths.
pub fn start_thread(host: &'static Host, env: Env) -> Result<(), JvmtiError> {
    env.frame(8, |env| {
        let made = |env: Env, thread: Object| _ = objects::define(host, env, thread);
        agent_thread_in(host.jvmti, env, None, c"JVMPI deaths", 5, made, move |env| {
            records::current(env.raw()).is_system.store(true, Ordering::Relaxed);
            starts::announce(host, env);
            let mut paused_until = Instant::now();
            while host.session.phase() != Phase::Ended {
                // The VM's thread only increments a counter, since it must not take a lock. Nor may a pause be slept through: the VM waits
                // at its end for threads in native code, such as this one.
                thread::sleep(Duration::from_millis(10));
                let start = Instant::now();
                if PENDING.load(Ordering::Acquire) > 0 && start >= paused_until {
                    batch(host, env, BATCH_PATIENCE);
                    let pause = (start.elapsed() * (SHARE - 1)).min(Duration::from_secs(5));
                    paused_until = Instant::now() + pause;
                }
            }
        })
        .map(|_| ())
    })
}

/// Whether events about deaths are enabled.
pub fn is_wanted(host: &Host) -> bool {
    host.is_any_enabled(&[event::OBJECT_FREE, event::CLASS_UNLOAD, event::GC_START, event::GC_FINISH])
}

/// Runs the collector, and reports deaths before it returns; in a dump, or if another batch does not come to an end, they are reported
/// later.
pub fn run_collector(host: &Host, env: Env) {
    if STOPPED.load(Ordering::Acquire) {
        return;
    }
    let _ = host.jvmti.collect_garbage();
    batch(host, env, BATCH_PATIENCE);
}

/// The VM goes down. ZGC and Shenandoah have stopped by now, and would be waited for in vain.
pub fn vm_ends(host: &Host, env: Env) {
    if has_concurrent_collector() {
        STOPPED.store(true, Ordering::Release);
    }
    batch(host, env, LAST_PATIENCE);
}

fn has_concurrent_collector() -> bool {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return false };
    tasks.flatten().any(|task| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        ["ZDriver", "ZDirector", "ZWorker", "ZStat", "Shenandoah"].iter().any(|start| name.starts_with(start))
    })
}

/// Reports completed collections and what they have freed.
fn batch(host: &Host, env: Env, patience: Duration) {
    if !is_wanted(host) || host.session.phase() != Phase::Live || host.gc_disabled.load(Ordering::Acquire) > 0 {
        return;
    }
    // A dump names what lives: inside it nothing dies.
    if shown::is_begun_here() {
        return;
    }
    // Held during the heap walk. Waiting for it has a timeout, and events do not wait for it.
    let Some(_alone) = in_time(&BATCH, patience) else { return };
    let collections = PENDING.swap(0, Ordering::AcqRel);
    let found = if host.is_any_enabled(&[event::OBJECT_FREE, event::CLASS_UNLOAD]) {
        dead(host, env)
    } else if host.wants(event::GC_FINISH) && collections > 0 {
        Some(Dead { left: count(host), ..Dead::default() })
    } else {
        Some(Dead::default())
    };
    let Some(Dead { unloaded, dead, left }) = found else {
        // Another time.
        PENDING.fetch_add(collections, Ordering::AcqRel);
        return;
    };
    if collections == 0 && unloaded.is_empty() && dead.is_empty() {
        return;
    }
    starts::announce(host, env);
    // What has died may be in a dump from before this walk that the agent has not seen yet.
    shown::wait_until_delivered(PATIENCE);
    let heap = host.hotspot.get().map(|hotspot| hotspot.heap_use()).unwrap_or_default();
    let gc_info = GcInfo {
        used_objects: left as i64,
        used_object_space: heap.used as i64,
        total_object_space: heap.committed as i64,
    };
    // From here on the VM is not called: an agent may hold its lock from GC_START to GC_FINISH.
    deliver::with_gate_closed(host, env.raw(), || {
        let tell = |kind, details| deliver::tell_in_batch(env.raw(), kind, details);
        for class_id in unloaded.iter().filter(|(_, is_meant)| *is_meant).map(|(class, _)| *class) {
            tell(event::CLASS_UNLOAD, Details { class_unload: ClassUnload { class_id } });
        }
        // Collections whose deaths are reported with those of the last one are reported first, without deaths.
        for _ in 1..collections.min(1000) {
            tell(event::GC_START, Details { nothing: () });
            tell(event::GC_FINISH, Details { gc_info });
        }
        tell(event::GC_START, Details { nothing: () });
        for id in &dead {
            tell(event::OBJECT_FREE, Details { obj_free: ObjFree { obj_id: *id as ObjectId } });
        }
        tell(event::GC_FINISH, Details { gc_info });
        ids::remove(&dead);
    });
    for (class, _) in unloaded {
        classes::forget(class);
    }
}

/// What has been freed, and what is left.
#[derive(Debug, Default)]
struct Dead {
    /// Unloaded classes, each with whether `CLASS_UNLOAD` is to be reported.
    unloaded: Vec<(ObjectId, bool)>,
    dead: Vec<u32>,
    /// Number of objects left.
    left: u64,
}

fn count(host: &Host) -> u64 {
    let mut count = 0;
    let _ = host.jvmti.heap_objects(|_| count += 1);
    count
}

/// None if the heap cannot be walked now.
fn dead(host: &Host, env: Env) -> Option<Dead> {
    let alone = ids::alone()?;
    // Array classes were not defined by events, nor were classes that were not reported although class events are
    // enabled.
    let is_meant = |class: &Class| class.is_told() || class.shape == Shape::Instance && !host.wants(event::CLASS_LOAD);
    let before: Vec<(ObjectId, bool)> = classes::all().iter().map(|class| (class.id, is_meant(class))).collect();
    let sweep = ids::begin_sweep();
    let mut seen: Vec<u32> = Vec::new();
    let left = ids::walk(&alone, host, env, false, |met| seen.push(met.id)).ok()?;
    drop(alone);
    let dead = ids::dead(sweep, &seen);
    let seen: FxHashSet<u32> = seen.into_iter().collect();
    let is_gone = |(class, _): &(ObjectId, bool)| !seen.contains(&(*class as u32));
    Some(Dead { unloaded: before.into_iter().filter(is_gone).collect(), dead, left })
}
