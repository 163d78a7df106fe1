//! Threads of the VM's: those that an agent starts, and others that it stops for a moment.
#![allow(unsafe_code, reason = "the body of a thread, which the VM calls")]

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use jni_sys::{JNIEnv, jvalue};

use crate::env::{Env, Global, Object, StaticMethod};
use crate::jvmti::{Capability, Jvmti, JvmtiError, RawEnv};

/// What an agent thread runs.
type Body = Box<dyn FnOnce(Env) + Send>;

/// Starts a daemon thread that the program does not see, not even among the threads of its group. A panic in `body` ends the thread
/// and nothing else. The reference is a local one of the caller's.
///
/// # Errors
/// JVMTI's; [`JvmtiError::NO_THREAD`] if there is no memory for a `java.lang.Thread`.
pub fn agent_thread<'a>(
    jvmti: Jvmti,
    env: Env<'a>,
    name: &CStr,
    body: impl FnOnce(Env) + Send + 'static,
) -> Result<Object<'a>, JvmtiError> {
    agent_thread_in(jvmti, env, None, name, 5, |_, _| (), body)
}

/// As above, in that group, with a priority of 1 to 10. `made` sees the thread before it starts.
///
/// # Errors
/// As above.
pub fn agent_thread_in<'a>(
    jvmti: Jvmti,
    env: Env<'a>,
    group: Option<Object>,
    name: &CStr,
    priority: i32,
    made: impl FnOnce(Env, Object),
    body: impl FnOnce(Env) + Send + 'static,
) -> Result<Object<'a>, JvmtiError> {
    let thread = env.find_class(c"java/lang/Thread").and_then(|class| {
        let name = env.new_string(name)?;
        match group {
            None => {
                let constructor = env.method(class, c"<init>", c"(Ljava/lang/String;)V")?;
                env.new_object(class, constructor, &[jvalue { l: name.raw() }])
            }
            Some(group) => {
                let constructor = env.method(class, c"<init>", c"(Ljava/lang/ThreadGroup;Ljava/lang/String;)V")?;
                env.new_object(class, constructor, &[jvalue { l: group.raw() }, jvalue { l: name.raw() }])
            }
        }
    });
    let thread = thread.ok_or(JvmtiError::NO_THREAD)?;
    made(env, thread);
    let body: *mut Body = Box::into_raw(Box::new(Box::new(body)));
    jvmti.run_agent_thread_at(thread, run, body.cast(), priority).inspect_err(|_| {
        // SAFETY: of the box above, which nobody else has got.
        drop(unsafe { Box::from_raw(body) });
    })?;
    Ok(thread)
}

unsafe extern "system" fn run(_jvmti: *mut RawEnv, env: *mut JNIEnv, body: *mut c_void) {
    // SAFETY: as the VM hands it over, and the box that `agent_thread` gave it, once.
    let (env, body) = unsafe { (Env::new(env), Box::from_raw(body.cast::<Body>())) };
    if let Some(env) = env {
        let _ = catch_unwind(AssertUnwindSafe(|| body(env)));
    }
}

/// Tells which thread the current one is. Found once: where a method is not there, the VM makes an error about it, and that is seen by
/// whoever looks on.
#[derive(Clone, Copy, Debug)]
pub struct CurrentThread {
    class: Global,
    current: StaticMethod,
    /// There since threads may be carried by others (21).
    carrier: Option<StaticMethod>,
}

impl CurrentThread {
    /// Looks for the methods of `java.lang.Thread` that tell.
    pub fn find(env: Env) -> Option<Self> {
        let class = env.find_class(c"java/lang/Thread")?;
        let method = |name| env.static_method(class, name, c"()Ljava/lang/Thread;");
        Some(Self {
            class: env.global(class)?,
            current: method(c"currentThread")?,
            carrier: method(c"currentCarrierThread"),
        })
    }

    /// The thread that we are; none if it carries another, which would be stopped with it.
    pub fn get<'a>(&self, env: Env<'a>) -> Option<Object<'a>> {
        let call = |method| env.call_static_object(self.class.get(), method, &[]);
        let current = call(self.current)?;
        match self.carrier.and_then(call) {
            Some(carrier) if !env.is_same(carrier, current) => None,
            _ => Some(current),
        }
    }
}

/// Threads that stand still until this goes out of scope, whatever happens.
///
/// Only one agent at a time may be able to stop threads, and debuggers want to be: we are for this moment only. Whoever holds this must
/// not wait for anything that a stopped thread may hold, a lock of its own included.
#[derive(Debug)]
pub struct Stopped<'a> {
    jvmti: Jvmti,
    threads: &'a [Object<'a>],
}

impl<'a> Stopped<'a> {
    /// Stops these threads; those that cannot be stopped go on.
    ///
    /// # Errors
    /// JVMTI's: another agent may have the capability.
    pub fn stop(jvmti: Jvmti, threads: &'a [Object<'a>]) -> Result<Self, JvmtiError> {
        jvmti.add_capabilities(&[Capability::Suspend])?;
        let stopped = Self { jvmti, threads };
        if !threads.is_empty() {
            jvmti.suspend(threads)?;
        }
        Ok(stopped)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            let _ = self.jvmti.resume(self.threads);
        }
        let _ = self.jvmti.relinquish_capabilities(&[Capability::Suspend]);
    }
}
