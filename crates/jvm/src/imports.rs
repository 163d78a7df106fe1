//! Replaces functions imported by libjvm, in its global offset table (ELF), as profilers do to intercept `dlopen`.
//! Tested with 11 to 25.
#![allow(unsafe_code, reason = "the tables of a loaded library")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::env::Env;

/// Makes libjvm call `other` instead of `function`, which it imports by this name. Returns false, without a change, if
/// libjvm does not import it or its tables have an unknown format.
///
/// # Safety
/// Both have the signature of the function with that name, and `other` stays loaded.
pub unsafe fn replace(env: Env, name: &CStr, function: *const c_void, other: *const c_void) -> bool {
    // SAFETY: an environment of the VM, whose functions are in libjvm.
    let inside = unsafe { (**env.raw()).v1_6.GetVersion as usize };
    let Some(object) = Object::around(inside) else { return false };
    // SAFETY: the tables of a library that stays loaded.
    let slots = unsafe { object.slots(name) };
    // A slot that does not contain the function's address is skipped.
    let slots: Vec<_> = slots.into_iter().filter(|slot| slot.load(Ordering::Relaxed) == function as usize).collect();
    !slots.is_empty() && slots.into_iter().all(|slot| object.put(slot, other as usize))
}

/// A loaded shared library.
#[derive(Debug, Default)]
struct Object {
    /// Difference between its addresses in memory and in the file.
    bias: usize,
    dynamic: usize,
    /// Read-only since it was loaded: address and length.
    relro: (usize, usize),
}

/// ELF's `Elf64_Dyn`.
#[repr(C)]
struct Entry {
    tag: i64,
    value: usize,
}

/// ELF's `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// Tags of dynamic entries (`elf.h`).
const END: i64 = 0;
const CALLS_LENGTH: i64 = 2;
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const RELOCATIONS: i64 = 7;
const RELOCATIONS_LENGTH: i64 = 8;
const CALLS_KIND: i64 = 20;
const CALLS: i64 = 23;

impl Object {
    /// The library that contains an address.
    fn around(address: usize) -> Option<Self> {
        let mut search = (address, None);
        // SAFETY: the function is called with what is handed over, before this returns.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        search.1
    }

    /// The slots with the address of an imported function.
    ///
    /// # Safety
    /// The library stays loaded.
    unsafe fn slots(&self, name: &CStr) -> Vec<&'static AtomicUsize> {
        let (mut strings, mut symbols, mut tables) = (0, 0, [(0, 0); 2]);
        // SAFETY: reads what the dynamic linker reads: entries up to the terminating one, tables with the declared
        // lengths, symbols by index, and zero-terminated names.
        unsafe {
            let mut entry = self.dynamic as *const Entry;
            while (*entry).tag != END {
                let value = (*entry).value;
                // The linker of the C library has made addresses of them, others leave them as they are in the file.
                let address = if value < self.bias { self.bias + value } else { value };
                match (*entry).tag {
                    STRINGS => strings = address,
                    SYMBOLS => symbols = address,
                    RELOCATIONS => tables[0].0 = address,
                    RELOCATIONS_LENGTH => tables[0].1 = value,
                    CALLS => tables[1].0 = address,
                    CALLS_LENGTH => tables[1].1 = value,
                    // Relocations of another kind.
                    CALLS_KIND if value as i64 != RELOCATIONS => return Vec::new(),
                    _ => {}
                }
                entry = entry.add(1);
            }
            if strings == 0 || symbols == 0 {
                return Vec::new();
            }
            let tables = tables.into_iter().filter(|(at, _)| *at != 0);
            let all = tables.flat_map(|(at, length)| {
                std::slice::from_raw_parts(at as *const Relocation, length / size_of::<Relocation>())
            });
            let is_it = |relocation: &&Relocation| {
                let index = (relocation.info >> 32) as usize;
                let symbol = &*(symbols as *const libc::Elf64_Sym).add(index);
                let there = CStr::from_ptr((strings + symbol.st_name as usize) as *const c_char);
                index != 0 && relocation.addend == 0 && there == name
            };
            let slots = all.filter(is_it).map(|relocation| self.bias + relocation.offset);
            let is_word = |slot: &usize| slot.is_multiple_of(align_of::<AtomicUsize>());
            slots.filter(is_word).map(|slot| AtomicUsize::from_ptr(slot as *mut usize)).collect()
        }
    }

    /// Writes to a slot, whether that is read-only by now or not.
    fn put(&self, slot: &AtomicUsize, value: usize) -> bool {
        let at = slot.as_ptr() as usize;
        let (start, length) = self.relro;
        let is_read_only = (start..start + length).contains(&at);
        // SAFETY: system calls; the page is of the library's data, and read-only again afterwards.
        unsafe {
            let page_size = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
            let page = (at & !(page_size - 1)) as *mut c_void;
            if is_read_only && libc::mprotect(page, page_size, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                return false;
            }
            slot.store(value, Ordering::Release);
            if is_read_only {
                libc::mprotect(page, page_size, libc::PROT_READ);
            }
        }
        true
    }
}

/// Looks at one library after the other, until one is found.
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: as the linker hands them over, and `around`.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<(usize, Option<Object>)>()) };
    let bias = info.dlpi_addr as usize;
    let mut object = Object { bias, ..Object::default() };
    let mut is_it = false;
    for index in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: there are this many program headers.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        let (start, length) = (bias + header.p_vaddr as usize, header.p_memsz as usize);
        match header.p_type {
            libc::PT_LOAD => is_it |= (start..start + length).contains(&search.0),
            libc::PT_DYNAMIC => object.dynamic = start,
            libc::PT_GNU_RELRO => object.relro = (start, length),
            _ => {}
        }
    }
    if !is_it || object.dynamic == 0 {
        return 0;
    }
    search.1 = Some(object);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn other() -> libc::pid_t {
        -7
    }

    /// The program of these tests is a library like any other.
    #[test]
    fn an_imported_function_is_replaced() {
        let inside = Object::around(an_imported_function_is_replaced as fn() as usize).unwrap();
        let ours = |name: &CStr| {
            // SAFETY: the program stays loaded.
            let slots = unsafe { inside.slots(name) };
            slots.into_iter().filter(|slot| slot.load(Ordering::Relaxed) == libc::getpgrp as *const () as usize)
        };
        assert_eq!(ours(c"no_such_function").count(), 0);
        // SAFETY: it takes nothing and only looks.
        let call = || unsafe { libc::getpgrp() };
        let group = call();
        assert!(group > 0);
        let slots: Vec<_> = ours(c"getpgrp").collect();
        assert_eq!(slots.len(), 1);
        assert!(inside.put(slots[0], other as *const () as usize));
        assert_eq!(call(), -7);
        assert!(inside.put(slots[0], {
            // SAFETY: the name of a function.
            unsafe { libc::dlsym(libc::RTLD_NEXT, c"getpgrp".as_ptr()) as usize }
        }));
        assert_eq!(call(), group);
    }
}
