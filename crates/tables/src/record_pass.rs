//! One pass over the records: calls, updates, references and exceptions.

use std::ops::ControlFlow;

use et_names::{FieldId, MethodId};
use et_reader::model::{ContextId, Contexts, Frame, Stacks};
use et_reader::place::Place;
use et_reader::record::{Clock, ObjectId, Record, Slot, ThreadId};
use et_reader::references::{End, Group, Mark, Stays};
use et_reader::source::{At, Ending, Reading, Source, SourceError};
use et_reader::told::{Hold, Told};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::book::TableWriter;
use crate::tables::{calls, exceptions, refs, updates};
use et_columns::Word;

/// Data of a call until it returns.
#[derive(Clone, Copy, Debug)]
struct Called {
    context: ContextId,
    /// Serial of the calling method's call; 0 if there is none.
    caller: u64,
    depth: u32,
    tick: u64,
    nanos: Option<i64>,
    objects: i64,
    bytes: i64,
}

/// An exception that is still in flight.
#[derive(Clone, Copy, Debug)]
struct Thrown {
    number: i64,
    exception: ObjectId,
    method: MethodId,
    receiver: ObjectId,
    context: ContextId,
    tick: u64,
    nanos: Option<i64>,
    frames: i64,
}

/// What rows refer to and other tables have to explain.
#[derive(Debug, Default)]
pub struct Named {
    /// Fields that were stored to.
    pub fields: FxHashSet<FieldId>,
    /// Methods that threw or caught exceptions.
    pub methods: FxHashSet<MethodId>,
    /// Threads that entered a method.
    pub threads: FxHashSet<ThreadId>,
}

/// The tables to fill; `None` if one is not wanted.
#[derive(Debug)]
pub struct Fill {
    pub calls: Option<TableWriter<calls::Rows>>,
    pub updates: Option<TableWriter<updates::Rows>>,
    pub exceptions: Option<TableWriter<exceptions::Rows>>,
    pub refs: Option<TableWriter<refs::Rows>>,
}

impl Fill {
    /// Leaves them empty.
    pub fn finish(self) {
        self.calls.into_iter().for_each(TableWriter::finish);
        self.updates.into_iter().for_each(TableWriter::finish);
        self.exceptions.into_iter().for_each(TableWriter::finish);
        self.refs.into_iter().for_each(TableWriter::finish);
    }
}

/// The references that slots hold, on their way to the table.
#[derive(Debug)]
struct Held {
    stays: Stays,
    table: TableWriter<refs::Rows>,
}

impl Held {
    fn put(&mut self, store: (ObjectId, Slot, ObjectId), mark: Mark, how: End) {
        let Self { stays, table } = self;
        stays.put(store, mark, how, |group| write(table, &group));
    }

    fn died(&mut self, object: ObjectId, mark: Mark) {
        let Self { stays, table } = self;
        stays.died(object, mark, |group| write(table, &group));
    }

    fn finish(self) {
        let Self { stays, mut table } = self;
        stays.finish(|group| write(&mut table, &group));
        table.finish();
    }
}

fn write(table: &mut TableWriter<refs::Rows>, group: &Group) {
    group.iter().for_each(|stay| table.push(et_lives::reference_row(stay)));
    table.end_group();
}

/// State of the pass.
#[derive(Debug)]
pub struct Pass {
    fill: Fill,
    held: Option<Held>,
    /// The last record.
    last: Mark,
    stacks: Stacks<Called>,
    contexts: Contexts,
    thrown: FxHashMap<ThreadId, Thrown>,
    named: Named,
    place: Place,
    nanos: Option<i64>,
    clock: Clock,
    tick: u64,
    updates: i64,
    exceptions: i64,
}

