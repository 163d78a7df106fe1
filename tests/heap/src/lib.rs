//! An allocator that counts: tests and fuzzers bound the memory that is requested, even if it is never touched (libFuzzer's
//! own limit is for resident memory).
#![allow(unsafe_code)] // It forwards to the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The system's allocator, with a count.
#[derive(Debug)]
pub struct Counting;

/// Runs `work`, which may allocate up to `allowed` bytes at a time. The process aborts where it exceeds that, so that
/// the backtrace shows the culprit.
pub fn bounded(allowed: usize, work: impl FnOnce()) {
    LIMIT.store(LIVE.load(Relaxed).saturating_add(allowed), Relaxed);
    work();
    LIMIT.store(usize::MAX, Relaxed);
}

/// The most that `work` holds at once. It is meant to run alone: what other threads allocate meanwhile counts as well.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let done = work();
    (done, PEAK.load(Relaxed) - before)
}

fn grown(by: usize) {
    let live = LIVE.fetch_add(by, Relaxed).wrapping_add(by);
    PEAK.fetch_max(live, Relaxed);
    let limit = LIMIT.load(Relaxed);
    if live > limit {
        LIMIT.store(usize::MAX, Relaxed);
        // An allocator must not unwind; libFuzzer's panic hook aborts.
        panic!("{by} bytes more than what is allowed: {live} would be in use, {limit} may");
    }
}

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}
