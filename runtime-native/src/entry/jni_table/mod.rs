//! The table of JNI functions: allocations and stores by native code, which execute no bytecode.
//!
//! The VM lets agents replace functions of the table through which all native code calls. Ours call the original
//! function and a hook of HeapProxy. The agent's own calls ([`et_jvm::env`]) go to the original functions.
//!
//! Classes that native code defines are rewritten first, see [`define_class`].
//!
//! Not needed here: `NewObject*` and `NewDirectByteBuffer`, whose constructors reach `Object.<init>`; fields and
//! elements of primitive types.
#![allow(unsafe_code, reason = "functions that native code calls, with its raw pointers")]

mod define_class;

use std::ffi::c_char;
use std::mem::transmute;

use jni_sys::{JNIEnv, jchar, jclass, jfieldID, jmethodID, jobject, jobjectArray, jsize};

use crate::actions::slot_lookup;
use crate::proxy;
use crate::tracer::{self, Tracer, guarded};
use et_jvm::env::{Env, FieldId, JniFunctions, Object, original_functions, remember_original_functions};
use et_jvm::jvmti::{Jvmti, JvmtiError};

/// Replaces the functions. Little or no native code of the program has run yet.
pub fn install(jvmti: Jvmti) -> Result<(), JvmtiError> {
    jvmti.change_jni_functions(|functions| {
        remember_original_functions(*functions);
        functions.AllocObject = AllocObject;
        functions.NewString = NewString;
        functions.NewStringUTF = NewStringUTF;
        functions.NewObjectArray = NewObjectArray;
        functions.NewBooleanArray = NewBooleanArray;
        functions.NewByteArray = NewByteArray;
        functions.NewCharArray = NewCharArray;
        functions.NewShortArray = NewShortArray;
        functions.NewIntArray = NewIntArray;
        functions.NewLongArray = NewLongArray;
        functions.NewFloatArray = NewFloatArray;
        functions.NewDoubleArray = NewDoubleArray;
        // SAFETY: the same functions, except that `jni-sys` declares a byte differently.
        unsafe {
            functions.ToReflectedMethod =
                transmute::<ToReflected<jmethodID, u8>, ToReflected<jmethodID, bool>>(ToReflectedMethod);
            functions.ToReflectedField =
                transmute::<ToReflected<jfieldID, u8>, ToReflected<jfieldID, bool>>(ToReflectedField);
        }
        functions.SetObjectField = SetObjectField;
        functions.SetStaticObjectField = SetStaticObjectField;
        functions.SetObjectArrayElement = SetObjectArrayElement;
        functions.DefineClass = define_class::DefineClass;
    })
}

