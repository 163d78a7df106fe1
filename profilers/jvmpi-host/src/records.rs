//! Data of each thread, by its `JNIEnv`: the agent's pointer, whether it is inside the agent, what it waits for.
//!
//! Records are reused but never freed, so another thread's record can be accessed safely, even if that has ended. No
//! lock of this module is held while the VM is called.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use et_jvm::env::{Env, Global};
use et_jvm::sync::{lock, read, write};
use jni_sys::JNIEnv;
use rustc_hash::FxHashMap;

use crate::told::Told;

/// Data of a thread.
#[derive(Debug, Default)]
pub struct Record {
    /// Its `JNIEnv`; 0 once it has ended.
    pub env: AtomicUsize,
    /// Object id of its `java.lang.Thread`; 0 until it is needed.
    pub id: AtomicUsize,
    /// The agent's thread-local storage.
    pub storage: AtomicPtr<c_void>,
    /// How deep it is inside the agent.
    pub depth: AtomicU32,
    /// Which of all threads it is: a `JNIEnv` is used again.
    serial: AtomicU64,
    /// State of its `THREAD_START`.
    pub told: Told,
    /// Its `THREAD_END` is next.
    is_ending: AtomicBool,
    /// Number of events that other threads are delivering in its name.
    spoken_for: AtomicU32,
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
    /// The monitor that it waits to enter.
    wanted: Mutex<Option<Wanted>>,
    thread: Mutex<Option<Global>>,
    /// Methods whose entries were reported.
    pub methods: Mutex<Vec<usize>>,
    /// The last branch executed, which has not been reported yet.
    pub branch: Mutex<Option<Branch>>,
}

/// An instruction that decides where to go on.
#[derive(Clone, Copy, Debug)]
pub struct Branch {
    /// Its method, and where it is.
    pub method: usize,
    pub offset: i32,
}

/// A monitor that a thread waits to enter.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Id of the monitor's object.
    object: usize,
    /// The owner, if known.
    owner: Option<Name>,
}

/// A thread, whatever became of it since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    env: usize,
    serial: u64,
}

/// The right to deliver an event in the name of a live thread that the agent knows: its `THREAD_END` waits until this
/// is dropped.
#[derive(Debug)]
pub struct Speaker(&'static Record);

impl Speaker {
    /// The `JNIEnv` of that thread.
    pub fn env(&self) -> *mut JNIEnv {
        self.0.env.load(Ordering::Relaxed) as *mut JNIEnv
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.0.spoken_for.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long a thread waits for what another is telling. An agent may stay in an event for ever.
const PATIENCE: Duration = Duration::from_secs(4);
/// The same inside the agent: the other thread may be waiting for a lock of the agent that this thread holds, which
/// cannot be avoided.
const PATIENCE_INSIDE: Duration = Duration::from_millis(200);

thread_local! {
    static CURRENT: Cell<*const Record> = const { Cell::new(ptr::null()) };
}

static BY_ENV: RwLock<Option<FxHashMap<usize, &'static Record>>> = RwLock::new(None);
static SERIAL: AtomicU64 = AtomicU64::new(1);
static UNUSED: Mutex<Vec<&'static Record>> = Mutex::new(Vec::new());
/// References to ended threads, which may still be in use.
static RETIRED: Mutex<VecDeque<Global>> = Mutex::new(VecDeque::new());

/// Number of these that are kept.
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

    /// Its name, which is valid until the thread ends.
    pub fn name(&self) -> Name {
        Name { env: self.env.load(Ordering::Acquire), serial: self.serial.load(Ordering::Relaxed) }
    }

    /// Waits until the agent has come back from the `THREAD_START` that another thread is telling.
    pub fn wait_until_told(&self) {
        wait_for_another(self, || self.told.is_told());
    }

    /// The thread waits to enter the monitor of that object. `find_owner` queries the owner from the VM.
    pub fn wants(&self, object: usize, find_owner: impl FnOnce() -> Option<Name>) {
        *lock(&self.wanted) = Some(Wanted { object, owner: None });
        let found = find_owner();
        // Another may have got it since the VM was asked, and knows better.
        if let Some(wanted) = lock(&self.wanted).as_mut() {
            wanted.owner = wanted.owner.or(found);
        }
    }

    /// The thread has entered the monitor of that object, and threads waiting for it now wait for this thread. Returns
    /// the previous owner if the thread had to wait.
    pub fn has(&self, object: usize) -> Option<Name> {
        let before = lock(&self.wanted).take_if(|wanted| wanted.object == object).and_then(|wanted| wanted.owner);
        for other in all() {
            if let Some(wanted) = lock(&other.wanted).as_mut().filter(|wanted| wanted.object == object) {
                wanted.owner = Some(self.name());
            }
        }
        before
    }

    /// Its `THREAD_END` is next: waits until other threads have delivered all events in its name.
    pub fn begin_end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        wait_for_another(self, || self.spoken_for.load(Ordering::SeqCst) == 0);
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

/// The record of the current thread, created if necessary.
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

/// The record of a thread, created if necessary.
pub fn of_env_or_new(env: *mut JNIEnv) -> &'static Record {
    if let Some(record) = of_env(env) {
        return record;
    }
    let mut table = write(&BY_ENV);
    table.get_or_insert_default().entry(env as usize).or_insert_with(|| {
        let record = lock(&UNUSED).pop().unwrap_or_else(|| Box::leak(Box::default()));
        record.serial.store(SERIAL.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        record.env.store(env as usize, Ordering::Release);
        record
    })
}

/// The record of a thread that is known.
pub fn of_env(env: *mut JNIEnv) -> Option<&'static Record> {
    read(&BY_ENV).as_ref()?.get(&(env as usize)).copied()
}

/// Acquires the right to deliver an event in the name of that thread. `None` if it has ended, or if thread events are
/// enabled and the agent does not know it yet.
pub fn speak_for(name: Name, tells_starts: bool) -> Option<Speaker> {
    let record = of_env(name.env as *mut JNIEnv)?;
    record.spoken_for.fetch_add(1, Ordering::SeqCst);
    let speaker = Speaker(record);
    let is_known =
        !record.is_ending.load(Ordering::SeqCst) && record.name() == name && (record.told.is_told() || !tells_starts);
    is_known.then_some(speaker)
}

/// Waits until another thread has completed a report; `record` is the current thread's.
pub fn wait_for_another(record: &Record, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    let patience = if record.is_inside() { PATIENCE_INSIDE } else { PATIENCE };
    while !is_so() && start.elapsed() < patience {
        thread::sleep(Duration::from_micros(100));
    }
}

/// Records of all live threads.
pub fn all() -> Vec<&'static Record> {
    read(&BY_ENV).iter().flat_map(|table| table.values().copied()).collect()
}

/// The thread with a `java.lang.Thread` of that id.
pub fn of_id(id: usize) -> Option<&'static Record> {
    all().into_iter().find(|record| record.id.load(Ordering::Relaxed) == id)
}

