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
//! A part in which threads begin, or objects of unknown origin show, is walked through in order, since
//! it depends on what was before it.

mod forward;
pub mod glimpse;
mod literals;
mod living;
mod local;
mod observed;
mod pool;
mod scan;
mod schedule;
mod stacks;
#[cfg(test)]
pub(crate) mod tests;
mod usage;
mod walk;
mod weak;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use et_format::Nanos;
use et_format::event::{ObjectHash, Ticket};
use et_names::{FieldId, FieldRefId, ID_LIMIT, MethodId};
use et_system::threads::spawn_scoped;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::classes::ClassIndex;
use crate::file::ReadError;
use crate::lifetimes::{self, Change, HeldByStack, Known as KnownStep, Vm, WeakSlots};
use crate::model::{ContextId, Contexts, Node};
use crate::observed::usage::Usage;
use crate::record::{Alloc, ObjectId, RecordKind, ThreadId};
use crate::resolve::allocs::Allocs;
use crate::resolve::fields::Fields;
use crate::resolve::{Anomalies, CutOffThread, Lost, ObjectIds, Outcome, each_initial_reference};
use crate::survival::{Fates, Marker};
use crate::told::Hold;
use crate::trace::Trace;
use crate::types::TypeId;
use forward::{Forward, Plan};
use glimpse::Glimpses;
use literals::{BlockOf, Literals};
use living::Entry;
use local::{Known, Settled};
use pool::{Pool, Promise, Urgency};
use scan::Scanner;
use schedule::{PartOf, Planned, Schedule, Unseen};
use walk::{Bound, Group, Named, Part, Walk, Walker};

/// Maximum number of items that wait because a constructor waits for its object.
const MOST_PENDING: usize = 8 << 20;
/// Number of groups that are walked through ahead, on top of some for each thread: what the others do while this one looks for dead
/// objects.
const MORE_AHEAD: usize = 16;
/// Maximum number of parts planned ahead.
const PARTS_AHEAD: usize = 4096;

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

/// An object that a local variable of a method that runs at the end may hold, with what died with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldByLocal {
    /// The frame of the method: its thread, and its place on the stack.
    pub frame: (u32, u32),
    pub method: MethodId,
    /// The step at which it died according to the trace.
    pub step: u64,
    pub alloc: Alloc,
    pub context: ContextId,
    pub objects: u64,
    pub bytes: u64,
}

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
    pub held_by_locals: Vec<HeldByLocal>,
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

/// What is known of the trace before a part.
trait Oracle {
    /// Whether everything is known, and nothing is assumed.
    const IS_EXACT: bool;
    /// Whether an object with this hash has been seen.
    fn knows(&mut self, hash: ObjectHash) -> bool;
    /// Whether an object whose allocation may have been seen, or not, is new.
    fn is_new(&mut self, hash: ObjectHash) -> bool;
    /// Events from this ticket on follow. Returns the ticket of those before.
    fn segment(&mut self, ticket: Ticket) -> Ticket;
    /// The next class that was prepared before `ticket`.
    fn next_mirror(&mut self, ticket: Ticket) -> Option<ClassIndex>;
    /// The mirror of a class is known now.
    fn saw_mirror(&mut self, hash: ObjectHash);
    /// Whether the VM held something before `ticket` that has not been told.
    fn is_due(&self, ticket: Ticket) -> bool;
    /// That object, whether it was held until then (or from then on, to the end), and for which thread.
    fn next_hold(&mut self, ticket: Ticket) -> Option<(ObjectHash, bool, u32)>;
    fn field(&mut self, field: FieldRefId, anomalies: &mut Anomalies) -> FieldId;
}

