//! Memory bandwidth of the machine.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Bytes to store: many times the size of the caches.
const BYTES: usize = 512 << 20;
/// Number of measurements, of which the best counts, because other load can only slow them down.
const PASSES: usize = 5;

/// Bandwidth of sequential stores, in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bandwidth {
    /// By one thread.
    pub one_thread: f64,
    /// By one thread per processor.
    pub all_threads: f64,
    /// The number of processors.
    pub threads: usize,
}

impl Bandwidth {
    /// Measures for a second or two.
    pub fn measure() -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Self { one_thread: stored(1), all_threads: stored(threads), threads }
    }
}

fn stored(threads: usize) -> f64 {
    let barrier = Barrier::new(threads);
    let share = BYTES / threads;
    let passes = |thread: usize| -> Vec<(Instant, Instant)> {
        // The first time, the system has to allocate the pages.
        let mut memory = vec![1 + thread as u8; share];
        let pass = |number: usize| {
            barrier.wait();
            let start = Instant::now();
            memory.fill(black_box(number as u8));
            black_box(&mut memory);
            (start, Instant::now())
        };
        (0..PASSES).map(pass).collect()
    };
    let times: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || passes(thread))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let seconds = |pass: usize| {
        let pass = || times.iter().filter_map(|times: &Vec<(Instant, Instant)>| times.get(pass));
        let (start, end) = (pass().map(|time| time.0).min()?, pass().map(|time| time.1).max()?);
        Some(end.duration_since(start).as_secs_f64())
    };
    let best = (0..PASSES).filter_map(seconds).fold(f64::INFINITY, f64::min);
    (share * threads) as f64 / best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_measured() {
        let found = Bandwidth::measure();
        for rate in [found.one_thread, found.all_threads] {
            assert!((1e7..1e13).contains(&rate), "{found:?}");
        }
        assert!(found.threads > 0);
    }
}
