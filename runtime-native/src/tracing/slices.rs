//! The slices of time to which counts belong (`counts=1s`). A thread that counts in another slice than before begins a new chunk, which has
//! its own times; so nothing has to reach threads that do not allocate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::tracer::Tracer;

/// The number of the current slice, which hooks read.
static SLICE: AtomicU64 = AtomicU64::new(1);

/// The address of the number.
pub fn address() -> usize {
    std::ptr::from_ref(&SLICE) as usize
}

/// Begins a new slice each time that so much time has passed, until tracing ends.
pub fn begin(tracer: &'static Tracer, length: Duration) {
    let thread = std::thread::Builder::new().name("elephant-tracks slices".into()).spawn(move || {
        while !tracer.has_ended() {
            std::thread::sleep(length);
            SLICE.fetch_add(1, Ordering::Relaxed);
        }
    });
    if let Err(error) = thread {
        tracer.output.queue.problem(format!("no thread to count time, all counts are of one slice: {error}"), 1);
    }
}
