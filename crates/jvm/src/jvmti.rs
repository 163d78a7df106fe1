//! JVMTI: the functions that the runtime uses, by their numbers in the specification.
#![allow(unsafe_code, reason = "calls through JVMTI's function table")]

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};

use jni_sys::{JNIEnv, jclass, jfieldID, jint, jlong, jmethodID, jobject};
use thiserror::Error;

use crate::env::{Env, FieldId, JniFunctions, MethodId, Object, Vm};
use crate::{from_modified_utf8, mark_word};

/// The interface version asked for: 1.2, there since JDK 7.
const VERSION_1_2: jint = 0x3001_0200;

/// A function of JVMTI that did not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("JVMTI {function} failed with error {code}")]
pub struct JvmtiError {
    /// Name of the function that failed.
    pub function: &'static str,
    /// The error code, `JVMTI_ERROR_…`.
    pub code: jint,
}

impl JvmtiError {
    /// The VM has no other environment to give: `JVMTI_ERROR_NOT_AVAILABLE`, as we call it.
    pub const NO_ENVIRONMENT: Self = Self { function: "GetEnv", code: 98 };
    /// No `java.lang.Thread` could be made: `JVMTI_ERROR_OUT_OF_MEMORY`, as we call it.
    pub const NO_THREAD: Self = Self { function: "RunAgentThread", code: 110 };
}

type Result<T> = std::result::Result<T, JvmtiError>;

/// Numbers of the capabilities that are used: bits of `jvmtiCapabilities`, in the order of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// `can_tag_objects`
    TagObjects = 0,
    /// `can_get_bytecodes`
    Bytecodes = 3,
    /// `can_get_owned_monitor_info`
    OwnedMonitorInfo = 5,
    /// `can_get_current_contended_monitor`
    CurrentContendedMonitor = 6,
    /// `can_get_monitor_info`
    MonitorInfo = 7,
    /// `can_get_source_file_name`
    SourceFileName = 11,
    /// `can_get_line_numbers`
    LineNumbers = 12,
    /// `can_access_local_variables`
    LocalVariables = 14,
    /// `can_generate_single_step_events`
    SingleStepEvents = 16,
    /// `can_generate_breakpoint_events`
    BreakpointEvents = 19,
    /// `can_suspend`
    Suspend = 20,
    /// `can_get_thread_cpu_time`
    ThreadCpuTime = 23,
    /// `can_generate_method_entry_events`
    MethodEntryEvents = 24,
    /// `can_generate_method_exit_events`
    MethodExitEvents = 25,
    /// `can_generate_all_class_hook_events`
    AllClassHookEvents = 26,
    /// `can_generate_compiled_method_load_events`
    CompiledMethodLoadEvents = 27,
    /// `can_generate_monitor_events`
    MonitorEvents = 28,
    /// `can_generate_native_method_bind_events`
    NativeMethodBindEvents = 30,
    /// `can_generate_garbage_collection_events`
    GarbageCollectionEvents = 31,
    /// `can_generate_object_free_events`
    ObjectFreeEvents = 32,
    /// `can_get_constant_pool`
    ConstantPool = 35,
    /// `can_retransform_classes`
    RetransformClasses = 37,
    /// `can_generate_early_class_hook_events`
    EarlyClassHookEvents = 42,
    /// `can_generate_sampled_object_alloc_events`
    SampledObjectAllocEvents = 43,
}

/// As `jvmtiCapabilities` has them.
fn bits(capabilities: &[Capability]) -> [u64; 2] {
    let mut bits = [0u64; 2];
    for capability in capabilities {
        bits[*capability as usize / 64] |= 1 << (*capability as usize % 64);
    }
    bits
}

/// Numbers of the events that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EventKind {
    VmInit = 50,
    VmDeath = 51,
    ThreadStart = 52,
    ThreadEnd = 53,
    ClassFileLoadHook = 54,
    ClassLoad = 55,
    ClassPrepare = 56,
    SingleStep = 60,
    Breakpoint = 62,
    MethodEntry = 65,
    MethodExit = 66,
    NativeMethodBind = 67,
    CompiledMethodLoad = 68,
    CompiledMethodUnload = 69,
    DataDumpRequest = 71,
    MonitorWait = 73,
    MonitorWaited = 74,
    MonitorContendedEnter = 75,
    MonitorContendedEntered = 76,
    GarbageCollectionStart = 81,
    GarbageCollectionFinish = 82,
    SampledObjectAlloc = 86,
}