/// Assumes what is nearly always so: objects that are named are known, those that are found are not, and mirrors become
/// known when their class is prepared.
#[derive(Debug)]
struct Likely<'w, 'a> {
    trace: &'a Trace,
    /// The classes that are prepared in the group.
    mirrors: std::slice::Iter<'w, (Ticket, ClassIndex)>,
    /// Their mirrors, as long as they are not known.
    unknown: FxHashSet<ObjectHash>,
    fields: &'w mut FxHashMap<FieldRefId, FieldId>,
    /// A field is in no table: fields get numbers in the order in which they occur.
    lacks_field: bool,
}

impl<'w, 'a> Likely<'w, 'a> {
    fn new(
        trace: &'a Trace,
        mirrors: &'w [(Ticket, ClassIndex)],
        fields: &'w mut FxHashMap<FieldRefId, FieldId>,
    ) -> Self {
        let unknown = mirrors.iter().map(|(_, class)| trace.classes.get(*class).record.class).collect();
        Self { trace, mirrors: mirrors.iter(), unknown, fields, lacks_field: false }
    }
}

impl Oracle for Likely<'_, '_> {
    const IS_EXACT: bool = false;
    fn knows(&mut self, hash: ObjectHash) -> bool {
        !self.unknown.contains(&hash)
    }
    fn is_new(&mut self, _hash: ObjectHash) -> bool {
        true
    }
    fn segment(&mut self, ticket: Ticket) -> Ticket {
        ticket
    }
    fn next_mirror(&mut self, ticket: Ticket) -> Option<ClassIndex> {
        let &(before, class) = self.mirrors.as_slice().first()?;
        (before < ticket).then(|| {
            self.mirrors.next();
            class
        })
    }
    fn saw_mirror(&mut self, hash: ObjectHash) {
        self.unknown.remove(&hash);
    }
    fn is_due(&self, _ticket: Ticket) -> bool {
        false
    }
    fn next_hold(&mut self, _ticket: Ticket) -> Option<(ObjectHash, bool, u32)> {
        None
    }
    fn field(&mut self, field: FieldRefId, _anomalies: &mut Anomalies) -> FieldId {
        if let Some(&known) = self.fields.get(&field) {
            return known;
        }
        match self.trace.names.resolve_field_ref(field, &self.trace.types) {
            Some(found) => {
                self.fields.insert(field, found);
                found
            }
            None => {
                self.lacks_field = true;
                FieldId(ID_LIMIT)
            }
        }
    }
}

/// What is known in order.
#[derive(Debug)]
struct Before<'a> {
    trace: &'a Trace,
    ids: ObjectIds,
    fields: Fields,
    /// Index of the next class whose mirror has no record yet.
    next_mirror: u32,
    /// When the VM held what, in order, and how many of these are to come, by object.
    holds: VecDeque<(Ticket, ObjectHash, Change)>,
    held_later: FxHashMap<ObjectHash, u32>,
    /// The ticket of the last events.
    now: Ticket,
}

impl Before<'_> {
    /// Whether the VM holds the object later.
    fn holds_later(&self, hash: ObjectHash) -> bool {
        self.held_later.get(&hash).is_some_and(|&count| count > 0)
    }
}

impl Oracle for Before<'_> {
    const IS_EXACT: bool = true;
    fn knows(&mut self, hash: ObjectHash) -> bool {
        self.ids.current(hash).is_some()
    }
    fn is_new(&mut self, hash: ObjectHash) -> bool {
        self.ids.current(hash).is_none()
    }
    fn segment(&mut self, ticket: Ticket) -> Ticket {
        std::mem::replace(&mut self.now, ticket)
    }
    fn next_mirror(&mut self, ticket: Ticket) -> Option<ClassIndex> {
        while (self.next_mirror as usize) < self.trace.classes.len() {
            let index = ClassIndex(self.next_mirror);
            let record = &self.trace.classes.get(index).record;
            if record.ticket >= ticket {
                return None;
            }
            self.next_mirror += 1;
            if !record.class.is_null() {
                return Some(index);
            }
        }
        None
    }
    fn saw_mirror(&mut self, _hash: ObjectHash) {}
    fn is_due(&self, ticket: Ticket) -> bool {
        self.holds.front().is_some_and(|(change, ..)| *change < ticket)
    }
    fn next_hold(&mut self, ticket: Ticket) -> Option<(ObjectHash, bool, u32)> {
        if !self.is_due(ticket) {
            return None;
        }
        let (_, hash, change) = self.holds.pop_front()?;
        if let Some(count) = self.held_later.get_mut(&hash) {
            *count -= 1;
        }
        Some(match change {
            Change::Thread(thread) => (hash, true, thread.0),
            Change::Loader => (hash, false, 0),
        })
    }
    fn field(&mut self, field: FieldRefId, anomalies: &mut Anomalies) -> FieldId {
        self.fields.of_ref(field, &self.trace.names, &self.trace.types, anomalies)
    }
}

