//! Deaths: after a collection a thread of ours walks the heap, and what was told of and is not there any more is dead. `CLASS_UNLOAD`,
//! `GC_START`, `OBJECT_FREE` and `GC_FINISH` come together then, on one thread, and no other event between.
//!
//! Not inside the VM's pause: a thread that has the agent's lock may wait for the end of the pause.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use et_jvm::env::{Env, Object};
use et_jvm::jvmti::JvmtiError;
use et_jvm::threads::agent_thread_in;
use rustc_hash::FxHashSet;

use crate::abi::{ClassUnload, Details, GcInfo, ObjFree, ObjectId, event};
use crate::classes::{self, Class, Shape};
use crate::deliver;
use crate::host::{self, Host, Phase};
use crate::ids;
use crate::objects;
use crate::records;
use crate::starts;

/// Collections that were not told of.
static PENDING: AtomicU64 = AtomicU64::new(0);
static BATCH: Mutex<()> = Mutex::new(());
/// The VM goes down, with a collector that has stopped before.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// So long whoever wants a batch waits for another: the agent's lock that it waits for may be his.
const PATIENCE: Duration = Duration::from_secs(1);
/// Walks take one part in so many of the time.
const SHARE: u32 = 20;

/// A collection is over. On the VM's thread, where nothing must be waited for.
pub fn collection_finished() {
    PENDING.fetch_add(1, Ordering::Release);
}

/// The thread that tells of deaths.
pub fn start_thread(host: &'static Host, env: Env) -> Result<(), JvmtiError> {
    env.frame(8, |env| {
        let made = |env: Env, thread: Object| _ = objects::define(host, env, thread);
        agent_thread_in(host.jvmti, env, None, c"JVMPI deaths", 5, made, move |env| {
            records::current(env.raw()).is_system.store(true, Ordering::Relaxed);
            starts::announce(host, env);
            while host.session.phase() != Phase::Ended {
                // The VM's thread tells by a number alone: it must not take a lock.
                thread::sleep(Duration::from_millis(10));
                if PENDING.load(Ordering::Acquire) > 0 {
                    let start = Instant::now();
                    batch(host, env);
                    let pause = (start.elapsed() * (SHARE - 1)).min(Duration::from_secs(5));
                    thread::sleep(pause);
                }
            }
        })
        .map(|_| ())
    })
}

/// Whether somebody wants to know of deaths.
pub fn is_wanted(host: &Host) -> bool {
    host.is_any_enabled(&[event::OBJECT_FREE, event::CLASS_UNLOAD, event::GC_START, event::GC_FINISH])
}

/// Runs the collector, and tells of what is dead before it returns.
pub fn run_collector(host: &Host, env: Env) {
    if STOPPED.load(Ordering::Acquire) {
        return;
    }
    let _ = host.jvmti.collect_garbage();
    batch(host, env);
}

/// The VM goes down. ZGC and Shenandoah have stopped by now, and would be waited for in vain.
pub fn vm_ends(host: &Host, env: Env) {
    if has_concurrent_collector() {
        STOPPED.store(true, Ordering::Release);
    }
    batch(host, env);
}

fn has_concurrent_collector() -> bool {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return false };
    tasks.flatten().any(|task| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        ["ZDriver", "ZDirector", "ZWorker", "ZStat", "Shenandoah"].iter().any(|start| name.starts_with(start))
    })
}

/// Tells of collections that are over and of what they have freed.
pub fn batch(host: &Host, env: Env) {
    if !is_wanted(host) || host.session.phase() != Phase::Live || host.gc_disabled.load(Ordering::Acquire) > 0 {
        return;
    }
    // It is held while the heap is walked. Nobody waits for it without an end, and no event does.
    let Some(_alone) = host::in_time(&BATCH, PATIENCE) else { return };
    let collections = PENDING.swap(0, Ordering::AcqRel);
    let Dead { unloaded, dead, left } = if host.is_any_enabled(&[event::OBJECT_FREE, event::CLASS_UNLOAD]) {
        dead(host, env).unwrap_or_default()
    } else if host.wants(event::GC_FINISH) && collections > 0 {
        Dead { left: count(host), ..Dead::default() }
    } else {
        Dead::default()
    };
    if collections == 0 && unloaded.is_empty() && dead.is_empty() {
        return;
    }
    starts::announce(host, env);
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
        // Collections whose deaths are told with those of the last are told of before, empty.
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

/// What is gone, and what is left.
#[derive(Debug, Default)]
struct Dead {
    /// Classes, and whether `CLASS_UNLOAD` tells of them.
    unloaded: Vec<(ObjectId, bool)>,
    dead: Vec<u32>,
    /// How many objects.
    left: u64,
}

fn count(host: &Host) -> u64 {
    let mut count = 0;
    let _ = host.jvmti.heap_objects(|_| count += 1);
    count
}

fn dead(host: &Host, env: Env) -> Result<Dead, JvmtiError> {
    // No event has defined arrays' classes, nor those that an agent which is told of classes was not told of.
    let is_meant = |class: &Class| class.is_told() || class.shape == Shape::Instance && !host.wants(event::CLASS_LOAD);
    let before: Vec<(ObjectId, bool)> = classes::all().iter().map(|class| (class.id, is_meant(class))).collect();
    let sweep = ids::begin_sweep();
    let mut seen: Vec<u32> = Vec::new();
    let left = ids::walk(host, env, false, |met| seen.push(met.id))?;
    let dead = ids::dead(sweep, &seen);
    let seen: FxHashSet<u32> = seen.into_iter().collect();
    let is_gone = |(class, _): &(ObjectId, bool)| !seen.contains(&(*class as u32));
    Ok(Dead { unloaded: before.into_iter().filter(is_gone).collect(), dead, left })
}
