//! State of the process: the VM, the options, and queues for notes and tasks.

use std::io;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use et_jvm::env::{Env, Global, Object, Vm};
use et_jvm::flags::Flags;
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::Jvmti;
use et_jvm::sync::{lock, made_once};
use et_names::escape;

use crate::filter::Filter;
use crate::hub::Hub;
use crate::jdwp::Jdwp;
use crate::options::Options;
use crate::task::{Call, Task};
use crate::xml::XmlLog;

static MONITOR: OnceLock<Monitor> = OnceLock::new();

/// The state of the agent.
#[derive(Debug)]
pub struct Monitor {
    pub vm: Vm,
    pub jvmti: Jvmti,
    pub options: Options,
    pub hub: Hub,
    pub filter: Filter,
    pub xml: Option<XmlLog>,
    /// The debugger's side of the VM, if it was asked for.
    pub jdwp: Option<Jdwp>,
    /// Set when the VM is live.
    pub hotspot: OnceLock<HotSpot>,
    /// Its collector works while the program runs; known at the same time.
    collects_concurrently: OnceLock<bool>,
    /// Name and version of the VM, set at the same time: the thread that sends them must not call the VM.
    pub vm_name: OnceLock<String>,
    /// The mirror of `java.lang.Class`.
    pub classes: OnceLock<Global>,
    /// The VM is up and has not ended.
    is_live: AtomicBool,
    /// `None` before its thread runs, and once the VM ends.
    tasks: Mutex<Option<Sender<Task>>>,
    /// What the handlers of the program are to do.
    calls: Mutex<Option<Sender<Call>>>,
    name: Mutex<String>,
}

impl Monitor {
    /// The state before the VM is live.
    pub fn new(
        vm: Vm,
        jvmti: Jvmti,
        options: Options,
        hub: Hub,
        filter: Filter,
        xml: Option<XmlLog>,
        jdwp: Option<Jdwp>,
    ) -> Self {
        Self {
            vm,
            jvmti,
            options,
            hub,
            filter,
            xml,
            jdwp,
            hotspot: OnceLock::new(),
            collects_concurrently: OnceLock::new(),
            vm_name: OnceLock::new(),
            classes: OnceLock::new(),
            is_live: AtomicBool::new(false),
            tasks: Mutex::default(),
            calls: Mutex::default(),
            name: Mutex::default(),
        }
    }

    /// Between the start of the VM and its end.
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    /// Sets whether the VM is live.
    pub fn set_live(&self, is_live: bool) {
        self.is_live.store(is_live, Ordering::Release);
    }

    /// Whether objects move while the program runs. Not known before the VM is up.
    pub fn collects_concurrently(&self) -> bool {
        self.collects_concurrently.get().copied().unwrap_or(false)
    }

    /// Determines the kind of collector.
    pub fn look_at_collector(&self, env: Env) {
        let flags = Flags::find(env);
        let is_on = |name| flags.and_then(|flags| flags.is_on(name)) == Some(true);
        let _ = self.collects_concurrently.set(is_on(c"UseZGC") || is_on(c"UseShenandoahGC"));
    }

    /// Sets the queues for tasks, and for calls of the program's handlers.
    pub fn set_tasks(&self, tasks: Sender<Task>, calls: Sender<Call>) {
        *lock(&self.tasks) = Some(tasks);
        *lock(&self.calls) = Some(calls);
    }

    /// There are no more tasks and calls: the two threads end once they are idle. A thread that is in native code when the VM ends holds it up for 0.3 s.
    pub fn end_tasks(&self) {
        lock(&self.tasks).take();
        lock(&self.calls).take();
    }

    /// Has a handler of the program called.
    pub fn call(&self, call: Call) {
        if let Some(calls) = &*lock(&self.calls) {
            let _ = calls.send(call);
        }
    }

    /// Has something done by the thread that may call the VM.
    pub fn task(&self, task: Task) {
        if let Some(tasks) = &*lock(&self.tasks) {
            let _ = tasks.send(task);
        }
    }

    /// Name of the program.
    pub fn name(&self) -> String {
        lock(&self.name).clone()
    }

    pub fn set_name(&self, name: String) {
        *lock(&self.name) = name;
    }

    /// The mirror of `java.lang.Class`.
    pub fn class_of_classes<'a>(&'a self, env: Env<'a>) -> Option<Object<'a>> {
        let make = || env.find_class(c"java/lang/Class").and_then(|class| env.global(class));
        made_once(&self.classes, make, |another| env.delete_global(another)).map(Global::get)
    }
}

/// The agent, if it was loaded.
pub fn get() -> Option<&'static Monitor> {
    MONITOR.get()
}

/// Sets the state, once.
pub fn set(monitor: Monitor) -> Option<&'static Monitor> {
    MONITOR.set(monitor).ok().and_then(|()| MONITOR.get())
}

/// One line on standard error; arguments and names in it do no harm to a terminal.
pub fn say(line: &str) {
    escape::say(&mut io::stderr(), format_args!("monitor: {line}"));
}
