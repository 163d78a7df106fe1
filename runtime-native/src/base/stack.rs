//! Bounds of a thread's stack.
#![allow(unsafe_code, reason = "questions to the system about threads")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// Addresses of the current thread's stack; `None` if unknown. Stacks made by native code (coroutines) are not
/// included.
///
/// `None` also for the initial thread: its stack grows, and under `ulimit -s unlimited` the reported range may be
/// mapped for something else later. Java's launcher runs Java on a new thread.
pub fn bounds() -> Option<Range<usize>> {
    // SAFETY: queries without side effects.
    if unsafe { libc::gettid() == libc::getpid() } {
        return None;
    }
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: about the current thread; the attributes are initialized if it returns 0.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut len) = (ptr::null_mut(), 0);
    // SAFETY: the attributes have just been initialized, and are destroyed in any case.
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
