//! Information about HotSpot beyond JNI and JVMTI: exported functions and the table for debuggers.
#![allow(unsafe_code, reason = "symbols of libjvm")]

use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::ptr;

use jni_sys::{JNIEnv, jint, jlong, jobject};

use et_names::releases;

use crate::call_trace::CallTraces;
use crate::env::{Env, Object};
use crate::handles::Handles;
use crate::memory;

type IdentityHash = unsafe extern "system" fn(*mut JNIEnv, jobject) -> jint;
type DeclaredFields = unsafe extern "system" fn(*mut JNIEnv, jobject, u8) -> jobject;
type Memory = unsafe extern "system" fn() -> jlong;
type Halt = unsafe extern "system" fn(jint);

/// Usage of the Java heap in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapUse {
    /// In use, as of the last collection and what was made since.
    pub used: u64,
    /// Committed memory.
    pub committed: u64,
}

/// Functions and data of the running libjvm.
#[derive(Clone, Copy, Debug)]
pub struct HotSpot {
    identity_hash: IdentityHash,
    declared_fields: DeclaredFields,
    total_memory: Memory,
    free_memory: Memory,
    max_memory: Option<Memory>,
    handles: Option<Handles>,
    halt: Option<Halt>,
    /// Walks of stacks beside JVMTI's.
    pub call_traces: Option<CallTraces>,
    /// Where instance sizes are stored; `None` if unknown.
    pub layout: Option<Layout>,
    /// Where the heap is described.
    heap_place: Option<HeapPlace>,
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

/// Offsets of the fields that lead from an InstanceKlass to the array of its constant pool's resolved strings, method
/// handles and call sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResolvedReferences {
    pool: u64,
    cache: u64,
    array: u64,
}

/// An entry of `gHotSpotVMStructs` (vmStructs.hpp; the same from 8 on).
#[repr(C)]
pub(crate) struct VmStruct {
    pub(crate) type_name: *const c_char,
    pub(crate) field_name: *const c_char,
    pub(crate) type_string: *const c_char,
    pub(crate) is_static: i32,
    pub(crate) offset: u64,
    pub(crate) address: *const c_void,
}

impl HotSpot {
    /// Examines the libjvm of this release that `env` belongs to. `None` if it is not HotSpot.
    pub fn find(env: Env, release: &str) -> Option<Self> {
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
                max_memory: library
                    .symbol(c"JVM_MaxMemory")
                    .map(|function| std::mem::transmute::<*mut c_void, Memory>(function)),
                call_traces: library.symbol(c"AsyncGetCallTrace").map(|function| CallTraces::new(function)),
                halt: library.symbol(c"JVM_Halt").map(|function| std::mem::transmute::<*mut c_void, Halt>(function)),
                handles: library.symbol(c"JVM_SetArrayElement").map(|function| Handles::new(function)),
                // What the table of types does not say, such as what an `OopHandle` is, may be another thing in releases that were not tested.
                layout: Layout::find(&library, release.parse().is_ok_and(releases::is_tested)),
                heap_place: table(&library).and_then(HeapPlace::read),
            })
        }
    }

    /// The same as `System.identityHashCode`.
    pub fn identity_hash(&self, env: Env, object: Object) -> u32 {
        // SAFETY: environment and object are the JVM's.
        unsafe { (self.identity_hash)(env.raw(), object.raw()) as u32 }
    }

    /// Links a class without initialising it.
    pub fn link(&self, env: Env, class: Object) {
        env.frame(1, |env| {
            // Of those that link and do no more, this looks for the least.
            // SAFETY: environment and class are the JVM's.
            unsafe { (self.declared_fields)(env.raw(), class.raw(), 1) };
            env.clear_exception();
        });
    }

    /// Where a class mirror says how many static fields of reference types the class has.
    pub fn static_count_offset(&self) -> Option<i64> {
        self.layout.and_then(|layout| layout.static_count_offset)
    }

    /// Whether the arrays of resolved references can be found.
    pub fn finds_resolved_references(&self) -> bool {
        self.handles.is_some() && self.layout.is_some_and(|layout| layout.resolved.is_some())
    }

    /// The array of resolved references of a live, linked class; `None` if it has none. `klass` is the value in its
    /// mirror, and not 0.
    pub fn resolved_references<'a>(&self, env: Env<'a>, klass: u64) -> Option<Object<'a>> {
        let offsets = self.layout.and_then(|layout| layout.resolved)?;
        let pointer = |at: u64| {
            // SAFETY: a field in a HotSpot structure, at the offset in the table for debuggers; all are words.
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

    /// Ends the process as `Runtime.halt` does. Comes back only if libjvm has no such function.
    pub fn halt(&self, code: i32) {
        if let Some(halt) = self.halt {
            // SAFETY: exported by libjvm with this signature since 8 (jvm.h).
            unsafe { halt(code) }
        }
    }

    /// Maximum heap size (`-Xmx`) in bytes. To be called on an attached thread.
    pub fn heap_limit(&self) -> Option<u64> {
        // SAFETY: takes nothing and only reads.
        self.max_memory.map(|function| unsafe { function() }.max(0) as u64)
    }

    /// The addresses that the VM has set aside for the heap, used or not. None if this VM does not say.
    pub fn heap_reserved(&self) -> Option<Range<u64>> {
        self.heap_place?.reserved()
    }

    /// How many collections there have been, whatever pauses each of them took. Shenandoah says 0; None if this VM does not say.
    pub fn collections(&self) -> Option<u32> {
        self.heap_place?.collections()
    }

    /// Bytes of the heap. To be called on a thread that the VM knows.
    pub fn heap_use(&self) -> HeapUse {
        // SAFETY: both take nothing and only read counters.
        let (total, free) = unsafe { ((self.total_memory)(), (self.free_memory)()) };
        HeapUse { used: total.saturating_sub(free).max(0) as u64, committed: total.max(0) as u64 }
    }
}

