//! JNI global references: intercepts the functions in JNI's table as soon as their events are enabled.
#![allow(unsafe_code, reason = "functions that native code calls, with its raw pointers")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use et_jvm::env::{Env, JniFunctions, Object, original_functions, remember_original_functions};
use et_jvm::sync::lock;
use jni_sys::{JNIEnv, jint, jobject, jweak};
use rustc_hash::FxHashMap;

use crate::abi::{Details, GlobalRefAlloc, GlobalRefFree, ObjectId, event};
use crate::deliver;
use crate::host::{self, Host};
use crate::objects;
use crate::starts;

/// Events that need the functions.
pub const EVENTS: [jint; 4] = [
    event::JNI_GLOBALREF_ALLOC,
    event::JNI_GLOBALREF_FREE,
    event::JNI_WEAK_GLOBALREF_ALLOC,
    event::JNI_WEAK_GLOBALREF_FREE,
];

/// A reference that was seen being made.
#[derive(Clone, Copy, Debug)]
struct Seen {
    object: ObjectId,
    is_weak: bool,
}

static KNOWN: Mutex<Option<FxHashMap<usize, Seen>>> = Mutex::new(None);

/// Puts the functions into the table, once.
pub fn install(host: &Host) {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::AcqRel) {
        return;
    }
    let changed = host.jvmti.change_jni_functions(|functions| {
        remember_original_functions(*functions);
        functions.NewGlobalRef = new_global;
        functions.DeleteGlobalRef = delete_global;
        functions.NewWeakGlobalRef = new_weak;
        functions.DeleteWeakGlobalRef = delete_weak;
    });
    if let Err(error) = changed {
        host::say(&format!("JNI global references are not reported: {error}"));
    }
}

/// The global references to objects that were seen being made. Weak ones hold nothing.
pub fn by_object() -> FxHashMap<ObjectId, Vec<usize>> {
    let mut all: FxHashMap<ObjectId, Vec<usize>> = FxHashMap::default();
    for (reference, seen) in lock(&KNOWN).iter().flatten().filter(|(_, seen)| !seen.is_weak) {
        all.entry(seen.object).or_default().push(*reference);
    }
    all
}

fn original(env: *mut JNIEnv) -> &'static JniFunctions {
    // SAFETY: the environment that native code calls with.
    unsafe { original_functions(env) }
}

fn made(raw: *mut JNIEnv, reference: jobject, kind: jint) {
    let Some(host) = host::get().filter(|host| host.wants(kind) && !reference.is_null()) else { return };
    // SAFETY: the environment that native code calls with is that of its thread.
    let Some(env) = (unsafe { Env::new(raw) }) else { return };
    let tell = |env: Env| {
        if starts::announce(host, env).is_inside() {
            return;
        }
        // SAFETY: the reference that was just made.
        let Some(object) = (unsafe { Object::new(reference) }) else { return };
        let obj_id = objects::define(host, env, object);
        let seen = Seen { object: obj_id, is_weak: kind == event::JNI_WEAK_GLOBALREF_ALLOC };
        lock(&KNOWN).get_or_insert_default().insert(reference as usize, seen);
        deliver::tell(raw, kind, Details { jni_globalref_alloc: GlobalRefAlloc { obj_id, ref_id: reference } });
    };
    guarded(|| env.without_exception(tell));
}

fn freed(raw: *mut JNIEnv, reference: jobject, kind: jint) {
    let was_told = lock(&KNOWN).as_mut().is_some_and(|known| known.remove(&(reference as usize)).is_some());
    let Some(host) = host::get().filter(|host| host.wants(kind) && was_told) else { return };
    // SAFETY: the environment that native code calls with is that of its thread.
    let Some(env) = (unsafe { Env::new(raw) }) else { return };
    guarded(|| {
        env.without_exception(|env| {
            starts::announce(host, env);
            deliver::tell(raw, kind, Details { jni_globalref_free: GlobalRefFree { ref_id: reference } });
        });
    });
}

/// No panic may leave a function that C has called.
fn guarded(body: impl FnOnce()) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    if let (Err(_), Some(host)) = (outcome, host::get()) {
        host.session.panics.fetch_add(1, Ordering::Relaxed);
    }
}

unsafe extern "system" fn new_global(env: *mut JNIEnv, object: jobject) -> jobject {
    // SAFETY: the function that stood in the table, with what its caller gave.
    let reference = unsafe { (original(env).NewGlobalRef)(env, object) };
    made(env, reference, event::JNI_GLOBALREF_ALLOC);
    reference
}

unsafe extern "system" fn delete_global(env: *mut JNIEnv, reference: jobject) {
    freed(env, reference, event::JNI_GLOBALREF_FREE);
    // SAFETY: as above.
    unsafe { (original(env).DeleteGlobalRef)(env, reference) }
}

unsafe extern "system" fn new_weak(env: *mut JNIEnv, object: jobject) -> jweak {
    // SAFETY: as above.
    let reference = unsafe { (original(env).NewWeakGlobalRef)(env, object) };
    made(env, reference, event::JNI_WEAK_GLOBALREF_ALLOC);
    reference
}

unsafe extern "system" fn delete_weak(env: *mut JNIEnv, reference: jweak) {
    freed(env, reference, event::JNI_WEAK_GLOBALREF_FREE);
    // SAFETY: as above.
    unsafe { (original(env).DeleteWeakGlobalRef)(env, reference) }
}
