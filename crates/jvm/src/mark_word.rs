//! Mark words: the first word of each object, which holds its identity hash.
//!
//! JVMTI shows a walk of the heap the places of tags, not objects. But
//! HotSpot keeps these places on its stack, in structures whose members have stood in the same order from JDK 8 to 25 (not in
//! what comes after: `CallbackWrapper` and `TwoOopCallbackWrapper`, jvmtiTagMap.cpp): before an object's tag its size in bytes, before that
//! its address; before a referrer's tag the address of that. While a walk goes on the world stands still, so the mark word there can be
//! read, and be written to by an atomic exchange.
//!
//! Whether an address is one is not to be taken on trust: first an object must be found so whose identity hash is known ([`probe`]). Walks
//! that tell objects only have the first of these structures ([`hash`]).
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

/// The identity hash in the mark word of the object that has its tag there, and that size; 0 if it has none. Nothing if the word
/// is a lock's.
///
/// # Safety
/// To be called by a visitor, with what it is given, where [`probe`] has found an object so.
pub unsafe fn hash(tag: *const jlong, size: u64, shift: u32) -> Option<u32> {
    // SAFETY: the caller's promise; an object starts there, with its mark word.
    let mark = unsafe { AtomicU64::from_ptr(address(tag, size)? as *mut u64) }.load(Ordering::Relaxed);
    (mark & KIND == FREE).then_some((mark >> shift & HASH) as u32)
}

/// Gives the object an identity hash, if its mark word is its own and holds none.
///
/// # Safety
/// As for [`hash`].
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

/// The identity hash in the mark word of the object that has its tag there, and that size, if that is where it is. What is no
/// address does no harm.
///
/// # Safety
/// To be called by a visitor of references, with what it is given.
pub unsafe fn probe(tag: *const jlong, size: u64, shift: u32) -> Option<u32> {
    // SAFETY: the caller's promise.
    let address = unsafe { address(tag, size) }?;
    let mark = u64::from_ne_bytes(memory::copy(address as u64)?);
    (mark & KIND == FREE).then_some((mark >> shift & HASH) as u32)
}

/// The address before the size before a tag, if that is the size.
///
/// # Safety
/// As above.
pub unsafe fn address(tag: *const jlong, size: u64) -> Option<usize> {
    // SAFETY: as the module says: words of a structure of the VM, on the stack, of which the tag is not the first. In what comes after
    // JDK 25 as well.
    let (there, address) = unsafe { (tag.sub(1).read() as u64, tag.sub(2).cast::<usize>().read()) };
    (there == size && address != 0 && address.is_multiple_of(8)).then_some(address)
}

/// The address of the object that refers to another, out of the place of its tag.
///
/// # Safety
/// To be called by a visitor of references, with the place of a referrer's tag, where [`probe`] has found an object so. It is not
/// that of the object itself.
pub unsafe fn referrer_address(tag: *const jlong) -> usize {
    // SAFETY: as the module says.
    unsafe { tag.sub(1).cast::<usize>().read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIFT: u32 = 8;

    /// What lies before the tag, as far as it is looked at.
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
