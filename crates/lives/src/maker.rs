//! Makes the rows of a life table from the content of a trace.

use std::fs::File;
use std::io;

use et_format::Nanos;
use et_names::{MethodId, SiteId};
use et_reader::batch::At;
use et_reader::lifetimes::{Known, Played, Step};
use et_reader::model::{ContextId, Contexts, FrameRef, Objects, Stacks};
use et_reader::population::Moment;
use et_reader::record::{Alloc, AllocKind, ObjectId, Record, ThreadId};
use et_reader::told::{Hold, Told};
use et_reader::types::TypeId;
use parquet::data_type::ByteArray;
use rustc_hash::FxHashSet;

use crate::table::{Column, TableWriter, Values, Written};

/// Rows per group. Readers skip groups according to their statistics.
const GROUP: usize = 1 << 17;

/// A live object.
#[derive(Clone, Copy, Debug)]
struct Life {
    number: u64,
    alloc: Alloc,
    context: ContextId,
    /// The innermost frame when it was allocated.
    frame: Option<FrameRef>,
    tick: u64,
    made_bytes: u64,
    time: Option<Nanos>,
    last_use: u64,
    escaped_thread: bool,
}

/// The last event.
#[derive(Clone, Copy, Debug)]
struct Last {
    step: u64,
    /// Letter of the record; `None` if it was not a record.
    letter: Option<char>,
    /// Number of the record, from 1.
    record: u64,
    place: Place,
    /// Serial of the frame that ended; 0 if none did.
    left: u64,
}

/// The method in which something happened. Its context is computed only when an object is allocated or dies there.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In no method.
    Nowhere,
    /// In the innermost method of a thread.
    In(ThreadId),
    /// In a method that has just returned.
    Left(ThreadId, MethodId),
    /// The context has been computed.
    Known(ContextId),
}

/// Where and how an object died.
#[derive(Clone, Copy, Debug)]
struct Death {
    context: ContextId,
    tick: u64,
    made_bytes: u64,
    time: Option<Nanos>,
    thread: ThreadId,
    by: Last,
}

/// Rows of the table of objects.
#[derive(Debug, Default)]
struct Rows {
    number: Vec<i64>,
    object: Vec<i64>,
    class: Vec<i64>,
    kind: Vec<ByteArray>,
    size: Vec<i64>,
    length: Vec<i64>,
    site: Vec<i64>,
    context: Vec<i64>,
    thread: Vec<i64>,
    birth_tick: Vec<i64>,
    birth_bytes: Vec<i64>,
    birth_nanos: Vec<Option<i64>>,
    last_use_tick: Vec<i64>,
    death_tick: Vec<Option<i64>>,
    death_bytes: Vec<Option<i64>>,
    death_nanos: Vec<Option<i64>>,
    death_step: Vec<Option<i64>>,
    death_thread: Vec<Option<i64>>,
    death_context: Vec<Option<i64>>,
    death_record: Vec<Option<i64>>,
    death_kind: Vec<Option<ByteArray>>,
    escaped_thread: Vec<Option<bool>>,
    escaped_frame: Vec<Option<bool>>,
}

fn nanos(time: Option<Nanos>) -> Option<i64> {
    time.map(|time| time.0.cast_signed())
}

impl Rows {
    fn push(&mut self, life: &Life, death: Option<Death>, escaped_frame: Option<bool>, letters: &Letters) {
        let Alloc { kind, object, size, ty, site, length, thread } = life.alloc;
        self.number.push(life.number.cast_signed());
        self.object.push(object.0.cast_signed());
        self.class.push(ty.0.into());
        self.kind.push(letters.of(kind.letter()));
        self.size.push(size.cast_signed());
        self.length.push(length.into());
        self.site.push(site.0.into());
        self.context.push(life.context.0.into());
        self.thread.push(thread.0.into());
        self.birth_tick.push(life.tick.cast_signed());
        self.birth_bytes.push(life.made_bytes.cast_signed());
        self.birth_nanos.push(nanos(life.time));
        self.last_use_tick.push(life.last_use.cast_signed());
        self.death_tick.push(death.map(|death| death.tick.cast_signed()));
        self.death_bytes.push(death.map(|death| death.made_bytes.cast_signed()));
        self.death_nanos.push(death.and_then(|death| nanos(death.time)));
        self.death_step.push(death.map(|death| death.by.step.cast_signed()));
        self.death_thread.push(death.map(|death| death.thread.0.into()));
        self.death_context.push(death.map(|death| death.context.0.into()));
        let by_record = death.filter(|death| death.by.letter.is_some());
        self.death_record.push(by_record.map(|death| death.by.record.cast_signed()));
        self.death_kind.push(death.and_then(|death| death.by.letter).map(|letter| letters.of(letter)));
        // The thread that allocated an initial object is unknown.
        self.escaped_thread.push((thread.0 != 0).then_some(life.escaped_thread));
        self.escaped_frame.push(escaped_frame);
    }