/// What a thread of the pool works with.
#[derive(Debug)]
pub struct Hands<'a> {
    scanner: Scanner<'a>,
    walker: Walker<'a>,
    fields: FxHashMap<FieldRefId, FieldId>,
    about_usage: usage::Known<'a>,
}

impl<'a> Hands<'a> {
    fn new(trace: &'a Trace, referent: Option<FieldId>) -> Self {
        Self {
            scanner: Scanner::new(&trace.names, &trace.classes),
            walker: Walker::new(trace, referent),
            fields: FxHashMap::default(),
            about_usage: usage::Known::of(trace),
        }
    }
}

/// All parts of a group; `None` if they depend on what was before.
type Walked = Option<VecDeque<Part>>;

/// Makes all parts of a group, assuming what is likely.
fn walk_ahead<'a>(
    trace: &'a Trace,
    hands: &mut Hands<'a>,
    group: Arc<Group>,
    bounds: &[Bound],
    mirrors: &[(Ticket, ClassIndex)],
) -> Walked {
    let mut walk = Walk::new(group, trace);
    let Hands { walker, fields, .. } = hands;
    let mut likely = Likely::new(trace, mirrors, fields);
    let mut parts: VecDeque<Part> = bounds.iter().map(|bound| walk.part(bound, walker, &mut likely)).collect();
    if likely.lacks_field || walk.is_lost() || !walk.is_done() {
        return None;
    }
    if parts.len() > 1 {
        let mut later: FxHashSet<u64> = FxHashSet::default();
        for part in parts.iter_mut().rev() {
            for named in &mut part.named {
                if later.contains(&named.key) {
                    named.flags |= Named::LATER;
                }
            }
            later.extend(part.named.iter().map(|named| named.key));
        }
    }
    Some(parts)
}

