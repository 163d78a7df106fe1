//! The processor time of threads.
#![allow(unsafe_code, reason = "a system call that fills a struct")]

use std::time::Duration;

/// Processor time of the current thread; none if the system does not report it.
pub fn of_this_thread() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is local and of the type that the call fills.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } != 0;
    (!failed).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_has_more_of_it_and_one_that_sleeps_has_not() {
        let start = of_this_thread().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let slept = of_this_thread().unwrap() - start;
        assert!(slept < Duration::from_millis(100), "{slept:?}");
        let clock = std::time::Instant::now();
        while of_this_thread().unwrap() - start < slept + Duration::from_millis(20) {
            assert!(clock.elapsed() < Duration::from_secs(20));
        }
    }
}
