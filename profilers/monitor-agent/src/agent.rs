//! The library as the VM sees it: an agent of JVMTI, loaded at the start (`-agentpath`) or later (HotSpot's attach mechanism).
#![allow(unsafe_code, reason = "entry points from C, with raw pointers of the VM")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use et_ddm::ours::{Event, Events as Kinds, Happened};
use et_jvm::env::{Env, Object, Vm};
use et_jvm::jvmti::{Capability, EventKind, Jvmti, JvmtiError};
use et_jvm::listener::Listener;
use et_jvm::standard_files;
use jni_sys::{JNI_ERR, JNI_OK, JavaVM, jint};

use crate::filter::Filter;
use crate::hub::{Hub, Note};
use crate::jdwp::Jdwp;
use crate::options::{Debugging, FilterOption, Options};
use crate::start;
use crate::state::{self, Monitor, say};
use crate::xml::XmlLog;
use crate::{monitors, profile, threads, time};

/// Capabilities that are available at any time.
const CAPABILITIES: [Capability; 7] = [
    Capability::TagObjects,
    Capability::MonitorInfo,
    Capability::MonitorEvents,
    Capability::GarbageCollectionEvents,
    Capability::SourceFileName,
    Capability::LineNumbers,
    Capability::ThreadCpuTime,
];

#[derive(Debug)]
struct Events {
    monitor: &'static Monitor,
    pause_began: AtomicU64,
    has_panicked: AtomicBool,
}

