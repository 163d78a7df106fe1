//! Event listeners: one for each JVMTI environment, so that several independent agents can be in one process, even in
//! one library.
//!
//! The VM calls plain functions with the environment of the event. The listener is in the environment's local storage
//! (JVMTI, `SetEnvironmentLocalStorage`), so agents need no global variables.
#![allow(unsafe_code, reason = "functions that the VM calls, with its raw pointers")]

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use jni_sys::{JNIEnv, jclass, jint, jlong, jmethodID, jobject, jvalue};

use crate::env::{Env, MethodId, Object};
use crate::jvmti::{EventKind, Jvmti, JvmtiError, OBJECT_FREE, RawEnv};

/// First event that has a callback, and how many there are.
const FIRST_EVENT: usize = 50;
const EVENTS: usize = 39;

/// Receives the events of an environment that [`Jvmti::set_event`] has enabled. All methods may be called on any
/// thread, also concurrently, up to the end of the process.
///
/// A panic in a method is caught and passed to [`panicked`](Self::panicked).
#[allow(unused_variables, reason = "names for those who read this")]
pub trait Listener: Sync {
    /// The VM is up; the program has not run.
    fn vm_init(&self, jvmti: Jvmti, env: Env, thread: Object) {}

    /// The VM goes down: the last event.
    fn vm_death(&self, env: Env) {}

    /// The current thread has started.
    fn thread_start(&self, env: Env, thread: Object) {}

    /// The current thread has run its last Java code.
    fn thread_end(&self, env: Env, thread: Object) {}

    /// A class is about to be defined from this class file, or from the one that is returned. Not called before the VM
    /// has JNI (JVMTI's primordial phase).
    fn class_file(&self, env: Env, file: ClassFile<'_>) -> Option<Vec<u8>> {
        None
    }

    /// A class was linked, on the current thread; nothing of it has run.
    fn class_prepare(&self, env: Env, class: Object) {}

    /// The current thread has come to a method with a breakpoint.
    fn breakpoint(&self, env: Env, thread: Object, method: MethodId) {}

    /// The current thread, which is `thread` or carries it, enters a method.
    fn method_entry(&self, env: Env, thread: Object, method: MethodId) {}

    /// It leaves a method, whichever way.
    fn method_exit(&self, env: Env, thread: Object, method: MethodId, returned: Returned) {}

    /// It is about to run the instruction there.
    fn single_step(&self, env: Env, thread: Object, method: MethodId, location: i64) {}

    /// A native method gets the function at this address; another takes its place, if one is returned. The VM need not have JNI yet.
    fn native_method_bind(&self, address: *const c_void) -> Option<*const c_void> {
        None
    }

    /// A method was compiled; may be called on any thread.
    fn compiled_method_load(&self, method: MethodId, code: CompiledCode<'_>) {}

    /// The code at an address is gone.
    fn compiled_method_unload(&self, method: MethodId, address: *const c_void) {}

    /// The process has received `SIGQUIT`.
    fn data_dump_request(&self) {}

    /// The current thread is about to wait on an object; the timeout is in milliseconds, 0 means none.
    fn monitor_wait(&self, env: Env, thread: Object, object: Object, timeout: i64) {}

    /// The wait has ended by notification or timeout. The thread may not own the monitor again yet.
    fn monitor_waited(&self, env: Env, thread: Object, object: Object, is_timed_out: bool) {}

    /// It wants a monitor that another thread has.
    fn monitor_contended_enter(&self, env: Env, thread: Object, object: Object) {}

    /// The thread has acquired the monitor.
    fn monitor_contended_entered(&self, env: Env, thread: Object, object: Object) {}

    /// The current thread has made an object.
    fn sampled_object_alloc(&self, env: Env, object: Object, class: Object, size: u64) {}

    /// A collection begins, in a safepoint: neither JNI nor JVMTI may be called.
    fn garbage_collection_start(&self) {}

    /// The collection is over. As above.
    fn garbage_collection_finish(&self) {}

    /// An object that had this tag is gone. As above.
    fn object_free(&self, tag: i64) {}

    /// One of the above has panicked, in these words. The VM and the program go on.
    fn panicked(&self, env: Option<Env>, why: &str);
}

/// The result of a method that did not end by an exception.
#[derive(Clone, Copy)]
pub struct Returned(Option<jvalue>);

impl std::fmt::Debug for Returned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Returned").finish_non_exhaustive()
    }
}

