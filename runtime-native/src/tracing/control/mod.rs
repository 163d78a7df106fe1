//! When tracing begins and ends: with the program, or at the events of the options `start` and `stop`.
//!
//! Until it begins the hooks are off, but everything is ready, and classes created at run time get hooks. What exists
//! when it begins is recorded as at the program's start.

mod breakpoints;
mod phases;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use crate::actions::{prepared, survivors};
use crate::base::report::say;
use crate::options::Trigger;
use crate::tracer::{Tracer, VM_DEATH, guarded};
use crate::tracing::begin::{self, StartError};
use breakpoints::Breakpoints;
use et_jvm::env::{Env, Global, MethodId, Object};
use et_jvm::sync::lock;
use et_jvm::threads::agent_thread;
use phases::{Phase, Phases};

/// Interval for checks of the clock and the file system.
const POLL: Duration = Duration::from_millis(20);

/// Begins and ends tracing.
#[derive(Debug)]
pub struct Control {
    start: Option<Trigger>,
    stop: Option<Trigger>,
    /// Threads of the runtime known to the VM.
    own: Mutex<Vec<Global>>,
    phases: Phases,
    is_tracing: AtomicBool,
    breakpoints: Breakpoints,
    /// Passed by the thread that watches the clock and files, when it runs.
    pub watcher_runs: Barrier,
}

impl Control {
    /// `start` and `stop` are the values of the options; `None` means the start and the end of the program.
    pub fn new(start: Option<Trigger>, stop: Option<Trigger>) -> Self {
        let breakpoints = Breakpoints::new([&start, &stop].into_iter().flatten());
        Self {
            start,
            stop,
            own: Mutex::default(),
            phases: Phases::default(),
            is_tracing: AtomicBool::new(false),
            breakpoints,
            watcher_runs: Barrier::new(2),
        }
    }

    /// Begins tracing, or prepares for the events of `start` and `stop`: sets breakpoints, starts a watching thread.
    pub fn open(&'static self, tracer: &'static Tracer, env: Env, thread: Object) -> Result<(), StartError> {
        if [&self.start, &self.stop].into_iter().flatten().any(|trigger| !matches!(trigger, Trigger::Method(_))) {
            let watch = move |env: Env| {
                guarded(Some(env), (), || {
                    self.watcher_runs.wait();
                    self.watch(tracer, env);
                });
            };
            let watcher = agent_thread(tracer.machine.jvmti, env, c"elephant-tracks control", watch);
            let watcher = watcher.map_err(|_| StartError::Thread)?;
            self.own_thread(env, watcher);
            self.watcher_runs.wait();
        }
        self.breakpoints.open(tracer.machine.jvmti, env)?;
        match self.start {
            None => self.begin(tracer, env, Some(thread)),
            Some(_) => Ok(()),
        }
    }

    /// Registers a thread of the runtime, which does not belong to the program.
    pub fn own_thread(&self, env: Env, thread: Object) {
        if let Some(thread) = env.global(thread) {
            lock(&self.own).push(thread);
        }
    }

    /// Whether JVMTI events must be recorded.
    pub fn is_tracing(&self) -> bool {
        self.is_tracing.load(Ordering::Acquire)
    }

    /// Records what exists and switches the hooks on. `thread` is the current thread, if it belongs to the program.
    fn begin(&self, tracer: &'static Tracer, env: Env, thread: Option<Object>) -> Result<(), StartError> {
        let Some(beginning) = self.phases.begin() else { return Ok(()) };
        let own = lock(&self.own).clone();
        let events = EventsOn::from_now(&self.is_tracing);
        // In a frame of its own: it creates more references than a callback is guaranteed.
        env.frame(128, |env| begin::record_what_exists(tracer, env, thread, &own, self.start.is_some()))?;
        if beginning.done() {
            events.keep();
        } else {
            // The trace has ended meanwhile.
            tracer.machine.proxy.switch(env, false);
        }
        Ok(())
    }

    /// As [`begin`](Self::begin), while the program runs. A failure ends tracing.
    fn begin_late(&self, tracer: &'static Tracer, env: Env, thread: Option<Object>) {
        if let Err(error) = self.begin(tracer, env, thread) {
            say(&error);
            tracer.output.queue.problem(error.to_string(), 1);
            self.end(tracer, env, "error");
        }
    }

