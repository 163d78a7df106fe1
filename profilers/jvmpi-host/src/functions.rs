//! The functions of the interface. No panic leaves one of them, and after the end of the VM they do nothing.
#![allow(unsafe_code, reason = "functions that agents call, with pointers of theirs")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use et_jvm::env::{Env, Object};
use et_jvm::threads::agent_thread_in;
use jni_sys::{JNI_ERR, JNI_OK, JNIEnv, jint, jlong, jmethodID, jobject};

use crate::abi::{CallTrace, HeapDumpArg, Interface, ObjectId, VERSIONS, event, outcome};
use crate::classes;
use crate::dump;
use crate::host::{self, Host, Phase, guarded};
use crate::ids;
use crate::monitor_dump;
use crate::monitor_functions;
use crate::objects;
use crate::records::{self, Record};
use crate::starts;
use crate::sweep;
use crate::switches;
use crate::trace;

/// A new table, of version 1.2, which suits those before.
pub fn table() -> Interface {
    Interface {
        version: *VERSIONS.end(),
        notify_event: None,
        enable_event,
        disable_event,
        request_event,
        get_call_trace,
        profiler_exit,
        raw_monitor_create: monitor_functions::create,
        raw_monitor_enter: monitor_functions::enter,
        raw_monitor_exit: monitor_functions::exit,
        raw_monitor_wait: monitor_functions::wait,
        raw_monitor_notify_all: monitor_functions::notify_all,
        raw_monitor_destroy: monitor_functions::destroy,
        get_current_thread_cpu_time,
        suspend_thread,
        resume_thread,
        get_thread_status,
        thread_has_run,
        create_system_thread,
        set_thread_local_storage,
        get_thread_local_storage,
        disable_gc,
        enable_gc,
        run_gc,
        get_thread_object,
        get_method_class,
        id_to_object,
        object_to_id,
        suspend_thread_list,
        resume_thread_list,
    }
}