/// `ObjectFree`. Not an [`EventKind`], because it must not be disabled.
pub(crate) const OBJECT_FREE: jint = 83;

/// The body of an agent thread.
pub(crate) type AgentThread = unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, *mut c_void);

/// JVMTI's `jvmtiEnv`.
#[repr(C)]
#[derive(Debug)]
pub struct RawEnv {
    pub(crate) functions: *const *const c_void,
}

/// JVMTI's `jvmtiThreadInfo`.
#[repr(C)]
pub(crate) struct RawThreadInfo {
    pub name: *mut c_char,
    priority: jint,
    is_daemon: u8,
    pub thread_group: jobject,
    pub context_class_loader: jobject,
}

impl RawThreadInfo {
    /// To be filled in by the VM.
    pub const EMPTY: Self = Self {
        name: ptr::null_mut(),
        priority: 0,
        is_daemon: 0,
        thread_group: ptr::null_mut(),
        context_class_loader: ptr::null_mut(),
    };
}

/// JVMTI's `jvmtiFrameInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct RawFrame {
    method: jmethodID,
    location: jlong,
}

/// Name and kind of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadInfo {
    /// None if it is empty, as while the thread's constructor has not set it.
    pub name: Option<String>,
    /// Whether the VM may exit before the thread ends.
    pub is_daemon: bool,
}

/// Name and descriptor of a method or field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub descriptor: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub method: MethodId,
    /// Index of the instruction that runs; -1 in native methods.
    pub location: i64,
}

/// `ACC_STATIC`
pub const STATIC: jint = 8;

/// Capacity of a frame of local references that is enough for the classes of most programs. Exceeding it is not an
/// error.
pub const CLASSES: jint = 16 << 10;

/// How far a class has come; several may hold.
pub mod class_status {
    use jni_sys::jint;
    pub const PREPARED: jint = 2;
    pub const INITIALIZED: jint = 4;
    pub const ERROR: jint = 8;
    pub const ARRAY: jint = 16;
    pub const PRIMITIVE: jint = 32;
    /// There is nothing to link, or it failed.
    pub const NEVER_LINKED: jint = ERROR | ARRAY | PRIMITIVE;
}

/// Kinds of references that the heap walk reports.
pub mod reference {
    use jni_sys::jint;
    pub const FIELD: jint = 2;
    pub const ARRAY_ELEMENT: jint = 3;
    pub const STATIC_FIELD: jint = 8;
    pub const STACK_LOCAL: jint = 24;
    pub const THREAD: jint = 26;
}

/// One reference of a heap walk. Tags may be changed by the visitor.
#[derive(Debug)]
pub struct Reference<'a> {
    /// One of the constants in [`reference`].
    pub kind: jint,
    /// Index of the field or element.
    pub index: u32,
    /// The stack slot, for a reference from the stack.
    pub local: Option<StackLocal>,
    pub class_tag: jlong,
    pub size: u64,
    pub tag: &'a mut jlong,
    /// Address of the tag.
    pub tag_at: *const jlong,
    /// Of the referrer's class; 0 for roots.
    pub referrer_class_tag: jlong,
    /// Tag of the referring object; 0 for roots.
    pub referrer_tag: jlong,
    /// Where that is; null for roots.
    pub referrer_tag_at: *const jlong,
    /// Length of an array; -1 for other objects.
    pub length: i32,
}

/// An object in a heap walk without references. The visitor may change its tag.
#[derive(Debug)]
pub struct HeapObject<'a> {
    pub class_tag: jlong,
    pub size: u64,
    /// Length of an array; -1 for other objects.
    pub length: i32,
    pub tag: &'a mut jlong,
    /// Address of the tag.
    pub tag_at: *const jlong,
}

impl HeapObject<'_> {
    /// The identity hash in its mark word; 0 if it has none, `None` if the word is a lock's. Only valid if
    /// [`mark_word::probe`] has shown that mark words can be found.
    pub fn hash(&self, shift: u32) -> Option<u32> {
        // SAFETY: called by a visitor.
        unsafe { mark_word::hash(self.tag_at, self.size, shift) }
    }
}

/// Where a stack holds a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackLocal {
    pub thread_tag: jlong,
    /// Index of the frame; 0 is the innermost.
    pub depth: jint,
    pub slot: jint,
}

/// `jvmtiHeapReferenceInfoStackLocal`.
#[repr(C)]
pub(crate) struct RawStackLocal {
    pub thread_tag: jlong,
    thread_id: jlong,
    pub depth: jint,
    method: jmethodID,
    location: jlong,
    slot: jint,
}

