//! What the VM calls first: the agent's entry points, and JVMTI's event `VMInit`. Later events are handled in
//! `tracing`; the natives of HeapProxy are in `natives`.
//!
//! No panic leaves this module and no failure disturbs the program: at worst tracing ends with one line of
//! explanation.
#![allow(unsafe_code, reason = "entry points from C, with raw pointers of the VM")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use jni_sys::{JNI_ERR, JNI_OK, JavaVM, jint};

use crate::actions::monitors;
use crate::base::patience::Patience;
use crate::base::report::say;
use crate::entry::children;
use crate::entry::early::{self, Early};
use crate::entry::start;
use crate::live;
use crate::options::{Options, PROPERTY_PREFIX, Sources, Target, VARIABLE};
use crate::output::sink::Sink;
use crate::tracer::{self, guarded};
use et_format::trace_path;
use et_jvm::env::{Env, Object, Vm};
use et_jvm::flags::Flags;
use et_jvm::imports;
use et_jvm::jvmti::{Capability, EventKind, Jvmti};
use et_jvm::listener::Listener;
use et_jvm::standard_files;
use et_jvm::sync::lock;

/// State from `Agent_OnLoad` for `VMInit`, and for an exit before it, whose handler has no arguments.
static PREPARED: Mutex<Option<Prepared>> = Mutex::new(None);

/// Whether this JVM is traced, or is to be.
static IS_TRACED: AtomicBool = AtomicBool::new(false);

/// For other agents: an instrumented JDK's own options load this library into each of its JVMs, traced or not.
#[unsafe(no_mangle)]
pub extern "C" fn et_is_traced() -> bool {
    IS_TRACED.load(Ordering::SeqCst)
}

struct Prepared {
    vm: Vm,
    options: Options,
    early: &'static Early,
    /// None if the trace file did not exist before: it is opened again when the VM is up, see [`try_sink`].
    sink: Option<Sink>,
    patience: Arc<Patience>,
    pid: u32,
    /// A traced program has started this JVM.
    is_child: bool,
}

