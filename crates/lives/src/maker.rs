//! Makes the rows of a life table from the content of a trace.

use std::fs::File;
use std::io;
use std::sync::Arc;

use et_columns::{TableWriter, Word, Written};
use et_format::Nanos;
use et_names::{MethodId, SiteId};
use et_reader::batch::At;
use et_reader::blocks::{Late, LifeRow, RowDeath};
use et_reader::lifetimes::{Known, Played, Step};
use et_reader::model::{ContextId, Contexts, FrameRef, Objects, Stacks};
use et_reader::population::Moment;
use et_reader::record::{Alloc, AllocKind, Clock, ObjectId, Record, RecordKind, StackId, ThreadId};
use et_reader::stack_contexts::StackContexts;
use et_reader::stacks::StackTable;
use et_reader::survival::Survival;
use et_reader::told::{Hold, Told};
use et_reader::types::TypeId;
use rustc_hash::FxHashSet;

use crate::tables::{clearings, objects};

/// A live object.
#[derive(Clone, Copy, Debug)]
struct Life {
    row: LifeRow,
    /// The innermost frame when it was allocated.
    frame: Option<FrameRef>,
}

/// The last event.
#[derive(Clone, Copy, Debug)]
struct Last {
    step: u64,
    /// `None` if it was not a record.
    kind: Option<RecordKind>,
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

fn nanos(time: Option<Nanos>) -> Option<i64> {
    time.map(|time| time.0.cast_signed())
}

/// Whether another thread had the object; `None` for what was there when tracing began, since it is not known which
/// thread made it.
pub fn escaped_thread(life: &LifeRow) -> Option<bool> {
    (life.alloc.thread.0 != 0).then_some(life.escaped_thread)
}

/// The row of an object; `escaped_thread` is `None` if it is not known.
pub fn object_row(life: &LifeRow, escaped_thread: Option<bool>) -> objects::Row {
    let Alloc { kind, object, size, ty, site, length, thread, stack: _ } = life.alloc;
    let death = life.death;
    let by_record = death.and_then(|death| death.record);
    objects::Row {
        number: life.number.cast_signed(),
        object: object.0.cast_signed(),
        class: ty.0.into(),
        kind: Word(kind.record_kind().text()),
        size: size.cast_signed(),
        length: length.into(),
        site: site.0.into(),
        context: life.context.0.into(),
        thread: thread.0.into(),
        birth_tick: life.tick.cast_signed(),
        birth_bytes: life.bytes.cast_signed(),
        birth_nanos: nanos(life.time),
        last_use_tick: life.last_use.cast_signed(),
        death_tick: death.map(|death| death.tick.cast_signed()),
        death_bytes: death.map(|death| death.bytes.cast_signed()),
        death_nanos: death.and_then(|death| nanos(death.time)),
        death_step: death.map(|death| death.step.cast_signed()),
        death_thread: death.map(|death| death.thread.0.into()),
        death_context: death.map(|death| death.context.0.into()),
        death_record: by_record.map(|(_, number)| number.cast_signed()),
        death_kind: by_record.map(|(kind, _)| Word(kind.text())),
        escaped_thread,
        escaped_frame: life.escaped_frame,
    }
}

/// `None`: it is no clearing.
pub fn clearing_row(known: &Known) -> Option<clearings::Row> {
    let (step, is_step, ids, slot, thread) = match *known {
        Known::Cleared { at } => (at, true, [ObjectId::NULL; 2], 0, 0),
        Known::Found { after, record: Record::Update { old, origin, slot, thread, .. } } => {
            (after, false, [old, origin], slot.number(), thread.0)
        }
        Known::Found { .. } => return None,
    };
    let [old, origin] = ids.map(|id| id.0.cast_signed());
    Some(clearings::Row { step: step.cast_signed(), is_step, old, origin, slot: slot.into(), thread: thread.into() })
}

/// What of objects the rows say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// From birth to death, or to the end.
    Lives,
    /// How they were made only. Without deaths, memory would otherwise grow with each object.
    Births,
}

