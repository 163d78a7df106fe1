//! Random programs: threads, cycles, weak references, exceptions, statics, arrays.

use std::collections::HashMap;

use et_names::{FieldId, MethodId, SiteId};
use proptest::prelude::*;

use crate::lifetimes::{Special, Step};
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId};
use crate::types::TypeId;

pub const PLAIN: TypeId = TypeId(1);
pub const CLASS: TypeId = TypeId(2);
pub const STRING: TypeId = TypeId(3);
pub const WEAK_REFERENCE: TypeId = TypeId(4);
pub const FINAL_REFERENCE: TypeId = TypeId(5);
pub const ARRAY: TypeId = TypeId(6);
pub const REFERENT: Slot = Slot::Field(FieldId(9));

pub fn special() -> Special {
    Special {
        class: Some(CLASS),
        string: Some(STRING),
        referent: Some(FieldId(9)),
        final_references: [FINAL_REFERENCE].into_iter().collect(),
    }
}

/// A well-formed sequence of steps. Updates of weak slots are ordinary updates here.
#[derive(Clone, Default)]
pub struct Program {
    pub steps: Vec<Step>,
    /// What the VM holds in addition.
    pub held_at_end: Vec<ObjectId>,
}

impl Program {
    /// Drops what a text cannot express.
    pub fn without_vm(self) -> Self {
        let steps = self.steps.into_iter().filter(|step| matches!(step, Step::Record(_))).collect();
        Self { steps, held_at_end: Vec::new() }
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                Step::Record(Record::Alloc(alloc)) => writeln!(f, "{number}: {alloc:?}")?,
                Step::Record(record) => write!(f, "{number}: {}", super::shown(&[*record]))?,
                other => writeln!(f, "{number}: {other:?}")?,
            }
        }
        write!(f, "held at the end: {:?}", self.held_at_end)
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    New,
    Enter,
    Exit,
    Throw,
    Handle,
    Put,
    PutElement,
    PutStatic,
    PutReferent,
    Held,
    Root,
    Initial,
    HoldToTheEnd,
}

type Draw = (Op, u32, u32, u32);

fn draw() -> impl Strategy<Value = Draw> {
    let op = prop_oneof![
        12 => Just(Op::New),
        8 => Just(Op::Enter),
        9 => Just(Op::Exit),
        2 => Just(Op::Throw),
        2 => Just(Op::Handle),
        12 => Just(Op::Put),
        4 => Just(Op::PutElement),
        3 => Just(Op::PutStatic),
        4 => Just(Op::PutReferent),
        1 => Just(Op::Held),
        1 => Just(Op::Root),
        2 => Just(Op::Initial),
        1 => Just(Op::HoldToTheEnd),
    ];
    (op, any::<u32>(), any::<u32>(), any::<u32>())
}

pub fn program() -> impl Strategy<Value = Program> {
    prop::collection::vec(draw(), 1..180).prop_map(|draws| {
        let mut maker = Maker::default();
        draws.into_iter().for_each(|draw| maker.play(draw));
        maker.program
    })
}

/// What a runtime can record: initial objects, all held by statics, and then no steps that only stand for the VM.
pub fn program_of_events() -> impl Strategy<Value = Program> {
    (0..6u32, prop::collection::vec(draw(), 1..100)).prop_map(|(initial, draws)| {
        let mut maker = Maker::default();
        maker.begin(initial);
        for draw in draws {
            if !matches!(draw.0, Op::Held | Op::Initial | Op::HoldToTheEnd) {
                maker.play(draw);
            }
        }
        maker.program
    })
}

#[derive(Default)]
struct Thread {
    frames: Vec<(MethodId, ObjectId)>,
    in_flight: ObjectId,
}

#[derive(Default)]
struct Maker {
    program: Program,
    objects: Vec<(ObjectId, TypeId)>,
    threads: [Thread; 3],
    slots: HashMap<(ObjectId, Slot), ObjectId>,
}

impl Maker {
    fn record(&mut self, record: Record) {
        self.program.steps.push(Step::Record(record));
    }

    /// Creates a tree of objects that a static field holds.
    fn begin(&mut self, count: u32) {
        for id in 1..=count {
            let (object, kind, thread) = (ObjectId(id.into()), AllocKind::Initial, ThreadId(0));
            self.objects.push((object, PLAIN));
            let alloc = Alloc {
                kind,
                object,
                size: 16,
                ty: PLAIN,
                site: SiteId(0),
                length: 0,
                stack: Default::default(),
                thread,
            };
            self.record(Record::Alloc(alloc));
        }
        for id in 1..=count {
            let (origin, field) = if id == 1 { (0, 20) } else { (id / 2, id % 2) };
            let (origin, target, slot) = (ObjectId(origin.into()), ObjectId(id.into()), Slot::Field(FieldId(field)));
            self.slots.insert((origin, slot), target);
            self.program.steps.push(Step::Initial { origin, target, slot, weak: false });
        }
    }

    /// Usually one of the youngest objects.
    fn object(&self, draw: u32) -> Option<ObjectId> {
        let count = self.objects.len();
        let back = if draw.is_multiple_of(4) { draw as usize / 4 % count.max(1) } else { draw as usize / 4 % 5 };
        self.objects.get(count.checked_sub(1 + back)?).map(|&(object, _)| object)
    }