/// The table for debuggers, an array that ends with an entry without names. It describes itself; anything but the known shape is left alone.
pub(crate) fn table(library: &Library) -> Option<*const VmStruct> {
    // SAFETY: these exported variables are u64.
    let number = |name: &CStr| unsafe { library.number(name) };
    let stride = number(c"gHotSpotVMStructEntryArrayStride")?;
    let offsets = [
        (number(c"gHotSpotVMStructEntryTypeNameOffset")?, std::mem::offset_of!(VmStruct, type_name)),
        (number(c"gHotSpotVMStructEntryFieldNameOffset")?, std::mem::offset_of!(VmStruct, field_name)),
        (number(c"gHotSpotVMStructEntryTypeStringOffset")?, std::mem::offset_of!(VmStruct, type_string)),
        (number(c"gHotSpotVMStructEntryIsStaticOffset")?, std::mem::offset_of!(VmStruct, is_static)),
        (number(c"gHotSpotVMStructEntryOffsetOffset")?, std::mem::offset_of!(VmStruct, offset)),
        (number(c"gHotSpotVMStructEntryAddressOffset")?, std::mem::offset_of!(VmStruct, address)),
    ];
    if stride as usize != size_of::<VmStruct>() || offsets.iter().any(|(there, here)| *there as usize != *here) {
        return None;
    }
    // SAFETY: the variable points to such an array.
    Some(unsafe { *library.symbol(c"gHotSpotVMStructs")?.cast::<*const VmStruct>() })
}

/// Iterates over the table.
///
/// # Safety
/// `table` is that of a loaded libjvm, or one with the same structure that is valid while the iterator is used: the
/// last entry has no type name.
pub(crate) unsafe fn entries<'a>(table: *const VmStruct) -> impl Iterator<Item = &'a VmStruct> {
    // SAFETY: guaranteed by the caller; nothing after the last entry is read.
    (0..)
        .map_while(move |index| unsafe { table.wrapping_add(index).as_ref() })
        .take_while(|entry| !entry.type_name.is_null())
}

/// A name in the table.
///
/// # Safety
/// `at` is null or a C string that remains valid.
pub(crate) unsafe fn text<'a>(at: *const c_char) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if at.is_null() { &[] } else { unsafe { CStr::from_ptr(at) }.to_bytes() }
}

