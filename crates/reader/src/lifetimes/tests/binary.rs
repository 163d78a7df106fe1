//! Programs in the form in which a runtime records them: event buffers of many threads, ordered by tickets, cut into
//! blocks anywhere.

use std::collections::{HashMap, HashSet};

use et_format::event::{Event, ObjectHash, Targets, Ticket};
use et_format::{
    ClassRecord, GcRecord, HeapWalk, InitialField, InitialObject, InitialReference, InitialReferences, InitialSlot,
};
use et_names::{FieldId, FieldRefId, MethodId, SiteId, hashes};
use proptest::prelude::*;

use super::generate::{ARRAY, CLASS, FINAL_REFERENCE, PLAIN, Program, STRING, WEAK_REFERENCE};
use crate::TraceFile;
use crate::lifetimes::Step;
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId};
use crate::testing::{ClassNamesExt, TraceBuilder, class, table};
use crate::trace::Trace;
use crate::types::TypeId;

/// The method of the programs that is a constructor; the others have lower ids.
const INIT: MethodId = MethodId(7);
/// Carriers of the program's virtual threads. The first one also runs a program of its own.
const CARRIERS: [u32; 2] = [1, 4];
/// The hash of a virtual thread's continuation is this one plus its number.
const CONTINUATION: ObjectHash = ObjectHash(0x40);
const MIRROR: u32 = 0x10;
/// Fields of the programs by their ids in the names table, from 1.
const FIELDS: [u32; 7] = [0, 1, 2, 20, 21, 22, 9];
const CLASSES: [(TypeId, &str, &str); 7] = [
    (PLAIN, "LPlain;", ""),
    (CLASS, "Ljava/lang/Class;", ""),
    (STRING, "Ljava/lang/String;", ""),
    (TypeId(99), "Ljava/lang/ref/Reference;", ""),
    (WEAK_REFERENCE, "Ljava/lang/ref/WeakReference;", "Ljava/lang/ref/Reference;"),
    (FINAL_REFERENCE, "Ljava/lang/ref/FinalReference;", "Ljava/lang/ref/Reference;"),
    (ARRAY, "[LPlain;", ""),
];

fn mirror(ty: TypeId) -> ObjectHash {
    let at = CLASSES.iter().position(|class| class.0 == ty).unwrap();
    ObjectHash(MIRROR + at as u32)
}

/// A program, with at least one random number per step that decides how the step is recorded.
#[derive(Clone, Debug)]
pub struct Story {
    pub program: Program,
    choices: Vec<u32>,
}

pub fn story(program: impl Strategy<Value = Program>) -> impl Strategy<Value = Story> {
    (program, prop::collection::vec(any::<u32>(), 1..60))
        .prop_map(|(program, choices)| Story { program: with_constructors(program), choices })
}

/// Gives every third plain object a constructor, unless an exception is in flight, during which no method can return.
fn with_constructors(mut program: Program) -> Program {
    let mut in_flight = HashSet::new();
    let steps = std::mem::take(&mut program.steps);
    for step in steps {
        program.steps.push(step);
        match step {
            Step::Record(Record::Throw { thread, .. }) => drop(in_flight.insert(thread)),
            Step::Record(Record::Handle { thread, .. }) => drop(in_flight.remove(&thread)),
            Step::Record(Record::Alloc(Alloc { kind: AllocKind::New, ty: PLAIN, object, thread, .. }))
                if object.0.is_multiple_of(3) && !in_flight.contains(&thread) =>
            {
                program.steps.push(Step::Record(Record::Entry { method: INIT, receiver: object, thread }));
                program.steps.push(Step::Record(Record::Exit { method: INIT, receiver: object, thread }));
            }
            _ => {}
        }
    }
    program
}

