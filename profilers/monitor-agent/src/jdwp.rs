//! The VM's own debugger agent, `libjdwp`. HotSpot lets an agent ask for what debuggers need (breakpoints, local variables) only while the
//! VM starts, so it must be loaded then; but it need not do anything before the first debugger comes (`onjcmd=y`, from 12, and in updates of
//! 11, up to some release before 25). Without that it listens from the start. What it costs meanwhile are optimizations that the VM leaves out; hence only by option.
#![allow(unsafe_code, reason = "a library of the JDK that is loaded here")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::net::{Ipv4Addr, TcpListener};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use et_jvm::env::{Env, Object};
use et_jvm::jvmti::Jvmti;
use jni_sys::{JNIEnv, JavaVM, jint, jobject};

type OnLoad = unsafe extern "system" fn(*mut JavaVM, *const c_char, *mut c_void) -> jint;
/// `debugInit_startDebuggingViaCommand`, which `jcmd VM.start_java_debugging` calls: environment, thread, places for transport, address
/// and whether it was the first time. An error message, or null.
type Start =
    unsafe extern "system" fn(*mut JNIEnv, jobject, *mut *const c_char, *mut *const c_char, *mut u8) -> *const c_char;

/// A loaded `libjdwp`.
#[derive(Debug)]
pub struct Jdwp {
    /// The port of loopback's at which it listens when it is started.
    port: u16,
    /// `None` if it is listening already.
    start: Option<Start>,
    has_started: AtomicBool,
}

/// Finds a free port.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| format!("no port is free: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

impl Jdwp {
    /// To be called during VM startup.
    ///
    /// # Safety
    /// `vm` is the VM that `Agent_OnLoad` was called with.
    pub unsafe fn load(vm: *mut JavaVM, jvmti: Jvmti) -> Result<Self, String> {
        let folder = jvmti.system_property(c"sun.boot.library.path").unwrap_or_default();
        let path = folder.split(':').map(|folder| format!("{folder}/libjdwp.so"));
        let path = path.into_iter().find(|path| std::path::Path::new(path).exists());
        let path = path.ok_or("this JDK has no libjdwp.so (module jdk.jdwp.agent)")?;
        let library = CString::new(path.as_str()).map_err(|_| "its path contains a zero byte")?;
        let port = free_port()?;
        // SAFETY: plain calls of the dynamic linker; functions of these names have these signatures (debugInit.c).
        unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
            if handle.is_null() {
                return Err(format!("cannot load {path}"));
            }
            let start = libc::dlsym(handle, c"debugInit_startDebuggingViaCommand".as_ptr());
            let load = libc::dlsym(handle, c"Agent_OnLoad".as_ptr());
            if load.is_null() {
                return Err(format!("{path} has no Agent_OnLoad"));
            }
            let later = if start.is_null() { "" } else { ",onjcmd=y" };
            let options = format!("transport=dt_socket,server=y,suspend=n,quiet=y{later},address=127.0.0.1:{port}");
            let options = CString::new(options).map_err(|_| "no options")?;
            let load = std::mem::transmute::<*mut c_void, OnLoad>(load);
            // It keeps a pointer to the string.
            let options = options.into_raw();
            if load(vm, options, ptr::null_mut()) != 0 {
                return Err("the debugger agent of the JDK refused to start".to_owned());
            }
            let start = (!start.is_null()).then(|| std::mem::transmute::<*mut c_void, Start>(start));
            Ok(Self { port, start, has_started: AtomicBool::new(false) })
        }
    }

    /// Starts it, once; the port at which it listens then.
    pub fn start(&self, env: Env, thread: Option<Object>) -> Result<u16, String> {
        let Some(start) = self.start.filter(|_| !self.has_started.load(Ordering::Acquire)) else {
            return Ok(self.port);
        };
        let (mut transport, mut address, mut is_first) = (ptr::null(), ptr::null(), 0_u8);
        let thread = thread.map_or(ptr::null_mut(), Object::raw);
        // SAFETY: as the VM calls it for `jcmd`: on a thread that it knows, with places for the answers.
        let error = unsafe { start(env.raw(), thread, &mut transport, &mut address, &mut is_first) };
        if !error.is_null() {
            // SAFETY: a C string that stays.
            return Err(unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned());
        }
        self.has_started.store(true, Ordering::Release);
        Ok(self.port)
    }
}
