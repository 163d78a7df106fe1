//! The interface as C sees it: `examples/jvmpi/jvmpi.h` in Rust. A test compares sizes and offsets of both.

use std::ffi::{CStr, c_char, c_int, c_void};

use jni_sys::{JNIEnv, jint, jlong, jmethodID, jobject};

/// Versions that agents ask for.
pub const VERSIONS: std::ops::RangeInclusive<jint> = 0x1000_0001..=0x1000_0003;

/// Event types.
pub mod event {
    use jni_sys::jint;
    pub const METHOD_ENTRY: jint = 1;
    pub const METHOD_ENTRY2: jint = 2;
    pub const METHOD_EXIT: jint = 3;
    pub const OBJECT_ALLOC: jint = 4;
    pub const OBJECT_FREE: jint = 5;
    pub const OBJECT_MOVE: jint = 6;
    pub const COMPILED_METHOD_LOAD: jint = 7;
    pub const COMPILED_METHOD_UNLOAD: jint = 8;
    pub const INSTRUCTION_START: jint = 9;
    pub const THREAD_START: jint = 33;
    pub const THREAD_END: jint = 34;
    pub const CLASS_LOAD_HOOK: jint = 35;
    pub const HEAP_DUMP: jint = 37;
    pub const JNI_GLOBALREF_ALLOC: jint = 38;
    pub const JNI_GLOBALREF_FREE: jint = 39;
    pub const JNI_WEAK_GLOBALREF_ALLOC: jint = 40;
    pub const JNI_WEAK_GLOBALREF_FREE: jint = 41;
    pub const CLASS_LOAD: jint = 42;
    pub const CLASS_UNLOAD: jint = 43;
    pub const DATA_DUMP_REQUEST: jint = 44;
    pub const DATA_RESET_REQUEST: jint = 45;
    pub const JVM_INIT_DONE: jint = 46;
    pub const JVM_SHUT_DOWN: jint = 47;
    pub const ARENA_NEW: jint = 48;
    pub const ARENA_DELETE: jint = 49;
    pub const OBJECT_DUMP: jint = 50;
    pub const RAW_MONITOR_CONTENDED_ENTER: jint = 51;
    pub const RAW_MONITOR_CONTENDED_ENTERED: jint = 52;
    pub const RAW_MONITOR_CONTENDED_EXIT: jint = 53;
    pub const MONITOR_CONTENDED_ENTER: jint = 54;
    pub const MONITOR_CONTENDED_ENTERED: jint = 55;
    pub const MONITOR_CONTENDED_EXIT: jint = 56;
    pub const MONITOR_WAIT: jint = 57;
    pub const MONITOR_WAITED: jint = 58;
    pub const MONITOR_DUMP: jint = 59;
    pub const GC_START: jint = 60;
    pub const GC_FINISH: jint = 61;
    /// Set in the type of an event that was requested.
    pub const REQUESTED: jint = 0x1000_0000;

    /// Whether there is such an event.
    pub fn is_known(kind: jint) -> bool {
        matches!(kind, 1..=9 | 33..=35 | 37..=61)
    }
}

/// Results of `EnableEvent`, `DisableEvent` and `RequestEvent`.
pub mod outcome {
    use jni_sys::jint;
    pub const SUCCESS: jint = 0;
    pub const NOT_AVAILABLE: jint = 1;
    pub const FAIL: jint = -1;
}

/// Record types in dumps.
pub mod record {
    pub const ROOT_UNKNOWN: u8 = 0xff;
    pub const ROOT_JNI_GLOBAL: u8 = 1;
    pub const ROOT_JNI_LOCAL: u8 = 2;
    pub const ROOT_JAVA_FRAME: u8 = 3;
    pub const ROOT_STICKY_CLASS: u8 = 5;
    pub const ROOT_THREAD_BLOCK: u8 = 6;
    pub const ROOT_MONITOR_USED: u8 = 7;
    pub const CLASS_DUMP: u8 = 0x20;
    pub const INSTANCE_DUMP: u8 = 0x21;
    pub const OBJ_ARRAY_DUMP: u8 = 0x22;
    pub const PRIM_ARRAY_DUMP: u8 = 0x23;
    pub const MONITOR_JAVA: u8 = 1;
    pub const MONITOR_RAW: u8 = 2;
}

