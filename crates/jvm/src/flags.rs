//! Values of HotSpot's flags (`-XX`), from the table for debuggers: the final values, whether set by the user or chosen
//! by the VM. Tested with 11.
#![allow(unsafe_code, reason = "data of libjvm")]

use std::ffi::{CStr, c_char};

use crate::env::Env;
use crate::hotspot::{Library, VmStruct, entries, table, text};

/// An entry of `gHotSpotVMTypes` (vmStructs.hpp; the same from 8 on).
#[repr(C)]
struct VmType {
    name: *const c_char,
    superclass: *const c_char,
    is_oop: i32,
    is_integer: i32,
    is_unsigned: i32,
    size: u64,
}

/// Where the flags are, and how to read one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    first: u64,
    count: u64,
    stride: u64,
    name_offset: u64,
    value_offset: u64,
}

/// Bytes from one flag to the next.
fn size_of_flag(library: &Library) -> Option<u64> {
    // SAFETY: these exported variables are u64.
    let number = |name: &CStr| unsafe { library.number(name) };
    let is_known = number(c"gHotSpotVMTypeEntryArrayStride")? == size_of::<VmType>() as u64
        && number(c"gHotSpotVMTypeEntryTypeNameOffset")? == std::mem::offset_of!(VmType, name) as u64
        && number(c"gHotSpotVMTypeEntrySizeOffset")? == std::mem::offset_of!(VmType, size) as u64;
    if !is_known {
        return None;
    }
    // SAFETY: the variable points to an array of such entries, whose last has no name.
    unsafe {
        let mut entry = *library.symbol(c"gHotSpotVMTypes")?.cast::<*const VmType>();
        while let Some(known) = entry.as_ref().filter(|entry| !entry.name.is_null()) {
            if text(known.name) == b"JVMFlag" {
                return Some(known.size);
            }
            entry = entry.add(1);
        }
    }
    None
}

impl Flags {
    /// Finds the flags of the running VM. `None` if they cannot be located.
    pub fn find(env: Env) -> Option<Self> {
        let library = Library::of(env)?;
        // SAFETY: tables of libjvm, which stays loaded.
        unsafe { Self::read(table(&library)?, size_of_flag(&library)?) }
    }

    /// # Safety
    /// `table` is HotSpot's table, and the flags remain valid: the last entry has no type name.
    unsafe fn read(table: *const VmStruct, stride: u64) -> Option<Self> {
        let [mut first, mut count, mut name_offset, mut value_offset] = [None; 4];
        // SAFETY: the caller's promise; the addresses of static fields are such fields.
        unsafe {
            for known in entries(table) {
                if text(known.type_name) == b"JVMFlag" {
                    match text(known.field_name) {
                        b"flags" => first = known.address.cast::<u64>().as_ref().copied(),
                        b"numFlags" => count = known.address.cast::<u64>().as_ref().copied(),
                        b"_name" => name_offset = Some(known.offset),
                        b"_addr" => value_offset = Some(known.offset),
                        _ => {}
                    }
                }
            }
        }
        let known =
            Self { first: first?, count: count?, stride, name_offset: name_offset?, value_offset: value_offset? };
        let fits = |offset: u64| offset + size_of::<u64>() as u64 <= stride;
        (known.first != 0 && fits(known.name_offset) && fits(known.value_offset)).then_some(known)
    }

    /// Whether a flag of type `bool` is on. None if this VM has no such flag.
    pub fn is_on(self, name: &CStr) -> Option<bool> {
        // SAFETY: where the table says that flags are, each with a value of a byte at least. The last flag of the table has no name, or one that is empty.
        unsafe {
            (0..self.count).map(|index| self.first + index * self.stride).find_map(|flag| {
                let name_there = *((flag + self.name_offset) as *const *const c_char);
                let value = *((flag + self.value_offset) as *const *const u8);
                (text(name_there) == name.to_bytes() && !value.is_null()).then(|| *value != 0)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::ptr;

    use super::*;

    /// As 11 lays it out, with a field before the name.
    #[repr(C)]
    struct Flag {
        kind: u64,
        value: *const u8,
        name: *const c_char,
    }

    #[test]
    fn a_flag_is_found_by_its_whole_name() {
        let (on, off) = (1_u8, 0_u8);
        let flags = [(c"UseG1", &off), (c"UseG1GC", &on), (c"UseTLAB", &off)].map(|(name, value)| Flag {
            kind: 7,
            value: ptr::from_ref(value),
            name: name.as_ptr(),
        });
        let first = flags.as_ptr();
        // The VM's table ends with a flag that has no name.
        let count = flags.len() as u64;
        let fixed = |field_name: &CStr, address: *const c_void| VmStruct {
            type_name: c"JVMFlag".as_ptr(),
            field_name: field_name.as_ptr(),
            type_string: ptr::null(),
            is_static: 1,
            offset: 0,
            address,
        };
        let at =
            |field_name: &CStr, offset: usize| VmStruct { offset: offset as u64, ..fixed(field_name, ptr::null()) };
        let table = [
            fixed(c"flags", ptr::from_ref(&first).cast()),
            fixed(c"numFlags", ptr::from_ref(&count).cast()),
            at(c"_name", std::mem::offset_of!(Flag, name)),
            at(c"_addr", std::mem::offset_of!(Flag, value)),
            VmStruct { type_name: ptr::null(), ..fixed(c"", ptr::null()) },
        ];
        // SAFETY: both tables are as HotSpot's.
        let read = unsafe { Flags::read(table.as_ptr(), size_of::<Flag>() as u64) };
        let found = |name: &CStr| read.and_then(|flags| flags.is_on(name));
        assert_eq!(
            [found(c"UseG1GC"), found(c"UseTLAB"), found(c"UseZGC")],
            [Some(true), Some(false), None],
            "{:?}",
            flags.map(|flag| flag.kind),
        );
        // SAFETY: as above; a size that has no room for the name is not believed.
        assert_eq!(unsafe { Flags::read(table.as_ptr(), 16) }, None);
    }
}
