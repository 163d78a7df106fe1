//! Events on their way to the agent.
//!
//! No event that was not enabled or requested goes out, none that the agent itself causes, and while deaths are told no other: the gate.
//! Requested events and those from inside the agent pass it, since a sampler may hold threads suspended that are inside.
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

/// So long a batch waits for those inside the agent.
const PATIENCE: Duration = Duration::from_secs(1);
/// So long an event waits for a batch: the agent may have come to us through the VM, with its lock held.
const LONGEST: Duration = Duration::from_secs(10);

/// Tells an event, if it is enabled and does not come from inside the agent. True if it went out.
pub fn tell(env: *mut JNIEnv, kind: jint, details: Details) -> bool {
    let Some(host) = host::get().filter(|host| host.wants(kind)) else { return false };
    let record = records::current(env);
    if record.is_inside() {
        return false;
    }
    through_the_gate(host, record, (env, env), kind, details);
    true
}

/// As [`tell`], in the name of another thread.
pub fn tell_for(env: *mut JNIEnv, other: *mut JNIEnv, kind: jint, details: Details) {
    let Some(host) = host::get().filter(|host| host.wants(kind)) else { return };
    let record = records::current(env);
    if !record.is_inside() {
        through_the_gate(host, record, (env, other), kind, details);
    }
}

/// As [`tell`], from inside the agent as well: what defines what is to come.
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

/// Tells an event that the agent has requested.
pub fn tell_requested(env: *mut JNIEnv, kind: jint, details: Details) {
    if let Some(host) = host::get().filter(|host| host.session.phase() == Phase::Live) {
        send(host, records::current(env), env, kind | event::REQUESTED, details);
    }
}

/// Tells an event of a batch, from behind the gate.
pub fn tell_in_batch(env: *mut JNIEnv, kind: jint, details: Details) {
    if let Some(host) = host::get().filter(|host| host.wants(kind)) {
        send(host, records::current(env), env, kind, details);
    }
}

/// What the agent makes of an event in the name of `env`. JNI, which may wait for a collection to end, is not called between entering and
/// leaving: a collection may be what a batch waits with.
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

/// What the agent has thrown with JNI since: the program has not asked for it.
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
    // Whoever asks for a batch from inside an event is there himself.
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

/// What the agent makes of an event, without asking the gate.
fn send(host: &Host, record: &Record, env: *mut JNIEnv, kind: jint, details: Details) -> Option<Details> {
    record.depth.fetch_add(1, Ordering::Relaxed);
    let answer = host.session.notify(env, kind, details);
    record.depth.fetch_sub(1, Ordering::Relaxed);
    answer
}

/// As [`tell`], but the agent may answer in the event. Whether it wants the event is the caller's to know.
pub fn ask(host: &Host, env: *mut JNIEnv, kind: jint, details: Details) -> Option<Details> {
    let record = records::current(env);
    if record.is_inside() {
        return None;
    }
    through_the_gate(host, record, (env, env), kind, details)
}
