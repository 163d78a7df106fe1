//! The thread profiler: contention for monitors, and waits. How long they took is measured here, which JVMTI does not tell.

use std::cell::Cell;
use std::time::Instant;

use et_ddm::ours::{Event, Events, Happened};
use et_jvm::env::{Env, Object};
use et_jvm::jvmti::{EventKind, JvmtiError};

use crate::hub::Note;
use crate::state::Monitor;
use crate::xml::Element;
use crate::{classes, ids, threads, time};

/// What the current thread has begun.
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

/// Switches the events: they cost nothing while nobody wants them.
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

/// What all four have in common: who, and which monitor.
fn begin(monitor: &Monitor, env: Env, thread: Object, object: Object) -> (u32, u64) {
    let number = threads::id(env, thread);
    threads::define(monitor, env, thread, number);
    (number, ids::of(monitor, env, object))
}

fn tell(monitor: &Monitor, what: impl FnOnce() -> Happened) {
    if monitor.hub.wants(Events::MONITORS) {
        monitor.hub.put(Note::Event(Event { time_ns: time::nanos(), what: what() }));
    }
}

fn log(monitor: &Monitor, name: &str, thread: u32, object: u64, rest: impl FnOnce(Element) -> Element) {
    if let Some(xml) = monitor.xml.as_ref().filter(|_| thread != 0 && object != 0) {
        let element = Element::new(name).number("threadIdRef", thread).time(time::now()).number("objIdRef", object);
        xml.put(&rest(element).end());
    }
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
    // By now it may be our own: nobody is known to have had it then.
    let owner = owner.filter(|owner| *owner != thread);
    ENTERS.set(Some(Begun { since, thread, monitor: id, owner: owner.unwrap_or(0) }));
    tell(monitor, || Happened::ContendedEnter {
        monitor: id,
        class: classes::name_of_object(monitor, env, object),
        thread,
        owner: owner.unwrap_or(0),
    });
    log(monitor, "monContendedEnter", thread, id, |element| element.maybe("threadOwner", owner));
}

/// It has got it.
pub fn contended_entered(monitor: &Monitor, env: Env, thread: Object, object: Object) {
    let now = Instant::now();
    let (thread, id) = begin(monitor, env, thread, object);
    let begun = ENTERS.take().filter(|begun| begun.thread == thread && begun.monitor == id);
    tell(monitor, || Happened::ContendedEntered {
        monitor: id,
        class: classes::name_of_object(monitor, env, object),
        thread,
        owner: begun.map_or(0, |begun| begun.owner),
        waited_ns: begun.map_or(0, |begun| now.duration_since(begun.since).as_nanos() as u64),
    });
    log(monitor, "monContendedEntered", thread, id, |element| element);
}

/// The current thread is about to wait; 0: without a limit.
pub fn wait(monitor: &Monitor, env: Env, thread: Object, object: Object, timeout: i64) {
    let (thread, id) = begin(monitor, env, thread, object);
    tell(monitor, || Happened::Wait {
        monitor: id,
        class: classes::name_of_object(monitor, env, object),
        thread,
        timeout_ms: timeout.max(0) as u64,
    });
    log(monitor, "monWait", thread, id, |element| element.number("timeout", timeout));
    WAITS.set(Some(Begun { since: Instant::now(), thread, monitor: id, owner: 0 }));
}

/// It has waited. A wait that had begun before anybody wanted to know has no time.
pub fn waited(monitor: &Monitor, env: Env, thread: Object, object: Object, is_timed_out: bool) {
    let now = Instant::now();
    let (thread, id) = begin(monitor, env, thread, object);
    let begun = WAITS.take().filter(|begun| begun.thread == thread && begun.monitor == id);
    let Some(waited) = begun.map(|begun| now.duration_since(begun.since)) else { return };
    tell(monitor, || Happened::Waited {
        monitor: id,
        class: classes::name_of_object(monitor, env, object),
        thread,
        waited_ns: waited.as_nanos() as u64,
        timed_out: is_timed_out,
    });
    log(monitor, "monWaited", thread, id, |element| element.number("timeout", waited.as_millis()));
}
