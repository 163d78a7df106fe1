//! Log of collections.

use std::time::{Duration, Instant};

use et_simulate::mmtk::Pause;
use et_simulate::ops::Amount;

use crate::counters;

/// A collection that has begun.
#[derive(Debug)]
struct Begun {
    since: Instant,
    operation: u64,
    used: u64,
    totals: [Amount; 2],
}

/// Maximum number of pauses kept; further ones are only counted.
const MOST_KEPT: usize = 100_000;

#[derive(Debug, Default)]
pub struct Log {
    begun: Option<Begun>,
    /// Of the current collection.
    roots: u64,
    rescued: u64,
    own: Duration,
    /// The first pauses.
    pub pauses: Vec<Pause>,
    pub count: u64,
    pub lengths: Vec<u64>,
    pub sums: Sums,
    pub last: Option<Pause>,
}

/// Sums over all collections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub roots: u64,
    pub rescued: u64,
    pub own: Duration,
    pub scanned: Amount,
    pub copied: Amount,
    pub peak_used: u64,
}

fn between(before: Amount, after: Amount) -> Amount {
    Amount { objects: after.objects - before.objects, bytes: after.bytes - before.bytes }
}

fn sum(sum: &mut Amount, more: Amount) {
    sum.objects += more.objects;
    sum.bytes += more.bytes;
}

impl Log {
    /// A collection begins; the program has waited since `since`.
    pub fn begin(&mut self, since: Instant, operation: u64, used: u64) {
        self.sums.peak_used = self.sums.peak_used.max(used);
        self.begun = Some(Begun { since, operation, used, totals: counters::totals() });
        (self.roots, self.rescued, self.own) = (0, 0, Duration::ZERO);
    }

    /// Records the number of roots. Plans with two closures ask twice and get the same roots.
    pub fn roots(&mut self, count: u64, took: Duration) {
        self.roots = count;
        self.own += took;
    }

    /// Adds objects that were kept without being reachable from roots.
    pub fn rescued(&mut self, count: u64, took: Duration) {
        self.rescued += count;
        self.own += took;
    }

    /// The collection ends and the program continues.
    pub fn end(&mut self, used: u64) {
        let Some(begun) = self.begun.take() else { return };
        let [scanned, copied] = counters::totals();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let pause = Pause {
            operation: begun.operation,
            nanos: nanos(begun.since.elapsed()),
            own_nanos: nanos(self.own),
            scanned: between(begun.totals[0], scanned),
            copied: between(begun.totals[1], copied),
            used_before: begun.used,
            used_after: used,
            roots: self.roots,
            rescued: self.rescued,
        };
        self.count += 1;
        self.lengths.push(pause.nanos);
        let sums = &mut self.sums;
        sums.roots += pause.roots;
        sums.rescued += pause.rescued;
        sums.own += self.own;
        sum(&mut sums.scanned, pause.scanned);
        sum(&mut sums.copied, pause.copied);
        sums.peak_used = sums.peak_used.max(used);
        if self.pauses.len() < MOST_KEPT {
            self.pauses.push(pause);
        }
        self.last = Some(pause);
    }
}
