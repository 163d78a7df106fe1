//! Actions when tracing begins, at the program's start or later, and when it ends. Other threads are stopped
//! meanwhile.

use et_jvm::env::{Env, Global, Object};
use et_jvm::jvmti::{Capability, EventKind, Jvmti, JvmtiError};
use et_jvm::threads::Stopped;
use et_rewriter::rewrite::EventSet;
use thiserror::Error;

use crate::actions::{compiled, heap, monitors};
use crate::buffers::file::BufferError;
use crate::proxy::ProxyError;
use crate::tracer::Tracer;

/// Why a run is not traced.
#[derive(Debug, Error)]
pub enum StartError {
    /// There is no HeapProxy, or Thread lacks our fields.
    #[error(
        "this JDK is not instrumented, the program runs untraced: \
         make a copy with `et-instrument jdk --java-home {0} -o DIR` and run DIR/bin/java @DIR/et.args"
    )]
    NotInstrumented(String),
    /// HeapProxy and this library are of different versions.
    #[error(
        "{error}: the runtime's classes in {java_home} and libet_runtime.so are of different versions, the program runs untraced: \
         instrument the JDK again with `et-instrument jdk` of one version, and use the et.args that it writes"
    )]
    Versions {
        /// What is missing.
        error: ProxyError,
        /// The JDK that runs.
        java_home: String,
    },
    /// There is not enough memory to begin.
    #[error("{0}, the program runs untraced")]
    NoMemory(ProxyError),
    /// libjvm does not export HotSpot's tables.
    #[error("this JVM is not HotSpot, the program runs untraced")]
    NotHotSpot,
    /// The buffer file could not be created.
    #[error("{0}, the program runs untraced")]
    Buffers(#[from] BufferError),
    /// A function of JVMTI failed.
    #[error("{0}, the program runs untraced")]
    Jvmti(#[from] JvmtiError),
    /// A thread of the runtime could not be started.
    #[error("cannot start the threads that write the trace and watch over it, the program runs untraced")]
    Thread,
}

impl StartError {
    /// Why the Java half in the JDK at `java_home` cannot be used.
    pub fn of_proxy(error: ProxyError, java_home: String) -> Self {
        match error {
            ProxyError::NotInstrumented => Self::NotInstrumented(java_home),
            ProxyError::Missing(_) | ProxyError::Natives => Self::Versions { error, java_home },
            ProxyError::NoMemory => Self::NoMemory(error),
        }
    }
}

/// Stops the other threads, records what exists, switches the hooks on, and resumes the threads. `thread` is the
/// current thread, if it belongs to the program; `own` are the runtime's threads. `is_late`: the program has run
/// before.
pub fn record_what_exists(
    tracer: &'static Tracer,
    env: Env,
    thread: Option<Object>,
    own: &[Global],
    is_late: bool,
) -> Result<(), StartError> {
    let jvmti = tracer.machine.jvmti;
    let walker = Jvmti::new(tracer.machine.vm).ok_or(StartError::NotHotSpot)?;
    walker.add_capabilities(&[Capability::TagObjects])?;
    heap::link_archived(&tracer.machine, env)?;
    // Whatever may wait for a class loader or an initializer comes before other threads are stopped: they may be in one.
    heap::initialize_wrappers(env);
    if tracer.records_monitors {
        monitors::prepare(env);
    }
    let mut threads = jvmti.all_threads(env)?;
    threads.retain(|thread| !own.iter().any(|own| env.is_same(*thread, own.get())));
    let is_current = |other: Object| thread.is_some_and(|thread| env.is_same(other, thread));
    let others: Vec<Object> = threads.iter().copied().filter(|other| !is_current(*other)).collect();
    let _stopped = match Stopped::stop(jvmti, &others) {
        Ok(stopped) => Some(stopped),
        Err(_) => {
            tracer.output.queue.problem(
                "another agent (a debugger) may stop threads, so the runtime may not: what other threads did while the initial \
                 objects were recorded may be missing",
                1,
            );
            None
        }
    };
    let found = heap::record(tracer, env, walker, &threads);
    walker.dispose();
    let found = found?;
    if found.shared_ids > 0 {
        tracer
            .output
            .queue
            .problem("objects that existed at the start and share their id with another", found.shared_ids as u64);
    }
    for kind in events(tracer) {
        jvmti.set_event(kind, true)?;
    }
    if tracer.collections.collector.is_some() {
        jvmti.tell_what_is_freed()?;
    }
    tracer.machine.proxy.switch(env, true);
    if is_late && let Err(error) = compiled::drop_code(tracer.machine.vm, env) {
        let line = format!("loops that were compiled before tracing began may go on without writing events: {error}");
        tracer.output.queue.problem(line, 1);
    }
    Ok(())
}

/// Runs `body` while the other threads of the program are stopped, if possible. Their hooks are on, and events between
/// the end of the trace and the end of the process would be missing.
pub fn while_others_stand_still(tracer: &Tracer, env: Env, own: &[Global], body: impl FnOnce()) {
    env.frame(128, |env| {
        let jvmti = tracer.machine.jvmti;
        let others =
            tracer.machine.current_thread.and_then(|current| current.get(env)).zip(jvmti.all_threads(env).ok()).map(
                |(current, mut threads)| {
                    threads.retain(|thread| !env.is_same(*thread, current));
                    threads.retain(|thread| !own.iter().any(|own| env.is_same(*thread, own.get())));
                    threads
                },
            );
        // If a debugger controls threads, they cannot be stopped here. Their events are counted all the same.
        let _stopped = others.as_ref().and_then(|others| Stopped::stop(jvmti, others).ok());
        body();
    });
}

/// The JVMTI events that a run needs while it is traced.
pub fn events(tracer: &Tracer) -> impl Iterator<Item = EventKind> {
    // The VM wants it enabled by whoever walks stacks by `AsyncGetCallTrace`.
    let for_stacks = tracer.machine.proxy.jdk_events().has(EventSet::STACKS).then_some(EventKind::ClassLoad);
    EVENTS.into_iter().chain(monitors::EVENTS.into_iter().filter(|_| tracer.records_monitors)).chain(for_stacks)
}

const EVENTS: [EventKind; 6] = [
    EventKind::ThreadStart,
    EventKind::ThreadEnd,
    EventKind::ClassFileLoadHook,
    EventKind::ClassPrepare,
    EventKind::GarbageCollectionStart,
    EventKind::GarbageCollectionFinish,
];
