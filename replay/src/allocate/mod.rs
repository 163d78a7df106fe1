//! Explicit memory: an allocation at each birth, a free at each death, and stores into the real memory between them. Which allocator
//! that is depends on the process: the system's, one that `LD_PRELOAD` put in its place, or one that is linked into `et-allocate`.

mod curve;

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use et_names::units::{bytes, number, seconds};
use serde::{Deserialize, Serialize};

use crate::ops::{Amount, ClassKind, Layout, Op, OpsError, OpsReader};

/// Memory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Behind which operation.
    pub operation: u64,
    /// Bytes of the objects that are alive.
    pub live_bytes: u64,
    /// Bytes of the process that are in memory, without what it had before the first allocation.
    pub footprint_bytes: u64,
}

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocateReport {
    /// How the allocator is called.
    pub allocator: String,
    /// Operations that were done.
    pub operations: u64,
    /// Allocations and frees.
    pub calls: u64,
    /// From the first operation to the last, the looks at the footprint left out.
    pub seconds: f64,
    /// Bytes that were asked for.
    pub allocated: Amount,
    /// The most that was alive at a time.
    pub peak_live_bytes: u64,
    /// The most that was in memory, as far as samples tell.
    pub peak_footprint_bytes: u64,
    /// What is alive and in memory behind the last operation.
    pub at_end: Option<Sample>,
    /// Over time.
    pub samples: Vec<Sample>,
}

/// So many samples, if there are enough operations.
const SAMPLES: u64 = 256;
/// So many operations are between two samples at least.
const BETWEEN: u64 = 1 << 14;

/// A debugger, a simulator of machines or a profiler may stop here: the first operation is next. Nothing was printed so far, and nothing is
/// until [`et_replay_region_end`].
#[inline(never)]
#[allow(unsafe_code, reason = "its name is what tools look for")]
#[unsafe(no_mangle)]
pub extern "C" fn et_replay_region_begin() {
    black_box(());
}

/// The last operation is done.
#[inline(never)]
#[allow(unsafe_code, reason = "its name is what tools look for")]
#[unsafe(no_mangle)]
pub extern "C" fn et_replay_region_end() {
    black_box(());
}

pub use curve::draw;

/// Gives out memory.
pub trait Allocator {
    /// The memory of one object, in words; freed when it is dropped. Its default is no memory.
    type Block: AsRef<[u32]> + AsMut<[u32]> + Default;

    /// So many words that hold `fill`; `None`: there is no room.
    fn allocate(words: usize, fill: u32) -> Option<Self::Block>;
}

/// What `malloc` is in this process.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Allocator for System {
    type Block = Vec<u32>;

    fn allocate(words: usize, fill: u32) -> Option<Vec<u32>> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(words).ok()?;
        memory.resize(words, fill);
        Some(memory)
    }
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AllocateError {
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error("{allocator} has no room for an object of {size}, at operation {operation}", size = bytes(*size))]
    NoRoom { allocator: String, size: u64, operation: u64 },
}

/// Whether all libraries that `LD_PRELOAD` names are in this process: the loader leaves out what it cannot use, and goes on.
pub fn not_preloaded() -> Option<String> {
    let wanted = std::env::var("LD_PRELOAD").unwrap_or_default();
    let loaded = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let is_there = |library: &str| loaded.lines().any(|line| line.ends_with(library));
    wanted.split([':', ' ']).find(|library| !library.is_empty() && !is_there(library)).map(str::to_owned)
}

/// Bytes of this process that are in memory; 0 if the system does not say.
fn footprint() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    1024 * kilobytes.unwrap_or(0u64)
}

