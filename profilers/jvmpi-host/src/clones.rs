//! `Object.clone`. The VM allocates an object, reports it, and then overwrites it with a copy of the original including
//! its header, of which it only resets the mark word: an identity hash that was assigned when the object was reported
//! would be lost, and with it its id. So we intercept the VM's function, and clones are reported when they are
//! complete.
#![allow(unsafe_code, reason = "stands before a native method")]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

use et_jvm::env::{Env, Object};
use et_jvm::hotspot::exported_name;
use jni_sys::{JNIEnv, jobject};

use crate::abi::event;
use crate::host::{self, Host};
use crate::objects;
use crate::records;

type Clone = unsafe extern "system" fn(*mut JNIEnv, jobject) -> jobject;

static VMS: OnceLock<usize> = OnceLock::new();

thread_local! {
    /// The object that this thread is cloning, and the size of the clone once it is allocated.
    static UNDER_WAY: Cell<Option<(jobject, Option<u64>)>> = const { Cell::new(None) };
}

/// A native method gets the function at that address: ours, if it is the VM's for clones.
pub fn bound(address: *const c_void) -> Option<*const c_void> {
    if exported_name(address as usize)? != c"JVM_Clone" {
        return None;
    }
    VMS.get_or_init(|| address as usize);
    Some(clone as *const c_void)
}

/// Whether an object that the current thread has just allocated is a clone, to be reported when it is complete.
pub fn is_unfinished(env: Env, class: Object, size: u64) -> bool {
    let Some((from, None)) = UNDER_WAY.get() else { return false };
    // SAFETY: what the native method was called with, and has not come back from.
    let Some(object) = (unsafe { Object::new(from) }) else { return false };
    let is_clone = env.frame(2, |env| env.class_of(object).is_some_and(|of_object| env.is_same(of_object, class)));
    if is_clone {
        UNDER_WAY.set(Some((from, Some(size))));
    }
    is_clone
}

unsafe extern "system" fn clone(raw: *mut JNIEnv, object: jobject) -> jobject {
    let Some(function) = VMS.get() else { return ptr::null_mut() };
    // SAFETY: the VM's function, which was bound to the method that has this signature.
    let function = unsafe { std::mem::transmute::<*const c_void, Clone>(*function as *const c_void) };
    let host = host::get().filter(|host| host.wants(event::OBJECT_ALLOC));
    let outer = UNDER_WAY.replace(host.map(|_| (object, None)));
    // SAFETY: as the VM has called us.
    let clone = unsafe { function(raw, object) };
    let made = UNDER_WAY.replace(outer);
    if let (Some(host), Some((_, Some(size)))) = (host, made) {
        host::guarded((), |_| tell(host, raw, clone, size));
    }
    clone
}

fn tell(host: &Host, raw: *mut JNIEnv, clone: jobject, size: u64) {
    // SAFETY: as the VM hands them over.
    let Some((env, clone)) = (unsafe { Env::new(raw).zip(Object::new(clone)) }) else { return };
    if !records::current(raw).is_inside() {
        env.frame(16, |env| {
            if let Some(class) = env.class_of(clone) {
                objects::made(host, env, clone, class, size);
            }
        });
    }
}