/// The way to the addresses that were set aside for the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeapPlace {
    /// Address of the pointer to the `CollectedHeap`.
    heap_at: u64,
    /// Offsets in its `MemRegion`.
    reserved: u64,
    /// In that: of the address, and of the number of words.
    start: u64,
    words: u64,
    /// Of the number of collections so far.
    collections: Option<u64>,
}

impl HeapPlace {
    /// Reads the table. An entry counts only if it has the type that is expected.
    fn read(table: *const VmStruct) -> Option<Self> {
        let (mut heap_at, mut reserved, mut start, mut words) = (None, None, None, None);
        let mut collections = None;
        // SAFETY: the caller's array; names are C strings.
        unsafe {
            for here in entries(table) {
                match ((text(here.type_name), text(here.field_name)), text(here.type_string), here.is_static != 0) {
                    ((b"Universe", b"_collectedHeap"), b"CollectedHeap*", true) => heap_at = Some(here.address as u64),
                    ((b"CollectedHeap", b"_reserved"), b"MemRegion", false) => reserved = Some(here.offset),
                    ((b"CollectedHeap", b"_total_collections"), b"unsigned int", false) => {
                        collections = Some(here.offset);
                    }
                    ((b"MemRegion", b"_start"), b"HeapWord*", false) => start = Some(here.offset),
                    ((b"MemRegion", b"_word_size"), b"size_t", false) => words = Some(here.offset),
                    _ => {}
                }
            }
        }
        Some(Self { heap_at: heap_at?, reserved: reserved?, start: start?, words: words?, collections })
    }

    fn collections(self) -> Option<u32> {
        let heap = memory::copy::<8>(self.heap_at).map(u64::from_ne_bytes).filter(|heap| *heap != 0)?;
        memory::copy::<4>(heap + self.collections?).map(u32::from_ne_bytes)
    }

    fn reserved(self) -> Option<Range<u64>> {
        let word = |at: u64| memory::copy::<8>(at).map(u64::from_ne_bytes);
        let region = word(self.heap_at).filter(|heap| *heap != 0)? + self.reserved;
        let (start, words) = (word(region + self.start)?, word(region + self.words)?);
        let end = start.checked_add(words.checked_mul(8)?)?;
        (start != 0 && words != 0).then_some(start..end)
    }
}

impl Layout {
    fn find(library: &Library, is_tested: bool) -> Option<Self> {
        Self::read(table(library)?, is_tested)
    }

    /// Reads the table. An entry counts only if it has the type that is expected.
    fn read(table: *const VmStruct, is_tested: bool) -> Option<Self> {
        let (mut klass_offset, mut layout_helper_offset) = (None, None);
        let (mut pool, mut cache, mut array, mut static_count_offset) = (None, None, None, None);
        // SAFETY: the caller's array; names are C strings, and the address of a static entry is that of its value,
        // which has the type named in the entry.
        unsafe {
            let int = |entry: &VmStruct| entry.address.cast::<i32>().as_ref().copied();
            for here in entries(table) {
                let names = (text(here.type_name), text(here.field_name));
                match (names, text(here.type_string), here.is_static != 0) {
                    ((b"java_lang_Class", b"_klass_offset"), b"int", true) => klass_offset = int(here),
                    ((b"java_lang_Class", b"_static_oop_field_count_offset"), b"int", true) => {
                        static_count_offset = int(here);
                    }
                    ((b"Klass", b"_layout_helper"), b"jint", false) => layout_helper_offset = Some(here.offset),
                    ((b"InstanceKlass", b"_constants"), b"ConstantPool*", false) => pool = Some(here.offset),
                    ((b"ConstantPool", b"_cache"), b"ConstantPoolCache*", false) => cache = Some(here.offset),
                    ((b"ConstantPoolCache", b"_resolved_references"), b"OopHandle", false) => array = Some(here.offset),
                    _ => {}
                }
            }
        }
        let resolved = pool.zip(cache).zip(array).filter(|_| is_tested);
        Some(Self {
            klass_offset: klass_offset.and_then(|offset| u64::try_from(offset).ok()).filter(|offset| *offset > 0)?,
            layout_helper_offset: layout_helper_offset?,
            resolved: resolved.map(|((pool, cache), array)| ResolvedReferences { pool, cache, array }),
            static_count_offset: static_count_offset.map(i64::from).filter(|offset| *offset > 0),
        })
    }
}

