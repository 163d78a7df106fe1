//! Agents are libraries with a function `JVM_OnLoad`.
#![allow(unsafe_code, reason = "libraries that are loaded")]

use std::ffi::{CStr, CString, c_char, c_void};

use jni_sys::{JNI_OK, JavaVM, jint};

use crate::foreign::caught;

type OnLoad = unsafe extern "system-unwind" fn(*mut JavaVM, *const c_char, *mut c_void) -> jint;

/// Loads an agent and calls its `JVM_OnLoad`. `text` is its path, optionally followed by a colon and its options.
///
/// # Safety
/// `vm` is a `JavaVM` that is valid as long as the process runs, and whose functions may be called.
pub unsafe fn load(vm: *mut JavaVM, text: &str) -> Result<(), String> {
    let (path, options) = text.split_once(':').unwrap_or((text, ""));
    let (Ok(library), Ok(options)) = (CString::new(path), CString::new(options)) else {
        return Err("the path contains a zero byte".to_owned());
    };
    // SAFETY: plain calls of the dynamic linker; what it says is a C string.
    let function = unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        if handle.is_null() {
            let why = libc::dlerror();
            let why = if why.is_null() { "no reason".into() } else { CStr::from_ptr(why).to_string_lossy() };
            return Err(format!("cannot load {path}: {why}"));
        }
        libc::dlsym(handle, c"JVM_OnLoad".as_ptr())
    };
    if function.is_null() {
        return Err(format!("{path} is not a JVMPI agent: it has no JVM_OnLoad"));
    }
    // The agent may keep the address, and write to what is there.
    let options = options.into_raw();
    // SAFETY: an agent's function of that name has this signature.
    let answer = caught(|| unsafe {
        let function = std::mem::transmute::<*mut c_void, OnLoad>(function);
        function(vm, options, std::ptr::null_mut())
    });
    match answer {
        Ok(JNI_OK) => Ok(()),
        Ok(answer) => Err(format!("JVM_OnLoad of {path} returned {answer}")),
        Err(_) => Err(format!("JVM_OnLoad of {path} threw an exception")),
    }
}
