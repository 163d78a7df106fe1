//! The report of a replay on a collector of MMTk.

use serde::{Deserialize, Serialize};

use super::{MmtkOption, Plan};
use crate::ops::Amount;

/// One pause of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// The last birth before the pause.
    pub operation: u64,
    /// Nanoseconds from the stop of the program to its resumption.
    pub nanos: u64,
    /// Nanoseconds of these spent by the replay itself: on listing roots and searching live objects that no root
    /// reaches.
    pub own_nanos: u64,
    /// Objects scanned; a plan with two closures scans each twice.
    pub scanned: Amount,
    /// Objects copied or moved.
    pub copied: Amount,
    /// Bytes of pages in use before the pause.
    pub used_before: u64,
    /// Bytes of pages in use after the pause.
    pub used_after: u64,
    /// Number of roots reported: targets of static fields, and live objects without references.
    pub roots: u64,
    /// Live objects that no root reaches.
    pub rescued: u64,
}

/// Distribution of pause times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lengths {
    /// Median.
    pub median: u64,
    /// 99th percentile.
    pub percentile99: u64,
    /// Maximum.
    pub max: u64,
    /// Sum.
    pub sum: u64,
}

impl Lengths {
    /// The distribution of these pause times.
    pub fn of(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        let at = |share: f64| {
            let rank = (share * nanos.len() as f64).ceil() as usize;
            nanos.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { median: at(0.5), percentile99: at(0.99), max: at(1.0), sum: nanos.iter().sum() }
    }
}

/// Result of the final collection, after the program's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Final {
    /// Live objects according to the trace.
    pub alive: Amount,
    /// Objects that the collector reached; must be equal to `alive`. `None` for a plan that does not collect.
    pub reached: Option<Amount>,
}

/// Result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectReport {
    /// The plan.
    pub plan: Plan,
    /// Heap size in bytes.
    pub heap: u64,
    /// Heap size as a multiple of the peak of live bytes.
    pub heap_of_peak: f64,
    /// Nursery size in bytes, if set.
    pub nursery: Option<u64>,
    /// Number of collector threads.
    pub gc_threads: usize,
    /// Options passed to MMTk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mmtk: Vec<MmtkOption>,
    /// Number of operations executed.
    pub operations: u64,
    /// Number of trace records that the operations stand for.
    pub records: u64,
    /// Seconds from the first operation to the last, pauses included.
    pub seconds: f64,
    /// Seconds without pauses.
    pub mutator_seconds: f64,
    /// Seconds of the pauses spent by the replay itself.
    pub own_seconds: f64,
    /// Number of pauses before the program's end.
    pub collections: u64,
    /// Pause times.
    pub pauses: Lengths,
    /// Objects scanned.
    pub scanned: Amount,
    /// Objects copied or moved.
    pub copied: Amount,
    /// Maximum bytes of pages in use, measured at the beginning and end of pauses.
    pub peak_used: u64,
    /// Roots, sum of all collections.
    pub roots: u64,
    /// Live objects that no root reached, sum of all collections.
    pub rescued: u64,
    /// Objects allocated.
    pub allocated: Amount,
    /// Objects enlarged to MMTk's minimum size, and the bytes added.
    pub grown: Amount,
    /// Whether each collection was checked.
    pub is_checked: bool,
    /// Result of the final collection.
    pub at_end: Final,
    /// The first pauses, one by one, and the final collection.
    pub each: Vec<Pause>,
}

impl CollectReport {
    /// Trace records replayed per second.
    pub fn records_per_second(&self) -> f64 {
        self.records as f64 / self.seconds.max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_lengths_that_there_are() {
        assert_eq!(Lengths::of(vec![]), Lengths::default());
        let of = |nanos: Vec<u64>| {
            let lengths = Lengths::of(nanos);
            (lengths.median, lengths.percentile99, lengths.max, lengths.sum)
        };
        assert_eq!(of(vec![7]), (7, 7, 7, 7));
        assert_eq!(of(vec![3, 1, 2]), (2, 3, 3, 6));
        assert_eq!(of(vec![4, 3, 1, 2]), (2, 4, 4, 10));
        assert_eq!(of((1..=200).rev().collect()), (100, 198, 200, 20100));
    }
}
