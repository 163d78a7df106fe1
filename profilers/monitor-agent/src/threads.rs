//! Threads: their numbers, which are those of `Thread.getId()`, and what they do.

use std::sync::OnceLock;

use et_ddm::threads::{AndroidStatus, ThreadState, ThreadStatus};
use et_jvm::env::{Env, Field, Object};
use et_jvm::profiling::thread_state;
use et_jvm::sync::made_once;
use jni_sys::jint;

use crate::hub::Note;
use crate::state::Monitor;
use crate::{ids, time};

/// Bits of a thread's state that only we want.
mod state_bit {
    use jni_sys::jint;
    pub const TERMINATED: jint = 2;
    pub const SLEEPING: jint = 0x40;
    pub const IN_OBJECT_WAIT: jint = 0x100;
    pub const SUSPENDED: jint = 0x10_0000;
    pub const IN_NATIVE: jint = 0x40_0000;
}

/// The number of a thread; 0 while its constructor has not run, as for one that attaches itself.
pub fn id(env: Env, thread: Object) -> u32 {
    static FIELD: OnceLock<Option<Field>> = OnceLock::new();
    let find = || env.frame(2, |env| env.field(env.find_class(c"java/lang/Thread")?, c"tid", c"J"));
    let field = made_once(&FIELD, || Some(find()), drop).and_then(Option::as_ref);
    field.map_or(0, |field| env.get_long(thread, *field) as u32)
}

/// Converts JVMTI's state bits; `None` if the thread has ended.
pub fn state_of(bits: jint) -> Option<ThreadState> {
    if bits & state_bit::TERMINATED != 0 {
        return None;
    }
    Some(if bits & thread_state::ALIVE == 0 {
        ThreadState::Initializing
    } else if bits & thread_state::BLOCKED_ON_MONITOR_ENTER != 0 {
        ThreadState::Monitor
    } else if bits & state_bit::SLEEPING != 0 {
        ThreadState::Sleeping
    } else if bits & state_bit::IN_OBJECT_WAIT != 0 {
        ThreadState::Waiting
    } else if bits & thread_state::WAITING != 0 {
        ThreadState::VmWait
    } else if bits & state_bit::IN_NATIVE != 0 {
        ThreadState::Native
    } else {
        ThreadState::Running
    })
}

pub fn name(monitor: &Monitor, env: Env, thread: Object) -> String {
    monitor.jvmti.thread_info(env, thread).ok().and_then(|info| info.name).unwrap_or_default()
}

/// All threads with their numbers.
pub fn all<'a>(monitor: &Monitor, env: Env<'a>) -> Vec<(u32, Object<'a>)> {
    let threads = monitor.jvmti.all_threads(env).unwrap_or_default();
    threads.into_iter().map(|thread| (id(env, thread), thread)).collect()
}

/// The thread with this id.
pub fn find<'a>(monitor: &Monitor, env: Env<'a>, wanted: u32) -> Option<Object<'a>> {
    all(monitor, env).into_iter().find_map(|(id, thread)| (id == wanted).then_some(thread))
}

/// States of all threads; with `details`, the fields of Android's layout as well.
pub fn states(monitor: &Monitor, env: Env, details: bool) -> Vec<ThreadStatus> {
    let of = |(id, thread): (u32, Object)| {
        let bits = monitor.jvmti.thread_state(thread).unwrap_or(state_bit::TERMINATED);
        let android = details.then(|| AndroidStatus {
            tid: 0,
            utime: monitor.jvmti.thread_cpu_time(thread).map_or(0, |nanos| (nanos / 10_000_000) as u32),
            stime: 0,
            is_daemon: monitor.jvmti.thread_info(env, thread).is_ok_and(|info| info.is_daemon),
        });
        let is_suspended = bits & state_bit::SUSPENDED != 0;
        state_of(bits).map(|state| ThreadStatus { id, state, is_suspended, android })
    };
    all(monitor, env).into_iter().filter_map(of).collect()
}

/// Defines a thread in the log, unless that was done.
pub fn define(monitor: &Monitor, env: Env, thread: Object, number: u32) {
    let Some(xml) = monitor.xml.as_ref().filter(|xml| number != 0 && !xml.has_thread(number)) else { return };
    env.frame(8, |env| {
        let names = monitor.jvmti.thread_names(env, thread).unwrap_or_default();
        let object = ids::of(monitor, env, thread);
        xml.define_thread(number, &names, (object != 0).then_some(object), time::now());
    });
}

/// The current thread has started.
pub fn started(monitor: &Monitor, env: Env, thread: Object) {
    let number = id(env, thread);
    define(monitor, env, thread, number);
    if monitor.hub.wants_threads() {
        monitor.hub.put(Note::ThreadStarted { id: number, name: name(monitor, env, thread) });
    }
}

/// It has run its last Java code.
pub fn ended(monitor: &Monitor, env: Env, thread: Object) {
    let number = id(env, thread);
    if let Some(xml) = &monitor.xml {
        xml.end_thread(number);
    }
    // Whether or not: a list of all may be under way.
    monitor.hub.put(Note::ThreadEnded(number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_the_protocol() {
        for (bits, expected) in [
            (0, Some(ThreadState::Initializing)),
            (2, None),
            (0x5, Some(ThreadState::Running)),
            (0x401, Some(ThreadState::Monitor)),
            (0x1 | 0x80 | 0x20 | 0x40, Some(ThreadState::Sleeping)),
            (0x1 | 0x80 | 0x10 | 0x100, Some(ThreadState::Waiting)),
            (0x1 | 0x80 | 0x10 | 0x200, Some(ThreadState::VmWait)),
            (0x40_0005, Some(ThreadState::Native)),
        ] {
            assert_eq!(state_of(bits), expected, "{bits:x}");
        }
    }
}
