//! Compares the deaths in the trace with those reported by the collector (`docs/evidence/deaths.md`).
//!
//! The collector is always right about what it freed: it was unreachable when that collection began. So if the trace
//! holds an object longer, a slot in it is wrong or a record is missing, unless it holds the object longer by
//! definition. The collector is late: it frees objects when it gets to them, and holds what it cannot know to be
//! unused. So objects that it holds longer than the trace only need an explanation.

mod by_heap;
mod early;
mod heap;
mod kept;
mod render;
mod report;
mod said;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use et_names::FieldId;
use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;

pub use by_heap::{ByHeap, by_heap};
pub use render::render;
pub use report::{Example, Group, Report};

use early::EarlyDeaths;
use et_format::event::Ticket;
use heap::{Heap, Known};
use kept::KeptObjects;
use report::Tally;
use said::Said;

use et_reader::Trace;
use et_reader::file::ReadError;
use et_reader::lifetimes::{self, LifetimesError, Limits, Played, Step};
use et_reader::model::{Node, Object, Stacks};
use et_reader::record::{Alloc, ObjectId, Record, ThreadId};
use et_reader::resolve::{IdSet, Outcome};
use et_reader::source::deaths_unknown;
use et_reader::told::{Hold, Told};
use et_reader::types::TypeId;

/// Why deaths cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// Collector reports were not requested for the run.
    #[error("{0} has no collector records: run the program with -Det.deaths=gc or -Det.survival=5")]
    NotAsked(String),
    /// Events are missing that are necessary to compute deaths.
    #[error("{0}: {1}")]
    Unknown(String, String),
    /// The trace could not be read.
    #[error(transparent)]
    Lifetimes(#[from] LifetimesError),
}

impl From<ReadError> for CompareError {
    fn from(error: ReadError) -> Self {
        Self::Lifetimes(error.into())
    }
}

