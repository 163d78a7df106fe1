//! Where the stack of a thread is.
#![allow(unsafe_code, reason = "questions to the system about threads")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// The addresses of the current thread's stack; none if the system does not tell. What runs on a stack of its own making (coroutines of
/// native code) is not on it.
///
/// None for the process's first thread either: its stack grows, and what is said to be its own under `ulimit -s unlimited` may
/// become another's. Java's launcher runs Java on a thread that it makes.
pub fn bounds() -> Option<Range<usize>> {
    // SAFETY: plain questions.
    if unsafe { libc::gettid() == libc::getpid() } {
        return None;
    }
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: about the current thread; it fills in the attributes if it returns 0.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut len) = (ptr::null_mut(), 0);
    // SAFETY: the attributes were filled in just now, and are given back whatever the answer is.
    let found = unsafe {
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut len) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        found
    };
    let low = low as usize;
    found.then(|| low.checked_add(len).map(|high| low..high)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        let own = || {
            let here = 0_u8;
            let bounds = bounds().unwrap();
            assert!(bounds.contains(&(ptr::from_ref(&here) as usize)), "{bounds:x?}");
            bounds
        };
        let both = std::thread::spawn(move || (own(), std::thread::spawn(own).join().unwrap()));
        let (one, other) = both.join().unwrap();
        assert!(other.end <= one.start || one.end <= other.start, "{one:x?} and {other:x?}");
    }
}