    fn columns(self) -> Vec<Column> {
        vec![
            ("number", Values::Number(self.number)),
            ("object", Values::Number(self.object)),
            ("class", Values::Number(self.class)),
            ("kind", Values::Text(self.kind)),
            ("size", Values::Number(self.size)),
            ("length", Values::Number(self.length)),
            ("site", Values::Number(self.site)),
            ("context", Values::Number(self.context)),
            ("thread", Values::Number(self.thread)),
            ("birth_tick", Values::Number(self.birth_tick)),
            ("birth_bytes", Values::Number(self.birth_bytes)),
            ("birth_nanos", Values::Maybe(self.birth_nanos)),
            ("last_use_tick", Values::Number(self.last_use_tick)),
            ("death_tick", Values::Maybe(self.death_tick)),
            ("death_bytes", Values::Maybe(self.death_bytes)),
            ("death_nanos", Values::Maybe(self.death_nanos)),
            ("death_step", Values::Maybe(self.death_step)),
            ("death_thread", Values::Maybe(self.death_thread)),
            ("death_context", Values::Maybe(self.death_context)),
            ("death_record", Values::Maybe(self.death_record)),
            ("death_kind", Values::MaybeText(self.death_kind)),
            ("escaped_thread", Values::MaybeFlag(self.escaped_thread)),
            ("escaped_frame", Values::MaybeFlag(self.escaped_frame)),
        ]
    }
}

/// Letters of records as byte arrays.
#[derive(Debug)]
struct Letters(Vec<(char, ByteArray)>);

impl Letters {
    fn new() -> Self {
        Self(et_reader::record::LETTERS.iter().map(|&letter| (letter, letter.to_string().as_str().into())).collect())
    }