/// Compares the deaths of a trace; describes `examples` objects of those that must not be.
pub fn compare(trace: &Trace, limits: Limits, examples: usize) -> Result<(Report, Outcome), CompareError> {
    let path = || trace.file.path().display().to_string();
    let said = Said::read(&trace.file)?.ok_or_else(|| CompareError::NotAsked(path()))?;
    if let Some(why) = deaths_unknown(trace.events) {
        return Err(CompareError::Unknown(path(), why));
    }
    let mut collections = Collections::new(trace, &said);
    let (mut reused, mut to_the_end) = (IdSet::default(), FxHashSet::default());
    let (recording, outcome) = lifetimes::record_seen(trace, limits, false, |told, place, step| {
        match *told {
            Told::Hold(Hold::ToTheEnd { object }) => {
                to_the_end.insert(object);
            }
            // Its ticket may be that of the end already.
            Told::Hold(_) => {}
            Told::Record(record) => {
                collections.pass(place.ticket().unwrap_or_default(), step);
                if let Record::Alloc(Alloc { object, .. }) = record
                    && object.0 >> 31 != 0
                {
                    reused.insert(object.0 as u32 & 0x7fff_ffff);
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    // The callback never breaks.
    let Some(recording) = recording else { unreachable!() };
    let mut comparison = Comparison {
        trace,
        said: &said,
        collections: &collections,
        reused,
        begun: 0,
        over: None,
        position: 0,
        heap: Heap::default(),
        stacks: Stacks::default(),
        dead: FxHashMap::default(),
        early: EarlyDeaths::new(trace, said.share, to_the_end),
        kept: KeptObjects::default(),
        soft: References::of(trace, "java/lang/ref/SoftReference"),
        finals: References::of(trace, "java/lang/ref/FinalReference"),
        tally: Tally::default(),
    };
    let mut failed = None;
    recording.replay_steps(|played| match comparison.play(played) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok((comparison.finish(&outcome, examples)?, outcome)),
    }
}

/// The collections, and the steps after which they began.
struct Collections {
    starts: Vec<Ticket>,
    steps: Vec<u64>,
}

impl Collections {
    fn new(trace: &Trace, said: &Said<'_>) -> Self {
        // Walks say what was freed by then, in whatever collection.
        let gcs = trace.gcs.iter().filter(|_| !said.is_by_walks()).map(|gc| gc.start);
        let mut starts: Vec<Ticket> = gcs.chain(said.collections()).collect();
        starts.sort_unstable();
        starts.dedup();
        Self { starts, steps: Vec::new() }
    }

    /// A record of that ticket has that step.
    #[inline]
    fn pass(&mut self, ticket: Ticket, step: u64) {
        while self.starts.get(self.steps.len()).is_some_and(|&start| start < ticket) {
            self.steps.push(step);
        }
    }

    /// Whether that many collections had begun before the step.
    #[inline]
    fn has_begun(&self, count: usize, step: u64) -> bool {
        self.steps.get(count).is_some_and(|&first| first <= step)
    }
}

/// Which types are references of a kind.
struct References(FxHashSet<TypeId>);

impl References {
    fn of(trace: &Trace, ancestor: &str) -> Self {
        let (types, classes) = (&trace.types, &trace.classes);
        let Some(ancestor) = types.get_class(ancestor) else { return Self(FxHashSet::default()) };
        let family = classes.iter().filter_map(|class| classes.of_type(class.ty));
        Self(family.filter(|&class| classes.is_subclass(class, ancestor)).map(|class| classes.get(class).ty).collect())
    }
}

/// An object that the trace says is dead and the collector has not freed yet.
struct Dead {
    /// Collections that had begun by then.
    begun: u32,
}

struct Comparison<'a> {
    trace: &'a Trace,
    said: &'a Said<'a>,
    collections: &'a Collections,
    /// Ids that several objects had, one after the other: what the collector says of them is not clear.
    reused: IdSet,
    /// Collections that have begun.
    begun: usize,
    /// The record at the start of the collection after which the collector was asked what it held.
    over: Option<u64>,
    /// Records so far, deaths included.
    position: u64,
    heap: Heap,
    stacks: Stacks,
    dead: FxHashMap<u32, Dead>,
    early: EarlyDeaths,
    kept: KeptObjects,
    soft: References,
    finals: References,
    tally: Tally,
}

impl Comparison<'_> {
    fn play(&mut self, played: Played<'_>) -> Result<(), ReadError> {
        let record = match played {
            Played::Time(_) | Played::At(_) => return Ok(()),
            Played::Step(number, step) => {
                while self.collections.has_begun(self.begun, number) {
                    self.collection()?;
                }
                self.heap.step(self.position + 1, step);
                match step.record() {
                    Some(record) => {
                        if let Step::Record(Record::Alloc(alloc)) = step {
                            self.tally.objects += u64::from(self.is_asked(alloc.object));
                        }
                        record
                    }
                    None => return Ok(()),
                }
            }
            Played::Found(record) => *record,
        };
        self.position += 1;
        match record {
            Record::Death { object, thread } => self.death(object, thread),
            _ => self.mention(&record, matches!(played, Played::Found(_))),
        }
        Ok(())
    }

    /// Whether what the collector says of the object is known and clear.
    #[inline]
    fn is_asked(&self, object: ObjectId) -> bool {
        object.0 >> 31 == 0 && self.said.asked(object.0 as u32) && !self.reused.contains(object.0 as u32)
    }

    fn mention(&mut self, record: &Record, is_found: bool) {
        self.stacks.record(record);
        for (place, id) in record.objects().into_iter().enumerate() {
            let Some(node) = self.heap.node(id) else { continue };
            let object = self.heap.data(node);
            object.last = (self.position, record.letter());
            if let Some(index) = object.early {
                self.early.mentioned(index, record, place, self.position);
            }
        }
        // Right before its death a referent is let go of.
        if let Record::Update { old, origin, target: ObjectId::NULL, .. } = *record
            && let Some(held) = &self.said.held
            && !old.is_null()
            && held.contains(&(old.0 as u32))
            && let Some(reference) = self.heap.node(origin)
        {
            let ty = self.heap.data(reference).ty;
            if is_found && self.soft.0.contains(&ty) {
                self.kept.referent(old, kept::Cause::Soft);
            } else if self.finals.0.contains(&ty) {
                self.kept.referent(old, kept::Cause::Finalizer);
            }
        }
    }

    fn death(&mut self, id: ObjectId, thread: ThreadId) {
        let is_asked = self.is_asked(id);
        let hash = id.0 as u32;
        let is_held = is_asked && self.said.held.as_ref().is_some_and(|held| held.contains(&hash));
        let Some(node) = self.heap.forget(id) else { return };
        let object = *self.heap.data(node);
        if is_held && self.over.is_some() {
            self.tally.died_after += 1;
        } else if is_held {
            // Deaths come in the order from holders to held: what the object holds is still there.
            let mut holds = Vec::new();
            self.heap.get(node).refs().for_each(|target| holds.push(self.heap.get(target).id));
            self.kept.died(id, &object, holds, thread, &self.trace.types);
        } else if is_asked && self.is_late(&object) {
            self.tally.made_after += 1;
        } else if is_asked && object.early.is_none() {
            self.dead.insert(hash, Dead { begun: self.begun as u32 });
        }
        self.heap.free(node);
    }

    /// Whether the object was made when the collector may have been asked already: threads run on at the end.
    fn is_late(&self, object: &Known) -> bool {
        self.over.is_some_and(|over| object.born > over)
    }

    /// The next collection begins here.
    fn collection(&mut self) -> Result<(), ReadError> {
        let number = self.begun;
        let mut freed = Vec::new();
        self.said.freed_by(self.collections.starts[number], |hash| {
            let id = ObjectId(hash.0.into());
            if self.reused.contains(hash.0) {
                self.tally.unclear += 1;
            } else if let Some(dead) = self.dead.remove(&hash.0) {
                self.tally.freed(number - dead.begun as usize);
            } else if let Some(node) = self.heap.node(id) {
                freed.push(node);
            } else {
                self.tally.unknown += 1;
            }
        })?;
        if let Some(found) = self.said.found_at(self.collections.starts[number])? {
            self.missed(&found, number, &mut freed);
        }
        self.begun += 1;
        if self.over.is_none() && self.said.held_by.is_some_and(|by| by <= self.collections.starts[number]) {
            self.over = Some(self.position);
        }
        self.early.add(&freed, &mut self.heap, &self.stacks, &self.trace.types, (self.begun, self.position));
        Ok(())
    }

    /// A walk found only these.
    fn missed(&mut self, found: &FxHashSet<u32>, number: usize, freed: &mut Vec<Node>) {
        let tally = &mut self.tally;
        self.dead.retain(|hash, dead| {
            let is_there = found.contains(hash);
            if !is_there {
                tally.freed(number - dead.begun as usize);
            }
            is_there
        });
        let is_gone = |object: &Object<Known>| {
            self.is_asked(object.id) && object.data.early.is_none() && !found.contains(&(object.id.0 as u32))
        };
        freed.extend(self.heap.iter().filter(|(_, object)| is_gone(object)).map(|(node, _)| node));
    }

    fn finish(mut self, outcome: &Outcome, examples: usize) -> Result<Report, ReadError> {
        while self.begun < self.collections.starts.len() {
            self.collection()?;
        }
        let mut not_told = self.dead.len() as u64;
        for (_, object) in self.heap.iter() {
            let hash = object.id.0 as u32;
            if !self.is_asked(object.id) || object.data.early.is_some() {
                continue;
            }
            match &self.said.held {
                Some(held) if held.contains(&hash) => self.tally.alive += 1,
                Some(_) if self.is_late(&object.data) => self.tally.made_after += 1,
                Some(_) => not_told += 1,
                None => self.tally.alive += 1,
            }
        }
        let trace = self.trace;
        let still_runs = |thread: ThreadId| trace.thread(thread.0).is_some_and(|thread| thread.end.is_none());
        let field = |field: FieldId| match trace.names.field(field) {
            Some((table, field)) => {
                let class = table.str(table.classes[field.class as usize].name).replace('/', ".");
                format!("{class}.{}", table.str(field.name))
            }
            None => match outcome.extra_fields.get(field.0.wrapping_sub(et_names::ID_LIMIT) as usize) {
                Some(extra) => format!("{}.{}", extra.class.replace('/', "."), extra.name),
                None => format!("field {:x}", field.0),
            },
        };
        let mut report = Report {
            collections: self.collections.starts.len() as u64,
            share: self.said.share,
            asked_at_end: self.said.held.is_some(),
            ..Report::default()
        };
        report.count(&self.tally);
        // Without a word at the end, what is dead and was not freed may well be held.
        if report.asked_at_end {
            report.not_told = not_told;
        } else {
            report.not_freed = not_told;
        }
        report.add_early(&self.early.finish(), &trace.types, field, examples);
        report.add_kept(&self.kept.finish(still_runs), &trace.types, examples);
        Ok(report)
    }
}
