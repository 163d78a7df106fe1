//! Reads a whole trace block by block, on all cores: what became of each object, without a record being made
//! (`docs/inside/reading.md`).
//!
//! 1. [`literals`]: from the last block to the first, which objects are named in it for the last time.
//! 2. [`scan`]: each block on its own, its tickets and its effect on the stack of its thread.
//! 3. [`schedule`]: in order, the stack at the beginning of each block, and its division into parts: runs of events on one
//!    stack without those of other threads in between. Stacks of virtual threads that no thread runs are kept in [`stacks`].
//! 4. [`walk`]: each block on its own, what its parts make, store and name.
//! 5. In order, the ids of the objects, and whether something later names them.
//! 6. [`local`]: each part on its own, what was made in it and died in it.
//! 7. [`forward`]: in order, what remains: the graph of the objects that outlive their part.
//!
//! Only 3, 5 and 7 are sequential. They see each object once per part and not at each mention.
//!
//! [`parts`] has 4 done ahead and passes the parts on in order, to [`objects`], which does 5 and has 6 and 7 done. A part in which threads
//! begin, or objects of unknown origin show, is walked through in order: it depends on what was before it ([`oracle`]).

mod awaited;
mod forward;
pub mod glimpse;
mod hands;
mod literals;
mod living;
mod local;
mod objects;
mod observed;
mod oracle;
mod parts;
mod pool;
mod scan;
mod schedule;
mod stacks;
#[cfg(test)]
pub(crate) mod tests;
mod usage;
mod walk;
mod weak;

use std::ops::Range;

use et_format::Nanos;
use et_names::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::file::ReadError;
use crate::lifetimes::{HeldByStack, Known as KnownStep};
use crate::made_in::Made;
use crate::model::{ContextId, Contexts};
use crate::observed::held::Candidate;
use crate::observed::usage::Usage;
use crate::record::{Alloc, RecordKind, ThreadId};
use crate::resolve::Outcome;
use crate::survival::Fates;
use crate::trace::Trace;
use glimpse::Glimpses;
use objects::read_with;

/// Maximum number of items that wait because a constructor waits for its object.
const MOST_PENDING: usize = 8 << 20;

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeRow {
    /// In the order of births, from 0.
    pub number: u64,
    pub alloc: Alloc,
    /// Methods on the stack when it was allocated.
    pub context: ContextId,
    /// The clock, the bytes allocated so far with this object, and the time when it was allocated.
    pub tick: u64,
    pub bytes: u64,
    pub time: Option<Nanos>,
    /// The clock at its last use.
    pub last_use: u64,
    pub escaped_thread: bool,
    /// `None`: no method ran when it was allocated.
    pub escaped_frame: Option<bool>,
    /// `None`: it is alive at the end.
    pub death: Option<RowDeath>,
}

/// How an object died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowDeath {
    /// Number of the step that made it unreachable, from 0.
    pub step: u64,
    /// That record: its kind, and its number, from 1; `None` if the VM released it.
    pub record: Option<(RecordKind, u64)>,
    pub tick: u64,
    pub bytes: u64,
    pub time: Option<Nanos>,
    pub thread: ThreadId,
    pub context: ContextId,
}

/// What identifies a kind of object that local variables may hold: how it was allocated, and in which context.
pub(crate) type Kind = (Made, ContextId);

/// Receives what became of the objects.
pub trait Rows {
    /// Receives the next object: those that died in the order of their deaths, with the exception of
    /// [`Passed::late`]; then those alive at the end, in the order of their births.
    fn row(&mut self, row: &LifeRow);
    /// Receives the next weak reference that was cleared.
    fn clearing(&mut self, clearing: &KnownStep);
}

/// Objects whose deaths show late, since they seemed to be named again: they come after those that died in order. Counted
/// from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// Rows of dead objects, in the order of their deaths.
    pub rows: Range<u64>,
    /// Cleared references, in order.
    pub clearings: Range<u64>,
}

