//! The checks.

use et_names::MethodId;
use rustc_hash::FxHashSet;

use super::objects::{KnownObjects, Standing};
use super::{Report, mentions, shown};
use et_reader::model::{Stack, Stacks};
use et_reader::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId, Totals};
use et_reader::types::{TypeId, Types};

/// A frame is known by the place of its entry.
#[derive(Clone, Copy, Debug, Default)]
struct Entered(u64);

/// Checks records one by one.
#[derive(Debug, Default)]
pub struct Checker {
    limit: usize,
    position: u64,
    totals: Totals,
    violations: Violations,
    /// Unknown types; `None` if the trace is cut off, since classes may have no record yet.
    unless_cut_off: Violations,
    objects: KnownObjects,
    stacks: Stacks<Entered>,
}

/// How many there are, and the first of them, with the places where they were found; those of the end have the last place of all.
#[derive(Debug, Default)]
struct Violations {
    count: u64,
    shown: Vec<(u64, String)>,
}

/// Where the end of a trace is found to be wrong.
const AT_END: u64 = u64::MAX;

impl Checker {
    /// Describes at most `limit` violations, counts all.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Notes a violation at this record.
    pub fn violation(&mut self, record: &Record, types: &Types, what: &str, objects: &[ObjectId]) {
        self.violation_at(self.position, &format!("{}: {what}", shown(record, types)), objects);
    }

    fn violation_at(&mut self, position: u64, what: &str, objects: &[ObjectId]) {
        Self::note(&mut self.violations, &self.objects, self.limit, (position, what), objects);
    }

    /// As [`violation`](Self::violation), but none if the trace turns out to be cut off.
    fn violation_unless_cut_off(&mut self, record: &Record, types: &Types, what: &str, objects: &[ObjectId]) {
        let what = format!("{}: {what}", shown(record, types));
        Self::note(&mut self.unless_cut_off, &self.objects, self.limit, (self.position, &what), objects);
    }

    fn note(
        violations: &mut Violations,
        known: &KnownObjects,
        limit: usize,
        (position, what): (u64, &str),
        objects: &[ObjectId],
    ) {
        violations.count += 1;
        if violations.shown.len() >= limit {
            return;
        }
        let mut line = if position == AT_END { format!("end: {what}") } else { format!("{position}: {what}") };
        for &object in objects.iter().filter(|object| !object.is_null()) {
            line += &format!(" [{}]", known.history(object));
        }
        violations.shown.push((position, line));
    }

    /// The next record; its position is its number, from 1.
    pub fn record(&mut self, record: &Record, types: &Types) {
        self.record_at(record, types, self.position + 1);
    }

    /// Checks the next record; `position` is its number.
    pub fn record_at(&mut self, record: &Record, types: &Types, position: u64) {
        self.totals.count(record);
        if self.objects.is_any_dying() && !matches!(record, Record::Death { .. }) {
            self.settle_deaths();
        }
        self.position = position;
        if let Record::Alloc(alloc) = record {
            self.alloc(record, alloc, types);
            return;
        }
        let letter = record.letter();
        for object in mentions(record) {
            let what = match self.objects.mention(object, position, letter) {
                Standing::Alive => continue,
                Standing::Unknown => format!("object {:x} has no allocation record before this", object.0),
                Standing::Dead => format!("object {:x} is dead", object.0),
            };
            self.violation(record, types, &what, &[object]);
        }
        match *record {
            Record::Update { old, origin, target, slot, .. } => self.update(record, types, old, origin, slot, target),
            Record::Entry { .. } => self.stacks.record_with(record, |_| Entered(position)),
            Record::Exit { method, receiver, thread } => self.exit(record, types, thread, method, receiver),
            Record::ExitThrow { method, receiver, exception, thread } => {
                self.in_flight(record, types, thread, exception);
                self.exit(record, types, thread, method, receiver);
            }
            Record::Throw { method, receiver, exception, thread } => {
                self.in_frame(record, types, thread, method, receiver);
                if exception.is_null() {
                    self.violation(record, types, "the exception is null", &[]);
                }
                self.stacks.record(record);
            }
            Record::Handle { method, receiver, exception, thread } => {
                self.in_frame(record, types, thread, method, receiver);
                self.in_flight(record, types, thread, exception);
                self.stacks.record(record);
            }
            Record::Death { object, .. } => {
                if object.is_null() {
                    self.violation(record, types, "null does not die", &[]);
                }
                self.objects.die(object, position);
            }
            Record::Alloc(_) | Record::Use { .. } => {}
        }
    }

    /// Deaths between the same two records are simultaneous: what holds itself in a circle dies at once.
    fn settle_deaths(&mut self) {
        for early in self.objects.settle() {
            let what = if early.holder.is_null() {
                format!("object {:x} died while it was still held", early.object.0)
            } else {
                format!("object {:x} died while {:x} held it", early.object.0, early.holder.0)
            };
            self.violation_at(early.position, &what, &[early.object, early.holder]);
        }
    }

