//! Delivery of events to the agent.
//!
//! The gate: it only admits events that are enabled or requested, none that the agent itself causes, and while deaths
//! are reported no others. Requested events and those from inside the agent bypass it, since a sampler may keep threads
//! suspended that are inside.
#![allow(unsafe_code, reason = "calls the agent")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use et_jvm::env::Env;
use et_jvm::sync::lock;
use jni_sys::{JNIEnv, jint};

use crate::abi::{Details, event};
use crate::host::{self, Host, Phase};
use crate::records::{self, Record};

static INSIDE: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicBool = AtomicBool::new(false);
static CHANGE: Mutex<()> = Mutex::new(());
static CHANGED: Condvar = Condvar::new();

/// Maximum time that a batch waits for threads inside the agent.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum time that an event waits for a batch: the agent may have called the host through the VM while holding its
/// lock.
const LONGEST: Duration = Duration::from_secs(10);

/// Reports an event, if it is enabled and does not come from inside the agent. Returns whether it was delivered.
pub fn tell(env: *mut JNIEnv, kind: jint, details: Details) -> bool {
    let Some(host) = host::get().filter(|host| host.wants(kind)) else { return false };
    let record = records::current(env);
    if record.is_inside() {
        return false;
    }
    through_the_gate(host, record, (env, env), kind, details);
    true
}

/// Like [`tell`], in the name of another thread.
pub fn tell_for(env: *mut JNIEnv, other: *mut JNIEnv, kind: jint, details: Details) {
    let Some(host) = host::get().filter(|host| host.wants(kind)) else { return };
    let record = records::current(env);
    if !record.is_inside() {
        through_the_gate(host, record, (env, other), kind, details);
    }
}

/// Like [`tell`], but also from inside the agent: for definitions that later events refer to.
pub fn tell_definition(env: *mut JNIEnv, kind: jint, details: Details) -> bool {
    let Some(host) = host::get().filter(|host| host.wants(kind)) else { return false };
    let record = records::current(env);
    if record.is_inside() {
        send(host, record, env, kind, details);
    } else {
        through_the_gate(host, record, (env, env), kind, details);
    }
    true
}

/// Reports an event that the agent has requested.
pub fn tell_requested(env: *mut JNIEnv, kind: jint, details: Details) {
    if let Some(host) = host::get().filter(|host| host.session.phase() == Phase::Live) {
        send(host, records::current(env), env, kind | event::REQUESTED, details);
    }
}

/// Reports an event of a batch, bypassing the gate.
pub fn tell_in_batch(env: *mut JNIEnv, kind: jint, details: Details) {
    if let Some(host) = host::get().filter(|host| host.wants(kind)) {
        send(host, records::current(env), env, kind, details);
    }
}

/// Delivers an event in the name of `env`. JNI is not called between entering and leaving, because it may wait for the
/// end of a collection, for which a batch may be waiting.
fn through_the_gate(
    host: &Host,
    record: &Record,
    (own, env): (*mut JNIEnv, *mut JNIEnv),
    kind: jint,
    details: Details,
) -> Option<Details> {
    let quiet = without_exception(host, own);
    let counted = enter(record);
    let answer = send(host, record, env, kind, details);
    if counted {
        leave();
    }
    drop_thrown(host, quiet);
    answer
}

/// The current thread, if it throws nothing as yet. Before the VM is up it must not be asked.
fn without_exception(host: &Host, own: *mut JNIEnv) -> Option<Env<'_>> {
    if host.session.phase() == Phase::Loading {
        return None;
    }
    // SAFETY: the current thread's, or null; it lives as long as that.
    unsafe { Env::new(own) }.filter(|env| !env.has_exception())
}

/// Clears an exception that the agent has thrown through JNI: the program does not expect it.
fn drop_thrown(host: &Host, quiet: Option<Env>) {
    if quiet.is_some_and(Env::clear_exception) {
        host.left_out.java_exceptions.fetch_add(1, Ordering::Relaxed);
    }
}

/// False if it has not waited, and does not count.
fn enter(record: &Record) -> bool {
    if record.is_system.load(Ordering::Relaxed) {
        return false;
    }
    let start = Instant::now();
    loop {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        if !CLOSED.load(Ordering::SeqCst) {
            return true;
        }
        leave();
        let guard = lock(&CHANGE);
        if CLOSED.load(Ordering::SeqCst) {
            drop(CHANGED.wait_timeout(guard, Duration::from_millis(100)));
        }
        if start.elapsed() > LONGEST {
            return false;
        }
    }
}

fn leave() {
    if INSIDE.fetch_sub(1, Ordering::SeqCst) == 1 && CLOSED.load(Ordering::SeqCst) {
        drop(lock(&CHANGE));
        CHANGED.notify_all();
    }
}

/// Runs `batch` while no other thread enters the agent. One at a time.
pub fn with_gate_closed(host: &Host, env: *mut JNIEnv, batch: impl FnOnce()) {
    struct Open;
    impl Drop for Open {
        fn drop(&mut self) {
            CLOSED.store(false, Ordering::SeqCst);
            drop(lock(&CHANGE));
            CHANGED.notify_all();
        }
    }
    let quiet = without_exception(host, env);
    CLOSED.store(true, Ordering::SeqCst);
    let open = Open;
    // The thread that requests a batch from inside an event is itself inside.
    let own = usize::from(records::current(env).is_inside());
    let start = Instant::now();
    let mut guard = lock(&CHANGE);
    while INSIDE.load(Ordering::SeqCst) > own {
        if start.elapsed() > PATIENCE {
            host.left_out.gate.fetch_add(1, Ordering::Relaxed);
            break;
        }
        guard = match CHANGED.wait_timeout(guard, Duration::from_millis(20)) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
    drop(guard);
    batch();
    drop(open);
    drop_thrown(host, quiet);
}

/// Delivers an event without asking the gate.
fn send(host: &Host, record: &Record, env: *mut JNIEnv, kind: jint, details: Details) -> Option<Details> {
    record.depth.fetch_add(1, Ordering::Relaxed);
    let answer = host.session.notify(env, kind, details);
    record.depth.fetch_sub(1, Ordering::Relaxed);
    answer
}

/// Like [`tell`], for events in which the agent may answer. The caller checks whether the event is enabled.
pub fn ask(host: &Host, env: *mut JNIEnv, kind: jint, details: Details) -> Option<Details> {
    let record = records::current(env);
    if record.is_inside() {
        return None;
    }
    through_the_gate(host, record, (env, env), kind, details)
}