/// A group whose parts are being applied.
#[derive(Debug)]
enum Running {
    Ahead(Promise<Walked>),
    Parts(VecDeque<Part>),
    /// In order, part by part, with what the parts so far have named.
    Exact(Box<Walk>, FxHashSet<u64>),
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
        // A word was predicted that has another meaning where it was before, or an object is named in a block of which only the beginning has
        // been applied: then all events are decoded twice.
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

fn read_with<R: Rows + Send>(
    trace: &Trace,
    wanted: Wanted,
    rows: R,
    options: &Options,
) -> Result<(R, Passed), BlocksError> {
    let special = lifetimes::special(trace);
    let referent = special.referent;
    // What walks tell is asked for where deaths are not known.
    let marker = if wanted == Wanted::Births { Marker::of(trace)? } else { None };
    let cuts = marker.as_ref().map(Marker::tickets).unwrap_or_default();
    let mut filled: Vec<(u64, (usize, usize), BlockOf<'_>)> = Vec::new();
    for (at, thread) in trace.threads.iter().enumerate() {
        let Some(events) = trace.file.thread(thread.index) else { continue };
        for piece in 0..events.len() {
            filled.push((trace.file.filled(events, piece), (at, piece), (events, piece)));
        }
    }
    filled.sort_unstable_by_key(|(filled, ..)| *filled);
    let numbers = filled.iter().enumerate().map(|(number, (_, piece, _))| (*piece, number)).collect();
    let blocks: Vec<BlockOf<'_>> = filled.iter().map(|(.., block)| *block).collect();
    let count = blocks.len() as u64;
    let literals = match wanted {
        Wanted::Deaths | Wanted::Births => {
            trace.file.begin_events("finding last uses");
            Literals::find(&trace.file, &blocks, options.by_events)?
        }
        Wanted::Uses => Literals::find(&trace.file, &[], false)?,
    };
    trace.file.begin_events("reading events");
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = options.threads.unwrap_or(cores);
    let pool = Pool::<Hands<'_>>::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads)
            .map_while(|_| {
                let work = || {
                    let mut hands = Hands::new(trace, referent);
                    pool.work(&mut hands);
                    hands.walker.ran
                };
                spawn_scoped(scope, work).ok()
            })
            .collect();
        // Also if this thread panics, or returns an error: the others wait for jobs.
        let closing = Closing(&pool);
        let mut hands = Hands::new(trace, referent);
        let mut reading = Reading {
            trace,
            pool: &pool,
            hands: &mut hands,
            literals,
            wanted,
            in_order: options.in_order,
            before: Before {
                trace,
                ids: ObjectIds::default(),
                fields: Fields::new(&trace.names),
                next_mirror: 0,
                holds: VecDeque::new(),
                held_later: FxHashMap::default(),
                now: Ticket(0),
            },
            class_type: special.class,
            forward: Forward::new(
                rows,
                trace,
                marker,
                WeakSlots::new(&special),
                wanted,
                options.most_rows.unwrap_or(forward::MOST_ROWS),
                match wanted {
                    Wanted::Deaths if options.glimpses => Plan::Always,
                    Wanted::Deaths => Plan::of(count),
                    Wanted::Uses | Wanted::Births => Plan::Never,
                },
            ),
            running: FxHashMap::default(),
            settling: VecDeque::new(),
            births: 0,
            bytes: 0,
            ticks: 0,
            blocks: 0,
            anomalies: Anomalies::default(),
            lost: Lost::known(&trace.file),
            cost: Cost::default(),
            ahead: threads * 3 + MORE_AHEAD,
        };
        reading.run(numbers, cuts)?;
        let Reading { forward, anomalies, lost, before, cost, .. } = reading;
        drop(closing);
        let mut ran = hands.walker.ran;
        for worker in workers {
            ran.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Ok(passed(trace, forward, anomalies, lost, before, cost, ran))
    })
}

/// Dismisses the threads of a pool.
struct Closing<'p, 'env, H>(&'p Pool<'env, H>);

impl<H> Drop for Closing<'_, '_, H> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn passed<R: Rows>(
    trace: &Trace,
    forward: Forward<'_, R>,
    mut anomalies: Anomalies,
    lost: Lost,
    before: Before<'_>,
    cost: Cost,
    ran: FxHashSet<MethodId>,
) -> (R, Passed) {
    let finished = forward.finish();
    let mut cut_off = Vec::new();
    for (thread, frames) in finished.frames_left {
        // A thread that calls `System.exit` has no end, nor have those that run at that time.
        if trace.thread(thread).is_some_and(|thread| thread.end.is_some()) {
            anomalies.frames_at_thread_end += frames as u64;
        }
        cut_off.push(CutOffThread { thread: ThreadId(thread), frames });
    }
    cut_off.sort_unstable_by_key(|stack| stack.thread);
    let sums = finished.sums;
    let outcome = Outcome {
        totals: sums.totals,
        anomalies,
        lost,
        cut_off,
        extra_fields: before.fields.into_extra(),
        ..Outcome::default()
    };
    let passed = Passed {
        contexts: finished.contexts,
        objects: sums.births,
        ticks: sums.ticks,
        bytes: sums.bytes,
        time: sums.time,
        late: finished.late,
        held_by_stacks: finished.held_by_stacks,
        held_by_locals: finished.held_by_locals,
        usage: finished.usage,
        glimpses: Glimpses { all: finished.glimpses, extra_fields: outcome.extra_fields.clone() },
        records: sums.of_thread,
        ran,
        fates: finished.fates,
        outcome,
        cost: Cost { most_objects: sums.most_alive, ..cost },
    };
    (finished.rows, passed)
}

/// A reading under way.
struct Reading<'r, 'a, R> {
    trace: &'a Trace,
    pool: &'r Pool<'a, Hands<'a>>,
    hands: &'r mut Hands<'a>,
    literals: Literals,
    wanted: Wanted,
    in_order: bool,
    before: Before<'a>,
    class_type: Option<TypeId>,
    forward: Forward<'a, R>,
    running: FxHashMap<u64, Running>,
    settling: VecDeque<Promise<Settled>>,
    births: u64,
    bytes: u64,
    ticks: u64,
    /// Number of blocks whose parts have been committed.
    blocks: u64,
    anomalies: Anomalies,
    lost: Lost,
    cost: Cost,
    /// Number of groups that are walked through ahead, and of parts that are settled ahead.
    ahead: usize,
}

impl<'a, R: Rows> Reading<'_, 'a, R> {
    fn run(&mut self, numbers: FxHashMap<(usize, usize), usize>, cuts: VecDeque<Ticket>) -> Result<(), BlocksError> {
        self.begin()?;
        let mut schedule = Schedule::new(self.trace, self.changes(), cuts, numbers);
        let mut order: VecDeque<PartOf> = VecDeque::new();
        let mut groups_ahead = 0;
        loop {
            while groups_ahead < self.ahead && order.len() < PARTS_AHEAD && !schedule.is_done() {
                // What is planned can be done meanwhile.
                if order.front().is_some_and(|part| self.may_begin(part, &schedule)) && schedule.waits() {
                    break;
                }
                let before = order.len();
                schedule.plan(self.pool, self.hands, &mut order)?;
                for part in order.range(before..).filter(|part| part.is_last) {
                    groups_ahead += 1;
                    self.dispatch(part.group, &schedule);
                }
            }
            let Some(part) = order.pop_front() else {
                if schedule.is_done() {
                    break;
                }
                continue;
            };
            groups_ahead -= usize::from(part.is_last);
            self.part(part, &mut schedule)?;
            while self.settling.len() > self.ahead || self.settling.front().is_some_and(Promise::is_kept) {
                self.apply_next()?;
            }
        }
        self.cost.read_again = schedule.read_again;
        let mut rest = self.hands.walker.rest(&mut self.before);
        let nodes = self.identify_exact(&mut rest);
        self.commit(rest, nodes, Vec::new());
        while !self.settling.is_empty() {
            self.apply_next()?;
        }
        for thread in self.trace.threads.iter().filter(|thread| thread.end.is_none()) {
            if let Some(entry) = self.forward.living.get(thread.object.0) {
                self.forward.hold(entry.node());
            }
        }
        Ok(())
    }