/// Writes the tables.
#[derive(Debug)]
pub struct Maker {
    /// Those that the trace has of its own.
    known_stacks: Arc<StackTable>,
    of_stacks: StackContexts,
    follows: Follows,
    objects: Objects<Option<Life>>,
    stacks: Stacks<Option<ContextId>>,
    contexts: Contexts,
    used: Named,
    lives: TableWriter<objects::Rows>,
    cleared: TableWriter<clearings::Rows>,
    born: u64,
    made_bytes: u64,
    clock: Clock,
    tick: u64,
    records: u64,
    time: Option<Nanos>,
    last: Last,
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
    /// Rows that are not in order.
    pub late: Late,
    /// What the rows say.
    pub follows: Follows,
    /// What walks through the heap say of the objects, if only births are followed and there were walks.
    pub survival: Option<MadeFates>,
}

/// What walks through the heap say of the objects of a table.
#[derive(Debug)]
pub struct MadeFates {
    pub survival: Arc<Survival>,
    /// The table of fates, and that of the walks.
    pub fates: Written,
    pub walks: Written,
}

/// What the rows refer to by number.
#[derive(Debug, Default)]
pub struct Named {
    pub classes: FxHashSet<TypeId>,
    /// Sites, except 0.
    pub sites: FxHashSet<SiteId>,
    pub threads: FxHashSet<ThreadId>,
}

impl Named {
    /// Adds what a row refers to.
    pub fn saw(&mut self, row: &LifeRow) {
        self.classes.insert(row.alloc.ty);
        self.threads.insert(row.alloc.thread);
        if row.alloc.site.0 != 0 {
            self.sites.insert(row.alloc.site);
        }
        self.threads.extend(row.death.map(|death| death.thread));
    }
}

impl Maker {
    /// Starts writing to two empty files; times are ticks of that clock.
    pub fn new(known_stacks: Arc<StackTable>, [lives, clearings]: [File; 2], clock: Clock, follows: Follows) -> Self {
        Self {
            known_stacks,
            of_stacks: StackContexts::default(),
            follows,
            objects: Objects::default(),
            stacks: Stacks::default(),
            contexts: Contexts::default(),
            used: Named::default(),
            lives: TableWriter::new(lives),
            cleared: TableWriter::new(clearings),
            born: 0,
            made_bytes: 0,
            clock,
            tick: 0,
            records: 0,
            time: None,
            last: Last { step: 0, kind: None, record: 0, place: Place::Nowhere, left: 0 },
        }
    }

    /// Receives the next item of a replay.
    #[inline]
    pub fn played(&mut self, played: &Played<'_>) {
        if self.failed() {
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
            Told::Record(ref record) if self.follows == Follows::Births => self.birth(record),
            Told::Record(ref record) if at.is_clearing || matches!(record, Record::Death { .. }) => self.found(record),
            Told::Record(record) => self.step(0, &Step::Record(record)),
            Told::Hold(Hold::Until { object, thread }) => self.step(0, &Step::Held { object, thread }),
            Told::Hold(Hold::Initial { origin, slot, target }) => {
                self.step(0, &Step::Initial { origin, target, slot, weak: false });
            }
            Told::Hold(Hold::ToTheEnd { .. }) => {}
        }
    }

    /// How far the trace has come, and how many objects there have been.
    pub fn now(&self) -> (Moment, u64) {
        (Moment { tick: self.tick, bytes: self.made_bytes, nanos: self.time.map(|time| time.0) }, self.born)
    }

