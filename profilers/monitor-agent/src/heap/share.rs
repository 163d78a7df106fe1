//! Limits heap walks that were not just requested by a client with the token to one part in [`SHARE`] of the time, all
//! of them together, since they pause the program.

use et_jvm::sync::lock;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

const SHARE: u32 = 20;

#[derive(Debug, Default)]
struct Walks {
    /// When the last was over, and how long it took.
    last: Option<(Instant, Duration)>,
    under_way: usize,
}

impl Walks {
    fn is_due(&self, now: Instant) -> bool {
        self.under_way == 0 && self.last.is_none_or(|(end, took)| now.duration_since(end) >= took * (SHARE - 1))
    }
}

static WALKS: Mutex<Walks> = Mutex::new(Walks { last: None, under_way: 0 });

fn walks() -> MutexGuard<'static, Walks> {
    lock(&WALKS)
}

/// Whether walks have had less than their share.
pub fn is_due() -> bool {
    walks().is_due(Instant::now())
}

/// Runs a walk; the next limited one is delayed accordingly.
pub fn walk<T>(walk: impl FnOnce() -> T) -> T {
    struct UnderWay(Instant);
    impl Drop for UnderWay {
        fn drop(&mut self) {
            let mut walks = walks();
            walks.under_way -= 1;
            walks.last = Some((Instant::now(), self.0.elapsed()));
        }
    }
    walks().under_way += 1;
    let _under_way = UnderWay(Instant::now());
    walk()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_walk_is_due_after_nineteen_times_as_long() {
        let (end, took) = (Instant::now(), Duration::from_millis(100));
        let walks = Walks { last: Some((end, took)), under_way: 0 };
        assert!(!walks.is_due(end + Duration::from_millis(1899)));
        assert!(walks.is_due(end + Duration::from_millis(1900)));
        assert!(!Walks { under_way: 1, ..walks }.is_due(end + Duration::from_secs(3600)), "one is under way");
        assert!(Walks::default().is_due(end));
    }

    #[test]
    fn walks_count_whatever_thread_does_them() {
        assert!(!walk(is_due));
        walk(|| std::thread::sleep(Duration::from_millis(20)));
        assert!(!is_due());
    }
}
