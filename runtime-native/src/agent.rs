//! What the VM calls: the agent's entry points and JVMTI's events. HeapProxy's natives are in `natives`.
//!
//! No panic leaves this module and no failure disturbs the program: the worst outcome is that tracing ends with one
//! line of explanation.
#![allow(unsafe_code, reason = "entry points from C, with raw pointers of the VM")]

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use jni_sys::{JNI_ERR, JNI_OK, JNIEnv, JavaVM, jclass, jint, jlong, jmethodID, jobject};

use crate::jvm::env::{Env, Object, Vm};
use crate::jvm::jvmti::{Callbacks, Capability, EventKind, Jvmti, MethodId, RawEnv};
use crate::options::{Options, PROPERTY_PREFIX, Sources, Target, VARIABLE};
use crate::patience::Patience;
use crate::report::say;
use crate::sink::Sink;
use crate::{dynamic, prepared, start, tracer, writer};

/// What `Agent_OnLoad` leaves for the VM's start.
static PREPARED: Mutex<Option<Prepared>> = Mutex::new(None);

struct Prepared {
    vm: Vm,
    options: Options,
    /// None while the trace would be the only thing in its place: see [`try_sink`].
    sink: Option<Sink>,
    patience: Arc<Patience>,
    pid: u32,
}

/// Runs `body`; a panic in it ends tracing.
pub fn guarded<T>(env: Option<Env>, fallback: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(cause) => {
            let text = cause.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("unknown cause");
            say(format_args!("internal error, tracing stops here, the program runs on: {text}"));
            if let Some(tracer) = tracer::get() {
                // The trace will have an end, at which all seems well.
                tracer.queue.problem(format!("internal error, tracing stopped before the program ended: {text}"), 1);
                tracer.give_up(env);
            }
            fallback
        }
    }
}

/// Called by the VM before it starts, for `-agentpath` and `-agentlib`.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(vm: *mut JavaVM, options: *const c_char, _reserved: *mut c_void) -> jint {
    guarded(None, JNI_ERR, || {
        // The message goes out in `guarded`, on one line.
        std::panic::set_hook(Box::new(|_| {}));
        // SAFETY: as the VM hands them over: a string that ends with zero, or null.
        let (vm, agent) = unsafe {
            let agent = if options.is_null() { "".into() } else { CStr::from_ptr(options).to_string_lossy() };
            (Vm::new(vm), agent)
        };
        match vm.map_or(Err("the VM gave no interface".into()), |vm| load(vm, &agent)) {
            Ok(()) => JNI_OK,
            Err(line) => {
                say(line);
                JNI_ERR
            }
        }
    })
}

/// Called by the VM when a tool wants to load the agent into a running program.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    _vm: *mut JavaVM,
    _options: *const c_char,
    _reserved: *mut c_void,
) -> jint {
    say("tracing cannot begin in a running program: start it with -agentpath, as et.args does");
    JNI_ERR
}

fn load(vm: Vm, agent: &str) -> Result<(), String> {
    let jvmti = Jvmti::new(vm).ok_or("this JVM offers no JVMTI 1.2")?;
    let sources = Sources {
        variable: std::env::var(VARIABLE).unwrap_or_default(),
        properties: properties(jvmti),
        agent: agent.to_owned(),
    };
    let options = Options::read(&sources, std::process::id()).map_err(|error| error.to_string())?;
    options.notes.iter().for_each(say);
    let callbacks = Callbacks {
        vm_init: Some(vm_init),
        vm_death: Some(vm_death),
        thread_start: Some(thread_start),
        thread_end: Some(thread_end),
        class_file_load_hook: Some(class_file_load_hook),
        class_prepare: Some(class_prepare),
        breakpoint: Some(breakpoint),
        garbage_collection_start: Some(garbage_collection_start),
        garbage_collection_finish: Some(garbage_collection_finish),
        object_free: Some(object_free),
    };
    if options.names_methods() {
        jvmti.add_capabilities(&[Capability::BreakpointEvents]).map_err(|error| {
            format!(
                "only one agent, such as a debugger, may set breakpoints: start and stop can name no methods ({error})"
            )
        })?;
    }
    let mut capabilities = vec![Capability::GarbageCollectionEvents, Capability::AllClassHookEvents];
    if options.collector.is_some() {
        capabilities.extend([Capability::TagObjects, Capability::ObjectFreeEvents]);
    }
    jvmti
        .add_capabilities(&capabilities)
        .and_then(|()| jvmti.set_callbacks(&callbacks))
        .and_then(|()| jvmti.set_event(EventKind::VmInit, true))
        .and_then(|()| jvmti.set_event(EventKind::VmDeath, true))
        .map_err(|error| error.to_string())?;
    // At last: what fails before leaves no empty file behind.
    let patience = Arc::new(Patience::new(options.patience));
    let sink = try_sink(&options, &patience)?;
    *PREPARED.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Prepared { vm, options, sink, patience, pid: std::process::id() });
    // SAFETY: a function of this library, which is never unloaded.
    unsafe { libc::atexit(at_exit) };
    Ok(())
}

