//! The checks themselves.

use std::collections::BTreeSet;

use et_names::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Histories, Report, mentions, shown};
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId, Totals};
use crate::resolve::{IdSet, Slots};
use crate::types::{TypeId, Types};

/// A promise not kept.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Breach {
    /// Number of the record, or line of the text; 0: at the end.
    pub position: u64,
    pub what: String,
    pub objects: Vec<ObjectId>,
}

/// A set of 64-bit ids, nearly all of them small.
#[derive(Debug, Default)]
struct ObjectSet {
    narrow: IdSet,
    wide: FxHashSet<ObjectId>,
}

impl ObjectSet {
    fn contains(&self, object: ObjectId) -> bool {
        if object.0 < 1 << 31 { self.narrow.contains(object.0 as u32) } else { self.wide.contains(&object) }
    }

    fn insert(&mut self, object: ObjectId) -> bool {
        if object.0 < 1 << 31 { self.narrow.insert(object.0 as u32) } else { self.wide.insert(object) }
    }
}

#[derive(Debug)]
struct Frame {
    method: MethodId,
    receiver: ObjectId,
    entered: u64,
}

#[derive(Debug, Default)]
struct Stack {
    frames: Vec<Frame>,
    in_flight: ObjectId,
}

/// Takes records one by one.
#[derive(Debug)]
pub struct Checker {
    limit: usize,
    position: u64,
    totals: Totals,
    breaches: Vec<Breach>,
    breach_count: u64,
    allocated: ObjectSet,
    /// Objects born empty under the eyes of the trace: their slots held null at first.
    born_empty: ObjectSet,
    slots: Slots,
    /// Slots that hold null now, of objects whose slots may have held something at first. (Others that hold null
    /// need no memory.)
    cleared: FxHashSet<(ObjectId, u32)>,
    stacks: FxHashMap<ThreadId, Stack>,
}

