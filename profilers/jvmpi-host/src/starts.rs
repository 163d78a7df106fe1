//! Thread starts: each thread is reported before any other event in it.

use std::sync::atomic::{AtomicIsize, Ordering};

use et_jvm::env::{Env, Object};
use et_jvm::profiling::ThreadNames;
use jni_sys::JNIEnv;

use crate::abi::{Details, ThreadStart, event};
use crate::deliver;
use crate::host::Host;
use crate::ids;
use crate::objects;
use crate::records::{self, Record};

/// From a thread of the VM's to its `JNIEnv`, as `Thread.eetop` has the former; 0 if that is not known.
static DISTANCE: AtomicIsize = AtomicIsize::new(0);

/// Finds out where the `JNIEnv`s of threads are.
#[allow(unsafe_code, reason = "looks at the table of a JNIEnv")]
pub fn find_distance(host: &Host, env: Env) {
    env.frame(4, |env| {
        let Ok(Some(thread)) = host.jvmti.current_thread(env) else { return };
        let Some(native) = native(env, thread) else { return };
        DISTANCE.store((env.raw() as isize).wrapping_sub(native), Ordering::Relaxed);
    });
}

fn native(env: Env, thread: Object) -> Option<isize> {
    let class = env.find_class(c"java/lang/Thread")?;
    let field = env.field(class, c"eetop", c"J")?;
    let native = env.get_long(thread, field);
    env.delete_local(class);
    (native != 0).then_some(native as isize)
}

/// The `JNIEnv` of a thread; null if it has none.
#[allow(unsafe_code, reason = "looks at the table of a JNIEnv")]
pub fn env_of(env: Env, thread: Object) -> *mut JNIEnv {
    let distance = DISTANCE.load(Ordering::Relaxed);
    let Some(native) = native(env, thread).filter(|_| distance != 0) else { return std::ptr::null_mut() };
    let there = native.wrapping_add(distance) as *mut JNIEnv;
    let word = et_jvm::memory::copy::<8>(there as u64).map(u64::from_ne_bytes);
    // SAFETY: the current thread's own, of which the first word is the table.
    let table = unsafe { *env.raw().cast::<u64>() };
    if word == Some(table) { there } else { std::ptr::null_mut() }
}

/// Notes which `java.lang.Thread` a record is of.
fn known(host: &Host, env: Env, record: &Record, thread: Object) {
    if record.thread().is_none()
        && let Some(global) = env.global(thread)
    {
        let id = ids::of(host, env, thread);
        if !record.set_thread(global, id) {
            env.delete_global(global);
        }
    }
}

/// Reports an existing thread, unless it has been.
pub fn tell(host: &Host, env: Env, thread: Object, record: &Record) {
    known(host, env, record, thread);
    if !host.wants(event::THREAD_START) || record.told.is_claimed() {
        return;
    }
    env.frame(8, |env| {
        let names = host.jvmti.thread_names(env, thread).unwrap_or_default();
        let id = objects::define(host, env, thread);
        // Another may have done it meanwhile, or the agent asked for it.
        if !record.told.claim() {
            return;
        }
        let details = details(&names, id, record);
        deliver::tell_definition(env.raw(), event::THREAD_START, details);
        record.told.done();
    });
}

fn details(names: &ThreadNames, id: usize, record: &Record) -> Details {
    let thread_start = ThreadStart {
        thread_name: names.thread.as_ptr(),
        group_name: names.group.as_ptr(),
        parent_name: names.parent.as_ptr(),
        thread_id: id,
        thread_env_id: record.env.load(Ordering::Relaxed) as *mut JNIEnv,
    };
    Details { thread_start }
}

/// Before an event of the current thread: reports the thread, unless it has been.
pub fn announce(host: &Host, env: Env) -> &'static Record {
    let record = records::current(env.raw());
    if record.told.is_told() || record.is_inside() {
        return record;
    }
    if record.told.is_claimed() {
        record.wait_until_told();
        return record;
    }
    if record.thread().is_some() && !host.wants(event::THREAD_START) {
        return record;
    }
    env.frame(8, |env| {
        if let Some(thread) = platform_thread(host, env) {
            tell(host, env, thread, record);
        }
    });
    record
}

/// The current thread; that which carries it if it is a virtual one.
pub fn platform_thread<'a>(host: &Host, env: Env<'a>) -> Option<Object<'a>> {
    let thread = host.jvmti.current_thread(env).ok()??;
    if !is_virtual(env, thread) {
        return Some(thread);
    }
    let class = env.find_class(c"java/lang/VirtualThread")?;
    let field = env.field(class, c"carrierThread", c"Ljava/lang/Thread;")?;
    env.get_object(thread, field)
}

/// Whether a thread is a virtual one. It has no thread of the VM's.
pub fn is_virtual(env: Env, thread: Object) -> bool {
    native(env, thread).is_none()
}

/// Reports all existing threads, the current one first.
pub fn tell_all(host: &Host, env: Env) {
    announce(host, env);
    each(host, env, |env, thread, record| tell(host, env, thread, record));
}

/// Has a record of each existing thread, also of one that has just been started, and has not been reported.
pub fn find_all(host: &Host, env: Env) {
    each(host, env, |env, thread, record| known(host, env, record, thread));
}

fn each(host: &Host, env: Env, see: impl Fn(Env, Object, &Record)) {
    env.frame(64, |env| {
        for thread in host.jvmti.all_threads(env).unwrap_or_default() {
            let there = env_of(env, thread);
            if !there.is_null() {
                see(env, thread, records::of_env_or_new(there));
            }
            env.delete_local(thread);
        }
    });
}

/// Reports a thread at the agent's request.
pub fn tell_requested(host: &Host, env: Env, id: usize) -> bool {
    let Some(record) = records::of_id(id) else { return false };
    let Some(thread) = record.thread() else { return false };
    env.frame(8, |env| {
        let names = host.jvmti.thread_names(env, thread.get()).unwrap_or_default();
        deliver::tell_requested(env.raw(), event::THREAD_START, details(&names, id, record));
    });
    record.told.done();
    true
}

/// The current thread has ended.
pub fn end(host: &Host, env: Env) {
    let record = records::current(env.raw());
    if record.told.is_claimed() || !host.session.is_enabled(event::THREAD_START) {
        record.begin_end();
        deliver::tell(env.raw(), event::THREAD_END, Details { nothing: () });
    }
    records::end(env);
}
