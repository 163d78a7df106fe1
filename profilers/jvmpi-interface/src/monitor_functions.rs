//! The functions of the interface for raw monitors. They need no VM, and go on to work after its end.
#![allow(unsafe_code, reason = "functions that agents call, with pointers of theirs")]
#![allow(clippy::not_unsafe_ptr_arg_deref, reason = "the interface has them as they are")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use jni_sys::jlong;

use crate::raw_monitor::RawMonitor;

/// `RawMonitorCreate`. A monitor without a name has an empty one.
pub extern "C" fn create(name: *const c_char) -> *mut c_void {
    // After the end of the VM as well: the agent may write its file then.
    let name = if name.is_null() {
        CString::default()
    } else {
        // SAFETY: a string from the agent.
        unsafe { CStr::from_ptr(name) }.to_owned()
    };
    std::ptr::from_ref(RawMonitor::create(name)).cast_mut().cast()
}

fn with_monitor(monitor: *mut c_void, body: impl FnOnce(&'static RawMonitor)) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Some(monitor) = RawMonitor::at(monitor) {
            body(monitor);
        }
    }));
}

/// `RawMonitorEnter`
pub extern "C" fn enter(monitor: *mut c_void) {
    with_monitor(monitor, RawMonitor::enter);
}

/// `RawMonitorExit`
pub extern "C" fn exit(monitor: *mut c_void) {
    with_monitor(monitor, RawMonitor::exit);
}

/// `RawMonitorWait`
pub extern "C" fn wait(monitor: *mut c_void, milliseconds: jlong) {
    with_monitor(monitor, |monitor| monitor.wait(milliseconds));
}

/// `RawMonitorNotifyAll`
pub extern "C" fn notify_all(monitor: *mut c_void) {
    with_monitor(monitor, RawMonitor::notify_all);
}

/// `RawMonitorDestroy`
pub extern "C" fn destroy(monitor: *mut c_void) {
    with_monitor(monitor, RawMonitor::destroy);
}