/// Result of the pass.
#[derive(Debug)]
pub struct Passed {
    /// Calling contexts, including those that were known before.
    pub contexts: Contexts,
    /// What rows refer to and other tables have to explain.
    pub named: Named,
    /// The clock at the end.
    pub tick: u64,
    /// Bytes allocated by the end.
    pub bytes: u64,
    /// Time at the end in nanoseconds since the start of the run; `None` if the trace has no times.
    pub nanos: Option<i64>,
    /// Results of reading the trace.
    pub ending: Ending,
}

/// Object id; `None` for null.
fn id(object: ObjectId) -> Option<i64> {
    (!object.is_null()).then_some(object.0.cast_signed())
}

impl Pass {
    /// Fills the tables from all records. Starts with the known `contexts`, so that numbers agree with other tables.
    pub fn over(source: &Source, reading: Reading, contexts: Contexts, mut fill: Fill) -> Result<Passed, SourceError> {
        let held = fill.refs.take().map(|table| Held { stays: Stays::default(), table });
        let holders = held.is_some() && source.tells_holders();
        let mut pass = Self {
            fill,
            held,
            last: Mark::default(),
            stacks: Stacks::default(),
            contexts,
            thrown: FxHashMap::default(),
            named: Named::default(),
            place: Place::default(),
            nanos: None,
            clock: source.clock(reading.clock),
            tick: 0,
            updates: 0,
            exceptions: 0,
        };
        let ending = source.for_each_told(Reading { holders, places: true, ..reading }, |told, at| {
            match told {
                Told::Record(record) => pass.record(record, at),
                Told::Hold(hold) => pass.hold(hold),
            }
            if pass.have_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(pass.finish(ending))
    }

    #[inline]
    fn record(&mut self, record: &Record, at: &At<'_>) {
        if at.place != self.place {
            self.place = at.place;
            // Threads are merged by their tickets, so a later chunk may have an earlier start.
            self.nanos = self.nanos.max(at.place.wall().map(|wall| wall.begin.0.cast_signed()));
        }
        self.tick = at.tick.0 + record.ticks(self.clock);
        let tick = at.tick.0;
        if !at.is_clearing && !matches!(record, Record::Death { .. }) {
            self.last.record += 1;
            self.last.tick = tick;
            self.last.nanos = self.nanos.map(i64::cast_unsigned);
        }
        match *record {
            Record::Entry { method, thread, .. } => self.enter(record, method, thread, tick),
            Record::Exit { thread, .. } => {
                self.leave(thread, tick, Word("E"), ObjectId::NULL);
                self.stacks.record_with(record, |_| nothing());
            }
            Record::ExitThrow { thread, exception, .. } => {
                self.leave(thread, tick, Word("X"), exception);
                self.stacks.record_with(record, |_| nothing());
                self.left(thread, tick);
            }
            Record::Throw { method, receiver, exception, thread } => {
                self.end_of(thread, tick, Word("replaced"), None);
                self.stacks.record_with(record, |_| nothing());
                let context = self.context(thread);
                let (number, nanos) = (self.exceptions, self.nanos);
                let thrown = Thrown { number, exception, method, receiver, context, tick, nanos, frames: 0 };
                self.thrown.insert(thread, thrown);
                self.named.methods.insert(method);
                self.exceptions += 1;
            }
            Record::Handle { method, thread, .. } => {
                let caught = (method, self.context(thread));
                self.end_of(thread, tick, Word("caught"), Some(caught));
                self.stacks.record_with(record, |_| nothing());
            }
            Record::Update { old, origin, target, slot, thread } => {
                // A reference cleared because its referent died is stored by no thread.
                let thread = if at.is_clearing { ThreadId(0) } else { thread };
                self.update((old, origin, target), slot, thread, tick);
            }
            Record::Alloc(alloc) if record.letter() != 'I' => {
                self.last.bytes += alloc.size;
                self.born(alloc.object);
                if self.stacks.top(alloc.thread).is_some()
                    && let Some(top) = self.stacks.of_mut(alloc.thread).frames.last_mut()
                {
                    top.data.objects += 1;
                    top.data.bytes += alloc.size.cast_signed();
                }
            }
            Record::Alloc(alloc) => self.born(alloc.object),
            Record::Death { object, .. } => {
                if let Some(held) = &mut self.held {
                    held.died(object, self.last);
                }
            }
            Record::Use { .. } => {}
        }
    }

    fn born(&mut self, object: ObjectId) {
        if let Some(held) = &mut self.held {
            held.stays.born(object);
        }
    }

    /// Takes what holds an object although no record says so.
    fn hold(&mut self, hold: &Hold) {
        if let (Some(held), Hold::Initial { origin, slot, target }) = (&mut self.held, hold) {
            held.put((*origin, *slot, *target), Mark::default(), End::Overwritten);
            if let Slot::Field(field) = slot {
                self.named.fields.insert(*field);
            }
        }
    }

    fn have_failed(&self) -> bool {
        self.fill.have_failed() || self.held.as_ref().is_some_and(|held| held.table.has_failed())
    }

    fn context(&self, thread: ThreadId) -> ContextId {
        self.stacks.top(thread).map_or(ContextId::EMPTY, |(_, frame)| frame.data.context)
    }

    #[inline]
    fn enter(&mut self, record: &Record, method: MethodId, thread: ThreadId, tick: u64) {
        let (contexts, nanos) = (&mut self.contexts, self.nanos);
        let mut is_outermost = false;
        self.stacks.record_with(record, |below| {
            is_outermost = below.is_none();
            let context = contexts.call(below.map_or(ContextId::EMPTY, |below| below.data.context), method);
            let (caller, depth) = below.map_or((0, 1), |below| (below.serial, below.data.depth + 1));
            Called { context, caller, depth, tick, nanos, objects: 0, bytes: 0 }
        });
        if is_outermost {
            self.named.threads.insert(thread);
        }
    }

    /// Handles the end of a thread's innermost call.
    #[inline]
    fn leave(&mut self, thread: ThreadId, tick: u64, by: Word, exception: ObjectId) {
        let Some(calls) = &mut self.fill.calls else { return };
        if let Some((_, frame)) = self.stacks.top(thread) {
            calls.push(call(frame, thread, Some((tick, self.nanos, by, exception))));
        }
    }

    /// Handles a call that ends with the exception in flight.
    fn left(&mut self, thread: ThreadId, tick: u64) {
        if let Some(thrown) = self.thrown.get_mut(&thread) {
            thrown.frames += 1;
            if self.stacks.top(thread).is_none() {
                self.end_of(thread, tick, Word("uncaught"), None);
            }
        }
    }

    /// Ends the row of the exception in flight in a thread.
    fn end_of(&mut self, thread: ThreadId, tick: u64, how: Word, caught: Option<(MethodId, ContextId)>) {
        if let Some(thrown) = self.thrown.remove(&thread) {
            self.named.methods.extend(caught.map(|(method, _)| method));
            let end = Some((tick, self.nanos));
            if let Some(exceptions) = &mut self.fill.exceptions {
                exceptions.push(exception(&thrown, thread, how, end, caught));
            }
        }
    }

    #[inline]
    fn update(
        &mut self,
        (old, origin, target): (ObjectId, ObjectId, ObjectId),
        slot: Slot,
        thread: ThreadId,
        tick: u64,
    ) {
        let context = self.context(thread);
        if let Some(held) = &mut self.held {
            let how = if thread.0 == 0 { End::Cleared } else { End::Overwritten };
            held.put((origin, slot, target), Mark { thread, context, ..self.last }, how);
        }
        let (field, element) = match slot {
            Slot::Field(field) => {
                self.named.fields.insert(field);
                (Some(field.0.into()), None)
            }
            Slot::Element(index) => (None, Some(index.into())),
        };
        if let Some(updates) = &mut self.fill.updates {
            updates.push(updates::Row {
                number: self.updates,
                tick: tick.cast_signed(),
                nanos: self.nanos,
                thread: (thread.0 != 0).then_some(thread.0.into()),
                context: context.0.into(),
                object: id(origin),
                field,
                element,
                old_target: id(old),
                new_target: id(target),
            });
        }
        self.updates += 1;
    }

    /// Writes rows for calls and exceptions that have not ended.
    fn finish(mut self, ending: Ending) -> Passed {
        if let Some(calls) = &mut self.fill.calls {
            let mut stacks: Vec<_> = self.stacks.iter().collect();
            stacks.sort_unstable_by_key(|(thread, _)| *thread);
            for (thread, stack) in stacks {
                stack.frames.iter().for_each(|frame| calls.push(call(frame, thread, None)));
            }
        }
        let mut thrown: Vec<_> = self.thrown.drain().collect();
        thrown.sort_unstable_by_key(|(_, thrown)| thrown.number);
        if let Some(exceptions) = &mut self.fill.exceptions {
            for (thread, thrown) in thrown {
                exceptions.push(exception(&thrown, thread, Word("in flight"), None, None));
            }
        }
        if let Some(held) = self.held {
            held.finish();
        }
        let Fill { calls, updates, exceptions, refs: _ } = self.fill;
        if let Some(calls) = calls {
            calls.finish();
        }
        if let Some(updates) = updates {
            updates.finish();
        }
        if let Some(exceptions) = exceptions {
            exceptions.finish();
        }
        let Self { contexts, named, tick, last, nanos, .. } = self;
        Passed { contexts, named, tick, bytes: last.bytes, nanos, ending }
    }
}

impl Fill {
    fn have_failed(&self) -> bool {
        self.calls.as_ref().is_some_and(TableWriter::has_failed)
            || self.updates.as_ref().is_some_and(TableWriter::has_failed)
            || self.exceptions.as_ref().is_some_and(TableWriter::has_failed)
    }
}

/// Placeholder for records that are not entries.
fn nothing() -> Called {
    Called { context: ContextId::EMPTY, caller: 0, depth: 0, tick: 0, nanos: None, objects: 0, bytes: 0 }
}

fn call(frame: &Frame<Called>, thread: ThreadId, exit: Option<(u64, Option<i64>, Word, ObjectId)>) -> calls::Row {
    let Frame { method, receiver, serial, data } = *frame;
    calls::Row {
        call: serial.cast_signed(),
        caller: (data.caller != 0).then_some(data.caller.cast_signed()),
        thread: thread.0.into(),
        method: method.0.into(),
        receiver: id(receiver),
        context: data.context.0.into(),
        depth: data.depth.into(),
        entry_tick: data.tick.cast_signed(),
        entry_nanos: data.nanos,
        exit_tick: exit.map(|(tick, ..)| tick.cast_signed()),
        exit_nanos: exit.and_then(|(_, nanos, ..)| nanos),
        left_by: exit.map(|(_, _, by, _)| by),
        exception: exit.and_then(|(.., exception)| id(exception)),
        allocated_objects: data.objects,
        allocated_bytes: data.bytes,
    }
}

fn exception(
    thrown: &Thrown,
    thread: ThreadId,
    ended: Word,
    end: Option<(u64, Option<i64>)>,
    caught: Option<(MethodId, ContextId)>,
) -> exceptions::Row {
    exceptions::Row {
        number: thrown.number,
        exception: thrown.exception.0.cast_signed(),
        thread: thread.0.into(),
        method: thrown.method.0.into(),
        receiver: id(thrown.receiver),
        context: thrown.context.0.into(),
        tick: thrown.tick.cast_signed(),
        nanos: thrown.nanos,
        ended,
        caught_method: caught.map(|(method, _)| method.0.into()),
        caught_context: caught.map(|(_, context)| context.0.into()),
        ended_tick: end.map(|(tick, _)| tick.cast_signed()),
        ended_nanos: end.and_then(|(_, nanos)| nanos),
        frames: thrown.frames,
    }
}