/// Kinds of objects: an instance, an array of references.
pub mod kind {
    use jni_sys::jint;
    pub const NORMAL_OBJECT: jint = 0;
    pub const CLASS: jint = 2;

    /// Of an array of a primitive type, by its letter in JVM descriptors.
    pub fn of_primitive(letter: u8) -> Option<jint> {
        Some(match letter {
            b'Z' => 4,
            b'C' => 5,
            b'F' => 6,
            b'D' => 7,
            b'B' => 8,
            b'S' => 9,
            b'I' => 10,
            b'J' => 11,
            _ => return None,
        })
    }
}

/// Thread states.
pub mod status {
    use jni_sys::jint;
    pub const RUNNABLE: jint = 1;
    pub const MONITOR_WAIT: jint = 2;
    pub const CONDVAR_WAIT: jint = 3;
    pub const INTERRUPTED: jint = 0x4000;
}

/// A `jobjectID`: a number here.
pub type ObjectId = usize;

macro_rules! structs {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $(pub $field: $type),* }
    )*};
}

structs! {
    Field { name: *const c_char, signature: *const c_char }
    Method {
        name: *const c_char, signature: *const c_char, start_lineno: jint, end_lineno: jint, method_id: jmethodID,
    }
    Lineno { offset: jint, lineno: jint }
    CallFrame { lineno: jint, method_id: jmethodID }
    CallTrace { env_id: *mut JNIEnv, num_frames: jint, frames: *mut CallFrame }
    HeapDumpArg { heap_dump_level: jint }
    ClassLoad {
        class_name: *const c_char, source_name: *const c_char, num_interfaces: jint, num_methods: jint,
        methods: *const Method, num_static_fields: jint, statics: *const Field, num_instance_fields: jint,
        instances: *const Field, class_id: ObjectId,
    }
    ClassUnload { class_id: ObjectId }
    ClassLoadHook {
        class_data: *mut u8, class_data_len: jint, new_class_data: *mut u8, new_class_data_len: jint,
        malloc_f: unsafe extern "C" fn(u32) -> *mut c_void,
    }
    NewArena { arena_id: jint, arena_name: *const c_char }
    DeleteArena { arena_id: jint }
    ObjAlloc { arena_id: jint, class_id: ObjectId, is_array: jint, size: jint, obj_id: ObjectId }
    ObjFree { obj_id: ObjectId }
    ObjMove { arena_id: jint, obj_id: ObjectId, new_arena_id: jint, new_obj_id: ObjectId }
    GcInfo { used_objects: jlong, used_object_space: jlong, total_object_space: jlong }
    MethodCall { method_id: jmethodID }
    MethodEntry2 { method_id: jmethodID, obj_id: ObjectId }
    CompiledMethodLoad {
        method_id: jmethodID, code_addr: *const c_void, code_size: jint, lineno_table_size: jint,
        lineno_table: *const Lineno,
    }
    CompiledMethodUnload { method_id: jmethodID, code_addr: *const c_void }
    Instruction { method_id: jmethodID, offset: jint, branch: [jint; 3] }
    ThreadStart {
        thread_name: *const c_char, group_name: *const c_char, parent_name: *const c_char, thread_id: ObjectId,
        thread_env_id: *mut JNIEnv,
    }
    HeapDump {
        dump_level: c_int, begin: *const u8, end: *const u8, num_traces: jint, traces: *const CallTrace,
    }
    GlobalRefAlloc { obj_id: ObjectId, ref_id: jobject }
    GlobalRefFree { ref_id: jobject }
    RawMonitorEvent { name: *const c_char, id: *mut c_void }
    Monitor { object: ObjectId }
    MonitorDump {
        begin: *const u8, end: *const u8, num_traces: jint, traces: *const CallTrace, threads_status: *const jint,
    }
    MonitorWait { object: ObjectId, timeout: jlong }
    ObjectDump { data_len: jint, data: *const u8 }
}

