//! `MONITOR_DUMP`: owners of monitors, and threads that wait for them.

use std::sync::atomic::Ordering;

use et_jvm::env::{Env, Object};
use et_jvm::profiling::thread_state;
use jni_sys::{JNIEnv, jint};

use crate::abi::{CallFrame, CallTrace, Details, MonitorDump, ObjectId, event, record, status};
use crate::deliver;
use crate::host::Host;
use crate::ids;
use crate::objects;
use crate::raw_monitor;
use crate::records;
use crate::starts;
use crate::trace;
use crate::values::Bytes;

/// Frames that are shown of each thread.
const DEPTH: usize = 256;

/// The interface's status of a thread, of JVMTI's bits.
pub fn status_of(state: jint) -> jint {
    const SLEEPING: jint = 0x40;
    let base = if state & thread_state::BLOCKED_ON_MONITOR_ENTER != 0 {
        status::MONITOR_WAIT
    } else if state & (thread_state::WAITING | SLEEPING) != 0 {
        status::CONDVAR_WAIT
    } else {
        status::RUNNABLE
    };
    if state & thread_state::INTERRUPTED != 0 { base | status::INTERRUPTED } else { base }
}

/// Data about the monitor of an object.
#[derive(Debug, Default)]
struct Java {
    object: ObjectId,
    owner: usize,
    count: u32,
    entering: Vec<usize>,
    waiting: Vec<usize>,
}

/// Reports all monitors.
pub fn tell(host: &Host, env: Env) -> bool {
    starts::announce(host, env);
    let (mut monitors, mut stacks, mut states) = (Vec::<Java>::new(), Vec::new(), Vec::new());
    for record in records::all() {
        let there = record.env.load(Ordering::Relaxed);
        let Some(thread) = record.thread().filter(|_| there != 0) else { continue };
        let thread = thread.get();
        let Ok(state) = host.jvmti.thread_state(thread) else { continue };
        if state & thread_state::ALIVE == 0 {
            continue;
        }
        let is_own = there == env.raw() as usize;
        stacks.push((there, trace::frames(host, env, (!is_own).then(|| record.thread()).flatten(), DEPTH)));
        states.push(status_of(state));
        env.frame(64, |env| {
            let mut objects = host.jvmti.owned_monitors(env, thread).unwrap_or_default();
            objects.extend(host.jvmti.contended_monitor(env, thread).ok().flatten());
            for object in objects {
                add(host, env, object, &mut monitors);
            }
        });
        let waits_on = record.waits_on.load(Ordering::Relaxed);
        if waits_on != 0 {
            wait(&mut monitors, waits_on, there);
        }
    }
    let mut out = Bytes::default();
    for monitor in &monitors {
        out.byte(record::MONITOR_JAVA);
        out.pointer(monitor.object);
        rest(&mut out, monitor.owner, monitor.count, &monitor.entering, &monitor.waiting);
    }
    let raw = raw_monitor::snapshots();
    for monitor in &raw {
        out.byte(record::MONITOR_RAW);
        out.pointer(monitor.name.as_ptr() as usize);
        out.pointer(monitor.id);
        rest(&mut out, monitor.owner, monitor.count, &monitor.entering, &monitor.waiting);
    }
    let traces: Vec<CallTrace> = stacks
        .iter_mut()
        .map(|(there, frames): &mut (usize, Vec<CallFrame>)| CallTrace {
            env_id: *there as *mut JNIEnv,
            num_frames: frames.len() as jint,
            frames: frames.as_mut_ptr(),
        })
        .collect();
    let span = out.0.as_ptr_range();
    let monitor_dump = MonitorDump {
        begin: span.start,
        end: span.end,
        num_traces: traces.len() as jint,
        traces: traces.as_ptr(),
        threads_status: states.as_ptr(),
    };
    deliver::tell_requested(env.raw(), event::MONITOR_DUMP, Details { monitor_dump });
    true
}

fn rest(out: &mut Bytes, owner: usize, count: u32, entering: &[usize], waiting: &[usize]) {
    out.pointer(owner);
    out.u4(count);
    for threads in [entering, waiting] {
        out.u4(threads.len() as u32);
        threads.iter().for_each(|thread| out.pointer(*thread));
    }
}

fn add(host: &Host, env: Env, object: Object, monitors: &mut Vec<Java>) {
    let id = if records::current(env.raw()).is_inside() {
        ids::of(host, env, object)
    } else {
        objects::define(host, env, object)
    };
    if monitors.iter().any(|monitor| monitor.object == id && monitor.owner != 0) {
        return;
    }
    let Ok(usage) = host.jvmti.monitor_usage(env, object) else { return };
    let envs = |threads: &[Object]| -> Vec<usize> {
        threads.iter().map(|thread| starts::env_of(env, *thread) as usize).filter(|there| *there != 0).collect()
    };
    let waiting = envs(&usage.notify_waiters);
    // Up to 17 those that wait to be notified are among those that wait to enter.
    let entering: Vec<usize> = envs(&usage.waiters).into_iter().filter(|there| !waiting.contains(there)).collect();
    let owner = usage.owner.map_or(0, |owner| starts::env_of(env, owner) as usize);
    let count = entries(owner, usage.entry_count);
    monitors.retain(|monitor| monitor.object != id);
    monitors.push(Java { object: id, owner, count, entering, waiting });
}

/// How often the owner has entered. HotSpot counts frames that have locked the object: none yet in a thread that has
/// just got it and is on its way there.
fn entries(owner: usize, counted: jint) -> u32 {
    u32::try_from(counted).unwrap_or(0).max(u32::from(owner != 0))
}

/// A thread waits on an object.
fn wait(monitors: &mut Vec<Java>, object: ObjectId, there: usize) {
    let at = monitors.iter().position(|monitor| monitor.object == object).unwrap_or_else(|| {
        monitors.push(Java { object, ..Java::default() });
        monitors.len() - 1
    });
    if !monitors[at].waiting.contains(&there) {
        monitors[at].waiting.push(there);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_entered() {
        assert_eq!([entries(0, 0), entries(7, 0), entries(7, 3), entries(7, -1)], [0, 1, 3, 1]);
    }

    #[test]
    fn states_are_the_interfaces() {
        assert_eq!(status_of(1 | 4), status::RUNNABLE);
        assert_eq!(status_of(1 | 0x400), status::MONITOR_WAIT);
        assert_eq!(status_of(1 | 0x80 | 0x20_0000), status::CONDVAR_WAIT | status::INTERRUPTED);
    }
}
