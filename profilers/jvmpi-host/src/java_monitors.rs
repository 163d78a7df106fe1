//! Contention for Java monitors, and waiting on them.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Instant;

use et_jvm::env::{Env, Object};
use jni_sys::{JNIEnv, jint};

use crate::abi::{Details, Monitor, MonitorWait, event};
use crate::deliver;
use crate::host::Host;
use crate::ids;
use crate::objects;
use crate::records;
use crate::starts;

fn milliseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

/// The current thread wants a monitor that another has.
pub fn contended_enter(host: &Host, env: Env, object: Object) {
    let record = starts::announce(host, env);
    if record.is_inside() {
        return;
    }
    let object_id = objects::define(host, env, object);
    if host.wants(event::MONITOR_CONTENDED_EXIT) {
        record.wants(object_id, || {
            env.frame(8, |env| {
                let owner = host.jvmti.monitor_usage(env, object).ok()?.owner?;
                Some(records::of_env(starts::env_of(env, owner))?.name())
            })
        });
    }
    tell(env.raw(), event::MONITOR_CONTENDED_ENTER, object_id);
}

/// It has got it: so the other has left it.
pub fn contended_entered(host: &Host, env: Env, object: Object) {
    let record = starts::announce(host, env);
    if record.is_inside() {
        return;
    }
    let object_id = objects::define(host, env, object);
    // A thread that is handed the monitor leaves it as well, and those that still wait are to hear of that in its name.
    let before = if host.wants(event::MONITOR_CONTENDED_EXIT) { record.has(object_id) } else { None };
    let tells_starts = host.session.is_enabled(event::THREAD_START);
    if let Some(owner) = before.and_then(|owner| records::speak_for(owner, tells_starts)) {
        deliver::tell_for(
            env.raw(),
            owner.env(),
            event::MONITOR_CONTENDED_EXIT,
            Details { monitor: Monitor { object: object_id } },
        );
    }
    tell(env.raw(), event::MONITOR_CONTENDED_ENTERED, object_id);
}

fn tell(env: *mut JNIEnv, kind: jint, object: usize) {
    deliver::tell(env, kind, Details { monitor: Monitor { object } });
}

/// The current thread is about to wait.
pub fn wait(host: &Host, env: Env, object: Object, timeout: i64) {
    let record = starts::announce(host, env);
    let id = ids::of(host, env, object);
    record.waits_on.store(id, Ordering::Relaxed);
    record.waits_since.store(milliseconds(), Ordering::Relaxed);
    if record.is_inside() || !host.wants(event::MONITOR_WAIT) {
        return;
    }
    let object = objects::define(host, env, object);
    deliver::tell(env.raw(), event::MONITOR_WAIT, Details { monitor_wait: MonitorWait { object, timeout } });
}

/// It has waited, and has the monitor again.
pub fn waited(host: &Host, env: Env, object: Object) {
    let record = starts::announce(host, env);
    if host.wants(event::MONITOR_CONTENDED_EXIT) {
        record.has(ids::of(host, env, object));
    }
    let (before, since) = (record.waits_on.swap(0, Ordering::Relaxed), record.waits_since.load(Ordering::Relaxed));
    if record.is_inside() || !host.wants(event::MONITOR_WAITED) || before == 0 {
        return;
    }
    let object = objects::define(host, env, object);
    let timeout = milliseconds().saturating_sub(since) as i64;
    deliver::tell(env.raw(), event::MONITOR_WAITED, Details { monitor_wait: MonitorWait { object, timeout } });
}
