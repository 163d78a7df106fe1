//! Objects that HotSpot's own structures refer to.
#![allow(unsafe_code, reason = "a function of libjvm, and references made from addresses")]

use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

use jni_sys::{JNIEnv, jint, jobject};

use crate::env::{Env, Global, Object};
use crate::sync::{made_once, unpoisoned};

type SetArrayElement = unsafe extern "system" fn(*mut JNIEnv, jobject, jint, jobject);

/// Converts the address of a slot that is updated by the collectors (an `OopHandle`) to a JNI reference.
///
/// JNI global references are addresses of such slots, from 21 on with a tag in the low bits. The VM accepts one made
/// from an address, but `-Xcheck:jni` aborts a process that passes it to JNI. `JVM_SetArrayElement`, which
/// `java.lang.reflect.Array.set` calls, is not checked; JNI then returns the object from the array like any other.
#[derive(Clone, Copy, Debug)]
pub struct Handles {
    set_array_element: SetArrayElement,
}

/// Tag of a global reference, and the one-element array used on the way.
static HOLDER: OnceLock<(usize, Mutex<Global>)> = OnceLock::new();
const TAG_BITS: usize = 3;

impl Handles {
    /// `set_array_element` is `JVM_SetArrayElement` in libjvm.
    ///
    /// # Safety
    /// It must be that function.
    pub unsafe fn new(set_array_element: *mut c_void) -> Self {
        // SAFETY: it has this signature since 8 (jvm.h).
        Self { set_array_element: unsafe { std::mem::transmute::<*mut c_void, SetArrayElement>(set_array_element) } }
    }

    /// Returns a local reference to the object in the slot; `None` for null.
    ///
    /// # Safety
    /// `slot` is the address of such a slot during the call.
    pub unsafe fn resolve<'a>(self, env: Env<'a>, slot: u64) -> Option<Object<'a>> {
        let make = || {
            let holder = env.global(new_holder(env)?)?;
            Some((holder.address() & TAG_BITS, Mutex::new(holder)))
        };
        let discard = |(_, another): (usize, Mutex<Global>)| env.delete_global(unpoisoned(another.into_inner()));
        let (tag, holder) = made_once(&HOLDER, make, discard)?;
        let handle = (slot as usize | tag) as jobject;
        let through = |holder: Object| {
            // SAFETY: an array of objects with such an element; the VM reads the handle like one of its own.
            unsafe { (self.set_array_element)(env.raw(), holder.raw(), 0, handle) };
            env.array_element(holder, 0)
        };
        // Does not block: the thread that holds the lock may be suspended.
        match holder.try_lock() {
            Ok(holder) => {
                let object = through(holder.get());
                env.clear_array_element(holder.get(), 0);
                object
            }
            Err(_) => through(new_holder(env)?),
        }
    }
}

fn new_holder(env: Env<'_>) -> Option<Object<'_>> {
    let class = env.find_class(c"java/lang/Object")?;
    env.new_object_array(class, &[class])
}
