//! What a replay on a real collector came to.

use serde::{Deserialize, Serialize};

use super::{MmtkOption, Plan};
use crate::ops::Amount;

/// One pause of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// The last birth before it.
    pub operation: u64,
    /// From where the program begins to wait to where it may go on.
    pub nanos: u64,
    /// Of these what the replay needs for itself: to list roots, and to look for what no root leads to.
    pub own_nanos: u64,
    /// Objects that were scanned; plans that first mark and then move scan each twice.
    pub scanned: Amount,
    /// Objects that were copied or moved.
    pub copied: Amount,
    /// Bytes of the pages in use.
    pub used_before: u64,
    /// And afterwards.
    pub used_after: u64,
    /// Roots that were given: static fields, and objects without references.
    pub roots: u64,
    /// Objects that are alive, and that no root leads to.
    pub rescued: u64,
}

/// Lengths of pauses in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lengths {
    /// Half of them are no longer.
    pub median: u64,
    /// 99 of 100 are no longer.
    pub percentile99: u64,
    /// The longest.
    pub max: u64,
    /// All together.
    pub sum: u64,
}

impl Lengths {
    /// Of all pauses.
    pub fn of(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        let at = |share: f64| {
            let rank = (share * nanos.len() as f64).ceil() as usize;
            nanos.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { median: at(0.5), percentile99: at(0.99), max: at(1.0), sum: nanos.iter().sum() }
    }
}

/// What the last collection left, behind the program's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Final {
    /// What is alive in the trace.
    pub alive: Amount,
    /// What the collector reached: the same. Nothing of a plan that does not collect.
    pub reached: Option<Amount>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectReport {
    /// The collector.
    pub plan: Plan,
    /// Bytes of the heap.
    pub heap: u64,
    /// The same as a multiple of the most that is alive at a time.
    pub heap_of_peak: f64,
    /// Bytes for young objects, if they were said.
    pub nursery: Option<u64>,
    /// Number of collector threadsed.
    pub gc_threads: usize,
    /// What else MMTk was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mmtk: Vec<MmtkOption>,
    /// Operations that were done.
    pub operations: u64,
    /// Records of the trace that they stand for.
    pub records: u64,
    /// From the first operation to the last, pauses included.
    pub seconds: f64,
    /// Without pauses.
    pub mutator_seconds: f64,
    /// Of the pauses, what the replay needed for itself.
    pub own_seconds: f64,
    /// Pauses before the program's end.
    pub collections: u64,
    /// How long they were.
    pub pauses: Lengths,
    /// Objects that were scanned.
    pub scanned: Amount,
    /// Objects that were copied or moved.
    pub copied: Amount,
    /// The most bytes of pages in use, as far as the beginnings and ends of pauses tell.
    pub peak_used: u64,
    /// Roots of all collections.
    pub roots: u64,
    /// Objects of all collections that are alive, and that no root leads to.
    pub rescued: u64,
    /// What was allocated.
    pub allocated: Amount,
    /// Objects that had to be larger than in the trace, and by how much in all.
    pub grown: Amount,
    /// Whether each collection was checked.
    pub is_checked: bool,
    /// What the last collection found.
    pub at_end: Final,
    /// The first pauses, one by one; the last collection, behind the program's end, included.
    pub each: Vec<Pause>,
}

impl CollectReport {
    /// Records of the trace that were replayed in a second.
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
