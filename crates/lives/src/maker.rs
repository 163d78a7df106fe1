//! Makes the rows of a life table from what happens to objects.

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

/// Rows of a group. A reader decides by the statistics of a group whether to look into it.
const GROUP: usize = 1 << 17;

/// An object that is alive.
#[derive(Clone, Copy, Debug)]
struct Life {
    number: u64,
    alloc: Alloc,
    context: ContextId,
    /// The frame that was on top when it was allocated.
    frame: Option<FrameRef>,
    tick: u64,
    made_bytes: u64,
    time: Option<Nanos>,
    last_use: u64,
    escaped_thread: bool,
}

/// What happened last.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Number of the step.
    step: u64,
    /// `None`: it was no record.
    letter: Option<char>,
    /// Number of the record, from 1.
    record: u64,
    place: Place,
    /// Serial of the frame that it left, 0 if it left none.
    left: u64,
}

/// In which method something happened. Which context that is, is worked out where an object is made or dies; nobody asks for others.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In none.
    Nowhere,
    /// In the innermost of a thread.
    In(ThreadId),
    /// In one that it has left.
    Left(ThreadId, MethodId),
    /// It is known.
    Known(ContextId),
}

/// Where an object died, and how.
#[derive(Clone, Copy, Debug)]
struct Death {
    context: ContextId,
    tick: u64,
    made_bytes: u64,
    time: Option<Nanos>,
    thread: ThreadId,
    by: Last,
}

/// What an object's row says.
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
        // Who made what was there when tracing began is not known.
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

/// The letters of records, made once.
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

/// What else was found about weak references: in the order of its steps.
#[derive(Debug, Default)]
struct Clearings {
    step: Vec<i64>,
    /// Whether the step itself stores into a slot that held null by then; else a record stands behind the step.
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

/// Tables that are being written.
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
    /// The disk takes no more: the rest is not looked at.
    failed: bool,
}

/// What was made.
#[derive(Debug)]
pub struct Made {
    /// The table of objects.
    pub lives: Written,
    /// The table of weak references that were cleared.
    pub clearings: Written,
    /// The tree of calling contexts.
    pub contexts: Contexts,
    /// How many objects there are.
    pub objects: u64,
    /// Their classes and sites.
    pub used: Named,
    /// Where the trace ends.
    pub end: Moment,
}

/// What the rows name.
#[derive(Debug, Default)]
pub struct Named {
    /// Classes.
    pub classes: FxHashSet<TypeId>,
    /// Sites, but 0.
    pub sites: FxHashSet<SiteId>,
    /// Threads.
    pub threads: FxHashSet<ThreadId>,
}

impl Maker {
    /// Begins to write into two empty files.
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

    /// What comes next.
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

    /// As [`played`](Self::played), from what any source tells. Steps have no numbers then, and so there is no reading deaths
    /// again from what is made.
    #[inline]
    pub fn told(&mut self, told: &Told, at: &At<'_>) {
        // Threads are merged by their tickets: a chunk that comes up later may have been begun before.
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
            // What the VM holds no longer: no method did it.
            let place = Place::Nowhere;
            self.last = Last { step: number, letter: None, record: self.records, place, left: 0 };
            return;
        };
        if let Step::WeakUpdate { old: ObjectId::NULL, .. } = step {
            self.clear(&Known::Cleared { at: number });
        }
        self.records += 1;
        let thread = record.thread();
        // It happens in the method that is entered, and in the one that is left.
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
            // What an update stores, and what the slot held, it does not use.
            Record::Update { old, origin, target, .. } => {
                self.mentioned(origin, thread, true);
                self.mentioned(old, thread, false);
                self.mentioned(target, thread, false);
            }
            _ => record.objects().into_iter().for_each(|object| self.mentioned(object, thread, true)),
        }
        self.tick += u64::from(record.ticks());
    }

    /// Where the last step happened.
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
        // Many may die of one step.
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
        // What dies with the frame has not left it.
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

    /// Whether the disk takes no more; [`finish`](Self::finish) says why.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// The trace has ended: those alive get their rows, in the order of their births.
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
