//! What is kept of each thread, by its `JNIEnv`: the agent's pointer, whether it is inside the agent, what it waits for.
//!
//! Records are never freed but used again, so that whoever asks about another thread's may find it ended, and nothing worse. No lock here is
//! held while the VM is called.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use et_jvm::env::{Env, Global};
use jni_sys::JNIEnv;
use rustc_hash::FxHashMap;

use crate::host::lock;

/// See the module.
#[derive(Debug, Default)]
pub struct Record {
    /// Its `JNIEnv`; 0 once it has ended.
    pub env: AtomicUsize,
    /// Id of its `java.lang.Thread`; 0 as long as nobody has asked.
    pub id: AtomicUsize,
    /// The agent's.
    pub storage: AtomicPtr<c_void>,
    /// How deep it is inside the agent.
    pub depth: AtomicU32,
    /// `THREAD_START` was told.
    pub is_announced: AtomicBool,
    /// Of the agent's or ours: it does not wait at the gate.
    pub is_system: AtomicBool,
    /// The agent holds it suspended.
    pub is_suspended: AtomicBool,
    /// Its CPU time when it was suspended last, and whether that had grown.
    pub cpu_time: AtomicI64,
    pub has_run: AtomicBool,
    /// The object that it waits on, since when.
    pub waits_on: AtomicUsize,
    pub waits_since: AtomicU64,
    /// Who had the monitor that it wants.
    pub owner: AtomicUsize,
    thread: Mutex<Option<Global>>,
    /// The methods whose entries were told.
    pub methods: Mutex<Vec<usize>>,
    /// The branch that was run last and is not told yet.
    pub branch: Mutex<Option<Branch>>,
}

/// An instruction that decides where to go on.
#[derive(Clone, Copy, Debug)]
pub struct Branch {
    /// Its method, and where it is.
    pub method: usize,
    pub offset: i32,
}

thread_local! {
    static CURRENT: Cell<*const Record> = const { Cell::new(ptr::null()) };
}

static BY_ENV: RwLock<Option<FxHashMap<usize, &'static Record>>> = RwLock::new(None);
static UNUSED: Mutex<Vec<&'static Record>> = Mutex::new(Vec::new());
/// References to threads that have ended. Somebody may be about to use them.
static RETIRED: Mutex<VecDeque<Global>> = Mutex::new(VecDeque::new());

/// So many of them stay.
const RETIRED_KEPT: usize = 256;

impl Record {
    /// Whether the thread is inside the agent.
    pub fn is_inside(&self) -> bool {
        self.depth.load(Ordering::Relaxed) > 0
    }

    /// Its `java.lang.Thread`, if that is known.
    pub fn thread(&self) -> Option<Global> {
        *lock(&self.thread)
    }

    /// Says what its `java.lang.Thread` is. False if it is known.
    pub fn set_thread(&self, thread: Global, id: usize) -> bool {
        let mut there = lock(&self.thread);
        if there.is_some() {
            return false;
        }
        *there = Some(thread);
        self.id.store(id, Ordering::Relaxed);
        true
    }
}

/// The record of the current thread, made if there is none.
#[allow(unsafe_code, reason = "a record lives for ever")]
pub fn current(env: *mut JNIEnv) -> &'static Record {
    let there = CURRENT.get();
    // SAFETY: null, or one that was put there below.
    if let Some(record) = unsafe { there.as_ref() } {
        return record;
    }
    let record = of_env_or_new(env);
    CURRENT.set(record);
    record
}

/// The record of a thread, made if there is none.
pub fn of_env_or_new(env: *mut JNIEnv) -> &'static Record {
    if let Some(record) = of_env(env) {
        return record;
    }
    let mut table = BY_ENV.write().unwrap_or_else(PoisonError::into_inner);
    table.get_or_insert_default().entry(env as usize).or_insert_with(|| {
        let record = lock(&UNUSED).pop().unwrap_or_else(|| Box::leak(Box::default()));
        record.env.store(env as usize, Ordering::Relaxed);
        record
    })
}

/// The record of a thread that is known.
pub fn of_env(env: *mut JNIEnv) -> Option<&'static Record> {
    BY_ENV.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&(env as usize)).copied()
}

/// All that have not ended.
pub fn all() -> Vec<&'static Record> {
    BY_ENV.read().unwrap_or_else(PoisonError::into_inner).iter().flat_map(|table| table.values().copied()).collect()
}

/// The thread with a `java.lang.Thread` of that id.
pub fn of_id(id: usize) -> Option<&'static Record> {
    all().into_iter().find(|record| record.id.load(Ordering::Relaxed) == id)
}

/// The current thread has ended: another may get its `JNIEnv`.
pub fn end(env: Env) {
    CURRENT.set(ptr::null());
    let gone =
        BY_ENV.write().unwrap_or_else(PoisonError::into_inner).as_mut().and_then(|t| t.remove(&(env.raw() as usize)));
    let Some(record) = gone else { return };
    record.env.store(0, Ordering::Relaxed);
    record.id.store(0, Ordering::Relaxed);
    record.storage.store(ptr::null_mut(), Ordering::Relaxed);
    record.depth.store(0, Ordering::Relaxed);
    for flag in [&record.is_announced, &record.is_system, &record.is_suspended, &record.has_run] {
        flag.store(false, Ordering::Relaxed);
    }
    record.cpu_time.store(0, Ordering::Relaxed);
    record.waits_on.store(0, Ordering::Relaxed);
    record.owner.store(0, Ordering::Relaxed);
    lock(&record.methods).clear();
    *lock(&record.branch) = None;
    let thread = lock(&record.thread).take();
    lock(&UNUSED).push(record);
    let too_many = {
        let mut retired = lock(&RETIRED);
        retired.extend(thread);
        if retired.len() > RETIRED_KEPT { retired.pop_front() } else { None }
    };
    if let Some(thread) = too_many {
        env.delete_global(thread);
    }
}
