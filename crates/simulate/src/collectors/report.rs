//! The report of a simulation.

use std::fmt::Write;

use et_names::units::{bytes, number};
use serde::Serialize;

use super::Config;
use crate::events::EventCounts;
use crate::ops::Amount;

/// What part of the heap was collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CollectionKind {
    /// The whole heap.
    Full,
    /// The nursery.
    Minor,
}

/// One collection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Collection {
    /// Operation during which it ran.
    pub operation: u64,
    /// Clock of the trace in ticks, as of the last tick in the operations.
    pub tick: u64,
    /// What part of the heap was collected.
    pub kind: CollectionKind,
    /// Heap contents before, garbage included.
    pub before: Amount,
    /// Heap contents after.
    pub after: Amount,
    /// Objects reached and scanned.
    pub reached: Amount,
    /// Objects moved.
    pub moved: Amount,
    /// Number of roots: targets of static fields, and live objects without references from the heap; in a minor
    /// collection also old objects that refer to young ones.
    pub roots: u64,
    /// Live objects in cycles that are not reachable from roots; locals hold them.
    pub rescued: u64,
    /// Size in bytes of the largest object that fits afterwards without another collection.
    pub largest_free: u64,
    /// Free bytes afterwards.
    pub free: u64,
}

/// Result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Name of the collection scheme.
    pub collector: &'static str,
    /// Heap size in bytes.
    pub heap: u64,
    /// Nursery size in bytes, for the generational scheme.
    pub nursery: Option<u64>,
    /// Heap size as a multiple of the peak of live bytes.
    pub heap_of_peak: f64,
    /// Number of operations executed.
    pub operations: u64,
    /// Events sent, by kind.
    pub events: EventCounts,
    /// Number of full collections, including the final one after the program's end.
    pub full_collections: u64,
    /// Number of minor collections.
    pub minor_collections: u64,
    /// Objects reached, sum of all collections.
    pub reached: Amount,
    /// Objects moved, sum of all collections.
    pub moved: Amount,
    /// Objects freed, by a delete event or with their arena.
    pub freed: Amount,
    /// Objects held only by locals in cycles, sum of all collections.
    pub rescued: u64,
    /// Maximum of used bytes, garbage included.
    pub peak_bytes: u64,
    /// Heap contents after the final collection.
    pub at_end: Amount,
    /// Garbage left after the final collection: cycles, under reference counting.
    pub leaked: Amount,
    /// Worst fragmentation after a collection: the share of free bytes that is not available to one object without
    /// another collection.
    pub worst_fragmentation: f64,
    /// The first collections, one by one.
    pub collections: Vec<Collection>,
}

/// Maximum number of collections kept; further ones are only counted.
const MOST_KEPT: usize = 100_000;

impl Report {
    pub(super) fn new(config: &Config, peak: u64) -> Self {
        Self {
            collector: config.collector.name(),
            heap: config.heap,
            nursery: None,
            heap_of_peak: if peak == 0 { 0.0 } else { config.heap as f64 / peak as f64 },
            operations: 0,
            events: EventCounts::default(),
            full_collections: 0,
            minor_collections: 0,
            reached: Amount::default(),
            moved: Amount::default(),
            freed: Amount::default(),
            rescued: 0,
            peak_bytes: 0,
            at_end: Amount::default(),
            leaked: Amount::default(),
            worst_fragmentation: 0.0,
            collections: Vec::new(),
        }
    }

    pub(super) fn collected(&mut self, done: Collection) {
        match done.kind {
            CollectionKind::Full => self.full_collections += 1,
            CollectionKind::Minor => self.minor_collections += 1,
        }
        for (sum, one) in [(&mut self.reached, done.reached), (&mut self.moved, done.moved)] {
            sum.objects += one.objects;
            sum.bytes += one.bytes;
        }
        self.rescued += done.rescued;
        if done.free > 0 {
            let fragmentation = 1.0 - done.largest_free as f64 / done.free as f64;
            self.worst_fragmentation = self.worst_fragmentation.max(fragmentation);
        }
        if self.collections.len() < MOST_KEPT {
            self.collections.push(done);
        }
    }
}

/// A table with one row per report.
pub fn render(reports: &[Report]) -> String {
    let mut text = format!(
        "{:<18} {:>10} {:>6} {:>6} {:>6} {:>12} {:>10} {:>12} {:>10} {:>10} {:>7}\n",
        "collector", "heap", "times", "full", "minor", "moved", "bytes", "reached", "bytes", "leaked", "gaps"
    );
    for report in reports {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{:<18} {:>10} {:>6.2} {:>6} {:>6} {:>12} {:>10} {:>12} {:>10} {:>10} {:>7}",
            report.collector,
            bytes(report.heap),
            report.heap_of_peak,
            report.full_collections,
            report.minor_collections,
            number(report.moved.objects),
            bytes(report.moved.bytes),
            number(report.reached.objects),
            bytes(report.reached.bytes),
            bytes(report.leaked.bytes),
            // Fragmentation is measured at collections only.
            match report.full_collections + report.minor_collections {
                0 => "-".to_owned(),
                _ => format!("{:.1} %", 100.0 * report.worst_fragmentation),
            },
        );
    }
    text
}
