//! How agents find the interface: through `GetEnv` of the one `JavaVM`, which `-Xrun` hands out as well as JNI does.
#![allow(unsafe_code, reason = "the table of the JavaVM")]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jni_sys::{JNI_OK, JavaVM, jint};

use crate::abi::VERSIONS;
use crate::functions::{self, ASKED};
use crate::host;

type GetEnv = unsafe extern "system" fn(*mut JavaVM, *mut *mut c_void, jint) -> jint;

/// `JNIInvokeInterface`: three reserved words and five functions.
const WORDS: usize = 8;
const GET_ENV: usize = 6;

static OLD: OnceLock<GetEnv> = OnceLock::new();

/// Replaces the VM's function table by our own. The VM's table is read-only; the pointer to it is not.
///
/// # Safety
/// `vm` is the VM that `Agent_OnLoad` was called with.
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
        let interface = host.session.interface();
        if !interface.is_null() {
            ASKED.fetch_add(1, Ordering::Relaxed);
            // SAFETY: a pointer from the caller.
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
        host.session.offer(functions::table());
    }
}