pub(crate) type RawReferenceCallback = unsafe extern "system" fn(
    jint,
    *const c_void,
    jlong,
    jlong,
    jlong,
    *mut jlong,
    *mut jlong,
    jint,
    *mut c_void,
) -> jint;

type RawIterationCallback = unsafe extern "system" fn(jlong, jlong, *mut jlong, jint, *mut c_void) -> jint;

/// JVMTI's `jvmtiHeapCallbacks`.
#[repr(C)]
struct RawHeapCallbacks {
    heap_iteration: Option<RawIterationCallback>,
    heap_reference: Option<RawReferenceCallback>,
    others: [*const c_void; 14],
}

pub(crate) const VISIT_OBJECTS: jint = 0x100;
/// Result of a callback that aborts the heap walk.
pub(crate) const VISIT_ABORT: jint = 0x8000;
/// Leaves out objects without a tag.
const FILTER_UNTAGGED: jint = 0x8;

/// A JVMTI environment.
#[derive(Clone, Copy, Debug)]
pub struct Jvmti(pub(crate) NonNull<RawEnv>);

// SAFETY: JVMTI: environments may be used on any thread.
unsafe impl Send for Jvmti {}
// SAFETY: as above.
unsafe impl Sync for Jvmti {}

macro_rules! jvmti {
    ($jvmti:expr, $number:literal $name:ident ($($type:ty),*) $(, $argument:expr)* $(,)?) => {{
        // SAFETY: entry `number - 1` of the table is this function (JVMTI specification, function index), and has
        // been since version 1.0; its arguments come from the JVM or are places for its answers.
        let code = unsafe {
            let function = *(*$jvmti.0.as_ptr()).functions.add($number - 1);
            let function: unsafe extern "system" fn(*mut RawEnv $(, $type)*) -> jint = mem::transmute(function);
            function($jvmti.0.as_ptr() $(, $argument)*)
        };
        if code == 0 { Ok(()) } else { Err(JvmtiError { function: stringify!($name), code }) }
    }};
}
pub(crate) use jvmti;

impl Jvmti {
    /// Creates an environment.
    pub fn new(vm: Vm) -> Option<Self> {
        NonNull::new(vm.interface(VERSION_1_2).cast()).map(Self)
    }

    /// # Safety
    /// `raw` is null or the environment that a callback received.
    pub unsafe fn from_raw(raw: *mut RawEnv) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Disposes of the environment and its tags. Must not be called after
    /// [`tell_what_is_freed`](Self::tell_what_is_freed), since it could block in the same way.
    pub fn dispose(self) {
        let _ = jvmti!(self, 127 DisposeEnvironment());
    }

    /// Requests capabilities.
    pub fn add_capabilities(self, capabilities: &[Capability]) -> Result<()> {
        jvmti!(self, 142 AddCapabilities(*const [u64; 2]), &bits(capabilities))
    }

    /// Returns capabilities to the VM.
    pub fn relinquish_capabilities(self, capabilities: &[Capability]) -> Result<()> {
        jvmti!(self, 143 RelinquishCapabilities(*const [u64; 2]), &bits(capabilities))
    }

    /// Says what to call: `table` has a function, or none, for each event.
    pub(crate) fn set_callbacks(self, table: &[*const c_void], bytes: usize) -> Result<()> {
        jvmti!(self, 122 SetEventCallbacks(*const *const c_void, jint), table.as_ptr(), bytes as jint)
    }

    /// Keeps a pointer with the environment.
    pub(crate) fn set_local_storage(self, data: *const c_void) -> Result<()> {
        jvmti!(self, 148 SetEnvironmentLocalStorage(*const c_void), data)
    }

    /// The environment-local storage; null if it is not set. May be called in all callbacks.
    pub(crate) fn local_storage(self) -> *const c_void {
        let mut data = ptr::null();
        let found = jvmti!(self, 147 GetEnvironmentLocalStorage(*mut *const c_void), &mut data);
        if found.is_ok() { data } else { ptr::null() }
    }

    /// Switches an event on or off, for all threads.
    pub fn set_event(self, kind: EventKind, on: bool) -> Result<()> {
        self.set_notification(kind as jint, on)
    }

    /// Enables the event for freed objects that had a tag. It cannot be disabled again: that waits until all pending
    /// events have been delivered, on a thread that does not stop for safepoints, while the delivering thread may wait
    /// for the end of one (17.0.21).
    pub fn tell_what_is_freed(self) -> Result<()> {
        self.set_notification(OBJECT_FREE, true)
    }