    /// What no event shows, in order.
    fn changes(&self) -> VecDeque<Unseen> {
        let mut changes: Vec<Unseen> = Vec::new();
        let mut latest = Ticket(0);
        for index in (0..self.trace.classes.len() as u32).map(ClassIndex) {
            let record = &self.trace.classes.get(index).record;
            // Mirrors become known in the order of their records.
            latest = latest.max(record.ticket);
            if !record.class.is_null() {
                changes.push(Unseen { ticket: latest, mirror: Some(index) });
            }
        }
        changes.extend(self.before.holds.iter().map(|&(ticket, ..)| Unseen { ticket, mirror: None }));
        changes.sort_unstable();
        changes.into()
    }

    /// What existed when tracing began.
    fn begin(&mut self) -> Result<(), BlocksError> {
        let trace = self.trace;
        let mut vm = Vm::new(trace);
        self.before.holds = vm.changes.iter().copied().collect();
        for (_, hash, _) in &vm.changes {
            *self.before.held_later.entry(*hash).or_default() += 1;
        }
        for thread in trace.threads.iter().filter(|thread| thread.end.is_none()) {
            *self.before.held_later.entry(thread.object).or_default() += 1;
        }
        let allocs = Allocs::new(trace);
        trace.initial_objects(|object| {
            let (ids, anomalies) = (&mut self.before.ids, &mut self.anomalies);
            if object.object.is_null() || ids.current(object.object).is_some() {
                return;
            }
            let alloc = allocs.initial(object, anomalies);
            let alloc = Alloc { object: ids.allocate(object.object).0, ..alloc };
            vm.saw(&alloc, true);
            let (in_blocks, by_vm) = (self.literals.may_name(object.object.0), self.before.holds_later(object.object));
            self.forward.initial_object(alloc, Some(alloc.ty) == self.class_type, (in_blocks, by_vm));
            self.births += 1;
        })?;
        let (ids, anomalies) = (&mut self.before.ids, &mut self.anomalies);
        each_initial_reference(
            trace,
            &mut self.before.fields,
            |hash| ids.current(hash),
            |reference| {
                anomalies.bad_initial_references += u64::from(reference.is_none());
            },
        )?;
        let forward = &mut self.forward;
        let mut tell = |hold| match hold {
            Hold::Initial { origin, slot, target } => forward.initial_reference(origin, slot, target),
            Hold::ToTheEnd { object } => {
                if let Some(node) = forward.initial_node(object) {
                    forward.hold(node);
                }
            }
            Hold::Until { .. } => {}
        };
        vm.begin(&mut tell)?;
        Ok(())
    }

