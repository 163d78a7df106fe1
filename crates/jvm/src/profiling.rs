//! JVMTI functions for profilers: monitors, line numbers, CPU times, suspension of single threads, and contents of
//! objects. Names are the VM's C strings in modified UTF-8, so that they can be passed on.
#![allow(unsafe_code, reason = "calls through JVMTI's function table")]

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use jni_sys::{jclass, jfieldID, jint, jlong, jmethodID, jobject, jvalue};

use crate::env::{Env, FieldId, MethodId, Object};
use crate::jvmti::{
    Jvmti, JvmtiError, RawEnv, RawReferenceCallback, RawStackLocal, RawThreadInfo, VISIT_ABORT, VISIT_OBJECTS, jvmti,
    reference,
};

type Result<T> = std::result::Result<T, JvmtiError>;

/// Bits of a thread's state.
pub mod thread_state {
    use jni_sys::jint;
    pub const ALIVE: jint = 1;
    pub const WAITING: jint = 0x80;
    pub const INTERRUPTED: jint = 0x20_0000;
    pub const BLOCKED_ON_MONITOR_ENTER: jint = 0x400;
}

/// More kinds of references, besides those of [`reference`].
pub mod reference_kind {
    use jni_sys::jint;
    pub const CLASS: jint = 1;
    pub const JNI_GLOBAL: jint = 21;
    pub const SYSTEM_CLASS: jint = 22;
    pub const MONITOR: jint = 23;
    pub const JNI_LOCAL: jint = 25;
    pub const OTHER: jint = 27;
}

/// JVMTI's `jvmtiLineNumberEntry`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub start: jlong,
    pub line: jint,
}

/// The owner of a monitor, and the threads that wait for it.
#[derive(Clone, Debug, Default)]
pub struct MonitorUsage<'a> {
    pub owner: Option<Object<'a>>,
    pub entry_count: i32,
    /// Threads that wait to enter. On releases up to 17 those that wait to be notified are among them.
    pub waiters: Vec<Object<'a>>,
    /// Threads that wait to be notified.
    pub notify_waiters: Vec<Object<'a>>,
}

/// JVMTI's `jvmtiMonitorUsage`.
#[repr(C)]
struct RawMonitorUsage {
    owner: jobject,
    entry_count: jint,
    waiter_count: jint,
    waiters: *mut jobject,
    notify_waiter_count: jint,
    notify_waiters: *mut jobject,
}

/// JVMTI's `jvmtiThreadGroupInfo`.
#[repr(C)]
struct RawGroupInfo {
    parent: jobject,
    name: *mut c_char,
    max_priority: jint,
    is_daemon: u8,
}

/// Names of a thread and its group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadNames {
    pub thread: CString,
    pub group: CString,
    /// Name of the group's parent.
    pub parent: CString,
}

impl Jvmti {
    fn c_string(self, raw: *mut c_char) -> CString {
        if raw.is_null() {
            return CString::default();
        }
        // SAFETY: JVMTI strings end with a zero byte.
        let text = unsafe { CStr::from_ptr(raw) }.to_owned();
        self.free(raw);
        text
    }

    /// The class as a JVM descriptor.
    pub fn class_signature_c(self, class: Object) -> Result<CString> {
        let mut signature = ptr::null_mut();
        jvmti!(self, 48 GetClassSignature(jclass, *mut *mut c_char, *mut *mut c_char), class.raw(), &mut signature,
            ptr::null_mut())?;
        Ok(self.c_string(signature))
    }

    /// The file that the class was compiled from, if its class file says.
    pub fn source_file_c(self, class: Object) -> Result<CString> {
        let mut name = ptr::null_mut();
        jvmti!(self, 50 GetSourceFileName(jclass, *mut *mut c_char), class.raw(), &mut name)?;
        Ok(self.c_string(name))
    }

    /// Name and descriptor of a method.
    pub fn method_name_c(self, method: MethodId) -> Result<(CString, CString)> {
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        jvmti!(self, 64 GetMethodName(jmethodID, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char), method.0,
            &mut name, &mut descriptor, ptr::null_mut())?;
        Ok((self.c_string(name), self.c_string(descriptor)))
    }