    fn set_notification(self, event: jint, on: bool) -> Result<()> {
        type Function = unsafe extern "C" fn(*mut RawEnv, jint, jint, jobject, ...) -> jint;
        // SAFETY: entry 2 - 1 of the table, the only function that takes more arguments than it names.
        let code = unsafe {
            let function: Function = mem::transmute(*(*self.0.as_ptr()).functions.add(1));
            function(self.0.as_ptr(), jint::from(on), event, ptr::null_mut())
        };
        if code == 0 { Ok(()) } else { Err(JvmtiError { function: "SetEventNotificationMode", code }) }
    }

    /// Memory for the VM to take over, with these bytes.
    pub fn allocate(self, bytes: &[u8]) -> Result<*mut u8> {
        let mut memory = ptr::null_mut();
        jvmti!(self, 46 Allocate(jlong, *mut *mut u8), bytes.len() as jlong, &mut memory)?;
        // SAFETY: this many bytes were allocated.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Ok(memory)
    }

    pub(crate) fn free<T>(self, memory: *mut T) {
        if !memory.is_null() {
            let _ = jvmti!(self, 47 Deallocate(*mut u8), memory.cast());
        }
    }

    /// Takes over a string that JVMTI allocated.
    fn string(self, raw: *mut c_char) -> Option<String> {
        if raw.is_null() {
            return None;
        }
        // SAFETY: JVMTI strings end with a zero byte.
        let text = from_modified_utf8(unsafe { CStr::from_ptr(raw) });
        self.free(raw);
        Some(text)
    }

    /// Takes over an array that JVMTI allocated.
    pub(crate) fn vec<T: Copy>(self, raw: *mut T, count: jint) -> Vec<T> {
        let mut items = Vec::new();
        if !raw.is_null() && count > 0 {
            // SAFETY: JVMTI says how many there are.
            items.extend_from_slice(unsafe { std::slice::from_raw_parts(raw, count as usize) });
        }
        self.free(raw);
        items
    }

