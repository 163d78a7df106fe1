//! `AsyncGetCallTrace`, the walk of a stack that HotSpot has for profilers (forte.cpp). For the current thread, called from a native method, it
//! starts at the last Java frame that the VM has noted, as JVMTI's `GetStackTrace` does, but makes no transition into the VM and
//! no handles: it takes a fraction of the time.
//!
//! It is not part of any specification. So it is used only where what it says can be checked, or JVMTI be asked instead.
#![allow(unsafe_code, reason = "a function of libjvm, with its structures")]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use jni_sys::{JNIEnv, jint, jmethodID};

use crate::env::Env;
use crate::profiling::RawFrame;

/// `ASGCT_CallFrame`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CallFrame {
    /// The index of the bytecode; negative in native methods.
    bci: jint,
    /// Null if the method has no id yet.
    method: jmethodID,
}

/// `ASGCT_CallTrace`.
#[repr(C)]
struct CallTrace {
    env: *mut JNIEnv,
    /// Of `frames`; negative if the stack cannot be walked.
    count: jint,
    frames: *mut CallFrame,
}

type AsyncGetCallTrace = unsafe extern "C" fn(*mut CallTrace, jint, *mut c_void);

/// Bytes that a `ucontext_t` has at most. The VM does not look into it where a thread has noted its last Java frame.
const CONTEXT: usize = 4096;

/// The function of a running libjvm. It answers only while some JVMTI environment has `ClassLoad` events enabled.
#[derive(Clone, Copy, Debug)]
pub struct CallTraces(AsyncGetCallTrace);

impl CallTraces {
    /// The function that libjvm exports under this name.
    ///
    /// # Safety
    /// `function` is libjvm's `AsyncGetCallTrace`.
    pub(crate) unsafe fn new(function: *mut c_void) -> Self {
        // SAFETY: it has this signature since 5 (forte.cpp).
        Self(unsafe { std::mem::transmute::<*mut c_void, AsyncGetCallTrace>(function) })
    }

    /// The innermost frames of the current thread, which is in a native method: `frames` gets `most` at most. `false` if the VM does not tell
    /// all of them, for example since a method was never asked for its id.
    pub fn innermost(self, env: Env, most: usize, frames: &mut Vec<RawFrame>) -> bool {
        frames.clear();
        // Not cleared: that takes as long as walking some frames.
        let mut room = [const { MaybeUninit::<CallFrame>::uninit() }; MOST];
        let mut trace = CallTrace { env: env.raw(), count: 0, frames: room.as_mut_ptr().cast() };
        let most = most.min(MOST);
        #[repr(align(16))]
        struct Context([u8; CONTEXT]);
        // A place that reads as zeros; nobody writes to it.
        static CONTEXT_OF_NONE: Context = Context([0; CONTEXT]);
        // SAFETY: the environment of the current thread; room for as many frames; a context that is only read, if at all.
        unsafe { (self.0)(&mut trace, most as jint, ptr::from_ref(&CONTEXT_OF_NONE.0).cast_mut().cast()) };
        let Some(count) = usize::try_from(trace.count).ok().filter(|count| (1..=most).contains(count)) else {
            return false;
        };
        // SAFETY: the VM has written as many frames as it says.
        let found = unsafe { std::slice::from_raw_parts(room.as_ptr().cast::<CallFrame>(), count) };
        if found.iter().any(|frame| frame.method.is_null()) {
            return false;
        }
        frames.extend(found.iter().map(|frame| RawFrame { method: frame.method, location: frame.bci.into() }));
        true
    }
}

/// Maximum number of frames of [`CallTraces::innermost`].
pub const MOST: usize = 160;