/// Does all operations in this process.
pub fn allocate<A: Allocator>(ops: &mut OpsReader, allocator: &str) -> Result<AllocateReport, AllocateError> {
    ops.rewind()?;
    let (layout, totals) = (ops.tables().layout, ops.tables().totals);
    let is_array: Vec<bool> = ops.tables().classes.iter().map(|class| class.kind != ClassKind::Scalar).collect();
    let mut report = AllocateReport {
        allocator: allocator.to_owned(),
        peak_live_bytes: totals.peak.bytes,
        allocated: totals.allocated,
        samples: Vec::with_capacity(SAMPLES as usize + 2),
        ..AllocateReport::default()
    };
    let every = (totals.operations / SAMPLES).max(BETWEEN);
    // Of what is there before the first call nothing is the allocator's.
    let mut objects: Vec<(A::Block, bool)> = Vec::new();
    objects.resize_with(ops.tables().handles as usize + 1, Default::default);
    let mut statics = vec![0u32; ops.tables().static_fields as usize];
    let mut live = 0;
    let before = footprint();
    let mut begun = Instant::now();
    let sample =
        |operation, live_bytes| Sample { operation, live_bytes, footprint_bytes: footprint().saturating_sub(before) };
    et_replay_region_begin();
    while let Some(op) = ops.next_op()? {
        match op {
            Op::Birth { handle, class, size, .. } => {
                if size == 0 || is_there(&objects[handle as usize]) {
                    return Err(ops.damaged().into());
                }
                // Touched as a constructor touches it. Not zero: that could be left to the system.
                let memory = usize::try_from(size / 4).ok().and_then(|words| A::allocate(words, handle | 1));
                let Some(memory) = memory else {
                    let (allocator, operation) = (allocator.to_owned(), report.operations);
                    return Err(AllocateError::NoRoom { allocator, size, operation });
                };
                live += size;
                objects[handle as usize] = (memory, is_array[class as usize]);
                report.calls += 1;
            }
            Op::Death { handle } => {
                if !is_there(&objects[handle as usize]) {
                    return Err(ops.damaged().into());
                }
                let (memory, _) = std::mem::take(&mut objects[handle as usize]);
                live -= 4 * memory.as_ref().len() as u64;
                report.calls += 1;
            }
            Op::Update { origin, slot, target } => {
                let (memory, is_array) = &mut objects[origin as usize];
                if let Some(word) = memory.as_mut().get_mut(word_of(&layout, *is_array, slot)) {
                    *word = target;
                }
            }
            Op::UpdateStatic { field, target } => statics[field as usize] = target,
            Op::Touch { handle } => _ = black_box(objects[handle as usize].0.as_ref().first().copied()),
            Op::Thread { .. } | Op::Tick { .. } => {}
        }
        report.operations += 1;
        if report.operations.is_multiple_of(every) {
            report.seconds += begun.elapsed().as_secs_f64();
            report.samples.push(sample(report.operations - 1, live));
            begun = Instant::now();
        }
    }
    et_replay_region_end();
    report.seconds += begun.elapsed().as_secs_f64();
    black_box(statics);
    let last = sample(report.operations.saturating_sub(1), live);
    report.samples.push(last);
    report.at_end = Some(last);
    report.peak_footprint_bytes = report.samples.iter().map(|sample| sample.footprint_bytes).max().unwrap_or(0);
    Ok(report)
}

/// Whether a handle names an object.
#[inline]
fn is_there<B: AsRef<[u32]>>(object: &(B, bool)) -> bool {
    !object.0.as_ref().is_empty()
}

#[inline]
fn word_of(layout: &Layout, is_array: bool, slot: u32) -> usize {
    (layout.slot(is_array, slot) / 4) as usize
}

/// A table, a row each.
pub fn render(reports: &[AllocateReport]) -> String {
    let mut text = format!(
        "{:<16} {:>10} {:>14} {:>12} {:>12} {:>7} {:>12}\n",
        "allocator", "time", "calls/s", "live", "footprint", "times", "at the end"
    );
    for report in reports {
        let per_second = report.calls as f64 / report.seconds.max(1e-9);
        let times = report.peak_footprint_bytes as f64 / report.peak_live_bytes.max(1) as f64;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<16} {:>10} {:>14} {:>12} {:>12} {:>7.2} {:>12}",
            report.allocator,
            seconds(report.seconds),
            number(per_second as u64),
            bytes(report.peak_live_bytes),
            bytes(report.peak_footprint_bytes),
            times,
            bytes(report.at_end.map_or(0, |end| end.footprint_bytes)),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{death, node, nodes, put, put_static, reader_of};

    #[test]
    fn what_is_alive_is_in_memory() {
        // A megabyte in large pieces, half of which goes.
        let mut ops: Vec<Op> = (1..=16).map(|handle| nodes(handle, 16 * 1024)).collect();
        ops.extend([put(1, 16 * 1024 - 1, 2), put_static(0, 1), node(17), put(17, 0, 1), Op::Touch { handle: 17 }]);
        ops.extend((9..=16).map(death));
        let report = allocate::<System>(&mut reader_of(&ops), "system").unwrap();
        assert_eq!((report.operations, report.calls), (29, 16 + 1 + 8));
        let end = report.at_end.unwrap();
        assert_eq!((end.live_bytes, end.operation), (8 * (16 + 64 * 1024) + 16, 28));
        let svg = draw("t", std::slice::from_ref(&report));
        assert!(svg.starts_with("<svg") && svg.contains("system"), "{svg}");
        assert!(report.seconds > 0.0 && render(&[report]).contains("system"));
    }
    #[test]
    fn what_makes_no_sense_or_has_no_room_is_refused() {
        for ops in [vec![node(1), node(1)], vec![node(1), death(1), death(1)]] {
            let error = allocate::<System>(&mut reader_of(&ops), "system").unwrap_err().to_string();
            assert!(error.contains("makes no sense"), "{error}");
        }
        struct Nothing;
        impl Allocator for Nothing {
            type Block = Vec<u32>;

            fn allocate(_words: usize, _fill: u32) -> Option<Vec<u32>> {
                None
            }
        }
        let error = allocate::<Nothing>(&mut reader_of(&[node(1)]), "nothing").unwrap_err().to_string();
        assert_eq!(error, "nothing has no room for an object of 16 B, at operation 0");
    }
}