/// Opens the trace, so that mistakes end the run here. A file that was not there goes again until the VM is up: one that gives
/// up before (a module that it does not find) tells nobody, and would leave it empty.
fn try_sink(options: &Options, patience: &Arc<Patience>) -> Result<Option<Sink>, String> {
    let is_new = matches!(&options.target, Target::File(path) if path.symlink_metadata().is_err());
    let sink = open_sink(options, patience)?;
    if is_new {
        sink.discard();
        return Ok(None);
    }
    Ok(Some(sink))
}

fn open_sink(options: &Options, patience: &Arc<Patience>) -> Result<Sink, String> {
    let sink = Sink::open_as(&options.target, options.text.as_ref(), patience.clone());
    let sink = sink.map_err(|error| error.to_string())?;
    if let (Target::File(wanted), Some(path)) = (&options.target, sink.path())
        && wanted != path
    {
        say(format_args!("{} is being written by another process, this trace is {}", wanted.display(), path.display()));
    }
    Ok(sink.discarding_events(options.discard))
}

/// The system properties that are options.
fn properties(jvmti: Jvmti) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in jvmti.system_properties() {
        if let Some(option) = name.strip_prefix(PROPERTY_PREFIX)
            && let Ok(c_name) = std::ffi::CString::new(name.as_str())
            && let Some(value) = jvmti.system_property(&c_name)
        {
            found.push((option.to_owned(), value));
        }
    }
    found
}

unsafe extern "system" fn vm_init(jvmti: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: as the VM hands them over.
    let (jvmti, env, thread) = unsafe { (Jvmti::from_raw(jvmti), Env::new(env), Object::new(thread)) };
    guarded(env, (), || {
        let prepared = PREPARED.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(prepared), Some(jvmti), Some(env), Some(thread)) = (prepared, jvmti, env, thread) else { return };
        let Prepared { vm, options, sink, patience, .. } = prepared;
        let sink = match sink.map_or_else(|| open_sink(&options, &patience), Ok) {
            Ok(sink) => sink,
            Err(error) => return say(error),
        };
        // A frame of our own: more references are made than a callback may count on.
        let started = env.frame(128, |env| start::run(vm, jvmti, env, thread, &options, sink, patience));
        if let Err(error) = started {
            say(error);
            // The trace, if it was begun, gets its end.
            if let Some(tracer) = tracer::get() {
                tracer.end(env, "error");
            }
        }
    });
}

unsafe extern "system" fn vm_death(_jvmti: *mut RawEnv, env: *mut JNIEnv) {
    // SAFETY: as the VM hands it over.
    let env = unsafe { Env::new(env) };
    guarded(env, (), || {
        if let (Some(tracer), Some(env)) = (tracer::get(), env) {
            tracer.control.end_with_vm(tracer, env);
        }
    });
}

/// Not every process that exits tells its VM before.
extern "C" fn at_exit() {
    guarded(None, (), || {
        // A forked child shares our files, and is not the program.
        let is_us = |pid| pid == std::process::id();
        match (tracer::get(), PREPARED.lock().unwrap_or_else(PoisonError::into_inner).take()) {
            (Some(tracer), _) if is_us(tracer.pid) => tracer.end_at_exit(),
            // The VM did not come up, and has said why: an empty trace would tell nothing.
            (None, Some(Prepared { sink: Some(sink), pid, .. })) if is_us(pid) => sink.discard(),
            // Nothing is closed twice.
            (_, prepared) => std::mem::forget(prepared),
        }
    });
}

unsafe extern "system" fn thread_start(_jvmti: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: as the VM hands them over.
    let (env, thread) = unsafe { (Env::new(env), Object::new(thread)) };
    guarded(env, (), || {
        if let (Some(tracer), Some(env), Some(thread)) = (tracer::get(), env, thread) {
            tracer.threads.started(tracer, env, thread);
        }
    });
}

unsafe extern "system" fn thread_end(_jvmti: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: as the VM hands them over.
    let (env, thread) = unsafe { (Env::new(env), Object::new(thread)) };
    guarded(env, (), || {
        if let (Some(tracer), Some(env), Some(thread)) = (tracer::get(), env, thread) {
            tracer.threads.ended(tracer, env, thread);
        }
    });
}