impl Returned {
    /// The returned object as a local reference. HotSpot creates it outside of the event's frame: unless it is deleted,
    /// it keeps the object alive until the outermost Java method returns.
    ///
    /// # Safety
    /// The return type of the method is an object type.
    pub unsafe fn object(self, _env: Env<'_>) -> Option<Object<'_>> {
        // SAFETY: the caller's; a reference of the current thread, or null.
        self.0.and_then(|value| unsafe { Object::new(value.l) })
    }
}

/// A class file on its way to the VM.
#[derive(Clone, Copy, Debug)]
pub struct ClassFile<'a> {
    /// The class that is redefined; `None` if the class is new.
    pub class: Option<Object<'a>>,
    /// Defining loader; `None` for the boot loader.
    pub loader: Option<Object<'a>>,
    /// In its internal form (`java/lang/String`), in modified UTF-8, if the VM knows it already.
    pub name: Option<&'a CStr>,
    /// The class file.
    pub bytes: &'a [u8],
}

/// The code of a compiled method.
#[derive(Clone, Copy, Debug)]
pub struct CompiledCode<'a> {
    /// Address of the code.
    pub address: *const c_void,
    /// Length of the code in bytes.
    pub size: jint,
    /// Which instructions it comes from.
    pub map: &'a [AddressLocation],
}

/// JVMTI's `jvmtiAddrLocationMap`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AddressLocation {
    pub start_address: *const c_void,
    pub location: jlong,
}

/// The message of a panic.
pub fn panic_text(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("unknown cause")
}

impl Jvmti {
    /// Makes `listener` the only receiver of the environment's events. [`set_event`](Self::set_event) selects the
    /// events.
    pub fn listen(self, listener: &'static dyn Listener) -> Result<(), JvmtiError> {
        // Never freed: a callback may be on its way on another thread, even when the environment is gone.
        let place: &'static &'static dyn Listener = Box::leak(Box::new(listener));
        self.set_local_storage(ptr::from_ref(place).cast())?;
        let mut table = [ptr::null::<c_void>(); EVENTS];
        for (event, function) in [
            (EventKind::VmInit as jint, vm_init as *const c_void),
            (EventKind::VmDeath as jint, vm_death as *const c_void),
            (EventKind::ThreadStart as jint, thread_start as *const c_void),
            (EventKind::ThreadEnd as jint, thread_end as *const c_void),
            (EventKind::ClassFileLoadHook as jint, class_file_load_hook as *const c_void),
            (EventKind::ClassLoad as jint, class_load as *const c_void),
            (EventKind::ClassPrepare as jint, class_prepare as *const c_void),
            (EventKind::Breakpoint as jint, breakpoint as *const c_void),
            (EventKind::GarbageCollectionStart as jint, garbage_collection_start as *const c_void),
            (EventKind::GarbageCollectionFinish as jint, garbage_collection_finish as *const c_void),
            (EventKind::MethodEntry as jint, method_entry as *const c_void),
            (EventKind::MethodExit as jint, method_exit as *const c_void),
            (EventKind::SingleStep as jint, single_step as *const c_void),
            (EventKind::NativeMethodBind as jint, native_method_bind as *const c_void),
            (EventKind::CompiledMethodLoad as jint, compiled_method_load as *const c_void),
            (EventKind::CompiledMethodUnload as jint, compiled_method_unload as *const c_void),
            (EventKind::DataDumpRequest as jint, data_dump_request as *const c_void),
            (EventKind::MonitorWait as jint, monitor_wait as *const c_void),
            (EventKind::MonitorWaited as jint, monitor_waited as *const c_void),
            (EventKind::MonitorContendedEnter as jint, monitor_contended_enter as *const c_void),
            (EventKind::MonitorContendedEntered as jint, monitor_contended_entered as *const c_void),
            (EventKind::SampledObjectAlloc as jint, sampled_object_alloc as *const c_void),
            (OBJECT_FREE, object_free as *const c_void),
        ] {
            table[event as usize - FIRST_EVENT] = function;
        }
        self.set_callbacks(&table, mem::size_of_val(&table))
    }
}

