//! `GetCallTrace`.
#![allow(unsafe_code, reason = "writes what the agent has made room for")]

use std::sync::atomic::Ordering;

use et_jvm::env::{Env, Global};
use et_jvm::profiling::RawFrame;
use jni_sys::{JNIEnv, jint};

use crate::abi::{CallFrame, CallTrace};
use crate::classes;
use crate::hooks;
use crate::host::Host;
use crate::records;

/// Line number of native methods, and of methods with unknown lines.
const NATIVE: jint = -3;
const UNKNOWN: jint = -1;

/// Maximum number of frames returned.
const DEEPEST: usize = 100_000;

/// Frames of a thread, innermost first. While threads are suspended no class is reported: the agent might need a lock
/// for it that it cannot get.
/// not get it.
pub fn frames(host: &Host, env: Env, thread: Option<Global>, depth: usize) -> Vec<CallFrame> {
    let may_tell = host.suspended.load(Ordering::Relaxed) == 0;
    let found = frames_quietly(host, thread, depth);
    if !may_tell {
        return found;
    }
    found
        .into_iter()
        .map(|frame| match classes::tell_of_method(host, env, frame.method_id) {
            // It was not known before.
            Some(method) if frame.lineno == UNKNOWN && method.is_native => CallFrame { lineno: NATIVE, ..frame },
            _ => frame,
        })
        .collect()
}

/// The same without reporting classes.
pub fn frames_quietly(host: &Host, thread: Option<Global>, depth: usize) -> Vec<CallFrame> {
    const FEW: usize = 64;
    let mut few = [RawFrame { method: std::ptr::null_mut(), location: 0 }; FEW];
    let mut many;
    // Hooks are not frames of the program.
    let most = depth.min(DEEPEST) + hooks::frames();
    let room = if most <= FEW {
        &mut few[..most]
    } else {
        many = vec![few[0]; most];
        &mut many
    };
    let count = host.jvmti.current_stack(thread.as_ref().map(Global::get), room).unwrap_or(0);
    let frame = |frame: &RawFrame| {
        let method = classes::known_method(frame.method);
        let lineno = match method {
            Some(method) if method.is_native => NATIVE,
            Some(method) => method.line(frame.location),
            None => UNKNOWN,
        };
        CallFrame { lineno, method_id: frame.method }
    };
    room[..count].iter().filter(|frame| !hooks::is_own(frame.method)).take(depth).map(frame).collect()
}

/// How many frames of hooks are on top of a stack.
pub fn own_on_top(host: &Host, thread: Option<Global>) -> usize {
    let mut room = vec![RawFrame { method: std::ptr::null_mut(), location: 0 }; hooks::frames()];
    if room.is_empty() {
        return 0;
    }
    let count = host.jvmti.current_stack(thread.as_ref().map(Global::get), &mut room).unwrap_or(0);
    room[..count].iter().take_while(|frame| hooks::is_own(frame.method)).count()
}

/// Which thread a `JNIEnv` is of: `Ok(None)` is the current one.
pub fn thread_of(env: Env, there: *mut JNIEnv) -> Result<Option<Global>, ()> {
    if there == env.raw() || there.is_null() {
        return Ok(None);
    }
    records::of_env(there).and_then(|record| record.thread()).map(Some).ok_or(())
}

/// Fills in a trace.
///
/// # Safety
/// `trace` has room for this many frames.
pub unsafe fn fill(host: &Host, env: Env, trace: *mut CallTrace, depth: jint) {
    // SAFETY: the caller's promise.
    let trace = unsafe { &mut *trace };
    trace.num_frames = 0;
    let depth = usize::try_from(depth).unwrap_or(0);
    if depth == 0 || trace.frames.is_null() {
        return;
    }
    let Ok(thread) = thread_of(env, trace.env_id) else { return };
    let found = frames(host, env, thread, depth);
    // SAFETY: as above; there are no more than that.
    unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), trace.frames, found.len()) };
    trace.num_frames = found.len() as jint;
}