/// The current thread has ended: another may get its `JNIEnv`.
pub fn end(env: Env) {
    CURRENT.set(ptr::null());
    let gone = write(&BY_ENV).as_mut().and_then(|t| t.remove(&(env.raw() as usize)));
    let Some(record) = gone else { return };
    record.env.store(0, Ordering::Relaxed);
    record.id.store(0, Ordering::Relaxed);
    record.storage.store(ptr::null_mut(), Ordering::Relaxed);
    record.depth.store(0, Ordering::Relaxed);
    // Ordered after the name: a thread that sees these values sees the name as well.
    record.told.forget();
    for flag in [&record.is_ending, &record.is_system, &record.is_suspended, &record.has_run] {
        flag.store(false, Ordering::Release);
    }
    record.cpu_time.store(0, Ordering::Relaxed);
    record.waits_on.store(0, Ordering::Relaxed);
    *lock(&record.wanted) = None;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(env: usize) -> &'static Record {
        of_env_or_new(env as *mut JNIEnv)
    }

    #[test]
    fn there_are_no_events_for_a_thread_that_the_agent_does_not_know() {
        let record = thread(0x1000);
        let name = record.name();
        assert!(speak_for(name, true).is_none() && speak_for(name, false).is_some());
        record.told.done();
        assert_eq!(speak_for(name, true).map(|speaker| speaker.env() as usize), Some(0x1000));
        // Another that got its `JNIEnv`.
        record.serial.store(u64::MAX, Ordering::Relaxed);
        assert!(speak_for(name, true).is_none());
        assert_eq!(record.spoken_for.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_thread_ends_behind_what_others_tell_in_its_name() {
        let record = thread(0x2000);
        record.told.done();
        let name = record.name();
        let speaker = speak_for(name, true).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                is_over.store(true, Ordering::SeqCst);
                drop(speaker);
            });
            record.begin_end();
            assert!(is_over.load(Ordering::SeqCst));
        });
        assert!(speak_for(name, true).is_none(), "it is ending");
    }

    #[test]
    fn each_that_gets_a_monitor_is_the_owner_for_those_that_still_wait() {
        const LOCK: usize = 77;
        let [first, second, third, fourth] = [0x4000, 0x4100, 0x4200, 0x4300].map(thread);
        second.wants(LOCK, || Some(first.name()));
        third.wants(LOCK, || Some(first.name()));
        // The VM was asked before the second had got it.
        let mut had = None;
        fourth.wants(LOCK, || {
            had = second.has(LOCK);
            Some(first.name())
        });
        assert_eq!(had, Some(first.name()));
        assert_eq!(third.has(LOCK), Some(second.name()));
        assert_eq!(fourth.has(LOCK), Some(third.name()));
        assert_eq!(fourth.has(LOCK), None, "it was not waited for");
        second.wants(LOCK + 1, || Some(first.name()));
        assert_eq!((first.has(LOCK), second.has(LOCK + 1)), (None, Some(first.name())));
    }

    #[test]
    fn a_thread_does_not_wait_for_ever_for_an_agent_that_stays() {
        let record = thread(0x3000);
        let speaker = speak_for(record.name(), false);
        record.depth.store(1, Ordering::Relaxed);
        let start = Instant::now();
        record.begin_end();
        record.wait_until_told();
        assert!(speaker.is_some() && start.elapsed() >= PATIENCE_INSIDE * 2);
    }
}
