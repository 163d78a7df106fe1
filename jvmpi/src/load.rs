//! How agents find the interface: through `GetEnv` of the one `JavaVM`, which `-Xrun` hands out as well as JNI does.
#![allow(unsafe_code, reason = "the table of the JavaVM, and libraries that are loaded")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jni_sys::{JNI_OK, JavaVM, jint};

use crate::abi::VERSIONS;
use crate::functions::{self, ASKED};
use crate::host;

type GetEnv = unsafe extern "system" fn(*mut JavaVM, *mut *mut c_void, jint) -> jint;
type OnLoad = unsafe extern "system" fn(*mut JavaVM, *const c_char, *mut c_void) -> jint;

/// `JNIInvokeInterface`: three reserved words and five functions.
const WORDS: usize = 8;
const GET_ENV: usize = 6;

static OLD: OnceLock<GetEnv> = OnceLock::new();

/// Puts a table of ours in front of the VM's. The VM's own is read-only; the pointer to it is not.
///
/// # Safety
/// `vm` is the VM's, as `Agent_OnLoad` gets it.
pub unsafe fn answer_get_env(vm: *mut JavaVM) {
    let place = vm.cast::<*const [*const c_void; WORDS]>();
    // SAFETY: the first word of a JavaVM is the address of its table, which has eight words.
    unsafe {
        let mut table = **place;
        let _ = OLD.set(std::mem::transmute::<*const c_void, GetEnv>(table[GET_ENV]));
        table[GET_ENV] = get_env as *const c_void;
        let table: &'static Table = Box::leak(Box::new(Table(table)));
        place.write_volatile(&raw const table.0);
    }
}

struct Table([*const c_void; WORDS]);

unsafe extern "system" fn get_env(vm: *mut JavaVM, place: *mut *mut c_void, version: jint) -> jint {
    if VERSIONS.contains(&version)
        && !place.is_null()
        && let Some(host) = host::get()
    {
        let interface = host.interface.load(Ordering::Acquire);
        if !interface.is_null() {
            ASKED.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's place.
            unsafe { *place = interface.cast() };
            return JNI_OK;
        }
    }
    match OLD.get() {
        // SAFETY: the function that stood in the table, with what its caller gave.
        Some(old) => unsafe { old(vm, place, version) },
        None => -1,
    }
}

/// The table that all agents get.
pub fn provide() {
    if let Some(host) = host::get() {
        host.interface.store(Box::leak(Box::new(functions::table())), Ordering::Release);
    }
}

/// Loads an agent and calls its `JVM_OnLoad`. `text` is its path, and behind the first colon its options.
///
/// # Safety
/// As above.
pub unsafe fn agent(vm: *mut JavaVM, text: &str) -> Result<(), String> {
    let (path, options) = text.split_once(':').unwrap_or((text, ""));
    let (Ok(library), Ok(options)) = (CString::new(path), CString::new(options)) else {
        return Err("the path holds a zero byte".to_owned());
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
        return Err(format!("{path} is no JVMPI agent: it has no JVM_OnLoad"));
    }
    // The agent may keep the address, and write to what is there.
    let options = options.into_raw();
    // SAFETY: an agent's function of that name has this signature.
    let answer = unsafe {
        let function = std::mem::transmute::<*mut c_void, OnLoad>(function);
        function(vm, options, std::ptr::null_mut())
    };
    if answer == JNI_OK { Ok(()) } else { Err(format!("JVM_OnLoad of {path} returned {answer}")) }
}