thread_local! {
    /// Set while this thread runs code of the agent, whose allocations and monitors are not reported.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Events {
    fn tell(&self, tell: impl FnOnce(&'static Monitor)) {
        if self.monitor.is_live() && !INSIDE.replace(true) {
            struct Leave;
            impl Drop for Leave {
                fn drop(&mut self) {
                    INSIDE.set(false);
                }
            }
            let _leave = Leave;
            tell(self.monitor);
        }
    }

    fn collection(&self, what: Happened) {
        if self.monitor.is_live() {
            profile::collection(self.monitor, matches!(what, Happened::GcFinish { .. }));
            if self.monitor.hub.wants(Kinds::COLLECTIONS) {
                self.monitor.hub.put(Note::Event(Event { time_ns: time::nanos(), what, place: String::new() }));
            }
        }
    }
}

impl Listener for Events {
    fn vm_init(&self, _jvmti: Jvmti, env: Env, _thread: Object) {
        start::begin(self.monitor, env);
    }

    fn vm_death(&self, env: Env) {
        start::end(self.monitor, env);
    }

    fn thread_start(&self, env: Env, thread: Object) {
        self.tell(|monitor| threads::started(monitor, env, thread));
    }

    fn thread_end(&self, env: Env, thread: Object) {
        self.tell(|monitor| threads::ended(monitor, env, thread));
    }

    fn class_prepare(&self, _env: Env, class: Object) {
        self.tell(|monitor| profile::class_prepared(monitor, class));
    }

    fn monitor_wait(&self, env: Env, thread: Object, object: Object, timeout: i64) {
        self.tell(|monitor| monitors::wait(monitor, env, thread, object, timeout));
    }

    fn monitor_waited(&self, env: Env, thread: Object, object: Object, is_timed_out: bool) {
        self.tell(|monitor| monitors::waited(monitor, env, thread, object, is_timed_out));
    }

    fn monitor_contended_enter(&self, env: Env, thread: Object, object: Object) {
        self.tell(|monitor| monitors::contended_enter(monitor, env, thread, object));
    }

    fn monitor_contended_entered(&self, env: Env, thread: Object, object: Object) {
        self.tell(|monitor| monitors::contended_entered(monitor, env, thread, object));
    }

    fn sampled_object_alloc(&self, env: Env, object: Object, class: Object, size: u64) {
        self.tell(|monitor| profile::allocated(monitor, env, object, class, size));
    }

    fn object_free(&self, tag: i64) {
        if self.monitor.is_live() {
            profile::freed(self.monitor, tag);
        }
    }

    fn garbage_collection_start(&self) {
        self.pause_began.store(time::nanos(), Ordering::Relaxed);
        self.collection(Happened::GcStart);
    }

    fn garbage_collection_finish(&self) {
        let pause_ns = time::nanos().saturating_sub(self.pause_began.load(Ordering::Relaxed));
        self.monitor.hub.collections.fetch_add(1, Ordering::Relaxed);
        self.monitor.hub.pauses_ns.fetch_add(pause_ns, Ordering::Relaxed);
        self.collection(Happened::GcFinish { pause_ns });
        if self.monitor.hub.wants_collections() {
            self.monitor.hub.put(Note::Collected);
        }
    }

    fn panicked(&self, _env: Option<Env>, why: &str) {
        if !self.has_panicked.swap(true, Ordering::Relaxed) {
            say(&format!("internal error of the agent, please report it: {why}"));
        }
    }
}

fn filter(options: &Options) -> Result<Filter, String> {
    let path = match &options.filter {
        None => return Ok(Filter::default()),
        Some(FilterOption::Lines(lines)) => return Filter::parse(lines).map_err(|error| format!("filter: {error}")),
        Some(FilterOption::File(path)) => path,
    };
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Filter::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn load(raw: *mut JavaVM, text: &str, is_start: bool) -> Result<&'static Monitor, String> {
    standard_files::keep_numbers();
    // SAFETY: as the VM hands it over.
    let vm = unsafe { Vm::new(raw) }.ok_or("no VM")?;
    let plain = |error: JvmtiError| error.to_string();
    let options = Options::parse(text).map_err(|error| error.to_string())?;
    let filter = filter(&options)?;
    let jdwp = match (options.debugging, is_start) {
        (Debugging::Off, _) => None,
        (_, false) => {
            return Err("debug needs the agent from the start of the VM (-agentpath)".to_owned());
        }
        (_, true) => {
            let jvmti = Jvmti::new(vm).ok_or("no JVMTI")?;
            // SAFETY: as above. Before our own environment: its VMInit comes first.
            let jdwp = unsafe { Jdwp::load(raw, jvmti) };
            jvmti.dispose();
            Some(jdwp?)
        }
    };
    let jvmti = Jvmti::new(vm).ok_or("this VM does not support JVMTI 1.2")?;
    jvmti.add_capabilities(&CAPABILITIES).map_err(plain)?;
    // Available only during VM startup; without it, the monitor that a thread wants to enter is unknown.
    let _ = jvmti.add_capabilities(&[Capability::CurrentContendedMonitor]);
    if options.heap {
        jvmti.add_capabilities(&[Capability::ObjectFreeEvents]).map_err(plain)?;
        let taken = "another agent uses the allocation events of the VM: heap=on is not possible together with it";
        jvmti.add_capabilities(&[Capability::SampledObjectAllocEvents]).map_err(|_| taken.to_owned())?;
        jvmti.set_sampling_interval(0).map_err(plain)?;
    }
    let xml = match &options.xml {
        Some(path) => Some(XmlLog::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?),
        None => None,
    };
    let hub = Hub::new().map_err(|error| format!("no file descriptor: {error}"))?;
    let monitor = Monitor::new(vm, jvmti, options, hub, filter, xml, jdwp);
    let monitor = state::set(monitor).ok_or("it is loaded twice")?;
    let events = Events { monitor, pause_began: AtomicU64::new(0), has_panicked: AtomicBool::new(false) };
    jvmti.listen(Box::leak(Box::new(events))).map_err(plain)?;
    jvmti.set_event(EventKind::VmInit, true).map_err(plain)?;
    jvmti.set_event(EventKind::VmDeath, true).map_err(plain)?;
    Ok(monitor)
}

/// # Safety
/// `options` is null or a zero-terminated string.
unsafe fn text(options: *const c_char) -> String {
    if options.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(options) }.to_string_lossy().into_owned()
}

/// Called by the VM during startup, for `-agentpath`.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(vm: *mut JavaVM, options: *const c_char, _reserved: *mut c_void) -> jint {
    if state::get().is_some() {
        say("it is loaded twice: one -agentpath is enough");
        return JNI_ERR;
    }
    // SAFETY: as the VM hands it over.
    match load(vm, &unsafe { text(options) }, true) {
        Ok(_) => JNI_OK,
        Err(why) => {
            say(&why);
            JNI_ERR
        }
    }
}

/// Called by the VM when the agent is attached at run time. Further calls have no effect and succeed.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(vm: *mut JavaVM, options: *const c_char, _reserved: *mut c_void) -> jint {
    if state::get().is_some() {
        return JNI_OK;
    }
    // SAFETY: as the VM hands it over.
    let loaded = load(vm, &unsafe { text(options) }, false);
    match loaded.and_then(|monitor| monitor.vm.env().map(|env| (monitor, env)).ok_or("no JNI".to_owned())) {
        Ok((monitor, env)) => {
            if start::begin(monitor, env) {
                JNI_OK
            } else {
                JNI_ERR
            }
        }
        Err(why) => {
            say(&why);
            JNI_ERR
        }
    }
}
