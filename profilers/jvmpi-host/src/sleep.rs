//! `Thread.sleep`, which JVMPI reports as a wait without an object and JVMTI does not report: the VM's function is
//! intercepted when the native method is bound. Virtual threads do not call it, nor any other blocking function of the
//! VM.
#![allow(unsafe_code, reason = "stands before a native method")]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use et_jvm::env::Env;
use et_jvm::hotspot::exported_name;
use et_names::releases::since;
use jni_sys::{JNIEnv, jclass, jlong};

use crate::abi::{Details, MonitorWait, event};
use crate::deliver;
use crate::host;
use crate::starts;

type Sleep = unsafe extern "system" fn(*mut JNIEnv, jclass, jlong);

static VMS: OnceLock<usize> = OnceLock::new();
/// Number of the VM function's time units in a millisecond.
static UNITS: AtomicI64 = AtomicI64::new(1);

/// A native method gets the function at that address: ours, if it is the VM's for sleeping.
pub fn bound(address: *const c_void) -> Option<*const c_void> {
    let name = exported_name(address as usize)?;
    if name != c"JVM_Sleep" && name != c"JVM_SleepNanos" {
        return None;
    }
    VMS.get_or_init(|| address as usize);
    Some(sleep as *const c_void)
}

/// The VM is up, and is of this release.
pub fn vm_is_of(release: &str) {
    let takes_nanoseconds = release.parse().is_ok_and(|release: u16| release >= since::SLEEP_TAKES_NANOSECONDS);
    UNITS.store(if takes_nanoseconds { 1_000_000 } else { 1 }, Ordering::Relaxed);
}

unsafe extern "system" fn sleep(raw: *mut JNIEnv, class: jclass, time: jlong) {
    let Some(function) = VMS.get() else { return };
    // SAFETY: the VM's function, which was bound to the method that has this signature.
    let function = unsafe { std::mem::transmute::<*const c_void, Sleep>(*function as *const c_void) };
    let start = about_to(raw, time);
    // SAFETY: as the VM has called us.
    unsafe { function(raw, class, time) };
    if let Some(start) = start {
        let timeout = start.elapsed().as_millis() as i64;
        // An exception may be on its way: no JNI here.
        tell(raw, event::MONITOR_WAITED, timeout);
    }
}

/// Reports the start; returns its time if the events are enabled.
fn about_to(raw: *mut JNIEnv, time: jlong) -> Option<Instant> {
    let host = host::get().filter(|host| host.wants(event::MONITOR_WAIT) || host.wants(event::MONITOR_WAITED))?;
    // SAFETY: as the VM hands it over.
    let env = unsafe { Env::new(raw) }?;
    if starts::announce(host, env).is_inside() {
        return None;
    }
    let units = UNITS.load(Ordering::Relaxed);
    // A time below a millisecond must not become 0, which means no timeout.
    tell(raw, event::MONITOR_WAIT, if time > 0 { (time / units).max(1) } else { 0 });
    Some(Instant::now())
}

fn tell(env: *mut JNIEnv, kind: i32, timeout: i64) {
    deliver::tell(env, kind, Details { monitor_wait: MonitorWait { object: 0, timeout } });
}