    pub(crate) fn objects<'a>(self, _env: Env<'a>, raw: *mut jobject, count: jint) -> Vec<Object<'a>> {
        // SAFETY: JVMTI creates local references of the current thread, whose environment the caller has.
        self.vec(raw, count).into_iter().filter_map(|raw| unsafe { Object::new(raw) }).collect()
    }

    /// The value of a system property.
    pub fn system_property(self, name: &CStr) -> Option<String> {
        let mut value = ptr::null_mut();
        jvmti!(self, 131 GetSystemProperty(*const c_char, *mut *mut c_char), name.as_ptr(), &mut value).ok()?;
        self.string(value)
    }

    /// The names of all system properties.
    pub fn system_properties(self) -> Vec<String> {
        let (mut count, mut names) = (0, ptr::null_mut::<*mut c_char>());
        if jvmti!(self, 130 GetSystemProperties(*mut jint, *mut *mut *mut c_char), &mut count, &mut names).is_err() {
            return Vec::new();
        }
        self.vec(names, count).into_iter().filter_map(|name| self.string(name)).collect()
    }

    /// All live platform threads that the program can see.
    pub fn all_threads(self, env: Env<'_>) -> Result<Vec<Object<'_>>> {
        let (mut count, mut threads) = (0, ptr::null_mut());
        jvmti!(self, 4 GetAllThreads(*mut jint, *mut *mut jobject), &mut count, &mut threads)?;
        Ok(self.objects(env, threads, count))
    }

    /// Name and kind of a thread.
    pub fn thread_info(self, env: Env, thread: Object) -> Result<ThreadInfo> {
        let mut info = RawThreadInfo::EMPTY;
        jvmti!(self, 9 GetThreadInfo(jobject, *mut RawThreadInfo), thread.raw(), &mut info)?;
        for object in [info.thread_group, info.context_class_loader] {
            // SAFETY: local references made for this thread.
            if let Some(object) = unsafe { Object::new(object) } {
                env.delete_local(object);
            }
        }
        let name = self.string(info.name).filter(|name| !name.is_empty());
        Ok(ThreadInfo { name, is_daemon: info.is_daemon != 0 })
    }

    /// The priority of a thread, 1 to 10.
    pub fn thread_priority(self, env: Env, thread: Object) -> Result<jint> {
        let mut info = RawThreadInfo::EMPTY;
        jvmti!(self, 9 GetThreadInfo(jobject, *mut RawThreadInfo), thread.raw(), &mut info)?;
        for object in [info.thread_group, info.context_class_loader] {
            // SAFETY: local references made for this thread.
            if let Some(object) = unsafe { Object::new(object) } {
                env.delete_local(object);
            }
        }
        self.free(info.name);
        Ok(info.priority)
    }

    /// Starts `function` on a thread of the VM that the program does not see, with a priority of 1 to 10.
    pub(crate) fn run_agent_thread_at(
        self,
        thread: Object,
        function: AgentThread,
        argument: *const c_void,
        priority: jint,
    ) -> Result<()> {
        jvmti!(self, 12 RunAgentThread(jobject, AgentThread, *const c_void, jint), thread.raw(), function, argument,
            priority)
    }

    /// Stops threads; those that cannot be stopped go on.
    pub fn suspend(self, threads: &[Object]) -> Result<()> {
        let raw: Vec<jobject> = threads.iter().map(|thread| thread.raw()).collect();
        let mut results = vec![0 as jint; raw.len()];
        jvmti!(self, 92 SuspendThreadList(jint, *const jobject, *mut jint), raw.len() as jint, raw.as_ptr(),
            results.as_mut_ptr())
    }

    /// Resumes threads.
    pub fn resume(self, threads: &[Object]) -> Result<()> {
        let raw: Vec<jobject> = threads.iter().map(|thread| thread.raw()).collect();
        let mut results = vec![0 as jint; raw.len()];
        jvmti!(self, 93 ResumeThreadList(jint, *const jobject, *mut jint), raw.len() as jint, raw.as_ptr(),
            results.as_mut_ptr())
    }

    /// Has classes take the class files again that they have, which agents may change.
    pub fn retransform(self, classes: &[Object]) -> Result<()> {
        let raw: Vec<jclass> = classes.iter().map(|class| class.raw()).collect();
        jvmti!(self, 152 RetransformClasses(jint, *const jclass), raw.len() as jint, raw.as_ptr())
    }

    /// How many frames of Java methods a thread's stack has.
    pub fn frame_count(self, thread: Object) -> Result<usize> {
        let mut count = 0;
        jvmti!(self, 16 GetFrameCount(jobject, *mut jint), thread.raw(), &mut count)?;
        Ok(count.max(0) as usize)
    }

    /// The frames of a thread's stack, innermost first, no more than `max`.
    pub fn stack_trace(self, thread: Object, max: usize) -> Result<Vec<Frame>> {
        let mut frames = vec![RawFrame { method: ptr::null_mut(), location: 0 }; max];
        let mut count = 0;
        jvmti!(self, 104 GetStackTrace(jobject, jint, jint, *mut RawFrame, *mut jint), thread.raw(), 0, max as jint,
            frames.as_mut_ptr(), &mut count)?;
        frames.truncate(count.max(0) as usize);
        Ok(frames.into_iter().map(|frame| Frame { method: MethodId(frame.method), location: frame.location }).collect())
    }

    /// Name and descriptor of a method.
    pub fn method_name(self, method: MethodId) -> Result<Member> {
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        jvmti!(self, 64 GetMethodName(jmethodID, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char), method.0,
            &mut name, &mut descriptor, ptr::null_mut())?;
        Ok(Member {
            name: self.string(name).unwrap_or_default(),
            descriptor: self.string(descriptor).unwrap_or_default(),
        })
    }

    /// The methods that a class declares.
    pub fn methods(self, class: Object) -> Result<Vec<MethodId>> {
        let (mut count, mut methods) = (0, ptr::null_mut::<jmethodID>());
        jvmti!(self, 52 GetClassMethods(jclass, *mut jint, *mut *mut jmethodID), class.raw(), &mut count, &mut methods)?;
        Ok(self.vec(methods, count).into_iter().map(MethodId).collect())
    }

    /// Has the event sent when a thread is about to run the method's first instruction.
    pub fn set_breakpoint(self, method: MethodId) -> Result<()> {
        jvmti!(self, 38 SetBreakpoint(jmethodID, jlong), method.0, 0)
    }

    pub fn clear_breakpoint(self, method: MethodId) -> Result<()> {
        jvmti!(self, 39 ClearBreakpoint(jmethodID, jlong), method.0, 0)
    }

    /// The class that declares a method.
    pub fn declaring_class<'a>(self, _env: Env<'a>, method: MethodId) -> Result<Option<Object<'a>>> {
        let mut class = ptr::null_mut();
        jvmti!(self, 65 GetMethodDeclaringClass(jmethodID, *mut jclass), method.0, &mut class)?;
        // SAFETY: a local reference made for this thread.
        Ok(unsafe { Object::new(class) })
    }

    pub fn method_modifiers(self, method: MethodId) -> Result<jint> {
        let mut modifiers = 0;
        jvmti!(self, 66 GetMethodModifiers(jmethodID, *mut jint), method.0, &mut modifiers)?;
        Ok(modifiers)
    }

    /// All classes and array classes, not those of primitive types.
    pub fn loaded_classes(self, env: Env<'_>) -> Result<Vec<Object<'_>>> {
        let (mut count, mut classes) = (0, ptr::null_mut());
        jvmti!(self, 78 GetLoadedClasses(*mut jint, *mut *mut jclass), &mut count, &mut classes)?;
        Ok(self.objects(env, classes, count))
    }

    /// The class as a JVM descriptor.
    pub fn class_signature(self, class: Object) -> Result<String> {
        let mut signature = ptr::null_mut();
        jvmti!(self, 48 GetClassSignature(jclass, *mut *mut c_char, *mut *mut c_char), class.raw(), &mut signature,
            ptr::null_mut())?;
        Ok(self.string(signature).unwrap_or_default())
    }

    /// How far a class has come, see [`class_status`].
    pub fn class_status(self, class: Object) -> Result<jint> {
        let mut status = 0;
        jvmti!(self, 49 GetClassStatus(jclass, *mut jint), class.raw(), &mut status)?;
        Ok(status)
    }

    /// Defining loader of a class; `None` for the boot loader.
    pub fn class_loader<'a>(self, _env: Env<'a>, class: Object) -> Result<Option<Object<'a>>> {
        let mut loader = ptr::null_mut();
        jvmti!(self, 57 GetClassLoader(jclass, *mut jobject), class.raw(), &mut loader)?;
        // SAFETY: a local reference made for this thread.
        Ok(unsafe { Object::new(loader) })
    }

    pub fn class_modifiers(self, class: Object) -> Result<jint> {
        let mut modifiers = 0;
        jvmti!(self, 51 GetClassModifiers(jclass, *mut jint), class.raw(), &mut modifiers)?;
        Ok(modifiers)
    }

    pub fn is_interface(self, class: Object) -> Result<bool> {
        let mut answer = 0_u8;
        jvmti!(self, 55 IsInterface(jclass, *mut u8), class.raw(), &mut answer)?;
        Ok(answer != 0)
    }

    /// The class's own fields, in the order that reference indexes follow.
    pub fn class_fields(self, class: Object) -> Result<Vec<FieldId>> {
        let (mut count, mut fields) = (0, ptr::null_mut());
        jvmti!(self, 53 GetClassFields(jclass, *mut jint, *mut *mut jfieldID), class.raw(), &mut count, &mut fields)?;
        Ok(self.vec(fields, count).into_iter().map(FieldId).collect())
    }

    /// Whether it is loaded and no more: its fields and interfaces cannot be asked for.
    pub fn is_unlinked(self, class: Object) -> Result<bool> {
        Ok(self.class_status(class)? & (class_status::PREPARED | class_status::NEVER_LINKED) == 0)
    }

    /// The interfaces that it names itself.
    pub fn interfaces<'a>(self, env: Env<'a>, class: Object) -> Result<Vec<Object<'a>>> {
        let (mut count, mut interfaces) = (0, ptr::null_mut());
        jvmti!(self, 54 GetImplementedInterfaces(jclass, *mut jint, *mut *mut jclass), class.raw(), &mut count,
            &mut interfaces)?;
        Ok(self.objects(env, interfaces, count))
    }

    /// Changes the table of JNI functions that native code calls through.
    pub fn change_jni_functions(self, change: impl FnOnce(&mut JniFunctions)) -> Result<()> {
        let mut table = ptr::null_mut::<JniFunctions>();
        jvmti!(self, 121 GetJNIFunctionTable(*mut *mut JniFunctions), &mut table)?;
        // Changed in place: the VM's table may have more entries than we know of.
        // SAFETY: a copy of the VM's table, which starts with the functions of 1.6 and is ours until it is freed.
        if let Some(functions) = unsafe { table.as_mut() } {
            change(functions);
        }
        let result = jvmti!(self, 120 SetJNIFunctionTable(*const JniFunctions), table.cast_const());
        self.free(table);
        result
    }

    /// Name and descriptor of a field.
    pub fn field_name(self, class: Object, field: FieldId) -> Result<Member> {
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        jvmti!(self, 60 GetFieldName(jclass, jfieldID, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char),
            class.raw(), field.0, &mut name, &mut descriptor, ptr::null_mut())?;
        Ok(Member {
            name: self.string(name).unwrap_or_default(),
            descriptor: self.string(descriptor).unwrap_or_default(),
        })
    }

    /// The class that declares a field of `class`.
    pub fn field_declaring_class<'a>(self, _env: Env<'a>, class: Object, field: FieldId) -> Result<Option<Object<'a>>> {
        let mut owner = ptr::null_mut();
        jvmti!(self, 61 GetFieldDeclaringClass(jclass, jfieldID, *mut jclass), class.raw(), field.0, &mut owner)?;
        // SAFETY: a local reference made for this thread.
        Ok(unsafe { Object::new(owner) })
    }

    pub fn field_modifiers(self, class: Object, field: FieldId) -> Result<jint> {
        let mut modifiers = 0;
        jvmti!(self, 62 GetFieldModifiers(jclass, jfieldID, *mut jint), class.raw(), field.0, &mut modifiers)?;
        Ok(modifiers)
    }

    /// Size of an object in bytes.
    pub fn object_size(self, object: Object) -> Result<u64> {
        let mut size = 0;
        jvmti!(self, 154 GetObjectSize(jobject, *mut jlong), object.raw(), &mut size)?;
        Ok(size as u64)
    }

    /// The object's tag, 0 if it has none.
    pub fn tag(self, object: Object) -> Result<jlong> {
        let mut tag = 0;
        jvmti!(self, 106 GetTag(jobject, *mut jlong), object.raw(), &mut tag)?;
        Ok(tag)
    }

    pub fn set_tag(self, object: Object, tag: jlong) -> Result<()> {
        jvmti!(self, 107 SetTag(jobject, jlong), object.raw(), tag)
    }

    /// All objects with that tag.
    pub fn objects_with_tag(self, env: Env<'_>, tag: jlong) -> Result<Vec<Object<'_>>> {
        Ok(self.objects_with_tags(env, &[tag])?.into_iter().map(|(object, _)| object).collect())
    }

    /// All objects with one of these tags, and which.
    pub fn objects_with_tags<'a>(self, _env: Env<'a>, tags: &[jlong]) -> Result<Vec<(Object<'a>, jlong)>> {
        if tags.is_empty() {
            return Ok(Vec::new());
        }
        let (mut count, mut objects, mut found) = (0, ptr::null_mut(), ptr::null_mut());
        jvmti!(self, 114 GetObjectsWithTags(jint, *const jlong, *mut jint, *mut *mut jobject, *mut *mut jlong),
            tags.len() as jint, tags.as_ptr(), &mut count, &mut objects, &mut found)?;
        // SAFETY: as in `objects`, of which there is one for each tag.
        let object = |(raw, tag)| Some((unsafe { Object::new(raw) }?, tag));
        Ok(self.vec(objects, count).into_iter().zip(self.vec(found, count)).filter_map(object).collect())
    }

    /// Visits every reference that is reachable from the roots, in a safepoint: the visitor must not call the JVM. It
    /// returns whether to follow the references of the object.
    ///
    /// # Panics
    /// Propagates a panic in the visitor, which ends the walk.
    pub fn follow_references<F: FnMut(Reference) -> bool>(self, visit: F) -> Result<()> {
        let mut walk = Walk { visit, panic: None };
        let callbacks = RawHeapCallbacks {
            heap_iteration: None,
            heap_reference: Some(on_reference::<F>),
            others: [ptr::null(); 14],
        };
        let walked = jvmti!(self, 115 FollowReferences(jint, jclass, jobject, *const RawHeapCallbacks, *const c_void), 0,
            ptr::null_mut(), ptr::null_mut(), &callbacks, (&raw mut walk).cast_const().cast());
        walk.ended(walked)
    }

    /// Visits the tag of every object in the heap that has one, whether it can be reached or not. As above.
    pub fn tags<F: FnMut(jlong)>(self, mut visit: F) -> Result<()> {
        self.iterate(FILTER_UNTAGGED, |object| visit(*object.tag))
    }

    /// As above; the visitor may change the tags.
    pub fn tagged_objects<F: FnMut(&mut jlong)>(self, mut visit: F) -> Result<()> {
        self.iterate(FILTER_UNTAGGED, |object| visit(object.tag))
    }

    /// Visits every object in the heap, whether it can be reached or not. As above.
    pub fn heap_objects<F: FnMut(HeapObject)>(self, visit: F) -> Result<()> {
        self.iterate(0, visit)
    }

    fn iterate<F: FnMut(HeapObject)>(self, filter: jint, visit: F) -> Result<()> {
        let mut walk = Walk { visit, panic: None };
        let callbacks =
            RawHeapCallbacks { heap_iteration: Some(on_object::<F>), heap_reference: None, others: [ptr::null(); 14] };
        let walked = jvmti!(self, 116 IterateThroughHeap(jint, jclass, *const RawHeapCallbacks, *const c_void), filter,
            ptr::null_mut(), &callbacks, (&raw mut walk).cast_const().cast());
        walk.ended(walked)
    }

    /// Runs a full garbage collection.
    pub fn collect_garbage(self) -> Result<()> {
        jvmti!(self, 108 ForceGarbageCollection())
    }
}

