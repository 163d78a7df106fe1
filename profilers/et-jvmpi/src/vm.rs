//! Replacement for the VM: a `JavaVM` whose `GetEnv` returns the interface, and a `JNIEnv` for each thread with
//! functions that do nothing.
//!
//! Agents use a `JNIEnv` to identify a thread and hardly ever call it: most events did not permit calls to the VM.
#![allow(unsafe_code, reason = "tables of functions that C calls")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use et_jvmpi_interface::abi::{Interface, VERSIONS};
use et_names::escape;
use jni_sys::{JNI_EDETACHED, JNI_ERR, JNI_EVERSION, JNI_OK, JNIEnv, JavaVM, jint};

/// The interface that `GetEnv` returns, and whether it has been requested.
static INTERFACE: AtomicPtr<Interface> = AtomicPtr::new(std::ptr::null_mut());
static ASKED: AtomicBool = AtomicBool::new(false);
/// Calls of functions that need a VM.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// From here on `GetEnv` gives this.
pub fn offer(interface: *mut Interface) {
    INTERFACE.store(interface, Ordering::Release);
}

/// Whether the interface has been requested.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// How many functions were called that need a VM.
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

thread_local! {
    /// Which thread this one plays.
    static CURRENT: Cell<*mut JNIEnv> = const { Cell::new(std::ptr::null_mut()) };
}

/// The thread that this one plays; null if it plays none.
pub fn current() -> *mut JNIEnv {
    CURRENT.get()
}

/// From here on this thread plays that one.
pub fn play(env: *mut JNIEnv) {
    CURRENT.set(env);
}

/// More functions than JNI has ever had.
const FUNCTIONS: usize = 256;
/// `GetVersion`, `FatalError`, `GetJavaVM`.
const GET_VERSION: usize = 4;
const FATAL_ERROR: usize = 18;
const GET_JAVA_VM: usize = 219;
/// Their zero would mean success: `Throw`, `ThrowNew`, `PushLocalFrame`, `EnsureLocalCapacity`, `RegisterNatives`, `UnregisterNatives`,
/// `MonitorEnter`, `MonitorExit`.
const REFUSED: [usize; 8] = [13, 14, 19, 26, 215, 216, 217, 218];
/// Those that return floating-point numbers, which come in registers of their own: calls of methods (three forms each) and fields.
const FLOATING: [usize; 22] =
    [55, 56, 57, 58, 59, 60, 85, 86, 87, 88, 89, 90, 102, 103, 135, 136, 137, 138, 139, 140, 152, 153];

struct Table<const N: usize>([*const c_void; N]);

// SAFETY: addresses of functions.
unsafe impl<const N: usize> Sync for Table<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Send for Table<N> {}

fn count() {
    CALLS.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn nothing() -> usize {
    count();
    0
}

extern "C" fn no_number() -> f64 {
    count();
    0.0
}

extern "C" fn refused() -> isize {
    count();
    JNI_ERR as isize
}

extern "C" fn get_version(_env: *mut JNIEnv) -> jint {
    // The version that VMs of that time returned.
    0x0001_0002
}

extern "C" fn fatal_error(_env: *mut JNIEnv, message: *const c_char) -> isize {
    // SAFETY: the agent's string, or null.
    let message = if message.is_null() { "".into() } else { unsafe { CStr::from_ptr(message) }.to_string_lossy() };
    escape::say(&mut io::stderr(), format_args!("et-jvmpi: the agent ends the program: {message}"));
    std::process::exit(1);
}

extern "C" fn get_java_vm(_env: *mut JNIEnv, place: *mut *mut JavaVM) -> jint {
    if place.is_null() {
        return JNI_ERR;
    }
    // SAFETY: a pointer from the caller.
    unsafe { *place = java_vm() };
    JNI_OK
}

fn jni() -> &'static Table<FUNCTIONS> {
    static TABLE: OnceLock<Table<FUNCTIONS>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut all = [nothing as *const c_void; FUNCTIONS];
        all[..GET_VERSION].fill(std::ptr::null());
        for at in REFUSED {
            all[at] = refused as *const c_void;
        }
        for at in FLOATING {
            all[at] = no_number as *const c_void;
        }
        all[GET_VERSION] = get_version as *const c_void;
        all[FATAL_ERROR] = fatal_error as *const c_void;
        all[GET_JAVA_VM] = get_java_vm as *const c_void;
        Table(all)
    })
}

/// Creates a `JNIEnv` that is never freed.
pub fn new_env() -> *mut JNIEnv {
    let place: &'static mut *const c_void = Box::leak(Box::new(jni().0.as_ptr().cast()));
    std::ptr::from_mut(place).cast()
}

pub fn java_vm() -> *mut JavaVM {
    static TABLE: OnceLock<Table<8>> = OnceLock::new();
    static VM: OnceLock<Table<1>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let null = std::ptr::null();
        let (destroy, detach) = (refused as *const c_void, detach as *const c_void);
        let (attach, get_env) = (attach as *const c_void, get_env as *const c_void);
        Table([null, null, null, destroy, attach, detach, get_env, attach])
    });
    let vm = VM.get_or_init(|| Table([table.0.as_ptr().cast()]));
    vm.0.as_ptr().cast_mut().cast()
}

extern "C" fn attach(_vm: *mut JavaVM, place: *mut *mut c_void, _arguments: *mut c_void) -> jint {
    if current().is_null() {
        play(new_env());
    }
    if place.is_null() {
        return JNI_ERR;
    }
    // SAFETY: a pointer from the caller.
    unsafe { *place = current().cast() };
    JNI_OK
}

extern "C" fn detach(_vm: *mut JavaVM) -> jint {
    JNI_OK
}

extern "C" fn get_env(_vm: *mut JavaVM, place: *mut *mut c_void, version: jint) -> jint {
    if place.is_null() {
        return JNI_ERR;
    }
    let found: *mut c_void = if VERSIONS.contains(&version) {
        ASKED.store(true, Ordering::Relaxed);
        INTERFACE.load(Ordering::Acquire).cast()
    } else if version >> 16 == 1 || (9..64).contains(&(version >> 16)) {
        if current().is_null() {
            return JNI_EDETACHED;
        }
        current().cast()
    } else {
        // JVMTI or JVMDI.
        return JNI_EVERSION;
    };
    // SAFETY: a pointer from the caller.
    unsafe { *place = found };
    JNI_OK
}
