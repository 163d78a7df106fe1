//! Simulated collectors: the five classic schemes, with the events that each sends to a profiler according to the
//! JVMPI specification ("GC-independent events"). The simulation is deterministic and does not touch simulated memory:
//! addresses are only numbers.

mod copying;
mod counting;
mod free_list;
mod generational;
mod mark_compact;
mod mark_sweep;
mod report;
mod slots;
mod space;
mod world;

use std::fmt;
use std::str::FromStr;

use et_names::size::{WRONG_SIZE, size};
use et_names::units::bytes;
use thiserror::Error;

use crate::events::Event;
use crate::ops::{Amount, OpsError, OpsReader, Peak};
pub use report::{Collection, CollectionKind, Report, render};
use world::World;

/// A collection scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collector {
    /// One arena; dead objects return to the free list.
    MarkSweep,
    /// One arena; live objects slide to its beginning.
    MarkCompact,
    /// Two arenas; live objects are copied to the other one, and the first is deleted and created again.
    Copying,
    /// One arena for young objects and one for old objects.
    Generational,
    /// One arena; an object is freed when its reference count drops to zero.
    ReferenceCounting,
}

impl Collector {
    /// All schemes.
    pub const ALL: [Self; 5] =
        [Self::MarkSweep, Self::MarkCompact, Self::Copying, Self::Generational, Self::ReferenceCounting];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::MarkSweep => "mark-sweep",
            Self::MarkCompact => "mark-compact",
            Self::Copying => "copying",
            Self::Generational => "generational",
            Self::ReferenceCounting => "reference-counting",
        }
    }
}

impl FromStr for Collector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|collector| collector.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("there are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Maximum heap size, which keeps addresses in range.
const MOST_HEAP: u64 = 1 << 46;

/// A heap size in bytes, or as a multiple of the peak of live bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeapSize {
    /// Bytes, for example `64m`.
    Bytes(u64),
    /// Multiple of the peak, for example `2x`.
    Times(f64),
}

impl HeapSize {
    /// As written on the command line, exact to the byte.
    pub fn typed(self) -> String {
        match self {
            Self::Bytes(bytes) if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
            Self::Bytes(bytes) => bytes.to_string(),
            Self::Times(times) => format!("{times}x"),
        }
    }

    /// The size in bytes, rounded to a multiple of 16.
    pub fn bytes(self, peak: &Peak) -> u64 {
        let bytes = match self {
            Self::Bytes(bytes) => bytes,
            Self::Times(times) => (peak.bytes as f64 * times) as u64,
        };
        (bytes.min(MOST_HEAP) / 16 * 16).max(16)
    }
}

impl FromStr for HeapSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{WRONG_SIZE}; or a multiple of the peak of live bytes, as in 2x");
        if let Some(times) = text.strip_suffix(['x', 'X']) {
            let is_plain = times.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.' || digit == b'e');
            let times = times.parse::<f64>().ok().filter(|times| is_plain && times.is_finite() && *times > 0.0);
            return times.map(Self::Times).ok_or_else(wrong);
        }
        let bytes = size(text).filter(|bytes| (1..=MOST_HEAP).contains(bytes));
        bytes.map(Self::Bytes).ok_or_else(wrong)
    }
}

impl fmt::Display for HeapSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(number) => f.write_str(&bytes(*number)),
            Self::Times(times) => write!(f, "{times}x"),
        }
    }
}

/// Configuration of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The collection scheme.
    pub collector: Collector,
    /// Bytes of all arenas together.
    pub heap: u64,
    /// Bytes of the nursery, for the generational scheme; by default a quarter of the heap.
    pub nursery: Option<u64>,
    /// Whether a backup trace collects cycles when the heap is full, for reference counting.
    pub backup_trace: bool,
}

impl Config {
    /// Whether this configuration is valid.
    pub fn check(&self) -> Result<(), SimulateError> {
        let nursery = self.nursery.filter(|_| self.collector == Collector::Generational);
        Ok(NurseryTooLarge::check(nursery, self.heap)?)
    }

    /// The default configuration of a collector with a heap of that many bytes.
    pub fn new(collector: Collector, heap: u64) -> Self {
        Self { collector, heap, nursery: None, backup_trace: false }
    }
}

/// The nursery leaves no room for an old generation.
#[derive(Clone, Copy, Debug, Error)]
#[error("a nursery of {nursery} does not fit into a heap of {heap}", nursery = bytes(*nursery), heap = bytes(*heap))]
pub struct NurseryTooLarge {
    nursery: u64,
    heap: u64,
}

impl NurseryTooLarge {
    /// Whether the nursery, if one is given, fits into the heap.
    pub fn check(nursery: Option<u64>, heap: u64) -> Result<(), Self> {
        nursery.filter(|&nursery| nursery >= heap).map_or(Ok(()), |nursery| Err(Self { nursery, heap }))
    }
}

