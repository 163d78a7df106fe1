//! The native methods of HeapProxy. The VM finds natives by name.
#![allow(unsafe_code, reason = "entry points from the VM, with its raw pointers")]

pub mod classes;

use jni_sys::{JNIEnv, jclass, jint, jlong, jobject};

use crate::actions::define::define;
use crate::actions::{id_supply, slot_lookup, threads, walk};
use crate::classes::slots;
use crate::tracer::{self, guarded};
use et_jvm::env::{Env, Object};

/// `HeapProxy.nextChunk(Thread, long)`.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_nextChunk(
    env: *mut JNIEnv,
    _class: jclass,
    thread: jobject,
    at: jlong,
) -> jlong {
    // SAFETY: arguments from the VM.
    let (env, thread) = unsafe { (Env::new(env), Object::new(thread)) };
    guarded(env, 0, || match (tracer::get(), env, thread) {
        (_, _, None) => -1,
        (Some(tracer), Some(env), Some(thread)) => threads::next_chunk(tracer, env, thread, at as usize) as jlong,
        _ => 0,
    })
}

/// `HeapProxy.moreIds()`.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_moreIds(env: *mut JNIEnv, _class: jclass) -> jlong {
    // SAFETY: arguments from the VM.
    let env = unsafe { Env::new(env) };
    guarded(env, 0, || match (tracer::get(), env) {
        (Some(tracer), Some(env)) => id_supply::more(tracer, env).to_bits(),
        _ => 0,
    })
}

/// `HeapProxy.tag0(Object, boolean)`.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_tag0(
    env: *mut JNIEnv,
    _class: jclass,
    object: jobject,
    give: u8,
) -> jint {
    // SAFETY: arguments from the VM.
    let (env, object) = unsafe { (Env::new(env), Object::new(object)) };
    guarded(env, 0, || match (tracer::get(), env, object) {
        (Some(tracer), Some(env), Some(object)) if give != 0 => tracer.id(env, object) as jint,
        (Some(tracer), Some(env), Some(object)) => tracer.id_if_any(env, object) as jint,
        _ => 0,
    })
}

/// `HeapProxy.defineClass0(Class)`.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_defineClass0(env: *mut JNIEnv, _class: jclass, class: jclass) {
    // SAFETY: arguments from the VM.
    let (env, class) = unsafe { (Env::new(env), Object::new(class)) };
    guarded(env, (), || {
        if let (Some(tracer), Some(env), Some(class)) = (tracer::get(), env, class) {
            define(tracer, env, class, false);
        }
    });
}

/// `HeapProxy.ask0(Object, int)`: asks the collector about an object with the given id.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_ask0(
    env: *mut JNIEnv,
    _class: jclass,
    object: jobject,
    id: jint,
) {
    // SAFETY: arguments from the VM.
    let (env, object) = unsafe { (Env::new(env), Object::new(object)) };
    guarded(env, (), || {
        if let (Some(tracer), Some(object)) = (tracer::get(), object) {
            tracer.tag(object, id as u32);
        }
    });
}

/// `HeapProxy.layout0(Class)`: the address of the class's layout, 0 only without a class.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_layout0(
    env: *mut JNIEnv,
    _class: jclass,
    class: jclass,
) -> jlong {
    // SAFETY: arguments from the VM.
    let (env, class) = unsafe { (Env::new(env), Object::new(class)) };
    guarded(env, slots::no_layout() as jlong, || match (tracer::get(), env, class) {
        (_, _, None) => 0,
        (Some(tracer), Some(env), Some(class)) => slot_lookup::layout_address(tracer, env, class) as jlong,
        _ => slots::no_layout() as jlong,
    })
}

/// `HeapProxy.stack0(long, boolean)`: the number of the current thread's stack, which has that value; in `Object.<init>` the one of the `new`.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_stack0(
    env: *mut JNIEnv,
    _class: jclass,
    value: jlong,
    in_object: u8,
) -> jint {
    // SAFETY: an argument from the VM.
    let env = unsafe { Env::new(env) };
    guarded(env, 0, || match (tracer::get(), env) {
        (Some(tracer), Some(env)) => walk::number(tracer, env, value as u64, in_object != 0) as jint,
        _ => 0,
    })
}

/// `HeapProxy.calledByVm0(long)`: the value of the stack below the method that asks, which the VM may have called.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_calledByVm0(
    env: *mut JNIEnv,
    _class: jclass,
    value: jlong,
) -> jlong {
    // SAFETY: an argument from the VM.
    let env = unsafe { Env::new(env) };
    guarded(env, value, || match (tracer::get(), env) {
        (Some(tracer), Some(env)) => walk::called_by_vm(tracer, env, value as u64) as jlong,
        _ => value,
    })
}

/// `HeapProxy.size0(Object)`: the size of an object; 0 for null.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_size0(
    env: *mut JNIEnv,
    _class: jclass,
    object: jobject,
) -> jlong {
    // SAFETY: arguments from the VM.
    let (env, object) = unsafe { (Env::new(env), Object::new(object)) };
    guarded(env, 0, || match (tracer::get(), object) {
        (Some(tracer), Some(object)) => tracer.machine.jvmti.object_size(object).unwrap_or(0) as jlong,
        _ => 0,
    })
}

/// `HeapProxy.staticFieldAt0(Class, long)`: the field reference of the static reference field at that offset, 0 if
/// there is none.
///
/// # Safety
/// Called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_staticFieldAt0(
    env: *mut JNIEnv,
    _class: jclass,
    mirror: jclass,
    offset: jlong,
) -> jint {
    // SAFETY: arguments from the VM.
    let (env, mirror) = unsafe { (Env::new(env), Object::new(mirror)) };
    guarded(env, 0, || match (tracer::get(), env, mirror) {
        (Some(tracer), Some(env), Some(mirror)) => slot_lookup::static_field_at(tracer, env, mirror, offset) as jint,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    /// Native code may set a `jboolean` to any byte; a `bool` other than 0 or 1 is undefined behavior.
    #[test]
    fn nothing_that_c_calls_takes_a_bool() {
        let sources = [
            include_str!("../agent.rs"),
            include_str!("../jni_table/mod.rs"),
            include_str!("mod.rs"),
            include_str!("../jni_table/define_class.rs"),
            include_str!("classes.rs"),
            include_str!("../../../../crates/jvm/src/jvmti.rs"),
            include_str!("../../../../crates/jvm/src/listener.rs"),
            include_str!("../../../../crates/jvm/src/threads.rs"),
        ];
        let mut functions = 0;
        for source in sources {
            for function in source.split("extern \"system\" fn").skip(1) {
                let (mut depth, mut arguments) = (0, function);
                if let Some(end) = function.find(|c| {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    c == ')' && depth == 0
                }) {
                    arguments = &function[..end];
                }
                assert!(!arguments.contains("bool"), "{arguments}");
                functions += 1;
            }
            let made = source.split("\nmakers! {").nth(1).and_then(|makers| makers.split("\n}").next());
            assert!(!made.is_some_and(|made| made.contains("bool")), "{made:?}");
        }
        assert!(functions > 30, "{functions}");
    }
}