/// Runs `body` if the hooks are on. Native code may call with an exception pending, though it should not: HeapProxy must not see it, and the
/// program must.
pub(crate) fn if_tracing(env: *mut JNIEnv, body: impl FnOnce(&'static Tracer, Env)) {
    if_tracing_in_any_state(env, |tracer, env| env.without_exception(|env| body(tracer, env)));
}

/// As [`if_tracing`], with whatever exception is pending.
fn if_tracing_in_any_state(env: *mut JNIEnv, body: impl FnOnce(&'static Tracer, Env)) {
    if proxy::is_on() {
        with_tracer(env, body);
    }
}

/// Runs `body` if classes are rewritten.
pub(crate) fn if_rewriting(env: *mut JNIEnv, body: impl FnOnce(&'static Tracer, Env)) {
    if proxy::rewrites_definitions() {
        with_tracer(env, body);
    }
}

fn with_tracer(env: *mut JNIEnv, body: impl FnOnce(&'static Tracer, Env)) {
    // SAFETY: native code calls with the environment of its thread.
    let env = unsafe { Env::new(env) };
    guarded(env, (), || {
        if let (Some(tracer), Some(env)) = (tracer::get(), env) {
            body(tracer, env);
        }
    });
}

/// Records an object created by native code; null if creation failed.
fn made(env: *mut JNIEnv, object: jobject) -> jobject {
    if !object.is_null() {
        if_tracing(env, |tracer, env| {
            // SAFETY: a local reference just created for this thread.
            if let Some(object) = unsafe { Object::new(object) } {
                tracer.machine.proxy.made(env, object);
            }
        });
    }
    object
}

macro_rules! makers {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[allow(non_snake_case, reason = "JNI's name")]
        unsafe extern "system" fn $name(env: *mut JNIEnv, $($argument: $type),*) -> jobject {
            // SAFETY: the original function with the caller's arguments.
            made(env, unsafe { (original(env).$name)(env, $($argument),*) })
        }
    )*};
}

makers! {
    AllocObject(class: jclass);
    NewString(text: *const jchar, length: jsize);
    NewStringUTF(text: *const c_char);
    NewObjectArray(length: jsize, class: jclass, element: jobject);
    NewBooleanArray(length: jsize);
    NewByteArray(length: jsize);
    NewCharArray(length: jsize);
    NewShortArray(length: jsize);
    NewIntArray(length: jsize);
    NewLongArray(length: jsize);
    NewFloatArray(length: jsize);
    NewDoubleArray(length: jsize);
}

/// `ToReflectedMethod` and `ToReflectedField`. Native code may pass any byte as the last argument, which as a `bool`,
/// the type in `jni-sys`, must be 0 or 1.
type ToReflected<Id, Flag> = unsafe extern "system" fn(*mut JNIEnv, jclass, Id, Flag) -> jobject;

#[allow(non_snake_case, reason = "JNI's name")]
unsafe extern "system" fn ToReflectedMethod(env: *mut JNIEnv, class: jclass, id: jmethodID, is_static: u8) -> jobject {
    // SAFETY: the original function with the caller's arguments.
    made(env, unsafe {
        let function: ToReflected<jmethodID, bool> = original(env).ToReflectedMethod;
        transmute::<ToReflected<jmethodID, bool>, ToReflected<jmethodID, u8>>(function)(env, class, id, is_static)
    })
}

#[allow(non_snake_case, reason = "JNI's name")]
unsafe extern "system" fn ToReflectedField(env: *mut JNIEnv, class: jclass, id: jfieldID, is_static: u8) -> jobject {
    // SAFETY: the original function with the caller's arguments.
    made(env, unsafe {
        let function: ToReflected<jfieldID, bool> = original(env).ToReflectedField;
        transmute::<ToReflected<jfieldID, bool>, ToReflected<jfieldID, u8>>(function)(env, class, id, is_static)
    })
}

/// The original functions.
pub(crate) unsafe fn original(env: *mut JNIEnv) -> &'static JniFunctions {
    // SAFETY: the environment of the caller.
    unsafe { original_functions(env) }
}

#[allow(non_snake_case, reason = "JNI's name")]
unsafe extern "system" fn SetObjectField(env: *mut JNIEnv, origin: jobject, field: jfieldID, value: jobject) {
    // Before the store, as for `putfield`: the field may be volatile.
    if_tracing(env, |tracer, env| {
        // SAFETY: references from the caller.
        let (origin, value) = unsafe { (Object::new(origin), Object::new(value)) };
        let Some(origin) = origin else { return };
        env.frame(2, |env| {
            let Some(class) = env.class_of(origin) else { return };
            let field = slot_lookup::instance_field(tracer, env, class, FieldId(field));
            if field != 0 {
                tracer.machine.proxy.put_field(env, origin, value, field);
            }
        });
    });
    // SAFETY: the original function with the caller's arguments.
    unsafe { (original(env).SetObjectField)(env, origin, field, value) }
}

#[allow(non_snake_case, reason = "JNI's name")]
unsafe extern "system" fn SetStaticObjectField(env: *mut JNIEnv, class: jclass, field: jfieldID, value: jobject) {
    if_tracing(env, |tracer, env| {
        // SAFETY: references from the caller.
        let (class, value) = unsafe { (Object::new(class), Object::new(value)) };
        let Some(class) = class else { return };
        env.frame(2, |env| {
            let field = slot_lookup::static_field(tracer, env, class, FieldId(field));
            if field != 0 {
                tracer.machine.proxy.put_static(env, value, field);
            }
        });
    });
    // SAFETY: the original function with the caller's arguments.
    unsafe { (original(env).SetStaticObjectField)(env, class, field, value) }
}

#[allow(non_snake_case, reason = "JNI's name")]
unsafe extern "system" fn SetObjectArrayElement(env: *mut JNIEnv, array: jobjectArray, index: jsize, value: jobject) {
    // SAFETY: the original functions with the caller's arguments.
    let failed = unsafe {
        let has_exception = || Env::new(env).is_some_and(Env::has_exception);
        let failed_before = has_exception();
        (original(env).SetObjectArrayElement)(env, array, index, value);
        !failed_before && has_exception()
    };
    // After the store, as for `aastore`: only then is it certain that it does not throw.
    if !failed {
        if_tracing(env, |tracer, env| {
            // SAFETY: references from the caller.
            if let (Some(array), value) = unsafe { (Object::new(array), Object::new(value)) } {
                tracer.machine.proxy.put_element(env, array, index, value);
            }
        });
    }
}
