//! The functions of the interface. No panic leaves one of them, and after `JVM_SHUT_DOWN` they do nothing.
#![allow(unsafe_code, reason = "functions that agents call, with pointers of theirs")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::Ordering;

use et_jvmpi_interface::abi::{
    CallFrame, CallTrace, Details, Interface, ObjAlloc, ObjectId, VERSIONS, event, outcome, status,
};
use et_jvmpi_interface::monitor_functions;
use jni_sys::{JNI_ERR, JNI_OK, JNIEnv, jint, jlong, jmethodID, jobject};

use crate::catalogue::{Class, method_id, method_of};
use crate::host::{self, Host, Phase};
use crate::teller::start_of;
use crate::vm;

thread_local! {
    /// This is the thread that plays the trace.
    static PLAYS: Cell<bool> = const { Cell::new(false) };
}

/// The current thread plays the trace.
pub fn this_thread_plays() {
    PLAYS.set(true);
}

/// Simulated CPU time of an entry or exit in nanoseconds.
const STEP: u64 = 1000;

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

fn guarded<R>(fallback: R, body: impl FnOnce(&'static Host) -> R) -> R {
    let Some(host) = host::get() else { return fallback };
    host.session.guarded(fallback, || body(host))
}

fn switch(kind: jint, on: bool) -> jint {
    guarded(outcome::FAIL, |host| {
        let is_dump = matches!(kind, event::HEAP_DUMP | event::MONITOR_DUMP | event::OBJECT_DUMP);
        if is_dump || !event::is_known(kind) {
            return outcome::NOT_AVAILABLE;
        }
        host.set_enabled(kind, on);
        outcome::SUCCESS
    })
}

extern "C" fn enable_event(kind: jint, _argument: *mut c_void) -> jint {
    switch(kind, true)
}

extern "C" fn disable_event(kind: jint, _argument: *mut c_void) -> jint {
    switch(kind, false)
}

extern "C" fn request_event(kind: jint, argument: *mut c_void) -> jint {
    let id = argument as ObjectId;
    guarded(outcome::FAIL, |host| {
        if host.session.phase() != Phase::Live {
            return outcome::FAIL;
        }
        let told = match kind {
            event::CLASS_LOAD => class_load(host, id),
            event::THREAD_START => thread_start(host, id),
            event::OBJECT_ALLOC => object_alloc(host, id),
            event::HEAP_DUMP | event::MONITOR_DUMP | event::OBJECT_DUMP => {
                host.left_out.dumps.fetch_add(1, Ordering::Relaxed);
                return outcome::NOT_AVAILABLE;
            }
            _ => return outcome::NOT_AVAILABLE,
        };
        if told.is_some() { outcome::SUCCESS } else { outcome::FAIL }
    })
}

fn class_load(host: &Host, id: ObjectId) -> Option<()> {
    if id == 0 {
        Class::of_classes().with_event(|details| host.tell_requested(event::CLASS_LOAD, details));
        return Some(());
    }
    let class = host.catalogue.of_id(id)?;
    // It has been reported and need not be reported again.
    class.is_first_time();
    class.with_event(|details| host.tell_requested(event::CLASS_LOAD, details));
    Some(())
}

fn thread_start(host: &Host, id: ObjectId) -> Option<()> {
    let object = host.heap().get(id)?.object;
    let (name, env) = {
        let threads = host.threads();
        let thread = threads.of_object(object)?;
        (thread.name.clone(), thread.env())
    };
    host.tell_requested(event::THREAD_START, start_of(&name, id, env));
    Some(())
}

fn object_alloc(host: &Host, id: ObjectId) -> Option<()> {
    if let Some(class) = host.catalogue.of_id(id) {
        // It has been reported and need not be reported again.
        class.is_new_object();
        let obj_alloc = class.object(host.catalogue.of_classes().map_or(0, |of_classes| of_classes.id));
        host.tell_requested(event::OBJECT_ALLOC, Details { obj_alloc });
        return Some(());
    }
    let object = *host.heap().get(id)?;
    let shape = host.catalogue.shape(object.ty);
    let class_id = shape.class.and_then(|class| host.catalogue.get(class)).map_or(0, |class| class.id);
    let size = jint::try_from(object.size).unwrap_or(jint::MAX);
    let obj_alloc = ObjAlloc { arena_id: object.arena, class_id, is_array: shape.kind, size, obj_id: id };
    host.tell_requested(event::OBJECT_ALLOC, Details { obj_alloc });
    Some(())
}

extern "C" fn get_call_trace(trace: *mut CallTrace, depth: jint) {
    // SAFETY: the agent's structure, or null.
    let Some(trace) = (unsafe { trace.as_mut() }) else { return };
    trace.num_frames = 0;
    guarded((), |host| {
        let frames: Vec<CallFrame> = {
            let mut threads = host.threads();
            let Some(thread) = threads.of_env(trace.env_id) else { return };
            let site = thread.site;
            let wanted = thread.frames.iter().rev().take(usize::try_from(depth).unwrap_or(0));
            let frame = |(at, method): (usize, &et_names::MethodId)| CallFrame {
                // The trace has the lines of allocations only.
                lineno: site.filter(|(of, _)| at == 0 && of == method).map_or(-1, |(_, line)| line),
                method_id: method_id(*method),
            };
            wanted.enumerate().map(frame).collect()
        };
        if trace.frames.is_null() {
            return;
        }
        for (at, frame) in frames.iter().enumerate() {
            // SAFETY: the agent's array, with room for `depth`.
            unsafe { trace.frames.add(at).write(*frame) };
        }
        trace.num_frames = frames.len() as jint;
    });
}

extern "C" fn profiler_exit(code: jint) {
    if let Some(host) = host::get() {
        // No more events are reported.
        host.session.enter(Phase::Ended);
    }
    std::process::exit(code);
}

extern "C" fn get_current_thread_cpu_time() -> jlong {
    guarded(0, |host| {
        let steps = host.threads().of_env(vm::current()).map_or(0, |thread| thread.steps);
        jlong::try_from(steps.saturating_mul(STEP)).unwrap_or(jlong::MAX)
    })
}

fn suspend(host: &Host, there: *mut JNIEnv) -> jint {
    let is_first = {
        let mut threads = host.threads();
        let Some(thread) = threads.of_env(there).filter(|_| there != vm::current()) else { return outcome::FAIL };
        thread.look();
        // The thread that plays the trace would wait for itself.
        !PLAYS.get() && !std::mem::replace(&mut thread.is_suspended, true)
    };
    if is_first {
        host.suspended(1);
    }
    outcome::SUCCESS
}

fn resume(host: &Host, there: *mut JNIEnv) -> jint {
    let was_suspended = {
        let mut threads = host.threads();
        let Some(thread) = threads.of_env(there) else { return outcome::FAIL };
        std::mem::replace(&mut thread.is_suspended, false)
    };
    if was_suspended {
        host.suspended(-1);
    }
    outcome::SUCCESS
}

extern "C" fn suspend_thread(there: *mut JNIEnv) {
    guarded((), |host| _ = suspend(host, there));
}

extern "C" fn resume_thread(there: *mut JNIEnv) {
    guarded((), |host| _ = resume(host, there));
}

fn each(count: jint, list: *const *mut JNIEnv, results: *mut jint, act: impl Fn(&Host, *mut JNIEnv) -> jint) {
    let count = if list.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    for at in 0..count {
        // SAFETY: the agent's list with this many entries.
        let there = unsafe { *list.add(at) };
        let result = guarded(outcome::FAIL, |host| act(host, there));
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
    each(count, list, results, resume);
}

extern "C" fn get_thread_status(there: *mut JNIEnv) -> jint {
    guarded(0, |host| {
        let is_there = host.threads().of_env(there).is_some_and(|thread| thread.is_announced);
        if is_there { status::RUNNABLE } else { 0 }
    })
}

extern "C" fn thread_has_run(there: *mut JNIEnv) -> u8 {
    guarded(0, |host| u8::from(host.threads().of_env(there).is_some_and(|thread| thread.has_run)))
}

extern "C" fn create_system_thread(
    name: *const c_char,
    _priority: jint,
    body: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
) -> jint {
    let Some(body) = body else { return JNI_ERR };
    guarded(JNI_ERR, |host| {
        // Before the VM is live there are no threads.
        if host.session.phase() != Phase::Live {
            return JNI_ERR;
        }
        // SAFETY: the agent's string, or null.
        let name = if name.is_null() { c"JVMPI agent" } else { unsafe { CStr::from_ptr(name) } };
        let env = {
            let mut threads = host.threads();
            let index = threads.add(name.to_owned());
            threads.at(index).env() as usize
        };
        let run = move || {
            vm::play(env as *mut JNIEnv);
            // SAFETY: the agent's function; it gets nothing.
            host.session.call_agent(|| unsafe { body(std::ptr::null_mut()) });
        };
        if std::thread::Builder::new().spawn(run).is_ok() { JNI_OK } else { JNI_ERR }
    })
}

extern "C" fn set_thread_local_storage(there: *mut JNIEnv, storage: *mut c_void) {
    guarded((), |host| {
        if let Some(thread) = host.threads().of_env(there) {
            thread.storage = storage as usize;
        }
    });
}

extern "C" fn get_thread_local_storage(there: *mut JNIEnv) -> *mut c_void {
    guarded(std::ptr::null_mut(), |host| {
        host.threads().of_env(there).map_or(std::ptr::null_mut(), |thread| thread.storage())
    })
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
    guarded((), |host| {
        // Without a collector all that is dead was freed; at the end a collector has had its last collection.
        if host.has_collector && !host.is_at_end() {
            host.left_out.collections.fetch_add(1, Ordering::Relaxed);
        }
    });
}

extern "C" fn get_thread_object(there: *mut JNIEnv) -> ObjectId {
    guarded(0, |host| {
        let object = host.threads().of_env(there).map(|thread| thread.object);
        object.map_or(0, |object| host.heap().id_of(object))
    })
}

extern "C" fn get_method_class(method: jmethodID) -> ObjectId {
    guarded(0, |host| host.catalogue.of_method(method_of(method)).map_or(0, |class| class.id))
}

extern "C" fn id_to_object(_id: ObjectId) -> jobject {
    guarded((), |host| _ = host.left_out.jni.fetch_add(1, Ordering::Relaxed));
    std::ptr::null_mut()
}

extern "C" fn object_to_id(_object: jobject) -> ObjectId {
    guarded((), |host| _ = host.left_out.jni.fetch_add(1, Ordering::Relaxed));
    0
}
