//! JNI's `DefineClass` for native code of the program.
#![allow(unsafe_code, reason = "a function that native code calls, with its raw pointers")]

use std::ffi::c_char;

use jni_sys::{JNIEnv, jbyte, jclass, jobject, jsize};

use super::if_rewriting;
use crate::actions::define::define;
use crate::classes::dynamic::{Purpose, Rewritten};
use et_jvm::env::Object;

/// Defines a class with hooks; without, if it is excluded or the VM refuses it with hooks.
///
/// # Safety
/// The contract of JNI.
#[allow(non_snake_case, reason = "JNI's name")]
pub unsafe extern "system" fn DefineClass(
    env: *mut JNIEnv,
    name: *const c_char,
    loader: jobject,
    bytes: *const jbyte,
    length: jsize,
) -> jclass {
    let as_before = |bytes: *const jbyte, length: jsize| {
        // SAFETY: the original function, with the caller's arguments or a class file of our own.
        unsafe { (super::original(env).DefineClass)(env, name, loader, bytes, length) }
    };
    // SAFETY: by JNI's contract, the caller provides `length` bytes.
    if let Some(ours) = unsafe { rewritten(env, bytes, length) }
        && let Ok(our_length) = jsize::try_from(ours.bytes.len())
    {
        let defined = as_before(ours.bytes.as_ptr().cast(), our_length);
        if !is_refused(env, defined, &ours) {
            return defined;
        }
    }
    as_before(bytes, length)
}

/// # Safety
/// `bytes` is null or points to `length` bytes.
unsafe fn rewritten(env: *mut JNIEnv, bytes: *const jbyte, length: jsize) -> Option<Rewritten> {
    let length = usize::try_from(length).ok().filter(|_| !bytes.is_null())?;
    let mut rewritten = None;
    if_rewriting(env, |tracer, _| {
        // SAFETY: by the contract of this function.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
        let dynamic = tracer.classes.dynamic;
        rewritten = dynamic.and_then(|dynamic| {
            dynamic.rewrite(bytes, Purpose::Definition, tracer.classes.dynamic_ids, tracer.output.queue)
        });
    });
    rewritten
}

/// Whether the VM rejects the class file itself, not something that it refers to. If so, clears the exception.
fn is_refused(env: *mut JNIEnv, defined: jclass, ours: &Rewritten) -> bool {
    let mut refused = false;
    if_rewriting(env, |tracer, env| {
        let Some(dynamic) = tracer.classes.dynamic else { return };
        // SAFETY: a local reference just created for this thread, or null.
        if let Some(class) = unsafe { Object::new(defined) } {
            dynamic.defined(define(tracer, env, class, false), ours.class, tracer.output.queue);
            return;
        }
        refused = env.drop_exception_if(|error| {
            let class = env.class_of(error).and_then(|class| tracer.machine.jvmti.class_signature(class).ok());
            class.as_deref() == Some("Ljava/lang/ClassFormatError;")
        });
        if refused {
            dynamic.refused(&ours.bytes, tracer.output.queue);
        }
    });
    refused
}
