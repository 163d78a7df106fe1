//! When to look at what has survived (`survival=5`): after collections, as long as that takes no more than a share of the
//! time.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use et_jvm::sync::{lock, unpoisoned};

/// How long the end waits for a walk. A debugger may have stopped its thread.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a walk is expected to take before there has been one, in nanoseconds per byte in use.
const FIRST_GUESS: f64 = 1.0;

/// Coordinates collections, the thread that walks, and the end.
#[derive(Debug)]
pub struct Survival {
    /// The share of the time that walks may take, in percent.
    percent: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Number of collections that have finished.
    finished: u64,
    /// Number of them when the last walk began.
    looked_at: u64,
    is_walking: bool,
    is_over: bool,
    /// The trace has failed: not even the end is of interest.
    has_failed: bool,
}

/// Is dropped when a walk has ended.
#[derive(Debug)]
pub struct Walking<'a>(&'a Survival);

impl Drop for Walking<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).is_walking = false;
        self.0.changed.notify_all();
    }
}

impl Survival {
    /// Walks may take that share of the time, in percent.
    pub fn new(percent: u32) -> Self {
        Self { percent, state: Mutex::default(), changed: Condvar::new() }
    }

    /// How much time walks may take, from now on.
    pub fn budget(&self) -> Budget {
        Budget { percent: self.percent, free_since: Instant::now(), debt: Duration::ZERO, rate: FIRST_GUESS }
    }

    /// A collection has finished. May be called at a safepoint: it only sets a flag.
    pub fn collected(&self) {
        lock(&self.state).finished += 1;
        self.changed.notify_all();
    }

    /// Waits for a collection that no walk has looked at. False if there will be no more walks.
    pub fn wait_for_collection(&self) -> bool {
        let is_idle = |state: &mut State| state.finished == state.looked_at && !state.is_over;
        !unpoisoned(self.changed.wait_while(lock(&self.state), is_idle)).is_over
    }

    /// Waits for that time, and begins a walk. `None` if there will be no more.
    pub fn begin_after(&self, time: Duration) -> Option<Walking<'_>> {
        let waited = self.changed.wait_timeout_while(lock(&self.state), time, |state| !state.is_over);
        let mut state = unpoisoned(waited).0;
        if state.is_over {
            return None;
        }
        (state.is_walking, state.looked_at) = (true, state.finished);
        Some(Walking(self))
    }

    /// The trace has failed: there are no more walks. Waits for nothing.
    pub fn stop(&self) {
        let mut state = lock(&self.state);
        (state.is_over, state.has_failed) = (true, true);
        self.changed.notify_all();
    }

    /// There are no more walks, and the one that has begun is over. Returns whether the last may follow.
    pub fn end(&self) -> bool {
        let mut state = lock(&self.state);
        state.is_over = true;
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |state| state.is_walking);
        !unpoisoned(waited).0.has_failed
    }
}

/// How much time walks may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    percent: u32,
    /// When the last walk ended.
    free_since: Instant,
    /// By how much the last walks came too early, since they took longer than expected.
    debt: Duration,
    /// What walks take, in nanoseconds per byte in use.
    rate: f64,
}

impl Budget {
    /// How long to wait from `now` before a walk, with that many bytes in use.
    pub fn wait(&self, used: u64, now: Instant) -> Duration {
        let expected = Duration::from_nanos((self.rate * used as f64) as u64);
        (self.rest_for(expected) + self.debt).saturating_sub(now.duration_since(self.free_since))
    }

    /// A walk has taken the time from `begin` to `end`, with that many bytes in use.
    pub fn spent(&mut self, used: u64, begin: Instant, end: Instant) {
        let taken = end.duration_since(begin);
        let rested = begin.duration_since(self.free_since);
        self.debt = (self.rest_for(taken) + self.debt).saturating_sub(rested);
        self.free_since = end;
        if used > 0 {
            self.rate = taken.as_nanos() as f64 / used as f64;
        }
    }

    /// The time without walks that belongs to a walk of that length.
    fn rest_for(&self, walk: Duration) -> Duration {
        walk * (100 - self.percent) / self.percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const MILLI: Duration = Duration::from_millis(1);

    /// Walks that take `cost(n)`, each as soon as it may, and the share of the time that they have taken when each began.
    fn shares(percent: u32, used: impl Fn(u32) -> u64, cost: impl Fn(u32) -> Duration) -> Vec<f64> {
        let mut budget = Survival::new(percent).budget();
        let start = budget.free_since;
        let (mut now, mut spent) = (start, Duration::ZERO);
        (0..20)
            .map(|n| {
                now += budget.wait(used(n), now);
                let share = spent.as_secs_f64() / now.duration_since(start).as_secs_f64();
                let end = now + cost(n);
                budget.spent(used(n), now, end);
                (now, spent) = (end, spent + cost(n));
                share
            })
            .collect()
    }

    #[test]
    fn walks_take_their_share_and_no_more() {
        let mega = 1 << 20;
        for shares in [
            shares(5, |_| 100 * mega, |_| 50 * MILLI),
            // The heap grows, a walk takes ten times as long as expected, or less.
            shares(5, |n| u64::from(n + 1) * 10 * mega, |n| MILLI * (n + 1) * 5),
            shares(5, |_| 10 * mega, |n| if n % 3 == 0 { 100 * MILLI } else { 10 * MILLI }),
        ] {
            assert!(shares.iter().all(|share| *share <= 0.05 + 1e-9), "{shares:?}");
            assert!(shares[19] > 0.02, "{shares:?}");
        }
        assert!(shares(50, |_| mega, |_| MILLI)[19] > 0.4);
    }

    #[test]
    fn a_long_rest_is_not_made_up_for() {
        let mut budget = Survival::new(10).budget();
        let later = budget.free_since + Duration::from_secs(3600);
        assert_eq!(budget.wait(1 << 30, later), Duration::ZERO);
        budget.spent(1 << 30, later, later + Duration::from_secs(1));
        assert_eq!(budget.wait(1 << 30, later + Duration::from_secs(1)).as_secs_f64().round(), 9.0);
    }

    #[test]
    fn several_collections_are_looked_at_together() {
        let survival = Survival::new(5);
        survival.collected();
        survival.collected();
        assert!(survival.wait_for_collection());
        drop(survival.begin_after(Duration::ZERO).unwrap());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| survival.wait_for_collection());
            thread::sleep(20 * MILLI);
            assert!(!waiting.is_finished());
            survival.collected();
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn a_trace_that_has_failed_has_no_walks() {
        let survival = Survival::new(5);
        survival.collected();
        survival.stop();
        assert!(!survival.wait_for_collection());
        assert!(survival.begin_after(Duration::from_secs(3600)).is_none());
        assert!(!survival.end(), "nor a last one");
    }

    #[test]
    fn the_end_waits_for_a_walk() {
        let survival = Survival::new(5);
        survival.collected();
        let walking = survival.begin_after(Duration::ZERO).unwrap();
        thread::scope(|scope| {
            let ends = scope.spawn(|| survival.end());
            thread::sleep(20 * MILLI);
            assert!(!ends.is_finished());
            drop(walking);
            assert!(ends.join().unwrap());
        });
        assert!(!survival.wait_for_collection());
        assert!(survival.begin_after(Duration::from_secs(3600)).is_none(), "at once");
    }
}
