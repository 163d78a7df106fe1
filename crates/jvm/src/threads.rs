//! Threads of the VM's: those that an agent starts, and others that it stops for a moment.
#![allow(unsafe_code, reason = "the body of a thread, which the VM calls")]

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use jni_sys::{JNIEnv, jvalue};

use crate::env::{Env, Global, Object, StaticMethod};
use crate::jvmti::{Capability, Jvmti, JvmtiError, RawEnv};

/// The code that an agent thread runs.
type Body = Box<dyn FnOnce(Env) + Send>;

/// Starts a daemon thread that is invisible to the program, even in the list of its group's threads. A panic in `body`
/// ends only the thread. Returns a local reference of the caller.
///
/// # Errors
/// JVMTI errors; [`JvmtiError::NO_THREAD`] if a `java.lang.Thread` cannot be allocated.
pub fn agent_thread<'a>(
    jvmti: Jvmti,
    env: Env<'a>,
    name: &CStr,
    body: impl FnOnce(Env) + Send + 'static,
) -> Result<Object<'a>, JvmtiError> {
    agent_thread_in(jvmti, env, None, name, 5, |_, _| (), body)
}

/// The same in a given group with a priority from 1 to 10. `made` is called with the thread before it starts.
///
/// # Errors
/// The same as above.
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
        // SAFETY: the box above, to which there is no other pointer.
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

/// Returns the current thread. The method is looked up once: if it does not exist, the VM creates an exception, which
/// other agents can see.
#[derive(Clone, Copy, Debug)]
pub struct CurrentThread {
    class: Global,
    current: StaticMethod,
    /// There since threads may be carried by others (21).
    carrier: Option<StaticMethod>,
}

impl CurrentThread {
    /// Looks up the methods of `java.lang.Thread`.
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

/// Threads that are suspended until this is dropped.
///
/// Only one agent at a time can have the capability to suspend threads, and debuggers want it: it is acquired only for
/// this time. The caller must not wait for anything that a suspended thread may hold, including its own locks.
#[derive(Debug)]
pub struct Stopped<'a> {
    jvmti: Jvmti,
    threads: &'a [Object<'a>],
}

impl<'a> Stopped<'a> {
    /// Suspends threads; those that cannot be suspended continue.
    ///
    /// # Errors
    /// JVMTI errors: another agent may have the capability.
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
