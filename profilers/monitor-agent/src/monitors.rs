//! The thread profiler: monitor contention and waits. Durations are measured here, since JVMTI does not report them.

use std::cell::Cell;
use std::time::Instant;

use et_ddm::ours::{Event, Events, Happened};
use et_jvm::env::{Env, MethodId, Object};
use et_jvm::jvmti::{EventKind, JvmtiError};
use et_jvm::profiling::RawFrame;

use crate::hub::Note;
use crate::state::Monitor;
use crate::xml::XmlLog;
use crate::{classes, ids, threads, time};

/// The wait or contention that the current thread has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    since: Instant,
    /// Another may have been mounted meanwhile.
    thread: u32,
    monitor: u64,
    owner: u32,
}

thread_local! {
    static ENTERS: Cell<Option<Begun>> = const { Cell::new(None) };
    static WAITS: Cell<Option<Begun>> = const { Cell::new(None) };
}

/// Enables or disables the events, which cost nothing while disabled.
pub fn switch(monitor: &Monitor, on: bool) -> Result<(), JvmtiError> {
    for kind in [
        EventKind::MonitorContendedEnter,
        EventKind::MonitorContendedEntered,
        EventKind::MonitorWait,
        EventKind::MonitorWaited,
    ] {
        monitor.jvmti.set_event(kind, on)?;
    }
    Ok(())
}

/// What all four events share: the thread and the monitor.
fn begin(monitor: &Monitor, env: Env, thread: Object, object: Object) -> (u32, u64) {
    let number = threads::id(env, thread);
    threads::define(monitor, env, thread, number);
    (number, ids::of(monitor, env, object))
}

fn tell(monitor: &Monitor, env: Env, what: impl FnOnce() -> Happened) {
    if monitor.hub.wants(Events::MONITORS) {
        let time_ns = time::nanos();
        let place = if monitor.hub.wants(Events::PLACES) { place(monitor, env) } else { String::new() };
        monitor.hub.put(Note::Event(Event { time_ns, what: what(), place }));
    }
}

/// Maximum number of frames of `Object.wait`, and its caller.
const FRAMES: usize = 6;

/// Where the current thread is: the line that enters a monitor or calls `wait`.
fn place(monitor: &Monitor, env: Env) -> String {
    let mut frames = [RawFrame { method: std::ptr::null_mut(), location: -1 }; FRAMES];
    let count = monitor.jvmti.current_stack(None, &mut frames).unwrap_or(0).min(FRAMES);
    let mut places = frames[..count].iter().map(|it| classes::place(monitor, env, MethodId(it.method), it.location));
    let place = places.find(|it| it.class != "java.lang.Object");
    place.map_or_else(String::new, |place| place.to_string())
}

/// The log, if there is one and it has numbers for both.
fn log(monitor: &Monitor, thread: u32, object: u64) -> Option<&XmlLog> {
    monitor.xml.as_ref().filter(|_| thread != 0 && object != 0)
}

/// The current thread wants a monitor that another has.
pub fn contended_enter(monitor: &Monitor, env: Env, thread: Object, object: Object) {
    let since = Instant::now();
    // First of all: it may leave at any time.
    let owner = env.frame(16, |env| {
        let owner = monitor.jvmti.monitor_usage(env, object).ok()?.owner?;
        let number = threads::id(env, owner);
        threads::define(monitor, env, owner, number);
        (number != 0).then_some(number)
    });
    let (thread, id) = begin(monitor, env, thread, object);
    // In the meantime, the thread may own it itself: then the previous owner is unknown.
    let owner = owner.filter(|owner| *owner != thread);
    ENTERS.set(Some(Begun { since, thread, monitor: id, owner: owner.unwrap_or(0) }));
    tell(monitor, env, || Happened::ContendedEnter {
        monitor: id,
        class: classes::name_of_object(monitor, env, object),
        thread,
        owner: owner.unwrap_or(0),
    });
    if let Some(xml) = log(monitor, thread, id) {
        xml.put(&et_trcxml::contended_enter(thread, time::now(), id, owner));
    }
}

/// The thread has entered the monitor.
pub fn contended_entered(monitor: &Monitor, env: Env, thread: Object, object: Object) {
    let now = Instant::now();
    let (thread, id) = begin(monitor, env, thread, object);
    let begun = ENTERS.take().filter(|begun| begun.thread == thread && begun.monitor == id);
    tell(monitor, env, || Happened::ContendedEntered {
        monitor: id,
        class: classes::name_of_object(monitor, env, object),
        thread,
        owner: begun.map_or(0, |begun| begun.owner),
        waited_ns: begun.map_or(0, |begun| now.duration_since(begun.since).as_nanos() as u64),
    });
    if let Some(xml) = log(monitor, thread, id) {
        xml.put(&et_trcxml::contended_entered(thread, time::now(), id));
    }
}

/// The current thread is about to wait; 0: without a limit.
pub fn wait(monitor: &Monitor, env: Env, thread: Object, object: Object, timeout: i64) {
    let (thread, id) = begin(monitor, env, thread, object);
    let timeout_ms = timeout.max(0) as u64;
    tell(monitor, env, || Happened::Wait {
        monitor: id,
        class: classes::name_of_object(monitor, env, object),
        thread,
        timeout_ms,
    });
    if let Some(xml) = log(monitor, thread, id) {
        xml.put(&et_trcxml::wait(thread, time::now(), id, timeout_ms));
    }
    WAITS.set(Some(Begun { since: Instant::now(), thread, monitor: id, owner: 0 }));
}

/// A wait has ended. One that began before events were enabled has no duration.
pub fn waited(monitor: &Monitor, env: Env, thread: Object, object: Object, is_timed_out: bool) {
    let now = Instant::now();
    let (thread, id) = begin(monitor, env, thread, object);
    let begun = WAITS.take().filter(|begun| begun.thread == thread && begun.monitor == id);
    let Some(waited) = begun.map(|begun| now.duration_since(begun.since)) else { return };
    tell(monitor, env, || Happened::Waited {
        monitor: id,
        class: classes::name_of_object(monitor, env, object),
        thread,
        waited_ns: waited.as_nanos() as u64,
        timed_out: is_timed_out,
    });
    if let Some(xml) = log(monitor, thread, id) {
        xml.put(&et_trcxml::waited(thread, time::now(), id, waited.as_millis() as u64));
    }
}
