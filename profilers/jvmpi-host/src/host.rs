//! State of the process: the VM, the enabled events, the phase of the run, and what had to be omitted.

use std::ffi::CString;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

use et_jvm::env::{Env, Vm};
use et_jvm::hotspot::{HotSpot, Layout};
use et_jvm::jvmti::Jvmti;
pub use et_jvmpi_interface::session::Phase;
use et_jvmpi_interface::session::Session;
use et_names::escape;
use jni_sys::jint;

/// The one host of the process.
static HOST: OnceLock<Host> = OnceLock::new();

/// Counts what was omitted in a run; printed at its end.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Objects that a dump could not identify.
    pub objects: AtomicU64,
    /// Batches of deaths that did not wait any longer for a thread inside the agent.
    pub gate: AtomicU64,
    /// Classes that could not be given hooks.
    pub unhooked: AtomicU64,
    /// Methods that are too large for them.
    pub too_large: AtomicU64,
    /// Exits that were not reported because of a stack overflow; known at the end of the run.
    pub overflows: AtomicU64,
    /// Exceptions of Java that events ended with.
    pub java_exceptions: AtomicU64,
    /// Events of virtual threads, left out by option.
    pub virtual_threads: AtomicU64,
}

/// The state of the host.
#[derive(Debug)]
pub struct Host {
    pub vm: Vm,
    pub jvmti: Jvmti,
    /// Set when the VM is live.
    pub hotspot: OnceLock<HotSpot>,
    /// Where mark words hold hashes; none where they cannot be read.
    pub shift: OnceLock<Option<u32>>,
    /// Where the sizes of instances are; none where they cannot be read.
    pub layout: OnceLock<Option<Layout>>,
    /// State of the agent.
    pub session: Session,
    /// Threads that the agent holds suspended: nothing must be waited for.
    pub suspended: AtomicI32,
    /// How often the agent has said `DisableGC` more than `EnableGC`.
    pub gc_disabled: AtomicI32,
    pub can_suspend: bool,
    pub can_sample: bool,
    /// With `-Xcheck:jni`, Java 11 warns inside an event of the references that the frames around it have.
    pub counts_callers_references: AtomicBool,
    /// Whether events of virtual threads are reported.
    pub tells_virtual: AtomicBool,
    pub left_out: LeftOut,
}

impl Host {
    /// Before anything is known but the VM.
    pub fn new(vm: Vm, jvmti: Jvmti, can_suspend: bool, can_sample: bool) -> Self {
        Self {
            vm,
            jvmti,
            hotspot: OnceLock::new(),
            shift: OnceLock::new(),
            layout: OnceLock::new(),
            session: Session::default(),
            suspended: AtomicI32::new(0),
            gc_disabled: AtomicI32::new(0),
            can_suspend,
            can_sample,
            counts_callers_references: AtomicBool::new(false),
            tells_virtual: AtomicBool::new(true),
            left_out: LeftOut::default(),
        }
    }

    /// Whether one of these is enabled.
    pub fn is_any_enabled(&self, kinds: &[jint]) -> bool {
        kinds.iter().any(|kind| self.session.is_enabled(*kind))
    }

    /// Whether an event should be reported now.
    pub fn wants(&self, kind: jint) -> bool {
        self.session.is_enabled(kind) && self.session.phase() == Phase::Live
    }

    /// Where the sizes of instances are.
    pub fn layout(&self) -> Option<Layout> {
        self.layout.get().copied().flatten()
    }

    /// The environment of the current thread; none if the VM does not know it.
    pub fn env(&self) -> Option<Env<'static>> {
        self.vm.env()
    }
}

/// The host, if it has been loaded.
pub fn get() -> Option<&'static Host> {
    HOST.get()
}

/// Runs a function of the interface, or a hook, with the host; returns the fallback if there is no host, or it must no
/// longer be used.
pub fn guarded<R>(fallback: R, body: impl FnOnce(&'static Host) -> R) -> R {
    let Some(host) = get() else { return fallback };
    host.session.guarded(fallback, || body(host))
}

/// Loads the host, once. None if there is one already.
pub fn set(host: Host) -> Option<&'static Host> {
    HOST.set(host).ok().and_then(|()| HOST.get())
}

/// Why there are no events in a traced run: both need the VM's only allocation event.
pub const TRACED: &str =
    "this run is traced (libet_runtime.so): a trace and JVMPI exclude each other, load one of them";

/// Whether the tracing runtime is in this process, and not only because the JDK's own options load it into all of its JVMs.
pub fn is_traced() -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let runtime = maps.lines().find(|line| line.ends_with("/libet_runtime.so"));
    runtime.and_then(|line| line.find('/').map(|at| &line[at..])).is_some_and(says_so)
}

/// Asks the runtime; one that cannot be asked traces.
#[allow(unsafe_code, reason = "a function of another library of ours")]
fn says_so(library: &str) -> bool {
    let Ok(library) = CString::new(library) else { return true };
    // SAFETY: the library is loaded already and never unloaded; its function has no arguments and takes no locks.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return true;
        }
        let function = libc::dlsym(handle, c"et_is_traced".as_ptr());
        if function.is_null() {
            return true;
        }
        let is_traced: extern "C" fn() -> bool = std::mem::transmute(function);
        is_traced()
    }
}

/// Whether the VM checks calls of JNI. An option out of a file is not found.
pub fn is_jni_checked() -> bool {
    const OPTION: &str = "-Xcheck:jni";
    let given = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let variables = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];
    given.split(|byte| *byte == 0).any(|word| word == OPTION.as_bytes())
        || variables.iter().filter_map(|name| std::env::var(name).ok()).any(|value| value.contains(OPTION))
}

/// One line on standard error; arguments and names in it do no harm to a terminal.
pub fn say(line: &str) {
    escape::say(&mut io::stderr(), format_args!("jvmpi: {line}"));
}