/// The results of a reading, except rows.
#[derive(Debug)]
pub struct Passed {
    pub contexts: Contexts,
    /// Number of objects.
    pub objects: u64,
    pub ticks: u64,
    /// Bytes allocated.
    pub bytes: u64,
    /// Time of the last events.
    pub time: Option<Nanos>,
    /// Which rows of dead objects, and which cleared references, are not in order.
    pub late: Late,
    pub held_by_stacks: Vec<HeldByStack>,
    pub(crate) held_by_locals: Vec<Candidate<Kind>>,
    /// How objects were used, if deaths are known.
    pub usage: Usage,
    /// The heap at some moments, if deaths are known and there are many blocks.
    pub glimpses: Glimpses,
    /// Number of records by thread, computed ones not counted.
    pub records: FxHashMap<u32, u64>,
    /// Methods that were entered.
    pub ran: FxHashSet<MethodId>,
    /// What walks through the heap say of the objects, if only births were wanted and there were walks.
    pub fates: Option<Fates>,
    pub outcome: Outcome,
    pub cost: Cost,
}

/// How a trace was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Maximum number of objects at a time that outlived their parts and were not found dead yet.
    pub most_objects: usize,
    pub groups: u64,
    pub parts: u64,
    /// Groups that were walked through in order, and those of them that had been walked through before.
    pub exact: u64,
    pub again: u64,
    /// Blocks that were read completely only for their effect on the stack.
    pub read_again: u64,
    /// Objects that died in the part in which they were made.
    pub died_at_once: u64,
}

/// Why a trace cannot be read in this way.
#[derive(Debug, Error)]
pub enum BlocksError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The temporary file with the lists of objects that are named again, or what receives the rows.
    #[error("a file cannot be written: {0}")]
    Files(#[from] std::io::Error),
    /// A thread went on with another stack elsewhere than was planned.
    #[error("thread {thread} mounts a virtual thread where none was expected, or does not where one was")]
    Switch { thread: u32 },
    /// Constructors wait for their objects across too many blocks.
    #[error("constructors wait too long for their objects")]
    Pending,
    /// Too many threads wait in the middle of their blocks.
    #[error("too many threads wait for each other")]
    Crowded,
    /// An object was named that was found dead, or whose slots were forgotten.
    #[error("an object was named that nothing seemed to name any more")]
    Surprise,
    /// A block began with another stack than was known.
    #[error("thread {thread} had {found} frames on its stack, not {expected}")]
    Stack { thread: u32, expected: usize, found: usize },
}

/// What to find out about objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// What became of them, and when they died.
    Deaths,
    /// What became of them; the events do not tell when they die.
    Uses,
    /// How they were made.
    Births,
}

/// Reads a trace. `knows_deaths` is false if its events do not tell when objects die. `rows` makes what receives the
/// results; they may have to be passed again, to another one.
///
/// # Errors
/// The trace cannot be read, or not in this way.
pub fn read<R: Rows + Send>(
    trace: &Trace,
    knows_deaths: bool,
    rows: impl Fn() -> std::io::Result<R>,
) -> Result<(R, Passed), BlocksError> {
    let wanted = if knows_deaths { Wanted::Deaths } else { Wanted::Uses };
    read_again_if_surprised(trace, wanted, &Options::default(), rows)
}

/// Reads how the objects of a trace were made, and not what became of them. Rows are passed in the order of births. Memory
/// does not grow with each object: of the slots only those are kept whose owners may be named again.
///
/// # Errors
/// As for [`read`].
pub fn read_births<R: Rows + Send>(
    trace: &Trace,
    rows: impl Fn() -> std::io::Result<R>,
) -> Result<(R, Passed), BlocksError> {
    read_again_if_surprised(trace, Wanted::Births, &Options::default(), rows)
}

fn read_again_if_surprised<R: Rows + Send>(
    trace: &Trace,
    wanted: Wanted,
    options: &Options,
    rows: impl Fn() -> std::io::Result<R>,
) -> Result<(R, Passed), BlocksError> {
    match read_with(trace, wanted, rows()?, options) {
        // A word was predicted that has another meaning where it was before: then all events are decoded twice.
        Err(BlocksError::Surprise) => read_with(trace, wanted, rows()?, &Options { by_events: true, ..*options }),
        read => read,
    }
}

/// How to read, for tests.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    /// Whether only events tell which objects are named again.
    by_events: bool,
    /// Whether each part is walked through in order.
    in_order: bool,
    /// Number of threads; `None`: one for each core.
    threads: Option<usize>,
    /// At how many new objects dead ones are looked for.
    most_rows: Option<usize>,
    /// Whether a glimpse is taken after each part.
    glimpses: bool,
}