/// Why a simulation failed.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum SimulateError {
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// The next object does not fit, even after a full collection.
    #[error("a heap of {heap} is too small for {collector}: at operation {operation} there is no room for an object of {wanted}", heap = bytes(*heap), collector = collector.name(), wanted = bytes(*wanted))]
    TooSmall { collector: Collector, heap: u64, operation: u64, wanted: u64 },
    #[error(transparent)]
    Nursery(#[from] NurseryTooLarge),
    /// The collector reaches other objects than those alive according to the operations.
    #[error(
        "operation {operation}: a collection reaches {reached} objects, but {alive} are alive: the operations are inconsistent"
    )]
    Contradiction { operation: u64, reached: u64, alive: u64 },
    /// The observer asked to stop.
    #[error("stopped")]
    Stopped,
}

/// Whether the program or the collector accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The program.
    Mutator,
    /// The collector.
    Collector,
}

/// A read or write of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Access {
    pub address: u64,
    pub bytes: u64,
    pub is_write: bool,
    pub phase: Phase,
    /// Class of the object.
    pub class: u32,
    pub site: u32,
}

/// Receives events and accesses during a simulation.
pub trait Observer {
    /// Whether [`access`](Self::access) is called.
    const ACCESSES: bool = false;

    /// The collector sends an event during that operation, counted from 0.
    fn event(&mut self, operation: u64, event: &Event);

    /// The clock of the trace reaches this tick. Ticks without operations may be skipped.
    fn tick(&mut self, _tick: u64) {}

    /// A collection begins; events up to [`collection_ends`](Self::collection_ends) belong to it.
    fn collection_begins(&mut self) {}

    /// A collection ends; `used` is what the heap contains.
    fn collection_ends(&mut self, _used: Amount) {}

    /// The program or the collector accesses memory.
    fn access(&mut self, _access: &Access) {}

    /// Whether to continue. Polled at intervals.
    fn goes_on(&self) -> bool {
        true
    }
}

/// Ignores everything.
impl Observer for () {
    fn event(&mut self, _operation: u64, _event: &Event) {}
}

/// The space is full.
#[derive(Clone, Copy, Debug)]
struct Full;

/// Why an operation failed.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Full,
    /// A full collection reached this number of objects, which is not the number of live ones.
    Contradiction(u64),
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

/// Implementation of a collection scheme.
trait Scheme<O: Observer> {
    /// Whether references from dead objects count until these are freed.
    const COUNTS_THE_DEAD: bool = false;

    /// Creates the arenas.
    fn begin(&mut self, world: &mut World<'_, O>);

    /// Gives a new object an address, after a collection if there is no room.
    fn allocate(&mut self, world: &mut World<'_, O>, place: u32) -> Result<(), Stop>;

    /// A slot of `origin` now refers to `target`.
    fn stored(&mut self, _world: &mut World<'_, O>, _origin: u32, _target: u32) {}

    /// The object has become unreachable for the program.
    fn died(&mut self, world: &mut World<'_, O>, place: u32);

    /// Runs a full collection after the last operation.
    fn finish(&mut self, world: &mut World<'_, O>) -> Result<(), Stop>;
}

/// Runs all operations under a simulated collector.
pub fn simulate<O: Observer>(ops: &mut OpsReader, config: &Config, observer: &mut O) -> Result<Report, SimulateError> {
    config.check()?;
    match config.collector {
        Collector::MarkSweep => world::play(ops, config, observer, mark_sweep::MarkSweep::new(config)),
        Collector::MarkCompact => world::play(ops, config, observer, mark_compact::MarkCompact::new(config)),
        Collector::Copying => world::play(ops, config, observer, copying::Copying::new(config)),
        Collector::Generational => world::play(ops, config, observer, generational::Generational::new(config)),
        Collector::ReferenceCounting => world::play(ops, config, observer, counting::Counting::new(config)),
    }
}

/// The minimum heap in which a collector can run the trace, to within 1/256 or 1 KiB.
pub fn smallest_heap(ops: &mut OpsReader, config: &Config) -> Result<u64, SimulateError> {
    let peak = ops.tables().totals.peak.bytes;
    let step = (peak / 256).max(1024);
    let (mut too_small, mut enough) = (0, peak.max(step));
    loop {
        match simulate(ops, &Config { heap: enough, ..*config }, &mut ()) {
            Ok(_) => break,
            Err(SimulateError::TooSmall { .. } | SimulateError::Nursery(_)) if enough < MOST_HEAP => {
                (too_small, enough) = (enough, enough.saturating_mul(2).min(MOST_HEAP));
            }
            Err(error) => return Err(error),
        }
    }
    while enough - too_small > step {
        let middle = (too_small + (enough - too_small) / 2) / 16 * 16;
        match simulate(ops, &Config { heap: middle, ..*config }, &mut ()) {
            Ok(_) => enough = middle,
            Err(SimulateError::TooSmall { .. } | SimulateError::Nursery(_)) => too_small = middle,
            Err(error) => return Err(error),
        }
    }
    Ok(enough)
}

#[cfg(test)]
mod tests;
