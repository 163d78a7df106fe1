//! Replay with explicit memory management: an allocation at each birth, a free at each death, and stores into the real
//! memory between them. The allocator is that of the process: the system's, one loaded by `LD_PRELOAD`, or one linked
//! into `et-allocate`.

mod counters;

use std::ffi::OsStr;
use std::fmt::Write;
use std::hint::black_box;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use et_names::units::{bytes, number, seconds};
use serde::{Deserialize, Serialize};

use crate::collectors::{Access, Observer, Phase};
use crate::ops::{Amount, ClassKind, Op, OpsError, OpsReader};
pub use counters::Counter;
use counters::Counters;

/// Memory use at one point of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// The operation after which it was measured.
    pub operation: u64,
    /// Bytes of live objects.
    pub live_bytes: u64,
    /// Resident bytes of the process, minus those before the first allocation.
    pub footprint_bytes: u64,
}

/// Result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocateReport {
    /// Name of the allocator.
    pub allocator: String,
    /// Number of operations executed.
    pub operations: u64,
    /// Number of allocations and frees.
    pub calls: u64,
    /// Seconds from the first operation to the last, without the time for samples.
    pub seconds: f64,
    /// Objects and bytes requested.
    pub allocated: Amount,
    /// Maximum of live bytes.
    pub peak_live_bytes: u64,
    /// Maximum of resident bytes over all samples.
    pub peak_footprint_bytes: u64,
    /// Memory use after the last operation.
    pub at_end: Option<Sample>,
    /// Memory use over time.
    pub samples: Vec<Sample>,
    /// Hardware counters from the first operation to the last; empty if not available.
    pub counters: Vec<Counter>,
    /// Why there are no hardware counters.
    pub no_counters: Option<String>,
}

/// Number of samples, if there are enough operations.
const SAMPLES: u64 = 256;
/// Minimum number of operations between two samples.
const BETWEEN: u64 = 1 << 14;

/// Called right before the first operation; a place for a breakpoint of a debugger, simulator or profiler. Nothing is
/// printed before [`et_replay_region_end`].
#[inline(never)]
#[allow(unsafe_code, reason = "its name is what tools look for")]
#[unsafe(no_mangle)]
pub extern "C" fn et_replay_region_begin() {
    black_box(());
}

/// Called right after the last operation.
#[inline(never)]
#[allow(unsafe_code, reason = "its name is what tools look for")]
#[unsafe(no_mangle)]
pub extern "C" fn et_replay_region_end() {
    black_box(());
}

/// A memory allocator.
pub trait Allocator {
    /// Memory of one object, in 32-bit words; dropping it frees the memory. The default has none.
    type Block: AsRef<[u32]> + AsMut<[u32]> + Default;

    /// Allocates that many words, each set to `fill`; `None` if out of memory.
    fn allocate(words: usize, fill: u32) -> Option<Self::Block>;
}

/// `malloc` of this process.
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

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AllocateError {
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error("{allocator} cannot allocate an object of {size}, at operation {operation}", size = bytes(*size))]
    NoRoom { allocator: String, size: u64, operation: u64 },
}

/// The first library named by `LD_PRELOAD` that is not in this process: the dynamic loader skips what it cannot load.
pub fn not_preloaded() -> Option<String> {
    let wanted = std::env::var("LD_PRELOAD").unwrap_or_default();
    let loaded = mapped();
    let is_there =
        |library: &str| loaded.iter().any(|(_, file)| file.as_os_str().as_bytes().ends_with(library.as_bytes()));
    wanted.split([':', ' ']).find(|library| !library.is_empty() && !is_there(library)).map(str::to_owned)
}

/// Whether `malloc` of this process is that of the C library and not a replacement.
pub fn is_usual_malloc() -> bool {
    let loaded = mapped();
    let file = |address: usize| loaded.iter().find(|(range, _)| range.contains(&address)).map(|(_, file)| file);
    let (malloc, getpid) =
        (file(c_library::malloc as *const () as usize), file(c_library::getpid as *const () as usize));
    malloc.is_some() && malloc == getpid
}

/// Address ranges of the files mapped into this process.
fn mapped() -> Vec<(Range<usize>, PathBuf)> {
    let place = |line: &[u8]| -> Option<(Range<usize>, PathBuf)> {
        let path = &line[line.iter().position(|&byte| byte == b'/')?..];
        let (begin, end) = std::str::from_utf8(line.split(|&byte| byte == b' ').next()?).ok()?.split_once('-')?;
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        Some((address(begin)?..address(end)?, PathBuf::from(OsStr::from_bytes(path))))
    };
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    maps.split(|&byte| byte == b'\n').filter_map(place).collect()
}