    /// Whether the part's group is planned to its end, or walked through in order already. Others would have to be now, if this part
    /// were the next one.
    fn may_begin(&self, part: &PartOf, schedule: &Schedule<'a>) -> bool {
        let is_whole = || schedule.planned.get(&part.group).is_some_and(|planned| planned.is_whole);
        self.running.contains_key(&part.group) || is_whole()
    }

    /// A group is planned to its end: has it walked through, if that needs nothing from before.
    fn dispatch(&mut self, number: u64, schedule: &Schedule<'a>) {
        let Some(planned) = schedule.planned.get(&number) else { return };
        if planned.is_exact || self.in_order || self.running.contains_key(&number) {
            return;
        }
        let (trace, group, bounds) = (self.trace, Arc::clone(&planned.group), planned.bounds.clone());
        let mirrors = planned.mirrors.clone();
        let walk = move |hands: &mut Hands<'a>| walk_ahead(trace, hands, group, &bounds, &mirrors);
        self.running.insert(number, Running::Ahead(self.pool.add(Urgency::Walk, walk)));
    }

    /// Handles the next part.
    fn part(&mut self, of: PartOf, schedule: &mut Schedule<'a>) -> Result<(), BlocksError> {
        let Some(planned) = schedule.planned.get(&of.group) else { return Ok(()) };
        let running = match self.running.remove(&of.group) {
            Some(Running::Ahead(promise)) => match self.pool.wait(&promise, self.hands) {
                Some(parts) => Running::Parts(parts),
                None => {
                    self.cost.again += 1;
                    self.cost.exact += 1;
                    Running::Exact(Box::new(Walk::new(Arc::clone(&planned.group), self.trace)), FxHashSet::default())
                }
            },
            Some(running) => running,
            None => {
                self.cost.exact += 1;
                Running::Exact(Box::new(Walk::new(Arc::clone(&planned.group), self.trace)), FxHashSet::default())
            }
        };
        let Some(bound) = planned.bounds.get(of.number) else { return Ok(()) };
        let (running, nodes) = match running {
            Running::Parts(mut parts) => {
                let nodes = parts.front_mut().and_then(|part| self.identify(part));
                (Running::Parts(parts), nodes)
            }
            running => (running, None),
        };
        let running = match running {
            Running::Parts(parts) if nodes.is_none() => {
                self.cost.again += 1;
                self.cost.exact += 1;
                Running::Exact(self.walk_to(planned, parts.len()), FxHashSet::default())
            }
            running => running,
        };
        let mut named = Vec::new();
        let (mut part, running) = match running {
            Running::Parts(mut parts) => (parts.pop_front().unwrap_or_default(), Running::Parts(parts)),
            Running::Exact(mut walk, mut so_far) => {
                walk.go_on_in(&planned.group);
                let mut part = walk.part(bound, &mut self.hands.walker, &mut self.before);
                if walk.is_lost() {
                    return Err(BlocksError::Switch { thread: planned.group.thread });
                }
                if of.is_last {
                    named.extend(so_far.drain());
                } else {
                    // They may be named again in the rest of the group.
                    part.named.iter_mut().for_each(|named| named.flags |= Named::LATER);
                    so_far.extend(part.named.iter().map(|named| named.key));
                }
                (part, Running::Exact(walk, so_far))
            }
            Running::Ahead(_) => return Ok(()),
        };
        let nodes = nodes.unwrap_or_else(|| self.identify_exact(&mut part));
        self.cost.parts += 1;
        let mut passed = named;
        if of.is_last {
            self.cost.groups += 1;
            if let Some(planned) = schedule.finish(of.group) {
                self.lost.add(&planned.lost);
                self.blocks += planned.blocks.len() as u64;
                if self.wanted != Wanted::Uses {
                    for block in planned.blocks {
                        for hash in self.literals.pass(block)? {
                            self.forward.living.passed(hash);
                            passed.push(hash.into());
                        }
                    }
                }
            }
        } else {
            self.running.insert(of.group, running);
        }
        self.commit(part, nodes, passed);
        Ok(())
    }