/// Data of an event apart from its type and thread.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub union Details {
    pub nothing: (),
    pub class_load: ClassLoad,
    pub class_unload: ClassUnload,
    pub class_load_hook: ClassLoadHook,
    pub new_arena: NewArena,
    pub delete_arena: DeleteArena,
    pub obj_alloc: ObjAlloc,
    pub obj_free: ObjFree,
    pub obj_move: ObjMove,
    pub gc_info: GcInfo,
    pub method: MethodCall,
    pub method_entry2: MethodEntry2,
    pub compiled_method_load: CompiledMethodLoad,
    pub compiled_method_unload: CompiledMethodUnload,
    pub instruction: Instruction,
    pub thread_start: ThreadStart,
    pub heap_dump: HeapDump,
    pub jni_globalref_alloc: GlobalRefAlloc,
    pub jni_globalref_free: GlobalRefFree,
    pub raw_monitor: RawMonitorEvent,
    pub monitor: Monitor,
    pub monitor_dump: MonitorDump,
    pub monitor_wait: MonitorWait,
    pub object_dump: ObjectDump,
}

/// The C struct `JVMPI_Event`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Event {
    pub event_type: jint,
    pub env_id: *mut JNIEnv,
    pub u: Details,
}

/// Type of `NotifyEvent`. Agents may be written in C++ and throw, which ends the process.
pub type Notify = unsafe extern "C-unwind" fn(*mut Event);

/// The C struct `JVMPI_Interface`.
#[repr(C)]
#[derive(Debug)]
pub struct Interface {
    pub version: jint,
    pub notify_event: Option<Notify>,
    pub enable_event: extern "C" fn(jint, *mut c_void) -> jint,
    pub disable_event: extern "C" fn(jint, *mut c_void) -> jint,
    pub request_event: extern "C" fn(jint, *mut c_void) -> jint,
    pub get_call_trace: extern "C" fn(*mut CallTrace, jint),
    pub profiler_exit: extern "C" fn(jint),
    pub raw_monitor_create: extern "C" fn(*const c_char) -> *mut c_void,
    pub raw_monitor_enter: extern "C" fn(*mut c_void),
    pub raw_monitor_exit: extern "C" fn(*mut c_void),
    pub raw_monitor_wait: extern "C" fn(*mut c_void, jlong),
    pub raw_monitor_notify_all: extern "C" fn(*mut c_void),
    pub raw_monitor_destroy: extern "C" fn(*mut c_void),
    pub get_current_thread_cpu_time: extern "C" fn() -> jlong,
    pub suspend_thread: extern "C" fn(*mut JNIEnv),
    pub resume_thread: extern "C" fn(*mut JNIEnv),
    pub get_thread_status: extern "C" fn(*mut JNIEnv) -> jint,
    pub thread_has_run: extern "C" fn(*mut JNIEnv) -> u8,
    pub create_system_thread:
        extern "C" fn(*const c_char, jint, Option<unsafe extern "C-unwind" fn(*mut c_void)>) -> jint,
    pub set_thread_local_storage: extern "C" fn(*mut JNIEnv, *mut c_void),
    pub get_thread_local_storage: extern "C" fn(*mut JNIEnv) -> *mut c_void,
    pub disable_gc: extern "C" fn(),
    pub enable_gc: extern "C" fn(),
    pub run_gc: extern "C" fn(),
    pub get_thread_object: extern "C" fn(*mut JNIEnv) -> ObjectId,
    pub get_method_class: extern "C" fn(jmethodID) -> ObjectId,
    pub id_to_object: extern "C" fn(ObjectId) -> jobject,
    pub object_to_id: extern "C" fn(jobject) -> ObjectId,
    pub suspend_thread_list: extern "C" fn(jint, *const *mut JNIEnv, *mut jint),
    pub resume_thread_list: extern "C" fn(jint, *const *mut JNIEnv, *mut jint),
}

impl ClassLoad {
    /// Of a class by these names: its own and that of its source. The event has the addresses of all that it is given.
    pub fn new(
        [name, source]: [&CStr; 2],
        interfaces: usize,
        methods: &[Method],
        statics: &[Field],
        instances: &[Field],
        class_id: ObjectId,
    ) -> Self {
        Self {
            class_name: name.as_ptr(),
            source_name: source.as_ptr(),
            num_interfaces: interfaces as jint,
            num_methods: methods.len() as jint,
            methods: methods.as_ptr(),
            num_static_fields: statics.len() as jint,
            statics: statics.as_ptr(),
            num_instance_fields: instances.len() as jint,
            instances: instances.as_ptr(),
            class_id,
        }
    }
}