/// A heap walk: the visitor, and its panic if there was one. A panic must not unwind through the VM's C++ frames.
struct Walk<F> {
    visit: F,
    panic: Option<Box<dyn Any + Send>>,
}

impl<F> Walk<F> {
    fn visit(&mut self, visit: impl FnOnce(&mut F) -> jint) -> jint {
        let Self { visit: visitor, panic } = self;
        catch_unwind(AssertUnwindSafe(|| visit(visitor))).unwrap_or_else(|cause| {
            *panic = Some(cause);
            VISIT_ABORT
        })
    }

    fn ended(self, walked: Result<()>) -> Result<()> {
        match self.panic {
            Some(cause) => resume_unwind(cause),
            None => walked,
        }
    }
}

unsafe extern "system" fn on_object<F: FnMut(HeapObject)>(
    class_tag: jlong,
    size: jlong,
    tag: *mut jlong,
    length: jint,
    visit: *mut c_void,
) -> jint {
    // SAFETY: JVMTI hands over what `iterate` gave it, and a valid place.
    let (walk, object) = unsafe {
        let object = HeapObject { class_tag, size: size as u64, length, tag_at: tag.cast_const(), tag: &mut *tag };
        (&mut *visit.cast::<Walk<F>>(), object)
    };
    walk.visit(|visit| {
        visit(object);
        VISIT_OBJECTS
    })
}