    /// Name and descriptor of a field.
    pub fn field_name_c(self, class: Object, field: FieldId) -> Result<(CString, CString)> {
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        jvmti!(self, 60 GetFieldName(jclass, jfieldID, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char),
            class.raw(), field.0, &mut name, &mut descriptor, ptr::null_mut())?;
        Ok((self.c_string(name), self.c_string(descriptor)))
    }

    /// Which lines the instructions of a method come from, if its class file says.
    pub fn lines(self, method: MethodId) -> Result<Vec<Line>> {
        let (mut count, mut lines) = (0, ptr::null_mut());
        jvmti!(self, 70 GetLineNumberTable(jmethodID, *mut jint, *mut *mut Line), method.0, &mut count, &mut lines)?;
        Ok(self.vec(lines, count))
    }

    /// The line of an instruction of a method, if it is known.
    pub fn line_at(self, method: MethodId, location: jlong) -> Option<u32> {
        let lines = self.lines(method).ok().filter(|_| location >= 0)?;
        let before = lines.iter().filter(|line| line.start <= location);
        before.max_by_key(|line| line.start).and_then(|line| u32::try_from(line.line).ok())
    }

    /// The instructions of a method.
    pub fn bytecodes(self, method: MethodId) -> Result<Vec<u8>> {
        let (mut count, mut code) = (0, ptr::null_mut());
        jvmti!(self, 75 GetBytecodes(jmethodID, *mut jint, *mut *mut u8), method.0, &mut count, &mut code)?;
        Ok(self.vec(code, count))
    }

    /// Whether the method is native.
    pub fn is_native(self, method: MethodId) -> Result<bool> {
        Ok(self.method_modifiers(method)? & 0x100 != 0)
    }