    /// Goes to the part of a group behind which this number of parts is left, counting it.
    fn walk_to(&mut self, planned: &Planned, left: usize) -> Box<Walk> {
        let mut walk = Box::new(Walk::new(Arc::clone(&planned.group), self.trace));
        let Hands { walker, fields, .. } = &mut *self.hands;
        let mut likely = Likely::new(self.trace, &planned.mirrors, fields);
        for bound in &planned.bounds[..planned.bounds.len().saturating_sub(left)] {
            walk.part(bound, walker, &mut likely);
        }
        walk
    }

    /// The places of the objects of a part that are older than it, `NONE` for the others. `None` if they were not known,
    /// or known, as was assumed.
    fn identify(&mut self, part: &mut Part) -> Option<Vec<u32>> {
        let mut nodes = Vec::with_capacity(part.named.len());
        for named in &mut part.named {
            let node = match u32::try_from(named.key) {
                _ if named.birth == walk::NONE => match self.node(named) {
                    Some(node) => node.0,
                    None if self.wanted == Wanted::Births && named.is(Named::BY_STACK) => walk::NONE,
                    None => return None,
                },
                Ok(hash) if named.is(Named::UNKNOWN) && self.before.ids.current(ObjectHash(hash)).is_some() => {
                    return None;
                }
                _ => walk::NONE,
            };
            nodes.push(node);
        }
        Some(nodes)
    }

    /// The same of a part that was walked through in order.
    fn identify_exact(&mut self, part: &mut Part) -> Vec<u32> {
        let node = |named: &mut Named| match named.birth {
            walk::NONE => self.node(named).map_or(walk::NONE, |node| node.0),
            _ => walk::NONE,
        };
        part.named.iter_mut().map(node).collect()
    }

    /// The place of an object from before the part. Notes whether it may be named later.
    #[inline]
    fn node(&self, named: &mut Named) -> Option<Node> {
        let Ok(hash) = u32::try_from(named.key) else { return self.forward.living.made_up(named.key) };
        let entry = self.forward.living.get(hash)?;
        if self.may_name(hash, entry) {
            named.flags |= Named::LATER;
        }
        Some(entry.node())
    }