unsafe extern "system" fn class_prepare(_jvmti: *mut RawEnv, env: *mut JNIEnv, _thread: jobject, class: jclass) {
    // SAFETY: as the VM hands them over.
    let (env, class) = unsafe { (Env::new(env), Object::new(class)) };
    guarded(env, (), || {
        if let (Some(tracer), Some(env), Some(class)) = (tracer::get(), env, class) {
            tracer.control.class_prepared(tracer, class);
            if tracer.control.is_tracing() {
                tracer.classes.define(tracer, env, class, false);
                prepared::announce(tracer, env, class);
            }
        }
    });
}

unsafe extern "system" fn breakpoint(
    _jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    _location: jlong,
) {
    // SAFETY: as the VM hands them over.
    let (env, thread) = unsafe { (Env::new(env), Object::new(thread)) };
    guarded(env, (), || {
        if let (Some(tracer), Some(env), Some(thread)) = (tracer::get(), env, thread) {
            tracer.control.method_called(tracer, env, thread, MethodId(method));
        }
    });
}

/// Of interest where a class is redefined only: those that are defined have their hooks, or get them on another way
/// (`dynamic`), which knows more about them and can go back.
unsafe extern "system" fn class_file_load_hook(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    redefined: jclass,
    _loader: jobject,
    _name: *const c_char,
    _protection_domain: jobject,
    length: jint,
    bytes: *const u8,
    new_length: *mut jint,
    new_bytes: *mut *mut u8,
) {
    if redefined.is_null() || bytes.is_null() {
        return;
    }
    // SAFETY: as the VM hands them over.
    let (jvmti, env, class) = unsafe { (Jvmti::from_raw(jvmti), Env::new(env), Object::new(redefined)) };
    guarded(env, (), || {
        let (Some(tracer), Some(jvmti), Some(env), Some(class)) = (tracer::get(), jvmti, env, class) else { return };
        // SAFETY: so many bytes are there, until we return.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, usize::try_from(length).unwrap_or(0)) };
        let Some(ours) = dynamic::redefined(tracer, env, class, bytes) else { return };
        if let (Ok(length), Ok(memory)) = (jint::try_from(ours.len()), jvmti.allocate(&ours)) {
            // SAFETY: the VM's places for the answer; it frees the memory.
            unsafe {
                *new_length = length;
                *new_bytes = memory;
            }
        }
    });
}

unsafe extern "system" fn garbage_collection_start(_jvmti: *mut RawEnv) {
    guarded(None, (), || {
        if let Some(tracer) = tracer::get() {
            tracer.gc_starts();
        }
    });
}

unsafe extern "system" fn garbage_collection_finish(_jvmti: *mut RawEnv) {
    guarded(None, (), || {
        if let Some(tracer) = tracer::get() {
            tracer.gc_finishes();
        }
    });
}

/// The body of the thread that waits for what `start` and `stop` name.
///
/// # Safety
/// Called by the VM only.
pub unsafe extern "system" fn control_thread(_jvmti: *mut RawEnv, env: *mut JNIEnv, _argument: *mut c_void) {
    // SAFETY: as the VM hands it over.
    let env = unsafe { Env::new(env) };
    guarded(env, (), || {
        if let (Some(tracer), Some(env)) = (tracer::get(), env) {
            tracer.control.watcher_runs.wait();
            tracer.control.watch(tracer, env);
        }
    });
}

/// An object with that tag is gone.
///
/// # Safety
/// Called by the VM only.
pub unsafe extern "system" fn object_free(_jvmti: *mut RawEnv, tag: jlong) {
    guarded(None, (), || {
        if let Some(tracer) = tracer::get() {
            tracer.freed(tag);
        }
    });
}

/// The body of the writer's thread.
///
/// # Safety
/// Called by the VM only.
pub unsafe extern "system" fn writer_thread(_jvmti: *mut RawEnv, env: *mut JNIEnv, _argument: *mut c_void) {
    // SAFETY: as the VM hands it over.
    let env = unsafe { Env::new(env) };
    guarded(env, (), || {
        let Some(tracer) = tracer::get() else { return };
        let sink = tracer.sink.lock().unwrap_or_else(PoisonError::into_inner).take();
        tracer.writer_runs.wait();
        if let Some(sink) = sink {
            let written = writer::run(tracer.run, &tracer.queue, &tracer.buffers, sink, tracer, tracer.start);
            *tracer.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
        }
    });
    // Also after a panic: the program's end waits for the writer's.
    if let Some(tracer) = tracer::get() {
        tracer.queue.writer_is_gone();
    }
}