    fn of_type(&self, draw: u32, wanted: &[TypeId]) -> Option<ObjectId> {
        let fitting: Vec<_> = self.objects.iter().filter(|(_, ty)| wanted.contains(ty)).collect();
        fitting.get(draw as usize % fitting.len().max(1)).map(|&&(object, _)| object)
    }

    fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId, thread: ThreadId) {
        let old = self.slots.insert((origin, slot), target).unwrap_or_default();
        self.record(Record::Update { old, origin, target, slot, thread });
    }

    fn play(&mut self, (op, a, b, c): Draw) {
        let index = a as usize % 3;
        let thread = ThreadId(index as u32 + 1);
        let target = if c.is_multiple_of(3) { Some(ObjectId::NULL) } else { self.object(c / 3) };
        match op {
            Op::New => {
                let object = ObjectId(self.objects.len() as u64 + 1);
                let (kind, ty) = match b % 12 {
                    0 => (AllocKind::Vm, CLASS),
                    1 => (AllocKind::Vm, STRING),
                    2 => (AllocKind::New, STRING),
                    3 | 4 => (AllocKind::New, WEAK_REFERENCE),
                    5 => (AllocKind::New, FINAL_REFERENCE),
                    6 => (AllocKind::Found, PLAIN),
                    7 => (AllocKind::Array, ARRAY),
                    _ => (AllocKind::New, PLAIN),
                };
                self.objects.push((object, ty));
                self.record(Record::Alloc(Alloc {
                    kind,
                    object,
                    size: 16,
                    ty,
                    site: SiteId(0),
                    length: 0,
                    stack: Default::default(),
                    thread,
                }));
            }
            Op::Enter => {
                let receiver = if b.is_multiple_of(3) { Some(ObjectId::NULL) } else { self.object(b / 3) };
                let (method, receiver) = (MethodId(c % 7), receiver.unwrap_or_default());
                self.threads[index].frames.push((method, receiver));
                self.record(Record::Entry { method, receiver, thread });
            }
            Op::Exit => {
                let Some((method, receiver)) = self.threads[index].frames.pop() else { return };
                let exception = self.threads[index].in_flight;
                if exception.is_null() {
                    return self.record(Record::Exit { method, receiver, thread });
                }
                if self.threads[index].frames.is_empty() {
                    self.threads[index].in_flight = ObjectId::NULL;
                }
                self.record(Record::ExitThrow { method, receiver, exception, thread });
            }
            Op::Throw => {
                let (Some(&(method, receiver)), Some(exception)) = (self.threads[index].frames.last(), self.object(b))
                else {
                    return;
                };
                self.threads[index].in_flight = exception;
                self.record(Record::Throw { method, receiver, exception, thread });
            }
            Op::Handle => {
                let Some(&(method, receiver)) = self.threads[index].frames.last() else { return };
                let exception = std::mem::take(&mut self.threads[index].in_flight);
                if !exception.is_null() {
                    self.record(Record::Handle { method, receiver, exception, thread });
                }
            }
            Op::Put => {
                let (Some(origin), Some(target)) = (self.object(b), target) else { return };
                if !self.objects.contains(&(origin, ARRAY)) {
                    self.put(origin, Slot::Field(FieldId(a / 3 % 3)), target, thread);
                }
            }
            Op::PutElement => {
                let (Some(origin), Some(target)) = (self.of_type(b, &[ARRAY]), target) else { return };
                let index = [0, 1, 2, 70, 500][a as usize / 3 % 5];
                self.put(origin, Slot::Element(index), target, thread);
            }
            Op::PutStatic => {
                let Some(target) = target else { return };
                self.put(ObjectId::NULL, Slot::Field(FieldId(20 + b % 3)), target, thread);
            }
            Op::PutReferent => {
                let Some(origin) = self.of_type(b, &[WEAK_REFERENCE, FINAL_REFERENCE]) else { return };
                // Like a Reference: its constructor sets the referent, which is later only cleared.
                let target = if self.slots.contains_key(&(origin, REFERENT)) { Some(ObjectId::NULL) } else { target };
                self.put(origin, REFERENT, target.unwrap_or_default(), thread);
            }
            Op::Held => {
                if let Some(object) = self.object(b) {
                    self.program.steps.push(Step::Held { object, thread });
                }
            }
            Op::Root => {
                if let Some(object) = self.object(b) {
                    self.record(Record::Use { object, thread });
                }
            }
            Op::Initial => {
                let (Some(origin), Some(target)) = (self.object(b), self.object(c)) else { return };
                let slot = Slot::Field(FieldId(30 + a % 2));
                let origin = if a.is_multiple_of(5) { ObjectId::NULL } else { origin };
                // Only slots that have not been stored to, as at the start.
                let untouched = !self.slots.contains_key(&(origin, slot));
                let is_start = self
                    .program
                    .steps
                    .iter()
                    .all(|step| matches!(step, Step::Record(Record::Alloc(_)) | Step::Initial { .. }));
                if untouched && is_start {
                    self.slots.insert((origin, slot), target);
                    self.program.steps.push(Step::Initial { origin, target, slot, weak: false });
                }
            }
            Op::HoldToTheEnd => self.program.held_at_end.extend(self.object(b).filter(|_| b.is_multiple_of(3))),
        }
    }
}