/// Calls the environment's listener, if it has one.
fn told<'a, T>(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    fallback: T,
    tell: impl FnOnce(&'static dyn Listener, Jvmti, Option<Env<'a>>) -> T,
) -> T {
    // SAFETY: as the VM hands them over: an environment of JVMTI's, and the thread's of JNI, or null.
    let (jvmti, env) = unsafe { (Jvmti::from_raw(jvmti), Env::new(env)) };
    let Some(jvmti) = jvmti else { return fallback };
    // SAFETY: null, or what `listen` has put there, for good.
    let listener = unsafe { jvmti.local_storage().cast::<&'static dyn Listener>().as_ref() };
    let Some(listener) = listener else { return fallback };
    catch_unwind(AssertUnwindSafe(|| tell(*listener, jvmti, env))).unwrap_or_else(|cause| {
        // Not even a panic about a panic may leave a function that C has called.
        let _ = catch_unwind(AssertUnwindSafe(|| listener.panicked(env, panic_text(&*cause))));
        fallback
    })
}

/// Like [`told`], with JNI and an object, which must be there.
fn told_of(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    object: jobject,
    tell: impl FnOnce(&'static dyn Listener, Jvmti, Env, Object),
) {
    told(jvmti, env, (), |listener, jvmti, env| {
        // SAFETY: a local reference of the callback, or null.
        if let (Some(env), Some(object)) = (env, unsafe { Object::new(object) }) {
            tell(listener, jvmti, env, object);
        }
    });
}

unsafe extern "system" fn vm_init(jvmti: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    told_of(jvmti, env, thread, |listener, jvmti, env, thread| listener.vm_init(jvmti, env, thread));
}

unsafe extern "system" fn vm_death(jvmti: *mut RawEnv, env: *mut JNIEnv) {
    told(jvmti, env, (), |listener, _, env| _ = env.map(|env| listener.vm_death(env)));
}

unsafe extern "system" fn thread_start(jvmti: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    told_of(jvmti, env, thread, |listener, _, env, thread| listener.thread_start(env, thread));
}

unsafe extern "system" fn thread_end(jvmti: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    told_of(jvmti, env, thread, |listener, _, env, thread| listener.thread_end(env, thread));
}

/// Nobody wants to know: [`CallTraces`](crate::call_trace::CallTraces) needs the event to be enabled, and what has no callback is not.
unsafe extern "system" fn class_load(_jvmti: *mut RawEnv, _env: *mut JNIEnv, _thread: jobject, _class: jclass) {}

unsafe extern "system" fn class_prepare(jvmti: *mut RawEnv, env: *mut JNIEnv, _thread: jobject, class: jclass) {
    told_of(jvmti, env, class, |listener, _, env, class| listener.class_prepare(env, class));
}

unsafe extern "system" fn breakpoint(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    _location: jlong,
) {
    told_of(jvmti, env, thread, |listener, _, env, thread| listener.breakpoint(env, thread, MethodId(method)));
}

unsafe extern "system" fn method_entry(jvmti: *mut RawEnv, env: *mut JNIEnv, thread: jobject, method: jmethodID) {
    told_of(jvmti, env, thread, |listener, _, env, thread| listener.method_entry(env, thread, MethodId(method)));
}

unsafe extern "system" fn method_exit(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    by_exception: u8,
    value: jvalue,
) {
    let returned = Returned((by_exception == 0).then_some(value));
    told_of(jvmti, env, thread, |listener, _, env, thread| {
        listener.method_exit(env, thread, MethodId(method), returned);
    });
}

unsafe extern "system" fn single_step(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    location: jlong,
) {
    told_of(jvmti, env, thread, |listener, _, env, thread| {
        listener.single_step(env, thread, MethodId(method), location);
    });
}

unsafe extern "system" fn native_method_bind(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    _thread: jobject,
    _method: jmethodID,
    address: *const c_void,
    place: *mut *const c_void,
) {
    let other = told(jvmti, env, None, |listener, _, _| listener.native_method_bind(address));
    if let Some(other) = other.filter(|_| !place.is_null()) {
        // SAFETY: the VM's place for another address.
        unsafe { *place = other };
    }
}

unsafe extern "system" fn compiled_method_load(
    jvmti: *mut RawEnv,
    method: jmethodID,
    size: jint,
    address: *const c_void,
    map_length: jint,
    map: *const AddressLocation,
    _compile_info: *const c_void,
) {
    told(jvmti, ptr::null_mut(), (), |listener, _, _| {
        let length = if map.is_null() { 0 } else { usize::try_from(map_length).unwrap_or(0) };
        // SAFETY: this many entries, valid until the callback returns.
        let map = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(map, length) } };
        listener.compiled_method_load(MethodId(method), CompiledCode { address, size, map });
    });
}