    fn alloc(&mut self, record: &Record, alloc: &Alloc, types: &Types) {
        if alloc.object.is_null() {
            return self.violation(record, types, "object 0 is null and cannot be allocated", &[]);
        }
        let born_empty = matches!(alloc.kind, AllocKind::New | AllocKind::Array);
        let is_new = self.objects.allocate(alloc.object, born_empty);
        self.objects.mention(alloc.object, self.position, record.letter());
        if !is_new {
            let what = format!("object {:x} was allocated or mentioned before", alloc.object.0);
            self.violation(record, types, &what, &[alloc.object]);
        }
        if alloc.ty == TypeId::UNKNOWN {
            // Nor can be said whether letter and length fit it.
            return self.violation_unless_cut_off(record, types, "its type is not known", &[alloc.object]);
        }
        let is_array = types.descriptor(alloc.ty).starts_with('[');
        let fits = match alloc.kind {
            AllocKind::Array => is_array,
            AllocKind::New => !is_array && alloc.length == 0,
            _ => is_array || alloc.length == 0,
        };
        if !fits {
            self.violation(record, types, "the record's letter, type and length do not fit", &[alloc.object]);
        }
    }

    fn update(
        &mut self,
        record: &Record,
        types: &Types,
        old: ObjectId,
        origin: ObjectId,
        slot: Slot,
        target: ObjectId,
    ) {
        let (held, may_hold_more) = self.objects.put(origin, slot, target);
        // The initial target of a slot is first seen in an update.
        if held != old && !may_hold_more {
            let what = format!("the old target is {:x}, but the slot held {:x}", old.0, held.0);
            self.violation(record, types, &what, &[origin]);
        }
    }

    fn in_frame(&mut self, record: &Record, types: &Types, thread: ThreadId, method: MethodId, receiver: ObjectId) {
        let top = self.stacks.of(thread).and_then(Stack::top);
        let what = match top {
            Some(top) if top.method == method && top.receiver == receiver => return,
            Some(top) => format!(
                "the top frame of thread {:x} is method {:x} on {:x}, entered at {}",
                thread.0, top.method.0, top.receiver.0, top.data.0
            ),
            None => format!("the stack of thread {:x} is empty", thread.0),
        };
        self.violation(record, types, &what, &[receiver]);
    }

    fn exit(&mut self, record: &Record, types: &Types, thread: ThreadId, method: MethodId, receiver: ObjectId) {
        self.in_frame(record, types, thread, method, receiver);
        // After a violation go on from the frame that was meant, if there is one.
        let frames = &mut self.stacks.of_mut(thread).frames;
        if let Some(meant) = frames.iter().rposition(|frame| frame.method == method) {
            frames.truncate(meant + 1);
            self.stacks.record(record);
        }
        // The caller of the outermost method may rethrow the exception into another method: it is in flight until an
        // `H`.
        if let Record::ExitThrow { exception, .. } = *record {
            self.stacks.of_mut(thread).in_flight = exception;
        }
    }

    fn in_flight(&mut self, record: &Record, types: &Types, thread: ThreadId, exception: ObjectId) {
        let in_flight = self.stacks.of(thread).map_or(ObjectId::NULL, |stack| stack.in_flight);
        if exception.is_null() || in_flight != exception {
            let what =
                format!("exception {:x} is not in flight in thread {:x}: no T came first", exception.0, thread.0);
            self.violation(record, types, &what, &[exception]);
        }
    }

    /// The end: which threads were cut off, and with how many frames, and whether the whole trace was.
    pub fn finish(&mut self, cut_off: &[(ThreadId, usize)], is_cut_off: bool) {
        self.settle_deaths();
        let mut left: Vec<_> = self.stacks.iter().filter(|(_, stack)| !stack.frames.is_empty()).collect();
        left.sort_by_key(|(thread, _)| *thread);
        let cut_off: FxHashSet<&(ThreadId, usize)> = cut_off.iter().collect();
        let mut violations = Vec::new();
        for (thread, stack) in left {
            let (frames, top) = (stack.frames.len(), stack.top().map_or(0, |frame| frame.data.0));
            if !cut_off.contains(&(thread, frames)) {
                violations.push(format!(
                    "thread {:x} ends with {frames} frames, the top one entered at {top}, and is not said to be cut off",
                    thread.0
                ));
            }
        }
        for what in violations {
            self.violation_at(AT_END, &what, &[]);
        }
        let more = std::mem::take(&mut self.unless_cut_off);
        if !is_cut_off {
            self.violations.count += more.count;
            self.violations.shown.extend(more.shown);
            self.violations.shown.sort_by_key(|(position, _)| *position);
            self.violations.shown.truncate(self.limit);
        }
    }

    /// Returns the result.
    pub fn report(self) -> Report {
        Report {
            totals: self.totals,
            violation_count: self.violations.count,
            violations: self.violations.shown.into_iter().map(|(_, line)| line).collect(),
            ..Report::default()
        }
    }
}
