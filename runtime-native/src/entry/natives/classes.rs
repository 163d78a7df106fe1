//! Natives of `java.lang.HeapProxyClasses`, whose methods replace those that define classes. The VM finds natives by
//! name.
#![allow(unsafe_code, reason = "entry points from C, with raw pointers of the VM")]

use et_names::ClassId;
use jni_sys::{JNIEnv, jclass, jint, jobject};

use crate::actions::define::define;
use crate::classes::dynamic::Purpose;
use crate::entry::early;
use crate::tracer::{self, guarded};
use et_jvm::env::{Env, Object};

/// Bytes of the class id after the class file.
const ID_BYTES: i32 = 4;

/// The result for HeapProxyClasses: the class file, followed by the class id.
fn rewritten<'a>(env: Env<'a>, bytes: &[u8]) -> Option<Object<'a>> {
    let early = early::get()?;
    let rewritten = early.dynamic()?.rewrite(bytes, Purpose::Definition, &early.ids, &early.queue)?;
    let mut ours = rewritten.bytes;
    ours.extend_from_slice(&rewritten.class.0.to_be_bytes());
    env.byte_array_of(&ours)
}

/// `HeapProxyClasses.early0()`: whether classes are rewritten before tracing begins. Called when the first class is
/// defined, which may be before the VM is up.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxyClasses_early0(env: *mut JNIEnv, _class: jclass) -> u8 {
    // SAFETY: arguments from the VM.
    let env = unsafe { Env::new(env) };
    guarded(env, 0, || u8::from(early::get().zip(env).is_some_and(|(early, env)| early.begin(env).is_some())))
}

/// `HeapProxyClasses.rewrite0(byte[], int, int)`
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxyClasses_rewrite0(
    env: *mut JNIEnv,
    _class: jclass,
    bytes: jobject,
    offset: jint,
    length: jint,
) -> jobject {
    // SAFETY: arguments from the VM.
    let (env, bytes) = unsafe { (Env::new(env), Object::new(bytes)) };
    let done = guarded(env, None, || {
        let (env, bytes) = (env?, bytes?);
        rewritten(env, &env.bytes_of(bytes, offset, length)?)
    });
    done.map_or(std::ptr::null_mut(), Object::raw)
}

/// `HeapProxyClasses.rewriteBuffer0(ByteBuffer, int, int)`
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxyClasses_rewriteBuffer0(
    env: *mut JNIEnv,
    _class: jclass,
    buffer: jobject,
    offset: jint,
    length: jint,
) -> jobject {
    // SAFETY: arguments from the VM.
    let (env, buffer) = unsafe { (Env::new(env), Object::new(buffer)) };
    let done = guarded(env, None, || {
        let (env, buffer) = (env?, buffer?);
        rewritten(env, &env.bytes_of_buffer(buffer, offset, length)?)
    });
    done.map_or(std::ptr::null_mut(), Object::raw)
}

/// `HeapProxyClasses.defined0(Class, byte[])`
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxyClasses_defined0(
    env: *mut JNIEnv,
    _class: jclass,
    class: jobject,
    ours: jobject,
) {
    // SAFETY: arguments from the VM.
    let (env, class, ours) = unsafe { (Env::new(env), Object::new(class), Object::new(ours)) };
    guarded(env, (), || {
        let (Some(env), Some(class), Some(ours)) = (env, class, ours) else { return };
        let id = env.array_length(ours).checked_sub(ID_BYTES).and_then(|at| env.bytes_of(ours, at, ID_BYTES));
        let Some(id) = id.and_then(|id| <[u8; 4]>::try_from(id).ok()) else { return };
        let id = ClassId(u32::from_be_bytes(id));
        match (tracer::get(), early::get()) {
            (Some(tracer), _) => {
                if let Some(dynamic) = tracer.classes.dynamic {
                    dynamic.defined(define(tracer, env, class, false), id, tracer.output.queue);
                }
            }
            (None, Some(early)) => early.defined(env, class, id),
            (None, None) => {}
        }
    });
}

/// `HeapProxyClasses.refused0(byte[])`
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxyClasses_refused0(
    env: *mut JNIEnv,
    _class: jclass,
    ours: jobject,
) {
    // SAFETY: arguments from the VM.
    let (env, ours) = unsafe { (Env::new(env), Object::new(ours)) };
    guarded(env, (), || {
        let (Some(early), Some(env), Some(ours)) = (early::get(), env, ours) else { return };
        let bytes = env.array_length(ours).checked_sub(ID_BYTES).and_then(|length| env.bytes_of(ours, 0, length));
        if let (Some(bytes), Some(dynamic)) = (bytes, early.dynamic()) {
            dynamic.refused(&bytes, &early.queue);
        }
    });
}
