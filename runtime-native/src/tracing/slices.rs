//! The slices of time to which counts belong (`counts=1s`). A thread that counts in another slice than before begins a new chunk, which has
//! its own times; so nothing has to reach threads that do not allocate.
//!
//! Each slice repeats what is counted all the time. So that the trace of a run of days does not grow with each second of it, slices become longer
//! with the run: readers show a thousand spans of it at most.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::tracer::Tracer;

/// The number of the current slice, which hooks read.
static SLICE: AtomicU64 = AtomicU64::new(1);

/// The address of the number.
pub fn address() -> usize {
    std::ptr::from_ref(&SLICE) as usize
}

/// Slices become twice as long each time that there have been as many in the time so far: as many spans as readers divide a run into.
const SLICES: u32 = 1 << 10;

/// The length of the slice that begins after that time, the one before it having had this length.
fn length_at(elapsed: Duration, length: Duration) -> Duration {
    if elapsed >= length * SLICES { length * 2 } else { length }
}

/// Begins a new slice each time that so much time has passed, until tracing ends.
pub fn begin(tracer: &'static Tracer, length: Duration) {
    let thread = std::thread::Builder::new().name("elephant-tracks slices".into()).spawn(move || {
        let (start, mut length) = (Instant::now(), length);
        while !tracer.has_ended() {
            std::thread::sleep(length);
            SLICE.fetch_add(1, Ordering::Relaxed);
            length = length_at(start.elapsed(), length);
        }
    });
    if let Err(error) = thread {
        tracer.output.queue.problem(format!("no thread to count time, all counts are of one slice: {error}"), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is a second in the first 17 minutes; in a day there are 4,259, in a year 8,643.
    #[test]
    fn slices_grow_with_the_run() {
        let (mut elapsed, mut length) = (Duration::ZERO, Duration::from_secs(1));
        let mut slices = 0;
        let mut at = |hours: u64| {
            while elapsed < Duration::from_secs(3600 * hours) {
                elapsed += length;
                slices += 1;
                length = length_at(elapsed, length);
                // Never fewer than half as many as readers show.
                assert!(elapsed < length * SLICES * 2 && (length.as_secs() == 1 || elapsed >= length * SLICES / 2));
            }
            (slices, length.as_secs())
        };
        assert_eq!(at(1), (1924, 4));
        assert_eq!(at(24), (4259, 128));
        assert_eq!(at(24 * 365), (8643, 32768));
    }
}
