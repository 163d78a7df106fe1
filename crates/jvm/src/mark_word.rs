//! Mark words: the first word of each object, which contains its identity hash.
//!
//! JVMTI gives a heap walk the addresses of tags, not of objects. But HotSpot keeps the tags on its stack, in
//! structures whose members have had the same order from JDK 8 to 25 (and in the development version: `CallbackWrapper`
//! and `TwoOopCallbackWrapper`, jvmtiTagMap.cpp): an object's tag is preceded by its size in bytes, and that by its
//! address; a referrer's tag is preceded by the referrer's address. During a walk the VM is in a safepoint, so the mark
//! word can be read, and modified by an atomic exchange.
//!
//! This layout must be verified first, with an object whose identity hash is known ([`probe`]). Walks without
//! references only have the first of these structures ([`hash`]).
#![allow(unsafe_code, reason = "structures of the VM, and headers of objects")]

use std::sync::atomic::{AtomicU64, Ordering};

use jni_sys::jlong;

use crate::memory;

/// The bits of an identity hash, where they are shifted to (`markWord.hpp`).
pub const HASH: u64 = 0x7fff_ffff;
/// The bits that say what a mark word is.
pub const KIND: u64 = 7;
/// It is the object's own, and no lock's.
pub const FREE: u64 = 1;

/// The identity hash in the mark word of an object with this tag address and size; 0 if it has none. `None` if the word
/// is a lock's.
///
/// # Safety
/// To be called by a visitor with its arguments, after [`probe`] has found an object in this way.
pub unsafe fn hash(tag: *const jlong, size: u64, shift: u32) -> Option<u32> {
    // SAFETY: the caller's promise; an object starts there, with its mark word.
    let mark = unsafe { AtomicU64::from_ptr(address(tag, size)? as *mut u64) }.load(Ordering::Relaxed);
    (mark & KIND == FREE).then_some((mark >> shift & HASH) as u32)
}

/// Gives the object an identity hash, if its mark word is neither in use by a lock nor contains one.
///
/// # Safety
/// The same as for [`hash`].
pub unsafe fn give_hash(tag: *const jlong, size: u64, shift: u32, hash: u32) -> bool {
    // SAFETY: the caller's promise; the VM itself only exchanges mark words.
    let Some(word) = (unsafe { address(tag, size).map(|address| AtomicU64::from_ptr(address as *mut u64)) }) else {
        return false;
    };
    let mark = word.load(Ordering::Relaxed);
    if mark & KIND != FREE || mark >> shift & HASH != 0 {
        return false;
    }
    let hashed = mark | (u64::from(hash) & HASH) << shift;
    word.compare_exchange(mark, hashed, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// The identity hash in the mark word of an object with this tag address and size, if the layout is as expected. An
/// invalid address is harmless.
///
/// # Safety
/// To be called by a visitor of references with its arguments.
pub unsafe fn probe(tag: *const jlong, size: u64, shift: u32) -> Option<u32> {
    // SAFETY: the caller's promise.
    let address = unsafe { address(tag, size) }?;
    let mark = u64::from_ne_bytes(memory::copy(address as u64)?);
    (mark & KIND == FREE).then_some((mark >> shift & HASH) as u32)
}

/// The address that precedes the size that precedes the tag, if the size is as expected.
///
/// # Safety
/// The same as above.
pub unsafe fn address(tag: *const jlong, size: u64) -> Option<usize> {
    // SAFETY: according to the module's documentation, these are words of a VM structure on the stack in which the tag
    // is not the first. Also in versions after JDK 25.
    let (there, address) = unsafe { (tag.sub(1).read() as u64, tag.sub(2).cast::<usize>().read()) };
    (there == size && address != 0 && address.is_multiple_of(8)).then_some(address)
}

/// The address of the referring object, given the address of its tag.
///
/// # Safety
/// To be called by a visitor of references with the address of a referrer's tag that is not the object's own, after
/// [`probe`] has found an object in this way.
pub unsafe fn referrer_address(tag: *const jlong) -> usize {
    // SAFETY: according to the module's documentation.
    unsafe { tag.sub(1).cast::<usize>().read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIFT: u32 = 8;

    /// The words before the tag.
    #[repr(C)]
    struct Wrapper {
        object: *const u64,
        size: jlong,
        tag: jlong,
    }

    #[test]
    fn hashes_are_read_and_no_others() {
        let read = |word: u64, size: u64| {
            let wrapper = Wrapper { object: &raw const word, size: 24, tag: 0 };
            // SAFETY: a wrapper as the VM has them, and an object's first word.
            unsafe { hash((&raw const wrapper).cast::<jlong>().add(2), size, SHIFT) }
        };
        assert_eq!(read(0x1234 << SHIFT | FREE, 24), Some(0x1234));
        assert_eq!(read(0x28 | FREE, 24), Some(0));
        assert_eq!([read(0x1234 << SHIFT | 2, 24), read(0x1234 << SHIFT | FREE, 32)], [None; 2]);
    }

    #[test]
    fn hashes_are_given_to_those_that_have_none() {
        let given = |mut word: u64, size: u64| {
            let wrapper = Wrapper { object: &raw mut word, size: 24, tag: 0 };
            // SAFETY: a wrapper as the VM has them, and an object's first word.
            (unsafe { give_hash((&raw const wrapper).cast::<jlong>().add(2), size, SHIFT, 0x77) }, word)
        };
        assert_eq!(given(0x28 | FREE, 24), (true, 0x77 << SHIFT | 0x28 | FREE));
        for word in [0x1234 << SHIFT | FREE, 0x28 | 2] {
            assert_eq!(given(word, 24), (false, word));
        }
        assert_eq!(given(FREE, 32), (false, FREE));
    }

    #[test]
    fn a_probe_reads_what_is_there_and_nothing_else() {
        let word = 0x1234_u64 << SHIFT | 0x28 | FREE;
        let probed = |object: *const u64| {
            let wrapper = Wrapper { object, size: 24, tag: 0 };
            // SAFETY: a wrapper as the VM has them.
            unsafe { probe((&raw const wrapper).cast::<jlong>().add(2), 24, SHIFT) }
        };
        let (locked, nowhere) = (word | 2, std::ptr::dangling());
        assert_eq!([&raw const word, &raw const locked, nowhere].map(probed), [Some(0x1234), None, None]);
    }
}