/// Translates the names of the program to those in the trace.
struct Writer<'a> {
    story: &'a Story,
    builder: TraceBuilder,
    /// Events of each buffer that are in no block yet, with the first ticket of the block.
    open: HashMap<u32, (u64, Vec<Event<'static>>)>,
    ticket: u64,
    last_buffer: u32,
    hashes: HashMap<ObjectId, ObjectHash>,
    ids: HashMap<ObjectId, ObjectId>,
    uses: HashMap<ObjectHash, u64>,
    /// Hashes that no event refers to any more.
    free: Vec<ObjectHash>,
    slots: HashMap<(ObjectId, Slot), ObjectId>,
    /// The virtual threads that are mounted, by carrier, and all that have been, in the order in which they first were.
    mounted: HashMap<u32, ThreadId>,
    begun: Vec<ThreadId>,
}

/// The program's objects by their ids in a trace, and its virtual threads by their numbers there.
pub struct Original {
    objects: HashMap<ObjectId, ObjectId>,
    virtual_threads: Vec<ThreadId>,
}

/// The trace, with its events packed or not, and what its ids stand for.
pub fn written(story: &Story, packed: bool) -> (Trace, Original) {
    let mut writer = Writer {
        story,
        builder: world(),
        open: HashMap::new(),
        ticket: 0,
        last_buffer: 0,
        hashes: HashMap::new(),
        ids: HashMap::new(),
        uses: HashMap::new(),
        free: Vec::new(),
        slots: HashMap::new(),
        mounted: HashMap::new(),
        begun: Vec::new(),
    };
    if packed {
        writer.builder.pack_events();
    }
    writer.start();
    let last = last_mentions(&story.program);
    for (number, step) in story.program.steps.iter().enumerate() {
        if let Step::Record(record) = step {
            writer.record(number, record);
            let objects: HashSet<_> = record.objects().into_iter().collect();
            let mut done: Vec<_> = objects.into_iter().filter(|object| last.get(object) == Some(&number)).collect();
            done.sort();
            writer.free.extend(done.iter().filter_map(|object| writer.hashes.get(object)));
        }
    }
    let mut buffers: Vec<u32> = writer.open.keys().copied().collect();
    buffers.sort_unstable();
    buffers.into_iter().for_each(|buffer| writer.close(buffer));
    writer.walks();
    let file = TraceFile::from_bytes(writer.builder.finish(), None).unwrap();
    (Trace::from_file(file).unwrap(), Original { objects: writer.ids, virtual_threads: writer.begun })
}

fn world() -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    let methods: Vec<String> = (0..7).map(|n| format!("m{n} ()V")).chain(["<init> ()V".into()]).collect();
    let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
    let plain = class("Plain", "java/lang/Object", &methods)
        .with_fields(&["f0", "f1", "f2", "static s0", "static s1", "static s2"])
        .with_sites(&[(0, "[LPlain;", 1)]);
    let reference = class("java/lang/ref/Reference", "java/lang/Object", &[]).with_fields(&["referent"]);
    builder.names(&table("jdk", 1, &[plain, reference]));
    for (ty, signature, superclass) in CLASSES {
        let parent = CLASSES.iter().find(|class| class.1 == superclass);
        builder.class(&ClassRecord {
            class: mirror(ty),
            superclass: parent.map_or(ObjectHash::NULL, |class| mirror(class.0)),
            instance_size: 16,
            mirror_size: 112,
            signature: signature.into(),
            ..ClassRecord::default()
        });
        builder.initial_objects(&[InitialObject { object: mirror(ty), class: mirror(CLASS), size: 112, length: -1 }]);
    }
    for thread in [1, 2, CARRIERS[1]] {
        builder.first_thread(thread, "", vec![]);
    }
    builder
}

/// The step after which nothing names the object; receivers on stacks are named at the end.
fn last_mentions(program: &Program) -> HashMap<ObjectId, usize> {
    let mut last = HashMap::new();
    let mut stacks: HashMap<ThreadId, Vec<ObjectId>> = HashMap::new();
    for (number, step) in program.steps.iter().enumerate() {
        let Step::Record(record) = step else { continue };
        last.extend(record.objects().map(|object| (object, number)));
        match *record {
            Record::Entry { receiver, thread, .. } => stacks.entry(thread).or_default().push(receiver),
            Record::Exit { thread, .. } | Record::ExitThrow { thread, .. } => {
                stacks.get_mut(&thread).unwrap().pop();
            }
            _ => {}
        }
    }
    for object in stacks.values().flatten() {
        last.remove(object);
    }
    last
}