    /// The VM shuts down: ends the trace, unless it has ended. Other threads are stopped while it is written, if
    /// possible.
    pub fn end_with_vm(&self, tracer: &'static Tracer, env: Env) {
        let phase = self.phases.end();
        match phase {
            Phase::Ended => {}
            Phase::Tracing { .. } => {
                if let Some(line) = self.never_came("stop", self.stop.as_ref().filter(|stop| stop.is_method())) {
                    say(format_args!("{line}: tracing continues to the end of the program"));
                }
                prepared::announce_the_rest(tracer, env);
                tracer.collections.ask_what_is_held(&tracer.output, tracer.machine.jvmti, env);
                survivors::note_the_last(tracer, env);
                let own = lock(&self.own).clone();
                begin::while_others_stand_still(tracer, env, &own, || tracer.end_with_vm(env));
                self.close(tracer);
            }
            // An incomplete beginning counts as none.
            Phase::Waiting | Phase::Beginning => {
                let line = self.never_came("start", self.start.as_ref()).unwrap_or_default();
                let line = format!("tracing did not begin: {line}");
                say(&line);
                tracer.output.queue.problem(line, 1);
                self.close(tracer);
                tracer.end(env, VM_DEATH);
            }
            Phase::Failed => {
                self.close(tracer);
                tracer.end(env, VM_DEATH);
            }
        }
    }

    /// A message about a `start` or `stop` that did not happen, with the reason if it is known.
    fn never_came(&self, option: &str, trigger: Option<&Trigger>) -> Option<String> {
        let why = match trigger? {
            Trigger::Method(name) => format!(" ({})", self.breakpoints.found(name)),
            Trigger::After(_) | Trigger::File(_) => String::new(),
        };
        Some(format!("{option}={} did not happen{why}", trigger?))
    }

    /// Ends the trace, unless it has ended.
    pub fn end(&self, tracer: &'static Tracer, env: Env, reason: &'static str) {
        let phase = self.phases.end();
        match phase {
            Phase::Ended => return,
            Phase::Tracing { .. } => {
                prepared::announce_the_rest(tracer, env);
                tracer.collections.ask_what_is_held(&tracer.output, tracer.machine.jvmti, env);
                survivors::note_the_last(tracer, env);
            }
            Phase::Waiting | Phase::Beginning | Phase::Failed => {}
        }
        self.close(tracer);
        tracer.end(env, reason);
    }

    /// Switches JVMTI's events and breakpoints off.
    fn close(&self, tracer: &Tracer) {
        for kind in begin::events(tracer) {
            let _ = tracer.machine.jvmti.set_event(kind, false);
        }
        self.breakpoints.close(tracer.machine.jvmti);
        self.is_tracing.store(false, Ordering::Release);
    }

    /// The body of the thread that watches the clock and files.
    pub fn watch(&self, tracer: &'static Tracer, env: Env) {
        loop {
            let phase = self.phases.wait(POLL);
            match phase {
                Phase::Waiting if happened(self.start.as_ref(), tracer.run.start) => self.begin_late(tracer, env, None),
                Phase::Tracing { since } if happened(self.stop.as_ref(), since) => self.end(tracer, env, "stop"),
                Phase::Ended => return,
                _ => {}
            }
        }
    }

    /// A class has been prepared.
    pub fn class_prepared(&self, tracer: &Tracer, class: Object) {
        self.breakpoints.class_prepared(tracer.machine.jvmti, class);
    }

    /// The current thread is about to run a method that has a breakpoint.
    pub fn method_called(&self, tracer: &'static Tracer, env: Env, thread: Object, method: MethodId) {
        let Some(name) = self.breakpoints.name(method) else { return };
        let is = |trigger: &Option<Trigger>| matches!(trigger, Some(Trigger::Method(wanted)) if *wanted == name);
        let phase = self.phases.now();
        match phase {
            Phase::Waiting if is(&self.start) => self.begin_late(tracer, env, Some(thread)),
            Phase::Tracing { .. } if is(&self.stop) => self.end(tracer, env, "stop"),
            _ => return,
        }
        // A method with a breakpoint is not compiled.
        if self.stop != self.start || phase != Phase::Waiting {
            self.breakpoints.forget(tracer.machine.jvmti, &name);
        }
    }
}

/// Enables recording of events until it is dropped, so that an error or a panic disables them; permanently after
/// [`keep`](EventsOn::keep).
struct EventsOn<'a>(&'a AtomicBool);

impl<'a> EventsOn<'a> {
    fn from_now(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Release);
        Self(flag)
    }

    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for EventsOn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn happened(trigger: Option<&Trigger>, since: Instant) -> bool {
    match trigger {
        Some(Trigger::After(time)) => since.elapsed() >= *time,
        Some(Trigger::File(path)) => path.exists(),
        Some(Trigger::Method(_)) | None => false,
    }
}
