//! Allocators in C and C++.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

use et_simulate::allocate::Allocator;

/// Alignment of allocations, in bytes.
const ALIGN: usize = 16;

/// The two functions of an allocator.
#[allow(unsafe_code, reason = "the allocators are in C and C++")]
pub trait Raw {
    /// Allocates that many bytes, aligned to [`ALIGN`]; null if out of memory.
    fn allocate(bytes: usize) -> *mut c_void;

    /// # Safety
    /// `memory` is from `allocate` with the same number of bytes, and is not used afterwards.
    unsafe fn free(memory: *mut c_void, bytes: usize);
}

macro_rules! raw {
    ($name:ident, |$bytes:ident| $allocate:expr, |$memory:ident, $size:ident| $free:expr) => {
        #[derive(Debug)]
        pub struct $name;

        #[allow(unsafe_code, reason = "the allocators are in C and C++")]
        impl Raw for $name {
            fn allocate($bytes: usize) -> *mut c_void {
                // SAFETY: any size is valid.
                unsafe { $allocate }
            }

            unsafe fn free($memory: *mut c_void, $size: usize) {
                let _ = $size;
                // SAFETY: by the contract of `free`.
                unsafe { $free }
            }
        }
    };
}

raw!(Jemalloc, |bytes| tikv_jemalloc_sys::malloc(bytes), |memory, size| tikv_jemalloc_sys::free(memory));
raw!(Mimalloc, |bytes| libmimalloc_sys::mi_malloc(bytes), |memory, size| libmimalloc_sys::mi_free(memory));
raw!(Snmalloc, |bytes| snmalloc_sys::sn_rust_alloc(ALIGN, bytes).cast(), |memory, size| {
    snmalloc_sys::sn_rust_dealloc(memory.cast(), ALIGN, size);
});

/// A linked allocator as the allocator of a replay.
#[derive(Debug)]
pub struct Linked<R>(PhantomData<R>);

/// Memory of one object.
#[derive(Debug)]
pub struct Block<R: Raw> {
    memory: NonNull<u32>,
    words: usize,
    of: PhantomData<R>,
}

impl<R: Raw> Default for Block<R> {
    fn default() -> Self {
        Self { memory: NonNull::dangling(), words: 0, of: PhantomData }
    }
}

#[allow(unsafe_code, reason = "the memory is that of an allocator in C or C++")]
impl<R: Raw> AsRef<[u32]> for Block<R> {
    fn as_ref(&self) -> &[u32] {
        // SAFETY: `words` words were allocated and initialized, and are owned until the drop. With 0 words the pointer
        // is dangling.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.words) }
    }
}

#[allow(unsafe_code, reason = "as above")]
impl<R: Raw> AsMut<[u32]> for Block<R> {
    fn as_mut(&mut self) -> &mut [u32] {
        // SAFETY: as in `as_ref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.words) }
    }
}

#[allow(unsafe_code, reason = "as above")]
impl<R: Raw> Drop for Block<R> {
    fn drop(&mut self) {
        if self.words > 0 {
            // SAFETY: the memory is from `allocate` with this size, and is freed only here.
            unsafe { R::free(self.memory.as_ptr().cast(), 4 * self.words) }
        }
    }
}

#[allow(unsafe_code, reason = "as above")]
impl<R: Raw> Allocator for Linked<R> {
    type Block = Block<R>;

    fn allocate(words: usize, fill: u32) -> Option<Block<R>> {
        if words == 0 {
            return Some(Block::default());
        }
        let memory = NonNull::new(R::allocate(words.checked_mul(4)?).cast::<u32>())?;
        // SAFETY: that many bytes were allocated, with more than the alignment of a word.
        unsafe { (0..words).for_each(|word| memory.add(word).write(fill)) };
        Some(Block { memory, words, of: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_out<R: Raw>() {
        let mut blocks: Vec<Block<R>> = Vec::new();
        for round in 0..3u32 {
            for words in [0, 4, 5, 100, 70_000] {
                blocks.push(Linked::<R>::allocate(words, round + 1).unwrap());
            }
            for (at, block) in blocks.iter_mut().enumerate() {
                assert!(block.as_ref().iter().all(|&word| word == round + 1));
                assert_eq!(block.as_ref().as_ptr() as usize % 4, 0);
                block.as_mut().fill(at as u32);
                assert!(block.as_ref().iter().all(|&word| word == at as u32));
            }
            blocks.clear();
        }
        assert!(Linked::<R>::allocate(usize::MAX, 0).is_none());
    }

    #[test]
    fn memory_is_given_out_and_taken_back() {
        try_out::<Jemalloc>();
        try_out::<Mimalloc>();
        try_out::<Snmalloc>();
    }
}