    #[inline]
    fn step(&mut self, number: u64, step: &Step) {
        let Some(record) = step.record() else {
            // An object released by the VM was released by no method.
            let place = Place::Nowhere;
            self.last = Last { step: number, kind: None, record: self.records, place, left: 0 };
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
        self.last = Last { step: number, kind: Some(record.kind()), record: self.records, place, left };
        match record {
            Record::Alloc(alloc) => self.born(&alloc),
            // An update uses neither the new nor the old target.
            Record::Update { old, origin, target, .. } => {
                self.mentioned(origin, thread, true);
                self.mentioned(old, thread, false);
                self.mentioned(target, thread, false);
            }
            Record::Entry { .. }
            | Record::Exit { .. }
            | Record::ExitThrow { .. }
            | Record::Throw { .. }
            | Record::Handle { .. }
            | Record::Death { .. }
            | Record::Use { .. } => {
                record.objects().into_iter().for_each(|object| self.mentioned(object, thread, true));
            }
        }
        self.tick += record.ticks(self.clock);
    }

    /// Of a record only how an object was made.
    #[inline]
    fn birth(&mut self, record: &Record) {
        match record {
            Record::Alloc(alloc) => {
                self.last.place = Place::In(alloc.thread);
                self.born(alloc);
            }
            _ => self.stacks.record(record),
        }
        self.tick += record.ticks(self.clock);
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
        let context = match alloc.stack {
            StackId::NONE => self.context(),
            stack => self.of_stacks.of(stack, &self.known_stacks, &mut self.contexts),
        };
        if alloc.kind != AllocKind::Initial {
            self.made_bytes += alloc.size;
        }
        let row = LifeRow {
            number: self.born,
            alloc: *alloc,
            context,
            tick: self.tick,
            bytes: self.made_bytes,
            time: self.time,
            last_use: self.tick,
            escaped_thread: false,
            escaped_frame: None,
            death: None,
        };
        self.born += 1;
        self.used.saw(&row);
        match self.follows {
            Follows::Lives => {
                let frame = self.stacks.top(alloc.thread).map(|(frame, _)| frame);
                self.objects.insert(alloc.object, Some(Life { row, frame }));
            }
            Follows::Births => self.lives.push(object_row(&row, None)),
        }
    }

    #[inline]
    fn mentioned(&mut self, object: ObjectId, thread: ThreadId, is_use: bool) {
        let Some(node) = self.objects.node(object) else { return };
        let Some(Life { row, .. }) = &mut self.objects[node] else { return };
        row.escaped_thread |= thread != row.alloc.thread;
        if is_use {
            row.last_use = self.tick;
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
        let death = RowDeath {
            step: by.step,
            record: by.kind.map(|kind| (kind, by.record)),
            tick: self.tick,
            bytes: self.made_bytes,
            time: self.time,
            thread,
            context,
        };
        self.row(life, Some(death));
    }

    fn row(&mut self, Life { row, frame }: Life, death: Option<RowDeath>) {
        // An object that dies with the frame has not escaped it.
        let escaped_frame = frame
            .map(|frame| self.stacks.running(frame).is_none() && (death.is_none() || self.last.left != frame.serial));
        let row = LifeRow { escaped_frame, death, ..row };
        self.lives.push(object_row(&row, escaped_thread(&row)));
    }

    fn clear(&mut self, known: &Known) {
        if let Some(row) = clearing_row(known) {
            self.cleared.push(row);
        }
    }

    /// Whether writing has failed; [`finish`](Self::finish) returns the error.
    pub fn failed(&self) -> bool {
        self.lives.has_failed() || self.cleared.has_failed()
    }

    /// Ends the trace: objects that are still alive get their rows, in the order of their births.
    pub fn finish(mut self) -> io::Result<Made> {
        let mut alive: Vec<Life> = self.objects.iter().filter_map(|(_, life)| *life).collect();
        alive.sort_unstable_by_key(|life| life.row.number);
        for life in alive {
            self.row(life, None);
        }
        let (lives, clearings) = (self.lives.finish()?, self.cleared.finish()?);
        let end = Moment { tick: self.tick, bytes: self.made_bytes, nanos: self.time.map(|time| time.0) };
        Ok(Made {
            lives,
            clearings,
            contexts: self.contexts,
            objects: self.born,
            used: self.used,
            end,
            late: Late::default(),
            follows: self.follows,
            survival: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_for_those_alive() {
        let file = || tempfile::tempfile().unwrap();
        let mut maker = Maker::new(Arc::default(), [file(), file()], Clock::default(), Follows::Lives);
        let thread = ThreadId(1);
        for number in 0..10_000 {
            let object = ObjectId(number + 1);
            let alloc = Alloc {
                kind: AllocKind::New,
                object,
                size: 16,
                ty: TypeId(1),
                site: SiteId(0),
                length: 0,
                stack: Default::default(),
                thread,
            };
            maker.played(&Played::Step(number, &Step::Record(Record::Alloc(alloc))));
            maker.played(&Played::Found(&Record::Death { object, thread }));
        }
        assert!(maker.objects.places() < 10, "{} places", maker.objects.places());
        let made = maker.finish().unwrap();
        assert_eq!(made.objects, 10_000);
    }
}