    /// The thread that runs this; a virtual one if the current one carries it.
    pub fn current_thread<'a>(self, _env: Env<'a>) -> Result<Option<Object<'a>>> {
        let mut thread = ptr::null_mut();
        jvmti!(self, 18 GetCurrentThread(*mut jobject), &mut thread)?;
        // SAFETY: a local reference made for this thread.
        Ok(unsafe { Object::new(thread) })
    }

    /// Names of a thread, its group and the group's parent.
    pub fn thread_names(self, env: Env, thread: Object) -> Result<ThreadNames> {
        let mut info = RawThreadInfo::EMPTY;
        jvmti!(self, 9 GetThreadInfo(jobject, *mut RawThreadInfo), thread.raw(), &mut info)?;
        let thread = self.c_string(info.name);
        // SAFETY: local references made for this thread.
        let (group, loader) = unsafe { (Object::new(info.thread_group), Object::new(info.context_class_loader)) };
        if let Some(loader) = loader {
            env.delete_local(loader);
        }
        let (group, parent) = self.group(env, group);
        let (parent, above) = self.group(env, parent);
        if let Some(above) = above {
            env.delete_local(above);
        }
        Ok(ThreadNames { thread, group, parent })
    }

    /// Name and parent of a group; deletes the reference to the group.
    fn group<'a>(self, env: Env<'a>, group: Option<Object<'a>>) -> (CString, Option<Object<'a>>) {
        let Some(group) = group else { return (CString::default(), None) };
        let mut info = RawGroupInfo { parent: ptr::null_mut(), name: ptr::null_mut(), max_priority: 0, is_daemon: 0 };
        let found = jvmti!(self, 14 GetThreadGroupInfo(jobject, *mut RawGroupInfo), group.raw(), &mut info);
        env.delete_local(group);
        if found.is_err() {
            return (CString::default(), None);
        }
        // SAFETY: a local reference made for this thread.
        (self.c_string(info.name), unsafe { Object::new(info.parent) })
    }

    /// The groups that no other group holds.
    pub fn top_groups(self, env: Env<'_>) -> Result<Vec<Object<'_>>> {
        let (mut count, mut groups) = (0, ptr::null_mut());
        jvmti!(self, 13 GetTopThreadGroups(*mut jint, *mut *mut jobject), &mut count, &mut groups)?;
        Ok(self.objects(env, groups, count))
    }

    /// Bits of [`thread_state`].
    pub fn thread_state(self, thread: Object) -> Result<jint> {
        let mut state = 0;
        jvmti!(self, 17 GetThreadState(jobject, *mut jint), thread.raw(), &mut state)?;
        Ok(state)
    }

    /// Nanoseconds of CPU that a thread has had.
    pub fn thread_cpu_time(self, thread: Object) -> Result<i64> {
        let mut nanos = 0;
        jvmti!(self, 137 GetThreadCpuTime(jobject, *mut jlong), thread.raw(), &mut nanos)?;
        Ok(nanos)
    }

    /// Stops a thread, which is not the current one.
    pub fn suspend_thread(self, thread: Object) -> Result<()> {
        jvmti!(self, 5 SuspendThread(jobject), thread.raw())
    }

    /// Resumes a thread.
    pub fn resume_thread(self, thread: Object) -> Result<()> {
        jvmti!(self, 6 ResumeThread(jobject), thread.raw())
    }

    /// Suspends threads; returns for each whether this call has suspended it.
    pub fn suspend_each(self, threads: &[Object]) -> Vec<bool> {
        let raw: Vec<jobject> = threads.iter().map(|thread| thread.raw()).collect();
        let mut results = vec![-1 as jint; raw.len()];
        let _ = jvmti!(self, 92 SuspendThreadList(jint, *const jobject, *mut jint), raw.len() as jint, raw.as_ptr(),
            results.as_mut_ptr());
        results.into_iter().map(|result| result == 0).collect()
    }

    /// The monitors that a thread has entered.
    pub fn owned_monitors<'a>(self, env: Env<'a>, thread: Object) -> Result<Vec<Object<'a>>> {
        let (mut count, mut monitors) = (0, ptr::null_mut());
        jvmti!(self, 10 GetOwnedMonitorInfo(jobject, *mut jint, *mut *mut jobject), thread.raw(), &mut count,
            &mut monitors)?;
        Ok(self.objects(env, monitors, count))
    }

    /// The monitor that a thread wants to enter.
    pub fn contended_monitor<'a>(self, _env: Env<'a>, thread: Object) -> Result<Option<Object<'a>>> {
        let mut monitor = ptr::null_mut();
        jvmti!(self, 11 GetCurrentContendedMonitor(jobject, *mut jobject), thread.raw(), &mut monitor)?;
        // SAFETY: a local reference made for this thread.
        Ok(unsafe { Object::new(monitor) })
    }

    /// The owner of an object's monitor, and the threads that wait for it.
    pub fn monitor_usage<'a>(self, env: Env<'a>, object: Object) -> Result<MonitorUsage<'a>> {
        let mut raw = RawMonitorUsage {
            owner: ptr::null_mut(),
            entry_count: 0,
            waiter_count: 0,
            waiters: ptr::null_mut(),
            notify_waiter_count: 0,
            notify_waiters: ptr::null_mut(),
        };
        jvmti!(self, 59 GetObjectMonitorUsage(jobject, *mut RawMonitorUsage), object.raw(), &mut raw)?;
        Ok(MonitorUsage {
            // SAFETY: a local reference made for this thread.
            owner: unsafe { Object::new(raw.owner) },
            entry_count: raw.entry_count,
            waiters: self.objects(env, raw.waiters, raw.waiter_count),
            notify_waiters: self.objects(env, raw.notify_waiters, raw.notify_waiter_count),
        })
    }

    /// `this` of a frame of the current thread, native or not; 0 is the innermost.
    pub fn receiver<'a>(self, _env: Env<'a>, depth: usize) -> Result<Option<Object<'a>>> {
        let mut receiver = ptr::null_mut();
        jvmti!(self, 155 GetLocalInstance(jobject, jint, *mut jobject), ptr::null_mut(), depth as jint, &mut receiver)?;
        // SAFETY: a local reference made for this thread.
        Ok(unsafe { Object::new(receiver) })
    }

    /// Sets the sampling interval for allocations in bytes; 0 reports all.
    pub fn set_sampling_interval(self, bytes: i32) -> Result<()> {
        jvmti!(self, 156 SetHeapSamplingInterval(jint), bytes)
    }

    /// Requests events for methods that have already been compiled.
    pub fn tell_compiled_methods(self) -> Result<()> {
        jvmti!(self, 123 GenerateEvents(jint), 68)
    }

    /// The frames of the current thread, innermost first, as many as `frames` takes.
    pub fn current_stack(self, thread: Option<Object>, frames: &mut [RawFrame]) -> Result<usize> {
        let mut count = 0;
        let thread = thread.map_or(ptr::null_mut(), Object::raw);
        jvmti!(self, 104 GetStackTrace(jobject, jint, jint, *mut RawFrame, *mut jint), thread, 0,
            frames.len() as jint, frames.as_mut_ptr(), &mut count)?;
        Ok(count.max(0) as usize)
    }

    /// The frames of the current thread from that one on, innermost first, as many as `frames` takes.
    pub fn current_frames(self, from: usize, frames: &mut [RawFrame]) -> Result<usize> {
        let mut count = 0;
        jvmti!(self, 104 GetStackTrace(jobject, jint, jint, *mut RawFrame, *mut jint), ptr::null_mut(), from as jint,
            frames.len() as jint, frames.as_mut_ptr(), &mut count)?;
        Ok(count.max(0) as usize)
    }

    /// The constant pool of a class, as in its class file, with the number of constants.
    pub fn constant_pool(self, class: Object) -> Result<Vec<u8>> {
        let (mut count, mut length, mut raw) = (0 as jint, 0 as jint, ptr::null_mut::<u8>());
        jvmti!(self, 146 GetConstantPool(jclass, *mut jint, *mut jint, *mut *mut u8), class.raw(), &mut count, &mut length,
            &mut raw)?;
        let mut bytes = (count as u16).to_be_bytes().to_vec();
        bytes.extend(self.vec(raw, length));
        Ok(bytes)
    }

    /// Visits all reachable objects, with the values of primitive fields and arrays. In a safepoint: the visitor must
    /// not call the JVM.
    ///
    /// # Panics
    /// Propagates a panic in the visitor, which ends the walk.
    pub fn follow_contents<V: Contents>(self, visitor: &mut V) -> Result<()> {
        #[repr(C)]
        struct Callbacks<V> {
            iteration: *const c_void,
            reference: RawReferenceCallback,
            field: unsafe extern "system" fn(jint, *const u32, jlong, *mut jlong, jvalue, jint, *mut Visit<V>) -> jint,
            array:
                unsafe extern "system" fn(jlong, jlong, *mut jlong, jint, jint, *const c_void, *mut Visit<V>) -> jint,
            others: [*const c_void; 12],
        }
        let callbacks = Callbacks {
            iteration: ptr::null(),
            reference: on_content_reference::<V>,
            field: on_content_field::<V>,
            array: on_content_array::<V>,
            others: [ptr::null(); 12],
        };
        let mut visit = Visit { visitor, panic: None };
        let walked = jvmti!(self, 115 FollowReferences(jint, jclass, jobject, *const c_void, *const c_void), 0,
            ptr::null_mut(), ptr::null_mut(), (&raw const callbacks).cast(), (&raw mut visit).cast_const().cast());
        match visit.panic {
            Some(cause) => resume_unwind(cause),
            None => walked,
        }
    }
}