impl Writer<'_> {
    fn choice(&self, number: usize, what: u32) -> u32 {
        let choices = &self.story.choices;
        choices[number % choices.len()].rotate_left(what * 5)
    }

    /// Writes the objects that existed when tracing began.
    fn start(&mut self) {
        let mut references = InitialReferences { fields: Vec::new(), references: Vec::new() };
        for name in ["f0", "f1", "f2", "s0", "s1", "s2"] {
            let descriptor = "Ljava/lang/Object;".to_owned();
            references.fields.push(InitialField { class: mirror(PLAIN), name: name.to_owned(), descriptor });
        }
        for step in &self.story.program.steps {
            match *step {
                Step::Record(Record::Alloc(Alloc { kind: AllocKind::Initial, object, ty, .. })) => {
                    let hash = self.new_hash(object, false);
                    let object = InitialObject { object: hash, class: mirror(ty), size: 16, length: -1 };
                    self.builder.initial_objects(&[object]);
                }
                Step::Initial { origin, target, slot, .. } => {
                    self.slots.insert((origin, slot), target);
                    let field = FIELDS.iter().position(|&field| field == slot.number()).unwrap() as u32;
                    let slot = if origin.is_null() { InitialSlot::Static(field) } else { InitialSlot::Field(field) };
                    let (origin, target) = (self.hash(origin), self.hash(target));
                    references.references.push(InitialReference { origin, target, slot });
                }
                _ => {}
            }
        }
        self.builder.initial_references(&references);
    }

    /// Collections, and walks through the heap after some of them that found some of the objects.
    fn walks(&mut self) {
        let choices = self.story.choices.clone();
        let choice = |number: usize| u64::from(choices[number % choices.len()].rotate_left(10));
        let mut hashes: Vec<u32> = self.uses.keys().map(|hash| hash.0).collect();
        hashes.sort_unstable();
        for number in 0..(choice(0) % 5) as usize {
            let start = 1 + choice(number + 1) % (self.ticket + 1);
            let finish = start + choice(number + 2) % 2;
            self.builder.gc(&GcRecord { start: Ticket(start), finish: Ticket(finish), ..GcRecord::default() });
            if !choice(number + 3).is_multiple_of(3) {
                let end = Ticket(finish + 1 + choice(number + 4) % 3);
                let walk = HeapWalk { begin: Ticket(finish + 1), end, ..HeapWalk::default() };
                let found: Vec<u32> =
                    (0..).zip(&hashes).filter(|(at, _)| choice(number + at) % 3 < 2).map(|(_, hash)| *hash).collect();
                self.builder.survivors(walk, &found);
            }
        }
    }

    fn hash(&self, object: ObjectId) -> ObjectHash {
        if object.is_null() { ObjectHash::NULL } else { self.hashes[&object] }
    }

    /// The next of the VM's hashes, which packing predicts; possibly one that is no longer in use.
    fn new_hash(&mut self, object: ObjectId, again: bool) -> ObjectHash {
        let free = self.free.pop().filter(|_| again);
        let hash = free.unwrap_or_else(|| ObjectHash(hashes::after(hashes::SEED, object.0 as u32)));
        let uses = self.uses.entry(hash).or_insert(0);
        self.ids.insert(ObjectId(*uses << 31 | u64::from(hash.0)), object);
        *uses += 1;
        self.hashes.insert(object, hash);
        hash
    }

    /// Ends the current block of the buffer.
    fn close(&mut self, buffer: u32) {
        if let Some((ticket, events)) = self.open.remove(&buffer) {
            self.builder.events(buffer, ticket, &events);
        }
    }

    /// The third thread is virtual, and often the second one.
    fn is_virtual(&self, thread: ThreadId) -> bool {
        thread.0 == 3 || thread.0 == 2 && self.story.choices[0].is_multiple_of(2)
    }

    /// The event with which a buffer goes on with that thread's stack; `None`: with its own.
    fn switch(&mut self, buffer: u32, to: Option<ThreadId>) -> Event<'static> {
        match to {
            Some(thread) => {
                self.mounted.insert(buffer, thread);
                if !self.begun.contains(&thread) {
                    self.begun.push(thread);
                }
            }
            None => _ = self.mounted.remove(&buffer),
        }
        Event::Switch { owner: to.map_or(ObjectHash::NULL, |thread| ObjectHash(CONTINUATION.0 + thread.0)) }
    }

    /// Writes events of a thread.
    fn put(&mut self, number: usize, thread: ThreadId, events: &[Event<'static>]) {
        self.put_apart(number, thread, &[], events);
    }

    /// Writes events of a thread, with or without a ticket or the end of a block between the two slices.
    fn put_apart(&mut self, number: usize, thread: ThreadId, first: &[Event<'static>], then: &[Event<'static>]) {
        let choice = self.choice(number, 0);
        let owner = Some(thread).filter(|_| self.is_virtual(thread));
        let carrier = self.mounted.iter().find(|(_, mounted)| **mounted == thread).map(|(buffer, _)| *buffer);
        let buffer = match (carrier, owner) {
            (Some(carrier), _) if !choice.is_multiple_of(4) => carrier,
            (_, Some(_)) => CARRIERS[choice as usize / 4 % 2],
            (_, None) => thread.0,
        };
        if let Some(before) = carrier.filter(|before| *before != buffer) {
            let unmount = self.switch(before, None);
            self.write(number, before, &[unmount]);
        }
        // A switch to the stack that is mounted is none.
        if self.mounted.get(&buffer) != owner.as_ref() || choice.is_multiple_of(11) {
            let mount = self.switch(buffer, owner);
            self.write(number, buffer, &[&[mount], first].concat());
        } else {
            self.write(number, buffer, first);
        }
        self.write(number + usize::from(!first.is_empty()), buffer, then);
        if owner.is_some() && choice.is_multiple_of(3) {
            let unmount = self.switch(buffer, None);
            self.write(number, buffer, &[unmount]);
        }
    }

    /// Writes events to a buffer, with a new ticket unless it already has the last one.
    fn write(&mut self, number: usize, buffer: u32, events: &[Event<'static>]) {
        let choice = self.choice(number, 0);
        if events.is_empty() {
            return;
        }
        if choice.is_multiple_of(5) {
            self.close(buffer);
        }
        if !self.open.contains_key(&buffer) {
            self.ticket += 1;
            self.open.insert(buffer, (self.ticket, Vec::new()));
        } else if self.last_buffer != buffer || choice.is_multiple_of(7) {
            self.ticket += 1;
            self.open.get_mut(&buffer).unwrap().1.push(Event::Ticket(Ticket(self.ticket)));
        }
        self.last_buffer = buffer;
        self.open.get_mut(&buffer).unwrap().1.extend(events);
    }

    fn record(&mut self, number: usize, record: &Record) {
        let choice = self.choice(number, 1);
        let thread = record.thread();
        let method = |method: MethodId| MethodId(method.0 + 1);
        let event = match *record {
            Record::Alloc(alloc) => return self.alloc(number, &alloc, choice),
            Record::Update { origin, target, slot, .. } => {
                self.update(number, thread, origin, slot, target);
                return self.copy_again(number, thread, origin);
            }
            // Written together with its object.
            Record::Entry { method: INIT, .. } => return,
            Record::Entry { method: entered, receiver, .. } if receiver.is_null() => {
                Event::Entry { method: method(entered) }
            }
            Record::Entry { method: entered, receiver, .. } => {
                Event::EntryOn { method: method(entered), receiver: self.hash(receiver) }
            }
            Record::Exit { method: left, .. } => Event::Exit { method: method(left) },
            Record::ExitThrow { method: left, exception, receiver, .. } => {
                let receiver = if choice.is_multiple_of(2) { ObjectHash::NULL } else { self.hash(receiver) };
                Event::ExitThrow { method: method(left), exception: self.hash(exception), receiver }
            }
            Record::Throw { method: top, exception, .. } => {
                Event::Throw { method: method(top), exception: self.hash(exception) }
            }
            Record::Handle { method: top, exception, .. } => {
                Event::Handle { method: method(top), exception: self.hash(exception) }
            }
            Record::Use { object, .. } => Event::Used { object: self.hash(object) },
            Record::Death { .. } => unreachable!("they are to be found"),
        };
        self.put(number, thread, &[event]);
    }

    fn is_constructed(&self, number: usize) -> bool {
        matches!(self.story.program.steps.get(number + 1), Some(Step::Record(Record::Entry { method: INIT, .. })))
    }

    fn alloc(&mut self, number: usize, alloc: &Alloc, choice: u32) {
        let class = mirror(alloc.ty);
        let (length, is_fresh) = (if alloc.ty == ARRAY { 9 } else { -1 }, alloc.kind != AllocKind::Found);
        if alloc.kind == AllocKind::Initial {
            return;
        }
        let object = self.new_hash(alloc.object, is_fresh && choice.is_multiple_of(3));
        let new = Event::New { site: SiteId(0), object, class, known: false };
        match alloc.kind {
            AllocKind::New if self.is_constructed(number) => {
                self.put_apart(number, alloc.thread, &[Event::Entry { method: MethodId(INIT.0 + 1) }], &[new]);
            }
            AllocKind::New => self.put(number, alloc.thread, &[new]),
            AllocKind::Array => {
                let event = Event::NewArray { depth: 0, site: SiteId(1), object, length: 9 };
                self.put(number, alloc.thread, &[event]);
            }
            AllocKind::Vm => {
                let constant = alloc.ty == STRING;
                self.put(number, alloc.thread, &[Event::Made { object, class, length, fresh: true, constant }]);
            }
            AllocKind::Found => {
                let found = Event::Found { object, class, length };
                // Seeing the object a second time has no effect.
                self.put(number, alloc.thread, &[found, found][..1 + choice as usize % 2]);
            }
            AllocKind::Initial => {}
        }
    }

    fn update(&mut self, number: usize, thread: ThreadId, origin: ObjectId, slot: Slot, target: ObjectId) {
        let old = self.slots.insert((origin, slot), target).unwrap_or_default();
        let changes = old != target;
        let choice = self.choice(number, 2);
        let (to, of) = (self.hash(target), self.hash(origin));
        let event = match slot {
            Slot::Element(index @ 1..=2) if changes && choice.is_multiple_of(3) => {
                // Together with a neighbouring slot that keeps its target.
                let beside = self.slots.get(&(origin, Slot::Element(index - 1))).copied().unwrap_or_default();
                if self.is_named(beside) {
                    return self.copy(number, thread, of, index - 1, &[self.hash(beside), to]);
                }
                Event::PutElement { index, array: of, target: to }
            }
            Slot::Element(index) => Event::PutElement { index, array: of, target: to },
            Slot::Field(FieldId(field)) => {
                let field = FieldRefId(FIELDS.iter().position(|&known| known == field).unwrap() as u32 + 1);
                if origin.is_null() {
                    Event::PutStatic { field, target: to }
                } else {
                    Event::PutField { field, origin: of, target: to, if_changed: changes && choice.is_multiple_of(2) }
                }
            }
        };
        self.put(number, thread, &[event]);
    }

    /// Whether its hash still refers to it.
    fn is_named(&self, object: ObjectId) -> bool {
        if object.is_null() {
            return true;
        }
        let hash = self.hashes[&object];
        self.ids.get(&ObjectId((self.uses[&hash] - 1) << 31 | u64::from(hash.0))) == Some(&object)
    }

    fn copy(&mut self, number: usize, thread: ThreadId, array: ObjectHash, start: u32, targets: &[ObjectHash]) {
        // Events borrow their targets.
        let bytes: Vec<u8> = targets.iter().flat_map(|target| target.0.to_le_bytes()).collect();
        let targets = Targets::new(Vec::leak(bytes)).unwrap();
        self.put(number, thread, &[Event::PutElements { start, array, targets }]);
    }

    /// Slots that are read back and hold the same as before cause no record and no mention.
    fn copy_again(&mut self, number: usize, thread: ThreadId, origin: ObjectId) {
        if !self.choice(number, 3).is_multiple_of(4) || origin.is_null() {
            return;
        }
        let mut held: Vec<_> = self.slots.iter().filter(|((of, _), _)| self.hashes.contains_key(of)).collect();
        held.sort();
        let at = self.choice(number, 4) as usize % held.len().max(1);
        let Some(&(&(of, slot), &target)) = held.get(at) else { return };
        if of.is_null() || !self.is_named(of) || !self.is_named(target) {
            return;
        }
        let (origin, target) = (self.hash(of), self.hash(target));
        match slot {
            Slot::Element(index) => self.copy(number, thread, origin, index, &[target]),
            Slot::Field(FieldId(field)) => {
                let field = FieldRefId(FIELDS.iter().position(|&known| known == field).unwrap() as u32 + 1);
                self.put(number, thread, &[Event::PutField { field, origin, target, if_changed: true }]);
            }
        }
    }
}

/// Translates a record of the trace to the program's ids; `None` if it is about a class.
pub fn translated(record: &Record, trace: &Trace, original: &Original) -> Option<Record> {
    if matches!(record, Record::Alloc(alloc) if alloc.object.0 < CONTINUATION.0.into()) {
        return None;
    }
    // A record of an object that is not in the program is left out.
    let id = |object: ObjectId| {
        if object.is_null() { object } else { original.objects.get(&object).copied().unwrap_or(ObjectId(u64::MAX)) }
    };
    let at = |thread: ThreadId| match thread.0.checked_sub(1 << 31) {
        Some(number) => original.virtual_threads[number as usize],
        None => thread,
    };
    let named = |method: MethodId| MethodId(method.0 - 1);
    Some(match *record {
        Record::Alloc(alloc) => {
            let descriptor = trace.types.descriptor(alloc.ty);
            let ty = CLASSES.iter().find(|class| class.1 == descriptor).map_or(TypeId::UNKNOWN, |class| class.0);
            let (object, thread) = (id(alloc.object), at(alloc.thread));
            Record::Alloc(Alloc { object, thread, ty, size: 16, length: 0, site: SiteId(0), ..alloc })
        }
        Record::Update { old, origin, target, slot, thread } => {
            let slot = match slot {
                Slot::Field(FieldId(field)) => Slot::Field(FieldId(FIELDS[field as usize - 1])),
                element => element,
            };
            Record::Update { old: id(old), origin: id(origin), target: id(target), slot, thread: at(thread) }
        }
        Record::Entry { method, receiver, thread } => {
            Record::Entry { method: named(method), receiver: id(receiver), thread: at(thread) }
        }
        Record::Exit { method, receiver, thread } => {
            Record::Exit { method: named(method), receiver: id(receiver), thread: at(thread) }
        }
        Record::ExitThrow { method, receiver, exception, thread } => Record::ExitThrow {
            method: named(method),
            receiver: id(receiver),
            exception: id(exception),
            thread: at(thread),
        },
        Record::Throw { method, receiver, exception, thread } => Record::Throw {
            method: named(method),
            receiver: id(receiver),
            exception: id(exception),
            thread: at(thread),
        },
        Record::Handle { method, receiver, exception, thread } => Record::Handle {
            method: named(method),
            receiver: id(receiver),
            exception: id(exception),
            thread: at(thread),
        },
        Record::Death { object, thread } => Record::Death { object: id(object), thread: at(thread) },
        Record::Use { object, thread } => Record::Use { object: id(object), thread: at(thread) },
    })
}