/// Called by the VM before it starts, for `-agentpath` and `-agentlib`.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(vm: *mut JavaVM, options: *const c_char, _reserved: *mut c_void) -> jint {
    guarded(None, JNI_ERR, || {
        // `guarded` reports the panic, on one line.
        std::panic::set_hook(Box::new(|_| {}));
        // SAFETY: an argument from the VM: a string that ends with zero, or null.
        let agent = if options.is_null() { "".into() } else { unsafe { CStr::from_ptr(options) }.to_string_lossy() };
        let child = agent == trace_path::CHILD_AGENT;
        if child && !children::are_wanted() {
            return JNI_OK;
        }
        standard_files::keep_numbers();
        // SAFETY: an argument from the VM.
        let vm = unsafe { Vm::new(vm) };
        let agent = if child { Given::ToChildren } else { Given::Agent(&agent) };
        match vm.map_or(Err("the VM gave no interface".into()), |vm| load(vm, agent)) {
            Ok(()) => JNI_OK,
            // Nobody has asked for the trace of this JVM in particular.
            Err(line) if child => {
                say(format_args!("{line}: this JVM, process {}, is not traced", std::process::id()));
                JNI_OK
            }
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

/// Where the agent's string comes from.
#[derive(Clone, Copy)]
enum Given<'a> {
    /// The command line.
    Agent(&'a str),
    /// The JDK's own options: this may be a JVM that a traced program has started.
    ToChildren,
}

fn load(vm: Vm, given: Given<'_>) -> Result<(), String> {
    if lock(&PREPARED).is_some() {
        // The JDK's own options come first, those of the command line second; properties count for both.
        return Ok(());
    }
    let jvmti = Jvmti::new(vm).ok_or("this JVM offers no JVMTI 1.2")?;
    let mut sources = Sources {
        variable: std::env::var(VARIABLE).unwrap_or_default(),
        properties: properties(jvmti),
        agent: String::new(),
    };
    match given {
        Given::Agent(agent) => agent.clone_into(&mut sources.agent),
        Given::ToChildren => match children::of_this_jvm(&sources) {
            Some(variable) => sources.variable = variable,
            None => return Ok(()),
        },
    }
    let options = Options::read(&sources, std::process::id()).map_err(|error| error.to_string())?;
    options.notes.iter().for_each(say);
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
    if options.monitors {
        capabilities.extend(monitors::CAPABILITIES);
    }
    jvmti
        .add_capabilities(&capabilities)
        .and_then(|()| jvmti.listen(&UNTIL_THE_VM_IS_UP))
        .and_then(|()| jvmti.set_event(EventKind::VmInit, true))
        .and_then(|()| jvmti.set_event(EventKind::VmDeath, true))
        .map_err(|error| error.to_string())?;
    if let Some(wanted) = &options.live {
        live::load(vm, wanted)?;
    }
    // Last, so that an earlier error leaves no empty file behind.
    let patience = Arc::new(Patience::new(options.patience));
    let sink = try_sink(&options, &patience)?;
    let early = early::install(options.dynamic.then(|| options.dynamic_filter.clone()));
    let is_child = matches!(given, Given::ToChildren);
    *lock(&PREPARED) = Some(Prepared { vm, options, early, sink, patience, pid: std::process::id(), is_child });
    IS_TRACED.store(true, Ordering::SeqCst);
    // SAFETY: a function of this library, which is never unloaded.
    unsafe { libc::atexit(at_exit) };
    Ok(())
}

/// Opens the trace, so that mistakes end the run here. A new file is removed again until the VM is up: a VM that fails
/// to start (because of a missing module) does not report that, and would leave an empty file.
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
    Ok(sink)
}

/// System properties that are options, without the prefix.
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

/// Handles JVMTI's events until the VM is up.
struct UntilTheVmIsUp;

static UNTIL_THE_VM_IS_UP: UntilTheVmIsUp = UntilTheVmIsUp;

impl Listener for UntilTheVmIsUp {
    fn vm_init(&self, jvmti: Jvmti, env: Env, thread: Object) {
        let prepared = lock(&PREPARED).take();
        let Some(Prepared { vm, options, early, sink, patience, is_child, .. }) = prepared else { return };
        let sink = match sink.map_or_else(|| open_sink(&options, &patience), Ok) {
            Ok(sink) => sink,
            Err(error) => {
                early.give_up();
                return say(error);
            }
        };
        if is_child && let Some(path) = sink.path() {
            children::tell_of_trace(path);
        }
        // In a frame of its own: it creates more local references than a callback is guaranteed.
        let prepared = start::Prepared { early, sink, patience };
        let started = env.frame(128, |env| start::run(vm, jvmti, env, thread, &options, prepared));
        if let Err(error) = started {
            say(error);
            early.give_up();
            // If the trace has begun, it gets its end.
            if let Some(tracer) = tracer::get() {
                tracer.end(env, "error");
            }
        }
        notice_exits_without_handlers(env);
    }

    fn panicked(&self, env: Option<Env>, why: &str) {
        tracer::panicked(env, why);
    }
}

/// With `-XX:+ExitOnOutOfMemoryError` newer VMs (21 and 25, but not 11 and 17) end the process by `_exit`, so that no exit handler runs.
fn notice_exits_without_handlers(env: Env) {
    let Some(tracer) = tracer::get().filter(|tracer| !tracer.has_ended()) else { return };
    if Flags::find(env).and_then(|flags| flags.is_on(c"ExitOnOutOfMemoryError")) != Some(true) {
        return;
    }
    let (old, new) = (libc::_exit as *const c_void, exit_at_once as *const c_void);
    // SAFETY: the C library's function and ours, which is never unloaded, have the same signature.
    if !unsafe { imports::replace(env, c"_exit", old, new) } {
        let line =
            "if memory runs out (ExitOnOutOfMemoryError) this VM may exit without notice: the trace is cut off then";
        tracer.output.queue.problem(line, 1);
    }
}

/// The exit code of `-XX:+ExitOnOutOfMemoryError`. A crashing VM may call `_exit` too, with another code: then nothing
/// is reliable.
const OUT_OF_MEMORY: c_int = 3;

/// Replaces `_exit` for libjvm: if memory ran out, ends the trace first.
extern "C" fn exit_at_once(code: c_int) -> ! {
    if code == OUT_OF_MEMORY {
        at_exit();
    }
    // SAFETY: the call that the VM has made.
    unsafe { libc::_exit(code) }
}

/// The exit handler: ends the trace, or removes an empty one. Not every process reports `VMDeath` before it exits.
extern "C" fn at_exit() {
    guarded(None, (), || {
        // A forked child shares our files, but is not the traced program.
        let is_us = |pid| pid == std::process::id();
        match (tracer::get(), lock(&PREPARED).take()) {
            (Some(tracer), _) if is_us(tracer.run.pid) => tracer.end_at_exit(),
            // The VM did not start, and has reported why: an empty trace would be useless.
            (None, Some(Prepared { sink: Some(sink), pid, .. })) if is_us(pid) => sink.discard(),
            // A forked child must not close what its parent uses.
            (_, prepared) => std::mem::forget(prepared),
        }
    });
}