/// The name under which a library exports what is at an address.
pub fn exported_name(address: usize) -> Option<&'static CStr> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: a plain call of the dynamic linker with a place for the answer.
    let is_found = unsafe { libc::dladdr(address as *const c_void, &mut info) } != 0;
    if !is_found || info.dli_sname.is_null() || info.dli_saddr as usize != address {
        return None;
    }
    // SAFETY: of a library's table of symbols, which stays as long as that is loaded: libraries with native methods of the VM are.
    Some(unsafe { CStr::from_ptr(info.dli_sname) })
}

/// A loaded library; it stays loaded.
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Finds libjvm by the address of a JNI function: a process may have loaded several, and the launcher may not have
    /// made its symbols global.
    pub(crate) fn of(env: Env) -> Option<Self> {
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

    pub(crate) fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: a handle of the dynamic linker and a C string.
        let at = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if at.is_null() { None } else { Some(at) }
    }

    /// Reads an exported variable.
    ///
    /// # Safety
    /// The variable must be a u64.
    pub(crate) unsafe fn number(&self, name: &CStr) -> Option<u64> {
        // SAFETY: the caller's promise.
        self.symbol(name).map(|at| unsafe { *at.cast::<u64>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KLASS_OFFSET: i32 = 16;
    const COUNT_OFFSET: i32 = 40;

    /// The table as 11 to 25 have it, but for the type of one field.
    fn layout(odd: &str, odd_type: &CStr, is_tested: bool) -> Option<Layout> {
        let value = |value: &i32| std::ptr::from_ref(value).cast::<c_void>();
        let rows: [(&CStr, &CStr, &CStr, u64, *const c_void); 7] = [
            (c"Klass", c"_name", c"Symbol*", 24, ptr::null()),
            (c"java_lang_Class", c"_klass_offset", c"int", 0, value(&KLASS_OFFSET)),
            (c"java_lang_Class", c"_static_oop_field_count_offset", c"int", 0, value(&COUNT_OFFSET)),
            (c"Klass", c"_layout_helper", c"jint", 8, ptr::null()),
            (c"InstanceKlass", c"_constants", c"ConstantPool*", 232, ptr::null()),
            (c"ConstantPool", c"_cache", c"ConstantPoolCache*", 16, ptr::null()),
            (c"ConstantPoolCache", c"_resolved_references", c"OopHandle", 16, ptr::null()),
        ];
        let mut table: Vec<VmStruct> = rows
            .iter()
            .map(|(type_name, field_name, type_string, offset, address)| VmStruct {
                type_name: type_name.as_ptr(),
                field_name: field_name.as_ptr(),
                type_string: if field_name.to_str() == Ok(odd) { odd_type } else { *type_string }.as_ptr(),
                is_static: i32::from(!address.is_null()),
                offset: *offset,
                address: *address,
            })
            .collect();
        let (nothing, end) = (ptr::null(), ptr::null());
        let (type_name, field_name, type_string) = (nothing, nothing, nothing);
        table.push(VmStruct { type_name, field_name, type_string, is_static: 0, offset: 0, address: end });
        Layout::read(table.as_ptr(), is_tested)
    }

    #[test]
    fn a_field_of_another_type_is_not_taken_for_the_known_one() {
        let known = Layout {
            klass_offset: 16,
            layout_helper_offset: 8,
            resolved: Some(ResolvedReferences { pool: 232, cache: 16, array: 16 }),
            static_count_offset: Some(40),
        };
        assert_eq!(layout("", c"", true), Some(known));
        assert_eq!(layout("_klass_offset", c"uint16_t", true), None);
        assert_eq!(layout("_layout_helper", c"u8", true), None);
        for field in ["_constants", "_cache", "_resolved_references"] {
            assert_eq!(layout(field, c"oop", true), Some(Layout { resolved: None, ..known }), "{field}");
        }
        let count = "_static_oop_field_count_offset";
        assert_eq!(layout(count, c"short", true), Some(Layout { static_count_offset: None, ..known }));
    }

    #[test]
    fn resolved_references_are_left_alone_in_untested_releases() {
        assert_eq!(layout("", c"", false).map(|layout| layout.resolved), Some(None));
    }
}