    #[inline]
    fn may_name(&self, hash: u32, entry: Entry) -> bool {
        entry.is_in_blocks() || entry.may_be_held() && self.before.holds_later(ObjectHash(hash))
    }

    /// Gives the objects that a part has made their ids, and has it settled. `nodes` are the places of the older ones,
    /// `passed` the objects that no later block names.
    fn commit(&mut self, mut part: Part, mut nodes: Vec<u32>, passed: Vec<u64>) {
        self.before.now = Ticket(part.ticket);
        self.anomalies.add(&part.anomalies);
        self.lost.add(&part.lost);
        let mut last_named = Vec::new();
        let touch = |key: u64| match u32::try_from(key) {
            Ok(hash) => self.before.ids.touch(ObjectHash(hash)) ^ self.literals.touch(hash),
            Err(_) => 0,
        };
        let births = part.named.iter().filter(|named| named.birth != walk::NONE);
        std::hint::black_box(births.fold(0, |sum, named| sum ^ touch(named.key)));
        for (named, node) in part.named.iter_mut().zip(&mut nodes).filter(|(named, _)| named.birth != walk::NONE) {
            let alloc = &mut part.births[named.birth as usize].alloc;
            let hash = u32::try_from(named.key);
            let (mut in_blocks, mut by_vm) = (false, false);
            match hash {
                Ok(hash) => {
                    let (object, before) = self.before.ids.allocate(ObjectHash(hash));
                    alloc.object = object;
                    // Nothing can name an object whose hash is used again.
                    if before.is_some() {
                        let before = self.forward.living.replace(hash);
                        last_named.extend(before.map(|before| (named.key, before.node())));
                    }
                    (in_blocks, by_vm) = (self.literals.may_name(hash), self.before.holds_later(ObjectHash(hash)));
                    if Some(alloc.ty) == self.class_type {
                        named.flags |= Named::HELD;
                    }
                    if in_blocks || by_vm {
                        named.flags |= Named::LATER;
                    }
                }
                Err(_) => alloc.object = ObjectId(named.key),
            }
            let may_be_named = match self.wanted {
                Wanted::Deaths => named.flags & (Named::LATER | Named::HELD | Named::ON_STACK) != 0,
                Wanted::Births => named.is(Named::LATER),
                Wanted::Uses => true,
            };
            if !may_be_named {
                continue;
            }
            let place = self.forward.reserve();
            *node = place.0;
            match hash {
                Ok(hash) => self.forward.living.add(hash, Entry::new(place, in_blocks, by_vm)),
                Err(_) => self.forward.living.add_made_up(named.key, place),
            }
        }
        for key in passed {
            match u32::try_from(key) {
                Ok(hash) => {
                    let entry = self.forward.living.get(hash).filter(|&entry| !self.may_name(hash, entry));
                    last_named.extend(entry.map(|entry| (key, entry.node())));
                }
                Err(_) => last_named.extend(self.forward.living.made_up(key).map(|node| (key, node))),
            }
        }
        let known = Known {
            last_named,
            births: self.births,
            bytes: self.bytes,
            ticks: self.ticks,
            blocks: self.blocks,
            nodes,
            part,
        };
        self.births += known.part.births.len() as u64;
        self.bytes += known.part.births.last().map_or(0, |birth| birth.bytes);
        self.ticks += known.part.advance(known.part.ticks);
        let wanted = self.wanted;
        let settle = move |hands: &mut Hands<'a>| local::settle(known, wanted, &mut hands.about_usage);
        self.settling.push_back(self.pool.add(Urgency::Settle, settle));
    }

    fn apply_next(&mut self) -> Result<(), BlocksError> {
        let Some(promise) = self.settling.pop_front() else { return Ok(()) };
        let settled = self.pool.wait(&promise, self.hands);
        self.cost.died_at_once += settled.dead.len() as u64;
        self.forward.apply(settled)
    }
}
