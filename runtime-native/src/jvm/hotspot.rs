//! What HotSpot tells about itself beyond JNI and JVMTI: exported functions and the table for debuggers.
#![allow(unsafe_code, reason = "symbols of libjvm")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use jni_sys::{JNI_TRUE, JNIEnv, jboolean, jint, jlong, jobject};

use super::env::{Env, Object};
use super::handles::Handles;
use crate::writer::HeapUse;

type IdentityHash = unsafe extern "system" fn(*mut JNIEnv, jobject) -> jint;
type DeclaredFields = unsafe extern "system" fn(*mut JNIEnv, jobject, jboolean) -> jobject;
type Memory = unsafe extern "system" fn() -> jlong;

/// Functions and data of the running libjvm.
#[derive(Clone, Copy, Debug)]
pub struct HotSpot {
    identity_hash: IdentityHash,
    declared_fields: DeclaredFields,
    total_memory: Memory,
    free_memory: Memory,
    handles: Option<Handles>,
    /// Where instance sizes are.
    pub layout: Option<Layout>,
}

/// How to get from a class mirror to what HotSpot keeps of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Of the Klass pointer in a mirror.
    pub klass_offset: u64,
    /// Of the layout helper in a Klass.
    pub layout_helper_offset: u64,
    /// The way from a Klass to its resolved references.
    resolved: Option<ResolvedReferences>,
    /// Of the number of static fields of reference types in a mirror.
    static_count_offset: Option<i64>,
}

/// Offsets on the way from an InstanceKlass to the array in which its constant pool keeps resolved strings, method
/// handles and call sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResolvedReferences {
    pool: u64,
    cache: u64,
    array: u64,
}

/// An entry of `gHotSpotVMStructs` (vmStructs.hpp; the same from 8 on).
#[repr(C)]
struct VmStruct {
    type_name: *const c_char,
    field_name: *const c_char,
    type_string: *const c_char,
    is_static: i32,
    offset: u64,
    address: *const c_void,
}

impl HotSpot {
    /// Looks at the libjvm that `env` belongs to. None if it is not HotSpot.
    pub fn find(env: Env) -> Option<Self> {
        let library = Library::of(env)?;
        // SAFETY: exported by libjvm with these signatures since 8 (jvm.h).
        unsafe {
            Some(Self {
                identity_hash: std::mem::transmute::<*mut c_void, IdentityHash>(library.symbol(c"JVM_IHashCode")?),
                declared_fields: std::mem::transmute::<*mut c_void, DeclaredFields>(
                    library.symbol(c"JVM_GetClassDeclaredFields")?,
                ),
                total_memory: std::mem::transmute::<*mut c_void, Memory>(library.symbol(c"JVM_TotalMemory")?),
                free_memory: std::mem::transmute::<*mut c_void, Memory>(library.symbol(c"JVM_FreeMemory")?),
                handles: library.symbol(c"JVM_SetArrayElement").map(|function| Handles::new(function)),
                layout: Layout::find(&library),
            })
        }
    }

    /// What `System.identityHashCode` returns.
    pub fn identity_hash(&self, env: Env, object: Object) -> u32 {
        // SAFETY: environment and object are the JVM's.
        unsafe { (self.identity_hash)(env.raw(), object.raw()) as u32 }
    }

    /// Links a class without initialising it.
    pub fn link(&self, env: Env, class: Object) {
        env.frame(1, |env| {
            // Of those that link and do no more, this looks for the least.
            // SAFETY: environment and class are the JVM's.
            unsafe { (self.declared_fields)(env.raw(), class.raw(), JNI_TRUE) };
            env.clear_exception();
        });
    }

    /// Where a class mirror says how many static fields of reference types the class has.
    pub fn static_count_offset(&self) -> Option<i64> {
        self.layout.and_then(|layout| layout.static_count_offset)
    }

    /// The array of resolved references of a class that is linked and alive; none if it needs none. `klass` is what its
    /// mirror says, and not 0.
    pub fn resolved_references<'a>(&self, env: Env<'a>, klass: u64) -> Option<Object<'a>> {
        let offsets = self.layout.and_then(|layout| layout.resolved)?;
        let pointer = |at: u64| {
            // SAFETY: a field of a structure of HotSpot's, at the offset that it tells debuggers; all are words.
            let value = unsafe { *(at as *const u64) };
            (value != 0).then_some(value)
        };
        let pool = pointer(klass + offsets.pool)?;
        let cache = pointer(pool + offsets.cache)?;
        // An OopHandle: the address of a slot that the collectors keep up to date, as a global reference of JNI's is.
        let slot = pointer(cache + offsets.array)?;
        // SAFETY: such a slot, as long as the class lives.
        unsafe { self.handles?.resolve(env, slot) }
    }

    /// Bytes of the heap. To be called on a thread that the VM knows.
    pub fn heap_use(&self) -> HeapUse {
        // SAFETY: both take nothing and only read counters.
        let (total, free) = unsafe { ((self.total_memory)(), (self.free_memory)()) };
        HeapUse { used: total.saturating_sub(free).max(0) as u64, committed: total.max(0) as u64 }
    }
}

