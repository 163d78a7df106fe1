//! Objects that HotSpot's own structures refer to.
#![allow(unsafe_code, reason = "a function of libjvm, and references made from addresses")]

use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

use jni_sys::{JNIEnv, jint, jobject};

use crate::env::{Env, Global, Object};

type SetArrayElement = unsafe extern "system" fn(*mut JNIEnv, jobject, jint, jobject);

/// Turns the address of a slot that the collectors keep up to date (an `OopHandle`) into a reference for JNI.
///
/// Global references of JNI's are the addresses of such slots, from 21 on with a tag in the low bits. One made up from an
/// address is good for the VM, but `-Xcheck:jni` ends a process that hands it to JNI. `JVM_SetArrayElement`, which
/// `java.lang.reflect.Array.set` calls, is not checked; from the array JNI gives the object out as any other.
#[derive(Clone, Copy, Debug)]
pub struct Handles {
    set_array_element: SetArrayElement,
}

/// What marks a global reference, and the array on the way, of one element.
static HOLDER: OnceLock<Option<(usize, Mutex<Global>)>> = OnceLock::new();
const TAG_BITS: usize = 3;

impl Handles {
    /// `set_array_element` is `JVM_SetArrayElement` of libjvm.
    ///
    /// # Safety
    /// It is that function.
    pub unsafe fn new(set_array_element: *mut c_void) -> Self {
        // SAFETY: it has this signature since 8 (jvm.h).
        Self { set_array_element: unsafe { std::mem::transmute::<*mut c_void, SetArrayElement>(set_array_element) } }
    }

    /// A local reference to what the slot refers to; none for null.
    ///
    /// # Safety
    /// `slot` is the address of such a slot, and stays so during the call.
    pub unsafe fn resolve<'a>(self, env: Env<'a>, slot: u64) -> Option<Object<'a>> {
        let prepare = || {
            let holder = env.global(new_holder(env)?)?;
            Some((holder.address() & TAG_BITS, Mutex::new(holder)))
        };
        let (tag, holder) = HOLDER.get_or_init(prepare).as_ref()?;
        let handle = (slot as usize | tag) as jobject;
        let through = |holder: Object| {
            // SAFETY: an array of objects that has such an element; the VM reads the handle as one of its own.
            unsafe { (self.set_array_element)(env.raw(), holder.raw(), 0, handle) };
            env.array_element(holder, 0)
        };
        // Nobody waits for a thread that holds it: that one may be suspended.
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