/// Functions of the C library; only their addresses are taken.
#[allow(unsafe_code, reason = "they are not called")]
mod c_library {
    unsafe extern "C" {
        pub fn malloc(bytes: usize) -> *mut std::ffi::c_void;
        pub fn getpid() -> i32;
    }
}

/// Resident bytes of this process; 0 if unknown.
fn footprint() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    1024 * kilobytes.unwrap_or(0u64)
}

/// State of one object.
struct Object<B> {
    block: B,
    class: u32,
    site: u32,
}

impl<B: Default> Default for Object<B> {
    fn default() -> Self {
        Self { block: B::default(), class: 0, site: 0 }
    }
}

impl<B: AsRef<[u32]>> Object<B> {
    #[inline]
    fn is_there(&self) -> bool {
        !self.block.as_ref().is_empty()
    }

    /// Reports an access to bytes of the object.
    #[inline]
    fn access<O: Observer>(&self, observer: &mut O, offset: u64, bytes: u64, is_write: bool) {
        if O::ACCESSES {
            let address = self.block.as_ref().as_ptr() as u64 + offset;
            let (phase, class, site) = (Phase::Mutator, self.class, self.site);
            observer.access(&Access { address, bytes, is_write, phase, class, site });
        }
    }
}

/// Executes all operations in this process.
pub fn allocate<A: Allocator>(ops: &mut OpsReader, allocator: &str) -> Result<AllocateReport, AllocateError> {
    watched::<A, ()>(ops, allocator, &mut ())
}

/// As [`allocate`], and reports to `observer` each read and write of the program at the address the allocator chose.
/// Accesses by the allocator itself are not observed.
pub fn watched<A: Allocator, O: Observer>(
    ops: &mut OpsReader,
    allocator: &str,
    observer: &mut O,
) -> Result<AllocateReport, AllocateError> {
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
    // What is resident before the first call does not belong to the allocator.
    let mut objects: Vec<Object<A::Block>> = Vec::new();
    objects.resize_with(ops.tables().handles as usize + 1, Default::default);
    let mut statics = vec![0u32; ops.tables().static_fields as usize];
    let mut live = 0;
    let mut counters = Counters::open();
    let before = footprint();
    let mut begun = Instant::now();
    let sample =
        |operation, live_bytes| Sample { operation, live_bytes, footprint_bytes: footprint().saturating_sub(before) };
    counters.start();
    et_replay_region_begin();
    while let Some(op) = ops.next_op()? {
        match op {
            Op::Birth { handle, class, size, site, .. } => {
                if size == 0 || objects[handle as usize].is_there() {
                    return Err(ops.damaged().into());
                }
                // Written as by a constructor. Not zero: zero pages could be left to the system.
                let block = usize::try_from(size / 4).ok().and_then(|words| A::allocate(words, handle | 1));
                let Some(block) = block else {
                    let (allocator, operation) = (allocator.to_owned(), report.operations);
                    return Err(AllocateError::NoRoom { allocator, size, operation });
                };
                live += size;
                let object = Object { block, class, site };
                object.access(observer, 0, size, true);
                objects[handle as usize] = object;
                report.calls += 1;
            }
            Op::Death { handle } => {
                if !objects[handle as usize].is_there() {
                    return Err(ops.damaged().into());
                }
                let object = std::mem::take(&mut objects[handle as usize]);
                live -= 4 * object.block.as_ref().len() as u64;
                report.calls += 1;
            }
            Op::Update { origin, slot, target } => {
                let object = &mut objects[origin as usize];
                let is_array = is_array.get(object.class as usize).is_some_and(|&is_array| is_array);
                let at = layout.slot(is_array, slot);
                if let Some(word) = object.block.as_mut().get_mut((at / 4) as usize) {
                    *word = target;
                    object.access(observer, at, layout.reference_bytes.into(), true);
                }
            }
            Op::UpdateStatic { field, target } => statics[field as usize] = target,
            Op::Touch { handle } => {
                let object = &objects[handle as usize];
                _ = black_box(object.block.as_ref().first().copied());
                object.access(observer, 0, layout.header_bytes.into(), false);
            }
            Op::Thread { .. } | Op::Tick { .. } => {}
        }
        report.operations += 1;
        if report.operations.is_multiple_of(every) {
            report.seconds += begun.elapsed().as_secs_f64();
            counters.pause();
            report.samples.push(sample(report.operations - 1, live));
            counters.start();
            begun = Instant::now();
        }
    }
    et_replay_region_end();
    report.seconds += begun.elapsed().as_secs_f64();
    counters.pause();
    (report.counters, report.no_counters) = counters.read();
    black_box(statics);
    let last = sample(report.operations.saturating_sub(1), live);
    report.samples.push(last);
    report.at_end = Some(last);
    report.peak_footprint_bytes = report.samples.iter().map(|sample| sample.footprint_bytes).max().unwrap_or(0);
    Ok(report)
}