/// JVMTI's `jvmtiFrameInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFrame {
    pub method: jmethodID,
    pub location: jlong,
}

// SAFETY: ids of methods are the same on all threads.
unsafe impl Send for RawFrame {}

impl RawFrame {
    /// In place of a frame.
    pub const NONE: Self = Self { method: ptr::null_mut(), location: -1 };

    /// Its method.
    pub fn id(self) -> MethodId {
        MethodId(self.method)
    }
}

/// A reference of [`Jvmti::follow_contents`].
#[derive(Debug)]
pub struct Edge {
    pub kind: jint,
    /// Index of the field or element.
    pub index: u32,
    /// Tag of the thread and depth of the frame, of a root on a stack.
    pub frame: Option<(jlong, jint)>,
    pub class_tag: jlong,
    pub size: u64,
    pub tag_at: *mut jlong,
    pub referrer_class_tag: jlong,
    /// Address of the referrer's tag; null for roots.
    pub referrer_tag_at: *mut jlong,
    /// Length of an array; -1 for other objects.
    pub length: i32,
}

/// Visits contents of objects.
pub trait Contents {
    fn edge(&mut self, edge: Edge);
    /// A field of a primitive type (a letter of JVM descriptors); `tag_at` is the object's.
    fn field(&mut self, kind: jint, index: u32, tag_at: *mut jlong, value: jvalue, letter: u8);
    /// The elements of an array of a primitive type.
    fn array(&mut self, size: u64, tag_at: *mut jlong, count: usize, letter: u8, elements: *const u8);
}

