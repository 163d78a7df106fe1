//! An agent that runs beside the runtime: two JVMTI environments, each with its own listener. At VM shutdown, the
//! events they received are written to the file named by the agent's option.
#![allow(unsafe_code, reason = "an entry point from C, with raw pointers of the VM")]

use std::ffi::{CStr, c_char, c_void};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use et_jvm::env::{Env, Object, Vm};
use et_jvm::jvmti::{EventKind, Jvmti, JvmtiError};
use et_jvm::listener::{ClassFile, Listener};
use et_jvm::sync::lock;
use jni_sys::{JNI_ERR, JNI_OK, JavaVM, jint};

/// Counts threads, and panics at the first.
#[derive(Debug)]
struct Threads {
    jvmti: Jvmti,
    report: PathBuf,
    classes: &'static Classes,
    inits: AtomicU32,
    started: AtomicU32,
    panics: Mutex<Vec<String>>,
}

impl Listener for Threads {
    fn vm_init(&self, jvmti: Jvmti, _env: Env, _thread: Object) {
        self.inits.fetch_add(1, Ordering::Relaxed);
        // It must be the environment's own.
        if jvmti.set_event(EventKind::ThreadStart, true).is_err() {
            self.inits.fetch_add(1000, Ordering::Relaxed);
        }
    }

    fn thread_start(&self, _env: Env, thread: Object) {
        let name = self.jvmti.frame_count(thread).map(|_| ());
        assert!(self.started.fetch_add(1, Ordering::Relaxed) > 0, "at the first thread: {name:?}");
    }

    fn vm_death(&self, _env: Env) {
        let lines = [
            format!("inits {}", self.inits.load(Ordering::Relaxed)),
            format!("threads {}", self.started.load(Ordering::Relaxed)),
            format!("panics {:?}", lock(&self.panics)),
            format!("class files {:?}", lock(&self.classes.seen)),
        ];
        let _ = fs::write(&self.report, lines.join("\n"));
    }

    fn panicked(&self, env: Option<Env>, why: &str) {
        let line = format!("{why}, env: {}", env.is_some());
        lock(&self.panics).push(line);
    }
}

/// Notes the class files of the program's own classes.
#[derive(Debug, Default)]
struct Classes {
    seen: Mutex<Vec<String>>,
}

impl Listener for Classes {
    fn class_file(&self, _env: Env, file: ClassFile<'_>) -> Option<Vec<u8>> {
        let name = file.name?.to_str().ok()?;
        if name.starts_with("Threads")
            && file.class.is_none()
            && file.loader.is_some()
            && file.bytes.starts_with(&[0xca, 0xfe])
        {
            lock(&self.seen).push(name.to_owned());
        }
        None
    }

    fn panicked(&self, _env: Option<Env>, why: &str) {
        lock(&self.seen).push(why.to_owned());
    }
}

fn load(vm: Vm, report: PathBuf) -> Result<(), JvmtiError> {
    let environment = || Jvmti::new(vm).ok_or(JvmtiError::NO_ENVIRONMENT);
    let (one, other) = (environment()?, environment()?);
    let classes: &'static Classes = Box::leak(Box::default());
    other.listen(classes)?;
    other.set_event(EventKind::ClassFileLoadHook, true)?;
    let threads = Threads {
        jvmti: one,
        report,
        classes,
        inits: AtomicU32::new(0),
        started: AtomicU32::new(0),
        panics: Mutex::default(),
    };
    one.listen(Box::leak(Box::new(threads)))?;
    one.set_event(EventKind::VmInit, true)?;
    one.set_event(EventKind::VmDeath, true)
}

/// Called by the VM during startup, for `-agentpath`.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(vm: *mut JavaVM, options: *const c_char, _reserved: *mut c_void) -> jint {
    if options.is_null() {
        return JNI_ERR;
    }
    // The line about a panic would be one more on standard error.
    std::panic::set_hook(Box::new(|_| {}));
    // SAFETY: as the VM hands them over: a string that ends with zero.
    let (vm, report) = unsafe { (Vm::new(vm), PathBuf::from(CStr::from_ptr(options).to_string_lossy().as_ref())) };
    match vm.map(|vm| load(vm, report)) {
        Some(Ok(())) => JNI_OK,
        _ => JNI_ERR,
    }
}