/// A table with one row per report.
pub fn render(reports: &[AllocateReport]) -> String {
    let mut text = format!(
        "{:<16} {:>10} {:>14} {:>12} {:>12} {:>7} {:>12}\n",
        "allocator", "time", "calls/s", "live", "footprint", "times", "at the end"
    );
    for report in reports {
        let per_second = report.calls as f64 / report.seconds.max(1e-9);
        let times = report.peak_footprint_bytes as f64 / report.peak_live_bytes.max(1) as f64;
        // Writing to a `String` cannot fail.
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
    text + &counters::render(reports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{death, node, nodes, put, put_static, reader_of};

    #[test]
    fn what_is_alive_is_in_memory() {
        // 1 MiB in large objects; half of them die.
        let mut ops: Vec<Op> = (1..=16).map(|handle| nodes(handle, 16 * 1024)).collect();
        ops.extend([put(1, 16 * 1024 - 1, 2), put_static(0, 1), node(17), put(17, 0, 1), Op::Touch { handle: 17 }]);
        ops.extend((9..=16).map(death));
        let report = allocate::<System>(&mut reader_of(&ops), "system").unwrap();
        assert_eq!((report.operations, report.calls), (29, 16 + 1 + 8));
        let end = report.at_end.unwrap();
        assert_eq!((end.live_bytes, end.operation), (8 * (16 + 64 * 1024) + 16, 28));
        assert!(report.seconds > 0.0 && render(&[report]).contains("system"));
    }

    /// Reads and writes of the program are observed at the addresses that the allocator chose.
    #[test]
    fn what_the_program_touches_is_told() {
        #[derive(Default)]
        struct Told(Vec<Access>);

        impl Observer for Told {
            const ACCESSES: bool = true;

            fn event(&mut self, _operation: u64, _event: &crate::events::Event) {}

            fn access(&mut self, access: &Access) {
                self.0.push(*access);
            }
        }

        let ops =
            [nodes(1, 10), node(2), put(1, 3, 2), put_static(0, 1), Op::Touch { handle: 1 }, put(1, 3, 0), death(2)];
        let mut told = Told::default();
        let report = watched::<System, _>(&mut reader_of(&ops), "system", &mut told).unwrap();
        assert_eq!((report.operations, report.calls), (7, 3));
        let at = told.0[0].address;
        let offsets = |access: &Access| (access.address.wrapping_sub(at), access.bytes, access.is_write, access.class);
        let [array, node, stored, touched, again] = &told.0[..] else { panic!("{:?}", told.0) };
        assert_eq!(offsets(array), (0, 56, true, 1));
        assert_eq!((node.bytes, node.is_write, node.class), (16, true, 0));
        assert!(node.address >= at + 56 || node.address + 16 <= at, "{node:?} is in {array:?}");
        assert_eq!(offsets(stored), (16 + 3 * 4, 4, true, 1));
        assert_eq!(offsets(touched), (0, 12, false, 1));
        assert_eq!(stored, again);
    }

    #[test]
    fn what_makes_no_sense_or_has_no_room_is_refused() {
        for ops in [vec![node(1), node(1)], vec![node(1), death(1), death(1)]] {
            let error = allocate::<System>(&mut reader_of(&ops), "system").unwrap_err().to_string();
            assert!(error.contains("is invalid"), "{error}");
        }
        struct Nothing;
        impl Allocator for Nothing {
            type Block = Vec<u32>;

            fn allocate(_words: usize, _fill: u32) -> Option<Vec<u32>> {
                None
            }
        }
        let error = allocate::<Nothing>(&mut reader_of(&[node(1)]), "nothing").unwrap_err().to_string();
        assert_eq!(error, "nothing cannot allocate an object of 16 B, at operation 0");
    }
}