struct Visit<'a, V> {
    visitor: &'a mut V,
    panic: Option<Box<dyn Any + Send>>,
}

impl<V> Visit<'_, V> {
    /// A panic must not pass through the VM's code, which is C++.
    fn with(&mut self, tell: impl FnOnce(&mut V)) -> jint {
        let Self { visitor, panic } = self;
        match catch_unwind(AssertUnwindSafe(|| tell(visitor))) {
            Ok(()) => VISIT_OBJECTS,
            Err(cause) => {
                *panic = Some(cause);
                VISIT_ABORT
            }
        }
    }
}

unsafe extern "system" fn on_content_reference<V: Contents>(
    kind: jint,
    info: *const c_void,
    class_tag: jlong,
    referrer_class_tag: jlong,
    size: jlong,
    tag_at: *mut jlong,
    referrer_tag_at: *mut jlong,
    length: jint,
    visit: *mut c_void,
) -> jint {
    // SAFETY: JVMTI hands over what `follow_contents` gave it, and the part of `info` that belongs to the kind. Those of stack locals and
    // of local references of JNI's begin alike.
    let (visit, index, frame) = unsafe {
        let (mut index, mut frame) = (0, None);
        match kind {
            reference::FIELD | reference::ARRAY_ELEMENT | reference::STATIC_FIELD => index = *info.cast::<u32>(),
            reference::STACK_LOCAL | reference_kind::JNI_LOCAL => {
                let local = info.cast::<RawStackLocal>();
                frame = Some(((*local).thread_tag, (*local).depth));
            }
            _ => {}
        }
        (&mut *visit.cast::<Visit<V>>(), index, frame)
    };
    let size = size as u64;
    let edge = Edge { kind, index, frame, class_tag, size, tag_at, referrer_class_tag, referrer_tag_at, length };
    visit.with(|visitor| visitor.edge(edge))
}

unsafe extern "system" fn on_content_field<V: Contents>(
    kind: jint,
    info: *const u32,
    _class_tag: jlong,
    tag_at: *mut jlong,
    value: jvalue,
    letter: jint,
    visit: *mut Visit<V>,
) -> jint {
    // SAFETY: as above; the index is all that the information has.
    let (visit, index) = unsafe { (&mut *visit, *info) };
    visit.with(|visitor| visitor.field(kind, index, tag_at, value, letter as u8))
}

unsafe extern "system" fn on_content_array<V: Contents>(
    _class_tag: jlong,
    size: jlong,
    tag_at: *mut jlong,
    count: jint,
    letter: jint,
    elements: *const c_void,
    visit: *mut Visit<V>,
) -> jint {
    // SAFETY: as above.
    let visit = unsafe { &mut *visit };
    visit.with(|visitor| visitor.array(size as u64, tag_at, count.max(0) as usize, letter as u8, elements.cast()))
}