unsafe extern "system" fn on_reference<F: FnMut(Reference) -> bool>(
    kind: jint,
    info: *const c_void,
    class_tag: jlong,
    referrer_class_tag: jlong,
    size: jlong,
    tag: *mut jlong,
    referrer_tag: *mut jlong,
    length: jint,
    visit: *mut c_void,
) -> jint {
    // SAFETY: JVMTI hands over what `follow_references` gave it and valid places; `info` is the part of the union
    // that belongs to the kind. Referrer and object may be the same, so the referrer's tag is read first.
    unsafe {
        let referrer_tag_at = referrer_tag.cast_const();
        let referrer_tag = referrer_tag.as_ref().copied().unwrap_or(0);
        let (mut index, mut local) = (0, None);
        match kind {
            reference::FIELD | reference::ARRAY_ELEMENT | reference::STATIC_FIELD => index = *info.cast::<u32>(),
            reference::STACK_LOCAL => {
                let raw = &*info.cast::<RawStackLocal>();
                local = Some(StackLocal { thread_tag: raw.thread_tag, depth: raw.depth, slot: raw.slot });
            }
            _ => {}
        }
        let tag_at = tag.cast_const();
        let (tag, walk, size) = (&mut *tag, &mut *visit.cast::<Walk<F>>(), size as u64);
        let reference = Reference {
            kind,
            index,
            local,
            class_tag,
            size,
            tag,
            tag_at,
            referrer_class_tag,
            referrer_tag,
            referrer_tag_at,
            length,
        };
        walk.visit(|visit| if visit(reference) { VISIT_OBJECTS } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_that_panics_ends_the_walk_and_no_more() {
        let mut walk = Walk { visit: |number: i32| assert_ne!(number, 2, "two"), panic: None };
        let mut of = |number| {
            walk.visit(|visit| {
                visit(number);
                0
            })
        };
        assert_eq!([of(1), of(2)], [0, VISIT_ABORT]);
        // The panic is resumed where no VM frame is in between, whatever the VM returns.
        let cause = catch_unwind(AssertUnwindSafe(|| walk.ended(Ok(())))).unwrap_err();
        assert!(cause.downcast_ref::<String>().is_some_and(|said| said.contains("two")));
    }
}