/// The same while the VM is live, on an attached thread, in a new frame of local references.
fn with_env<R>(fallback: R, body: impl FnOnce(&'static Host, Env) -> R) -> R
where
    R: Copy,
{
    guarded(fallback, |host| match host.env() {
        Some(env) if host.session.phase() == Phase::Live => env.frame(16, |env| body(host, env)),
        _ => fallback,
    })
}

extern "C" fn enable_event(kind: jint, _argument: *mut c_void) -> jint {
    guarded(outcome::FAIL, |host| {
        let is_dump = matches!(kind, event::HEAP_DUMP | event::MONITOR_DUMP | event::OBJECT_DUMP);
        if is_dump || !event::is_known(kind) || kind == event::OBJECT_ALLOC && !host.can_sample {
            return outcome::NOT_AVAILABLE;
        }
        host.session.set_enabled(kind, true);
        switches::apply(host, Some(kind));
        outcome::SUCCESS
    })
}

extern "C" fn disable_event(kind: jint, _argument: *mut c_void) -> jint {
    guarded(outcome::FAIL, |host| {
        let is_dump = matches!(kind, event::HEAP_DUMP | event::MONITOR_DUMP | event::OBJECT_DUMP);
        if is_dump || !event::is_known(kind) {
            return outcome::NOT_AVAILABLE;
        }
        host.session.set_enabled(kind, false);
        switches::apply(host, Some(kind));
        outcome::SUCCESS
    })
}

extern "C" fn request_event(kind: jint, argument: *mut c_void) -> jint {
    let id = argument as ObjectId;
    let told = |told: bool| if told { outcome::SUCCESS } else { outcome::FAIL };
    with_env(outcome::FAIL, |host, env| match kind {
        event::CLASS_LOAD => told(classes::tell_requested(host, env, id)),
        event::THREAD_START => told(starts::tell_requested(host, env, id)),
        event::OBJECT_ALLOC => told(objects::tell_requested(host, env, id)),
        event::HEAP_DUMP => {
            // SAFETY: the text: null, or the address of such a structure.
            let level =
                unsafe { argument.cast::<HeapDumpArg>().as_ref() }.map_or(2, |argument| argument.heap_dump_level);
            told(dump::heap(host, env, level))
        }
        event::OBJECT_DUMP => told(dump::object(host, env, id)),
        event::MONITOR_DUMP => told(monitor_dump::tell(host, env)),
        _ => outcome::NOT_AVAILABLE,
    })
}

extern "C" fn get_call_trace(trace: *mut CallTrace, depth: jint) {
    if trace.is_null() {
        return;
    }
    // SAFETY: the agent's structure. What cannot be found out has no frames.
    unsafe { (*trace).num_frames = 0 };
    with_env((), |host, env| {
        // SAFETY: a pointer from the agent with room for this many frames.
        unsafe { trace::fill(host, env, trace, depth) }
    });
}

extern "C" fn profiler_exit(code: jint) {
    let Some(host) = host::get() else { return };
    let was_live = host.session.phase() == Phase::Live;
    // No more events are reported.
    host.session.enter(Phase::Ended);
    if let Some(hotspot) = host.hotspot.get().filter(|_| was_live && host.env().is_some()) {
        hotspot.halt(code);
    }
    std::process::exit(code);
}

extern "C" fn get_current_thread_cpu_time() -> jlong {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock of the system's, with a place for its answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A thread of the agent's choice that is not the current one.
fn other(env: Env, there: *mut JNIEnv) -> Option<&'static Record> {
    records::of_env(there).filter(|_| there != env.raw())
}

fn suspend(host: &Host, env: Env, there: *mut JNIEnv) -> jint {
    let Some(record) = other(env, there).filter(|_| host.can_suspend) else { return outcome::FAIL };
    let Some(thread) = record.thread() else { return outcome::FAIL };
    if host.jvmti.suspend_thread(thread.get()).is_err() {
        return outcome::FAIL;
    }
    if !record.is_suspended.swap(true, Ordering::AcqRel) {
        host.suspended.fetch_add(1, Ordering::AcqRel);
    }
    let now = host.jvmti.thread_cpu_time(thread.get()).unwrap_or(-1);
    let before = record.cpu_time.swap(now, Ordering::Relaxed);
    record.has_run.store(now != before, Ordering::Relaxed);
    outcome::SUCCESS
}

fn resume(host: &Host, there: *mut JNIEnv) -> jint {
    let Some(record) = records::of_env(there) else { return outcome::FAIL };
    let Some(thread) = record.thread() else { return outcome::FAIL };
    if record.is_suspended.swap(false, Ordering::AcqRel) {
        host.suspended.fetch_sub(1, Ordering::AcqRel);
    }
    if host.jvmti.resume_thread(thread.get()).is_ok() { outcome::SUCCESS } else { outcome::FAIL }
}

extern "C" fn suspend_thread(there: *mut JNIEnv) {
    with_env((), |host, env| _ = suspend(host, env, there));
}

extern "C" fn resume_thread(there: *mut JNIEnv) {
    with_env((), |host, _| _ = resume(host, there));
}

fn each(
    count: jint,
    list: *const *mut JNIEnv,
    results: *mut jint,
    act: impl Fn(&'static Host, Env, *mut JNIEnv) -> jint,
) {
    let count = if list.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    for at in 0..count {
        // SAFETY: the agent's list with this many entries.
        let there = unsafe { *list.add(at) };
        let result = with_env(outcome::FAIL, |host, env| act(host, env, there));
        if !results.is_null() {
            // SAFETY: the agent's places, as many.
            unsafe { *results.add(at) = result };
        }
    }
}

extern "C" fn suspend_thread_list(count: jint, list: *const *mut JNIEnv, results: *mut jint) {
    each(count, list, results, suspend);
}

extern "C" fn resume_thread_list(count: jint, list: *const *mut JNIEnv, results: *mut jint) {
    each(count, list, results, |host, _, there| resume(host, there));
}

extern "C" fn get_thread_status(there: *mut JNIEnv) -> jint {
    with_env(0, |host, _| {
        let state = records::of_env(there)
            .and_then(Record::thread)
            .and_then(|thread| host.jvmti.thread_state(thread.get()).ok());
        state.map_or(0, monitor_dump::status_of)
    })
}

extern "C" fn thread_has_run(there: *mut JNIEnv) -> u8 {
    u8::from(records::of_env(there).is_some_and(|record| record.has_run.load(Ordering::Relaxed)))
}

extern "C" fn create_system_thread(
    name: *const c_char,
    priority: jint,
    body: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
) -> jint {
    let Some(body) = body else { return JNI_ERR };
    with_env(JNI_ERR, |host, env| {
        // SAFETY: the agent's string, or null.
        let name = if name.is_null() { c"JVMPI agent" } else { unsafe { CStr::from_ptr(name) } };
        let group = host.jvmti.top_groups(env).unwrap_or_default().first().copied();
        let run = move |env: Env| {
            records::current(env.raw()).is_system.store(true, Ordering::Relaxed);
            // SAFETY: the agent's function; it gets nothing.
            host.session.call_agent(|| unsafe { body(std::ptr::null_mut()) });
            env.clear_exception();
        };
        let made = |env: Env, thread: Object| _ = objects::define(host, env, thread);
        match agent_thread_in(host.jvmti, env, group, name, priority.clamp(1, 10), made, run) {
            Ok(_) => JNI_OK,
            Err(_) => JNI_ERR,
        }
    })
}

extern "C" fn set_thread_local_storage(there: *mut JNIEnv, storage: *mut c_void) {
    if !there.is_null() {
        guarded((), |_| records::of_env_or_new(there).storage.store(storage, Ordering::Release));
    }
}

extern "C" fn get_thread_local_storage(there: *mut JNIEnv) -> *mut c_void {
    records::of_env(there).map_or(std::ptr::null_mut(), |record| record.storage.load(Ordering::Acquire))
}

extern "C" fn disable_gc() {
    guarded((), |host| _ = host.gc_disabled.fetch_add(1, Ordering::AcqRel));
}

extern "C" fn enable_gc() {
    guarded((), |host| {
        // Not below zero: an agent may say it once too often.
        let down = |count: i32| (count > 0).then(|| count - 1);
        let _ = host.gc_disabled.fetch_update(Ordering::AcqRel, Ordering::Acquire, down);
    });
}

extern "C" fn run_gc() {
    with_env((), sweep::run_collector);
}

extern "C" fn get_thread_object(there: *mut JNIEnv) -> ObjectId {
    records::of_env(there).map_or(0, |record| record.id.load(Ordering::Relaxed))
}

extern "C" fn get_method_class(method: jmethodID) -> ObjectId {
    if method.is_null() {
        return 0;
    }
    guarded(0, |_| classes::id_of_method_class(method).unwrap_or(0))
}

extern "C" fn id_to_object(id: ObjectId) -> jobject {
    // The reference belongs to the caller, so no new frame.
    let found = guarded(0, |host| match host.env() {
        Some(env) if host.session.phase() == Phase::Live => {
            ids::find(host, env, id).map_or(0, |object| object.raw() as usize)
        }
        _ => 0,
    });
    found as jobject
}

extern "C" fn object_to_id(object: jobject) -> ObjectId {
    with_env(0, |host, env| {
        // SAFETY: the agent's reference, or null.
        unsafe { Object::new(object) }.map_or(0, |object| ids::of(host, env, object))
    })
}

/// How often the table was asked for.
pub static ASKED: AtomicUsize = AtomicUsize::new(0);