impl Layout {
    fn find(library: &Library) -> Option<Self> {
        let number = |name: &CStr| -> Option<u64> {
            // SAFETY: these exported variables are u64.
            library.symbol(name).map(|at| unsafe { *at.cast::<u64>() })
        };
        // The debugger's interface describes itself; anything but the known shape is left alone.
        let stride = number(c"gHotSpotVMStructEntryArrayStride")?;
        let offsets = [
            (number(c"gHotSpotVMStructEntryTypeNameOffset")?, std::mem::offset_of!(VmStruct, type_name)),
            (number(c"gHotSpotVMStructEntryFieldNameOffset")?, std::mem::offset_of!(VmStruct, field_name)),
            (number(c"gHotSpotVMStructEntryOffsetOffset")?, std::mem::offset_of!(VmStruct, offset)),
            (number(c"gHotSpotVMStructEntryAddressOffset")?, std::mem::offset_of!(VmStruct, address)),
        ];
        if stride as usize != size_of::<VmStruct>() || offsets.iter().any(|(there, here)| *there as usize != *here) {
            return None;
        }
        // SAFETY: the variable points to an array of entries that ends with one without names.
        let mut entry = unsafe { *library.symbol(c"gHotSpotVMStructs")?.cast::<*const VmStruct>() };
        let (mut klass_offset, mut layout_helper_offset) = (None, None);
        let (mut pool, mut cache, mut array, mut static_count_offset) = (None, None, None, None);
        // SAFETY: as above; names are C strings, the address of a static entry that of its value.
        unsafe {
            while !entry.is_null() && !(*entry).type_name.is_null() {
                match (CStr::from_ptr((*entry).type_name).to_bytes(), CStr::from_ptr((*entry).field_name).to_bytes()) {
                    (b"java_lang_Class", b"_klass_offset") => {
                        klass_offset = (*entry).address.cast::<i32>().as_ref().map(|offset| *offset as u64);
                    }
                    (b"java_lang_Class", b"_static_oop_field_count_offset") => {
                        static_count_offset = (*entry).address.cast::<i32>().as_ref().map(|offset| i64::from(*offset));
                    }
                    (b"Klass", b"_layout_helper") => layout_helper_offset = Some((*entry).offset),
                    (b"InstanceKlass", b"_constants") => pool = Some((*entry).offset),
                    (b"ConstantPool", b"_cache") => cache = Some((*entry).offset),
                    (b"ConstantPoolCache", b"_resolved_references") => array = Some((*entry).offset),
                    _ => {}
                }
                entry = entry.add(1);
            }
        }
        Some(Self {
            klass_offset: klass_offset.filter(|offset| *offset > 0)?,
            layout_helper_offset: layout_helper_offset?,
            resolved: pool.zip(cache).zip(array).map(|((pool, cache), array)| ResolvedReferences {
                pool,
                cache,
                array,
            }),
            static_count_offset: static_count_offset.filter(|offset| *offset > 0),
        })
    }
}

/// A loaded library; it stays loaded.
struct Library(*mut c_void);

impl Library {
    /// libjvm, found by the address of a JNI function: a program may hold several, and the launcher need not have
    /// made its symbols global.
    fn of(env: Env) -> Option<Self> {
        // SAFETY: plain calls of the dynamic linker with a place for the answer.
        unsafe {
            let function = (**env.raw()).v1_6.GetVersion as *const c_void;
            let mut info = libc::Dl_info {
                dli_fname: ptr::null(),
                dli_fbase: ptr::null_mut(),
                dli_sname: ptr::null(),
                dli_saddr: ptr::null_mut(),
            };
            if libc::dladdr(function, &mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            let handle = libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD);
            if handle.is_null() { None } else { Some(Self(handle)) }
        }
    }

    fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: a handle of the dynamic linker and a C string.
        let at = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if at.is_null() { None } else { Some(at) }
    }
}