impl Checker {
    /// Describes at most `limit` breaches, counts all.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            position: 0,
            totals: Totals::default(),
            breaches: Vec::new(),
            breach_count: 0,
            allocated: ObjectSet::default(),
            born_empty: ObjectSet::default(),
            slots: Slots::default(),
            cleared: FxHashSet::default(),
            stacks: FxHashMap::default(),
        }
    }

    /// Notes a breach at this record.
    pub fn breach(&mut self, record: &Record, types: &Types, what: &str, objects: &[ObjectId]) {
        self.breach_count += 1;
        if self.breaches.len() < self.limit {
            let what = format!("{}: {what}", shown(record, types));
            self.breaches.push(Breach { position: self.position, what, objects: objects.to_vec() });
        }
    }

    /// The next record; its position is its number, from 1.
    pub fn record(&mut self, record: &Record, types: &Types) {
        self.record_at(record, types, self.position + 1);
    }

    /// The next record and where it stands.
    pub fn record_at(&mut self, record: &Record, types: &Types, position: u64) {
        self.position = position;
        self.totals.count(record);
        if let Record::Alloc(alloc) = record {
            self.alloc(record, alloc, types);
            return;
        }
        for object in mentions(record) {
            if !self.allocated.contains(object) {
                let what = format!("object {:x} has no allocation record before this", object.0);
                self.breach(record, types, &what, &[object]);
                // Once is enough for each object.
                self.allocated.insert(object);
            }
        }
        match *record {
            Record::Update { old, origin, target, slot, .. } => self.update(record, types, old, origin, slot, target),
            Record::Entry { method, receiver, thread } => {
                let entered = self.position;
                self.stacks.entry(thread).or_default().frames.push(Frame { method, receiver, entered });
            }
            Record::Exit { method, receiver, thread } => self.exit(record, types, thread, method, receiver),
            Record::ExitThrow { method, receiver, exception, thread } => {
                self.in_flight(record, types, thread, exception);
                self.exit(record, types, thread, method, receiver);
            }
            Record::Throw { method, receiver, exception, thread } => {
                self.in_frame(record, types, thread, method, receiver);
                if exception.is_null() {
                    self.breach(record, types, "the exception is null", &[]);
                }
                self.stacks.entry(thread).or_default().in_flight = exception;
            }
            Record::Handle { method, receiver, exception, thread } => {
                self.in_frame(record, types, thread, method, receiver);
                self.in_flight(record, types, thread, exception);
                self.stacks.entry(thread).or_default().in_flight = ObjectId::NULL;
            }
            Record::Alloc(_) | Record::Death { .. } | Record::Root { .. } => {}
        }
    }

    fn alloc(&mut self, record: &Record, alloc: &Alloc, types: &Types) {
        if alloc.object.is_null() {
            return self.breach(record, types, "object 0 is null and cannot be allocated", &[]);
        }
        if !self.allocated.insert(alloc.object) {
            let what = format!("object {:x} was allocated or mentioned before", alloc.object.0);
            self.breach(record, types, &what, &[alloc.object]);
        }
        if matches!(alloc.kind, AllocKind::New | AllocKind::Array) {
            self.born_empty.insert(alloc.object);
        }
        if alloc.ty == TypeId::UNKNOWN {
            self.breach(record, types, "its type is not known", &[alloc.object]);
        }
        let is_array = types.descriptor(alloc.ty).starts_with('[');
        let fits = match alloc.kind {
            AllocKind::Array => is_array || alloc.ty == TypeId::UNKNOWN,
            AllocKind::New => !is_array && alloc.length == 0,
            _ => is_array || alloc.length == 0,
        };
        if !fits {
            self.breach(record, types, "the record's letter, type and length do not fit", &[alloc.object]);
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
        let held = self.slots.put(origin, slot, target);
        let key = (origin, slot.number());
        if held != old {
            // What the slot held before the trace saw it for the first time is for the first U to say.
            let may_hold_more = held.is_null() && !self.born_empty.contains(origin) && !self.cleared.contains(&key);
            if !may_hold_more {
                let what = format!("the old target is {:x}, but the slot held {:x}", old.0, held.0);
                self.breach(record, types, &what, &[origin]);
            }
        }
        if !self.born_empty.contains(origin) {
            if target.is_null() {
                self.cleared.insert(key);
            } else {
                self.cleared.remove(&key);
            }
        }
    }

    fn in_frame(&mut self, record: &Record, types: &Types, thread: ThreadId, method: MethodId, receiver: ObjectId) {
        let top = self.stacks.get(&thread).and_then(|stack| stack.frames.last());
        let what = match top {
            Some(top) if top.method == method && top.receiver == receiver => return,
            Some(top) => format!(
                "the top frame of thread {:x} is method {:x} on {:x}, entered at {}",
                thread.0, top.method.0, top.receiver.0, top.entered
            ),
            None => format!("the stack of thread {:x} is empty", thread.0),
        };
        self.breach(record, types, &what, &[receiver]);
    }

    fn exit(&mut self, record: &Record, types: &Types, thread: ThreadId, method: MethodId, receiver: ObjectId) {
        self.in_frame(record, types, thread, method, receiver);
        // After a breach go on from the frame that was meant, if there is one.
        let frames = &mut self.stacks.entry(thread).or_default().frames;
        if let Some(meant) = frames.iter().rposition(|frame| frame.method == method) {
            frames.truncate(meant);
        }
    }

    fn in_flight(&mut self, record: &Record, types: &Types, thread: ThreadId, exception: ObjectId) {
        let in_flight = self.stacks.get(&thread).map_or(ObjectId::NULL, |stack| stack.in_flight);
        if exception.is_null() || in_flight != exception {
            let what =
                format!("exception {:x} is not in flight in thread {:x}: no T came first", exception.0, thread.0);
            self.breach(record, types, &what, &[exception]);
        }
    }

    /// The end: which threads were cut off, and with how many frames.
    pub fn finish(&mut self, cut_off: &[(ThreadId, usize)]) {
        let mut left: Vec<_> = self.stacks.iter().filter(|(_, stack)| !stack.frames.is_empty()).collect();
        left.sort_by_key(|(thread, _)| **thread);
        let mut breaches = Vec::new();
        for (&thread, stack) in left {
            let (frames, top) = (stack.frames.len(), stack.frames.last().map_or(0, |frame| frame.entered));
            if !cut_off.contains(&(thread, frames)) {
                breaches.push(format!(
                    "thread {:x} ends with {frames} frames, the top one entered at {top}, and is not said to be cut off",
                    thread.0
                ));
            }
        }
        for what in breaches {
            self.breach_count += 1;
            if self.breaches.len() < self.limit {
                self.breaches.push(Breach { position: 0, what, objects: Vec::new() });
            }
        }
    }

    /// The objects whose history is wanted.
    pub(super) fn interesting(&self) -> BTreeSet<ObjectId> {
        self.breaches.iter().flat_map(|breach| breach.objects.iter().copied()).filter(|o| !o.is_null()).collect()
    }

    pub(super) fn report(self, histories: &Histories) -> Report {
        let breaches = self.breaches.iter().map(|breach| {
            let mut line = match breach.position {
                0 => format!("end: {}", breach.what),
                position => format!("{position}: {}", breach.what),
            };
            for &object in breach.objects.iter().filter(|object| !object.is_null()) {
                line += &format!(" [{}]", histories.of(object));
            }
            line
        });
        Report {
            totals: self.totals,
            breach_count: self.breach_count,
            breaches: breaches.collect(),
            ..Report::default()
        }
    }
}