    fn of(&self, letter: char) -> ByteArray {
        self.0.iter().find(|(known, _)| *known == letter).map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

/// Rows of the table of cleared weak references, in the order of steps.
#[derive(Debug, Default)]
struct Clearings {
    step: Vec<i64>,
    /// Whether the step itself stores to a slot that was already null; if not, a record is inserted after the step.
    is_step: Vec<bool>,
    old: Vec<i64>,
    origin: Vec<i64>,
    slot: Vec<i64>,
    thread: Vec<i64>,
}

impl Clearings {
    fn push(&mut self, known: &Known) {
        let (step, is_step, ids, slot, thread) = match *known {
            Known::Cleared { at } => (at, true, [ObjectId::NULL; 2], 0, 0),
            Known::Found { after, record: Record::Update { old, origin, slot, thread, .. } } => {
                (after, false, [old, origin], slot.number(), thread.0)
            }
            Known::Found { .. } => return,
        };
        self.step.push(step.cast_signed());
        self.is_step.push(is_step);
        self.old.push(ids[0].0.cast_signed());
        self.origin.push(ids[1].0.cast_signed());
        self.slot.push(slot.into());
        self.thread.push(thread.into());
    }

    fn columns(self) -> Vec<Column> {
        vec![
            ("step", Values::Number(self.step)),
            ("is_step", Values::Flag(self.is_step)),
            ("old", Values::Number(self.old)),
            ("origin", Values::Number(self.origin)),
            ("slot", Values::Number(self.slot)),
            ("thread", Values::Number(self.thread)),
        ]
    }
}

/// Writes the tables.
#[derive(Debug)]
pub struct Maker {
    objects: Objects<Option<Life>>,
    stacks: Stacks<Option<ContextId>>,
    contexts: Contexts,
    letters: Letters,
    rows: Rows,
    used: Named,
    clearings: Clearings,
    lives: TableWriter,
    cleared: TableWriter,
    born: u64,
    made_bytes: u64,
    tick: u64,
    records: u64,
    time: Option<Nanos>,
    last: Last,
    /// The disk is full: further input is ignored.
    failed: bool,
}

/// The completed tables.
#[derive(Debug)]
pub struct Made {
    pub lives: Written,
    /// The table of cleared weak references.
    pub clearings: Written,
    pub contexts: Contexts,
    /// Number of objects.
    pub objects: u64,
    /// What the rows refer to.
    pub used: Named,
    /// The end of the trace.
    pub end: Moment,
}

/// What the rows refer to by number.
#[derive(Debug, Default)]
pub struct Named {
    pub classes: FxHashSet<TypeId>,
    /// Sites, except 0.
    pub sites: FxHashSet<SiteId>,
    pub threads: FxHashSet<ThreadId>,
}

impl Maker {
    /// Starts writing to two empty files.
    pub fn new(lives: File, clearings: File) -> Self {
        Self {
            objects: Objects::default(),
            stacks: Stacks::default(),
            contexts: Contexts::default(),
            letters: Letters::new(),
            rows: Rows::default(),
            used: Named::default(),
            clearings: Clearings::default(),
            lives: TableWriter::new("lives", lives, &Rows::default().columns()),
            cleared: TableWriter::new("clearings", clearings, &Clearings::default().columns()),
            born: 0,
            made_bytes: 0,
            tick: 0,
            records: 0,
            time: None,
            last: Last { step: 0, letter: None, record: 0, place: Place::Nowhere, left: 0 },
            failed: false,
        }
    }

    /// Receives the next item of a replay.
    #[inline]
    pub fn played(&mut self, played: &Played<'_>) {
        if self.failed {
            return;
        }
        match played {
            Played::Time(time) => self.time = Some(*time),
            Played::At(_) => {}
            Played::Step(number, step) => self.step(*number, step),
            Played::Found(record) => self.found(record),
        }
    }

    /// Receives the next item of any source. Without step numbers, deaths cannot be replayed from the resulting tables.
    #[inline]
    pub fn told(&mut self, told: &Told, at: &At<'_>) {
        // Threads are merged by their tickets, so a later chunk may have an earlier start.
        self.time = self.time.max(at.place.wall().map(|wall| wall.begin));
        match *told {
            Told::Record(ref record) if at.is_clearing || matches!(record, Record::Death { .. }) => self.found(record),
            Told::Record(record) => self.step(0, &Step::Record(record)),
            Told::Hold(Hold::Until { object, thread }) => self.step(0, &Step::Held { object, thread }),
            Told::Hold(Hold::Initial { origin, slot, target }) => {
                self.step(0, &Step::Initial { origin, target, slot, weak: false });
            }
            Told::Hold(Hold::ToTheEnd { .. }) => {}
        }
    }

    #[inline]
    fn step(&mut self, number: u64, step: &Step) {
        let Some(record) = step.record() else {
            // An object released by the VM was released by no method.
            let place = Place::Nowhere;
            self.last = Last { step: number, letter: None, record: self.records, place, left: 0 };
            return;
        };
        if let Step::WeakUpdate { old: ObjectId::NULL, .. } = step {
            self.clear(&Known::Cleared { at: number });
        }
        self.records += 1;
        let thread = record.thread();
        // Entries happen in the method that is entered, exits in the method that returns.
        let (mut place, mut left) = (Place::In(thread), 0);
        if let Record::Exit { .. } | Record::ExitThrow { .. } = record {
            place = self.stacks.top(thread).map_or(Place::Nowhere, |(_, top)| Place::Left(thread, top.method));
            self.stacks.record(&record);
            left = self.stacks.of_mut(thread).left;
        } else {
            self.stacks.record(&record);
        }
        self.last = Last { step: number, letter: Some(record.letter()), record: self.records, place, left };
        match record {
            Record::Alloc(alloc) => self.born(&alloc),
            // An update uses neither the new nor the old target.
            Record::Update { old, origin, target, .. } => {
                self.mentioned(origin, thread, true);
                self.mentioned(old, thread, false);
                self.mentioned(target, thread, false);
            }
            _ => record.objects().into_iter().for_each(|object| self.mentioned(object, thread, true)),
        }
        self.tick += u64::from(record.ticks());
    }

    /// Context in which the last step happened.
    fn context(&mut self) -> ContextId {
        let context = match self.last.place {
            Place::Nowhere => ContextId::EMPTY,
            Place::In(thread) => self.stacks.context(thread, &mut self.contexts),
            Place::Left(thread, method) => {
                let caller = self.stacks.context(thread, &mut self.contexts);
                self.contexts.call(caller, method)
            }
            Place::Known(context) => context,
        };
        // Many objects may die at one step.
        self.last.place = Place::Known(context);
        context
    }

    fn born(&mut self, alloc: &Alloc) {
        let context = self.context();
        if alloc.kind != AllocKind::Initial {
            self.made_bytes += alloc.size;
        }
        let life = Life {
            number: self.born,
            alloc: *alloc,
            context,
            frame: self.stacks.top(alloc.thread).map(|(frame, _)| frame),
            tick: self.tick,
            made_bytes: self.made_bytes,
            time: self.time,
            last_use: self.tick,
            escaped_thread: false,
        };
        self.born += 1;
        self.used.classes.insert(alloc.ty);
        self.used.threads.insert(alloc.thread);
        if alloc.site.0 != 0 {
            self.used.sites.insert(alloc.site);
        }
        self.objects.insert(alloc.object, Some(life));
    }

    #[inline]
    fn mentioned(&mut self, object: ObjectId, thread: ThreadId, is_use: bool) {
        let Some(node) = self.objects.node(object) else { return };
        let Some(life) = &mut self.objects[node] else { return };
        life.escaped_thread |= thread != life.alloc.thread;
        if is_use {
            life.last_use = self.tick;
        }
    }

    fn found(&mut self, record: &Record) {
        let Record::Death { object, thread } = *record else {
            self.clear(&Known::Found { after: self.last.step, record: *record });
            return;
        };
        let Some(node) = self.objects.forget(object) else { return };
        let life = self.objects[node].take();
        self.objects.free(node);
        self.used.threads.insert(thread);
        let Some(life) = life else { return };
        let (context, by) = (self.context(), self.last);
        let death = Death { context, tick: self.tick, made_bytes: self.made_bytes, time: self.time, thread, by };
        self.row(&life, Some(death));
    }

    fn row(&mut self, life: &Life, death: Option<Death>) {
        // An object that dies with the frame has not escaped it.
        let escaped_frame = life.frame.map(|frame| {
            self.stacks.running(frame).is_none() && death.is_none_or(|death| death.by.left != frame.serial)
        });
        self.rows.push(life, death, escaped_frame, &self.letters);
        if self.rows.number.len() >= GROUP {
            self.failed |= !self.lives.push(std::mem::take(&mut self.rows).columns());
        }
    }

    fn clear(&mut self, known: &Known) {
        self.clearings.push(known);
        if self.clearings.step.len() >= GROUP {
            self.failed |= !self.cleared.push(std::mem::take(&mut self.clearings).columns());
        }
    }

    /// Whether writing has failed; [`finish`](Self::finish) returns the error.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Ends the trace: objects that are still alive get their rows, in the order of their births.
    pub fn finish(mut self) -> io::Result<Made> {
        let mut alive: Vec<Life> = self.objects.iter().filter_map(|(_, life)| *life).collect();
        alive.sort_unstable_by_key(|life| life.number);
        for life in &alive {
            self.row(life, None);
        }
        if !self.rows.number.is_empty() {
            self.lives.push(self.rows.columns());
        }
        if !self.clearings.step.is_empty() {
            self.cleared.push(self.clearings.columns());
        }
        let (lives, clearings) = (self.lives.finish()?, self.cleared.finish()?);
        let end = Moment { tick: self.tick, bytes: self.made_bytes, nanos: self.time.map(|time| time.0) };
        Ok(Made { lives, clearings, contexts: self.contexts, objects: self.born, used: self.used, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_for_those_alive() {
        let file = || tempfile::tempfile().unwrap();
        let mut maker = Maker::new(file(), file());
        let thread = ThreadId(1);
        for number in 0..10_000 {
            let object = ObjectId(number + 1);
            let alloc =
                Alloc { kind: AllocKind::New, object, size: 16, ty: TypeId(1), site: SiteId(0), length: 0, thread };
            maker.played(&Played::Step(number, &Step::Record(Record::Alloc(alloc))));
            maker.played(&Played::Found(&Record::Death { object, thread }));
        }
        assert!(maker.objects.places() < 10, "{} places", maker.objects.places());
        let made = maker.finish().unwrap();
        assert_eq!(made.objects, 10_000);
    }
}