unsafe extern "system" fn compiled_method_unload(jvmti: *mut RawEnv, method: jmethodID, address: *const c_void) {
    told(jvmti, ptr::null_mut(), (), |listener, _, _| listener.compiled_method_unload(MethodId(method), address));
}

unsafe extern "system" fn data_dump_request(jvmti: *mut RawEnv) {
    told(jvmti, ptr::null_mut(), (), |listener, _, _| listener.data_dump_request());
}

/// As [`told_of`], with a thread besides.
fn told_of_two(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    tell: impl FnOnce(&'static dyn Listener, Env, Object, Object),
) {
    told_of(jvmti, env, object, |listener, _, env, object| {
        // SAFETY: a local reference of the callback, or null.
        if let Some(thread) = unsafe { Object::new(thread) } {
            tell(listener, env, thread, object);
        }
    });
}

unsafe extern "system" fn monitor_wait(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    timeout: jlong,
) {
    told_of_two(jvmti, env, thread, object, |listener, env, thread, object| {
        listener.monitor_wait(env, thread, object, timeout);
    });
}

unsafe extern "system" fn monitor_waited(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    timed_out: u8,
) {
    told_of_two(jvmti, env, thread, object, |listener, env, thread, object| {
        listener.monitor_waited(env, thread, object, timed_out != 0);
    });
}

unsafe extern "system" fn monitor_contended_enter(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    told_of_two(jvmti, env, thread, object, |listener, env, thread, object| {
        listener.monitor_contended_enter(env, thread, object);
    });
}

unsafe extern "system" fn monitor_contended_entered(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    told_of_two(jvmti, env, thread, object, |listener, env, thread, object| {
        listener.monitor_contended_entered(env, thread, object);
    });
}

unsafe extern "system" fn sampled_object_alloc(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    _thread: jobject,
    object: jobject,
    class: jclass,
    size: jlong,
) {
    told_of(jvmti, env, object, |listener, _, env, object| {
        // SAFETY: a local reference of the callback, or null.
        if let Some(class) = unsafe { Object::new(class) } {
            listener.sampled_object_alloc(env, object, class, size.max(0) as u64);
        }
    });
}

unsafe extern "system" fn class_file_load_hook(
    jvmti: *mut RawEnv,
    env: *mut JNIEnv,
    redefined: jclass,
    loader: jobject,
    name: *const c_char,
    _protection_domain: jobject,
    length: jint,
    bytes: *const u8,
    new_length: *mut jint,
    new_bytes: *mut *mut u8,
) {
    if bytes.is_null() {
        return;
    }
    told(jvmti, env, (), |listener, jvmti, env| {
        let Some(env) = env else { return };
        // SAFETY: valid until the callback returns: references or null, a string or null, and this many bytes.
        let file = unsafe {
            ClassFile {
                class: Object::new(redefined),
                loader: Object::new(loader),
                name: (!name.is_null()).then(|| CStr::from_ptr(name)),
                bytes: std::slice::from_raw_parts(bytes, usize::try_from(length).unwrap_or(0)),
            }
        };
        let Some(ours) = listener.class_file(env, file) else { return };
        if let (Ok(length), Ok(memory)) = (jint::try_from(ours.len()), jvmti.allocate(&ours)) {
            // SAFETY: the VM's places for the answer; it frees the memory.
            unsafe {
                *new_length = length;
                *new_bytes = memory;
            }
        }
    });
}

unsafe extern "system" fn garbage_collection_start(jvmti: *mut RawEnv) {
    told(jvmti, ptr::null_mut(), (), |listener, _, _| listener.garbage_collection_start());
}

unsafe extern "system" fn garbage_collection_finish(jvmti: *mut RawEnv) {
    told(jvmti, ptr::null_mut(), (), |listener, _, _| listener.garbage_collection_finish());
}

unsafe extern "system" fn object_free(jvmti: *mut RawEnv, tag: jlong) {
    told(jvmti, ptr::null_mut(), (), |listener, _, _| listener.object_free(tag));
}
