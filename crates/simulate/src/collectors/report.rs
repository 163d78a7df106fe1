//! What a simulation came to.

use std::fmt::Write;

use et_names::units::{bytes, number};
use serde::Serialize;

use super::Config;
use crate::events::EventCounts;
use crate::ops::Amount;

/// Which part of the heap was collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CollectionKind {
    /// All of it.
    Full,
    /// The arena of young objects.
    Minor,
}

/// One collection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Collection {
    /// During which operation.
    pub operation: u64,
    /// The trace's clock, as far as the operations tell it.
    pub tick: u64,
    /// What was collected.
    pub kind: CollectionKind,
    /// Objects in the heap before, garbage included.
    pub before: Amount,
    /// And after.
    pub after: Amount,
    /// Objects that were reached, and scanned.
    pub reached: Amount,
    /// Objects that were moved.
    pub moved: Amount,
    /// Roots: what static fields hold, and what nothing on the heap holds; of a minor collection also what old objects hold.
    pub roots: u64,
    /// Objects in cycles that no root leads to though they are alive: locals hold them.
    pub rescued: u64,
    /// Bytes of the largest object that there was room for afterwards, without another collection.
    pub largest_free: u64,
    /// Bytes that were free afterwards.
    pub free: u64,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The scheme.
    pub collector: &'static str,
    /// Bytes of the heap.
    pub heap: u64,
    /// Of these for young objects, if there are generations.
    pub nursery: Option<u64>,
    /// The same as a multiple of the most that is alive at a time.
    pub heap_of_peak: f64,
    /// Operations that were played.
    pub operations: u64,
    /// What was told.
    pub events: EventCounts,
    /// How many collections there were, the last one included, which is behind the program's end.
    pub full_collections: u64,
    /// How many of young objects only.
    pub minor_collections: u64,
    /// What all collections reached.
    pub reached: Amount,
    /// What all collections moved.
    pub moved: Amount,
    /// What was freed, by events of its own or with its arena.
    pub freed: Amount,
    /// What locals alone held, in all collections.
    pub rescued: u64,
    /// The most bytes in the heap, garbage included.
    pub peak_bytes: u64,
    /// Behind the last collection: what is in the heap.
    pub at_end: Amount,
    /// What is in the heap then although it is dead: cycles, where references are counted.
    pub leaked: Amount,
    /// Of the free bytes behind a collection, the share that the largest object without another collection cannot have; the worst.
    pub worst_fragmentation: f64,
    /// The first collections, one by one.
    pub collections: Vec<Collection>,
}

/// More collections than these are only counted.
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

/// A table, a row each.
pub fn render(reports: &[Report]) -> String {
    let mut text = format!(
        "{:<18} {:>10} {:>6} {:>6} {:>6} {:>12} {:>10} {:>12} {:>10} {:>10} {:>7}\n",
        "collector", "heap", "times", "full", "minor", "moved", "bytes", "reached", "bytes", "leaked", "gaps"
    );
    for report in reports {
        // Writing to a string does not fail.
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
            // Gaps are looked for in collections.
            match report.full_collections + report.minor_collections {
                0 => "-".to_owned(),
                _ => format!("{:.1} %", 100.0 * report.worst_fragmentation),
            },
        );
    }
    text
}
