//! From events to records (`docs/semantics.md`).
//!
//! In two stages: [`thread`] makes each thread's events explicit, [`merge`](crate::merge) orders them, and this module
//! assigns 64-bit ids, types and sizes to objects and old targets to updates, and advances the clock.

pub(crate) mod allocs;
mod anomalies;
pub(crate) mod bits;
pub(crate) mod fields;
mod last_stores;
pub(crate) mod object_ids;
mod piece;
pub(crate) mod recent;
pub(crate) mod sizes;
mod slots;
#[cfg(test)]
mod tests;
pub(crate) mod thread;
mod unpacking;

use std::ops::ControlFlow;

use et_names::MethodId;
use rustc_hash::FxHashMap;

pub use anomalies::{Anomalies, Lost};
pub use bits::IdSet;
pub use fields::ExtraField;
pub use recent::Recent;
pub use slots::Slots;

use et_format::event::{ObjectHash, Ticket};
use et_format::{InitialSlot, Wall};
use serde::{Deserialize, Serialize};

use allocs::{Allocs, Use};
use fields::Fields;
use last_stores::LastStores;
pub(crate) use object_ids::ObjectIds;
use thread::{Action, Shared, Subject, ThreadSource};
use unpacking::Unpacking;

use crate::classes::ClassIndex;
use crate::file::ReadError;
use crate::merge::{Sink, merge};
use crate::place::Place;
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId, Totals};
use crate::trace::{Thread, Trace};
use crate::types::class_name;

/// The position of a record.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub trace: &'a Trace,
    /// Its position between threads, and when the surrounding chunk of events was filled.
    pub place: Place,
    /// Whether it is the allocation of a constant, which its class holds.
    pub is_constant: bool,
}

impl Context<'_> {
    /// The ticket, which determines the order between threads.
    #[inline]
    pub fn ticket(&self) -> Ticket {
        self.place.ticket().unwrap_or_default()
    }
}

/// A thread whose stack was not empty at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutOffThread {
    pub thread: ThreadId,
    /// Number of frames on its stack.
    pub frames: usize,
}

/// Results that are available after all records.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub totals: Totals,
    pub anomalies: Anomalies,
    pub lost: Lost,
    pub cut_off: Vec<CutOffThread>,
    /// Fields that are in no names table; the n-th has the id 2^30 + n.
    pub extra_fields: Vec<ExtraField>,
    /// Whether the visitor stopped the reading.
    pub stopped: bool,
    pub kept: Kept,
}

/// Maximum amounts of per-thread state kept at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Bytes of unpacked events.
    pub event_bytes: usize,
    pub stacks: usize,
    /// Virtual threads that may be mounted again.
    pub continuations: usize,
    /// Items read ahead because of constructors whose objects were not known yet.
    pub ahead: usize,
}

/// Receives the records as they are made.
pub(crate) trait Visit {
    /// Receives the next record. To be inlined by implementations that store it, so that it is constructed in place:
    /// copying what was just written in smaller parts stalls.
    fn record(&mut self, record: Record, context: &Context<'_>) -> ControlFlow<()>;
}

impl<F: FnMut(&Record, &Context<'_>) -> ControlFlow<()>> Visit for F {
    #[inline]
    fn record(&mut self, record: Record, context: &Context<'_>) -> ControlFlow<()> {
        self(&record, context)
    }
}

impl Trace {
    /// Turns the events into records, in order, until `visit` breaks or the trace ends.
    pub fn for_each(&self, visit: impl FnMut(&Record, &Context<'_>) -> ControlFlow<()>) -> Result<Outcome, ReadError> {
        run(self, visit)
    }
}

pub(crate) fn run(trace: &Trace, visit: impl Visit) -> Result<Outcome, ReadError> {
    let mut shared = Shared::new(&trace.file, &trace.names, &trace.classes);
    shared.lost = Lost::known(&trace.file);
    let mut resolver = Resolver::new(trace, visit);
    resolver.initial(&mut shared.anomalies)?;
    let (firsts, open) = (trace.threads.iter().enumerate().filter_map(|at| first(trace, at)), |at| open(trace, at));
    trace.file.begin_events("reading events");
    let order = resolver.last_stores.take_order();
    let shared = std::thread::scope(|scope| {
        // Dropped in here if the visitor panics: the thread that unpacks ahead runs until its receiver is dropped.
        let mut shared = shared;
        if order.len() >= ENOUGH_PIECES && std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
            shared.unpack(Unpacking::ahead(&trace.file, order, scope));
        }
        merge(firsts, open, &mut shared, &mut resolver);
        // When stopped early, nothing more needs to be unpacked.
        shared.unpack(Unpacking::when_asked(&trace.file));
        shared
    });
    resolver.mirrors_until(Ticket(u64::MAX));
    let kept = Kept { stacks: resolver.stacks.all.len(), ..shared.kept() };
    let Shared { mut anomalies, lost, .. } = shared;
    let mut cut_off = Vec::new();
    for stack in resolver.stacks.all.iter().filter(|stack| !stack.frames.is_empty() && !resolver.stopped) {
        // A thread that calls `System.exit` has no end, nor have those that run at that time.
        if trace.thread(stack.thread.0).is_some_and(|thread| thread.end.is_some()) {
            anomalies.frames_at_thread_end += stack.frames.len() as u64;
        }
        cut_off.push(CutOffThread { thread: stack.thread, frames: stack.frames.len() });
    }
    cut_off.sort_unstable_by_key(|stack| stack.thread);
    Ok(Outcome {
        totals: resolver.totals,
        anomalies,
        lost,
        cut_off,
        extra_fields: resolver.fields.into_extra(),
        stopped: resolver.stopped,
        kept,
    })
}

/// First ticket of a thread; `None` if it has no events. Initial frames are entered when the thread starts.
pub(crate) fn first(trace: &Trace, (at, thread): (usize, &Thread)) -> Option<(usize, Ticket)> {
    match trace.file.thread(thread.index) {
        _ if !thread.frames.is_empty() => Some((at, thread.start)),
        Some(events) => Some((at, trace.file.first_ticket(events))),
        None => None,
    }
}

fn open(trace: &Trace, at: usize) -> ThreadSource<'_> {
    let thread = &trace.threads[at];
    let ticket = first(trace, (at, thread)).map_or(Ticket(0), |(_, ticket)| ticket);
    ThreadSource::new(thread.index, trace.file.thread(thread.index), ticket, &thread.frames)
}

/// Origin, slot and target.
type Reference = (ObjectId, Slot, ObjectId);

/// Calls `visit` with each initial reference, whose field is identified as in records; `current` maps hashes to
/// objects.
pub(crate) fn initial_references(
    trace: &Trace,
    current: impl FnMut(ObjectHash) -> Option<ObjectId>,
    mut visit: impl FnMut(ObjectId, Slot, ObjectId),
) -> Result<(), ReadError> {
    // Nothing else is resolved before these, so extra fields get the same numbers as in `run`.
    each_initial_reference(trace, &mut Fields::new(&trace.names), current, |reference| {
        if let Some((origin, slot, target)) = reference {
            visit(origin, slot, target);
        }
    })
}

/// `visit` gets `None` for a reference from or to an unknown object.
pub(crate) fn each_initial_reference(
    trace: &Trace,
    all_fields: &mut Fields,
    mut current: impl FnMut(ObjectHash) -> Option<ObjectId>,
    mut visit: impl FnMut(Option<Reference>),
) -> Result<(), ReadError> {
    trace.initial_references(|block| {
        let fields: Vec<_> = block
            .fields
            .iter()
            .map(|field| {
                let class = trace.classes.at(field.class, Ticket(0)).map(|class| trace.classes.get(class));
                let class = class.and_then(|class| class_name(&class.record.signature)).unwrap_or("?");
                let extra = |is_static| ExtraField {
                    class: class.to_owned(),
                    name: field.name.clone(),
                    descriptor: field.descriptor.clone(),
                    is_static,
                };
                (extra(false), extra(true))
            })
            .collect();
        let mut resolved = vec![[None; 2]; fields.len()];
        for reference in &block.references {
            let (origin, target) = (reference.origin, reference.target);
            let mut field = |index: u32, is_static: bool| {
                let index = index as usize;
                *resolved[index][usize::from(is_static)].get_or_insert_with(|| {
                    let (instance, of_class) = &fields[index];
                    let field = if is_static { of_class } else { instance };
                    all_fields.declared(field.clone(), &trace.names, &trace.types)
                })
            };
            let (origin, slot) = match reference.slot {
                InitialSlot::Field(index) => (current(origin), Slot::Field(field(index, false))),
                InitialSlot::Static(index) => (Some(ObjectId::NULL), Slot::Field(field(index, true))),
                InitialSlot::Element(index) => (current(origin), Slot::Element(index)),
            };
            visit(origin.zip(current(target)).map(|(origin, target)| (origin, slot, target)));
        }
    })
}

/// With fewer pieces of events, a thread that unpacks ahead is not worthwhile.
const ENOUGH_PIECES: usize = 4;
/// Capacity in frames that an empty stack may keep.
const ROOM_TO_KEEP: usize = 4;

#[derive(Debug)]
struct ThreadStack {
    thread: ThreadId,
    frames: Vec<(MethodId, ObjectId)>,
    /// Number of sources whose actions currently happen on this stack.
    users: u32,
}

/// Stacks of the threads and continuations that have frames or are in use: there may be a million threads, one after
/// the other.
#[derive(Debug, Default)]
struct Stacks {
    all: Vec<ThreadStack>,
    of_thread: FxHashMap<ThreadId, usize>,
    free: Vec<usize>,
}

impl Stacks {
    /// Adds a source that uses the stack of that thread.
    fn enter(&mut self, thread: ThreadId) -> usize {
        let Self { all, free, .. } = self;
        let place = *self.of_thread.entry(thread).or_insert_with(|| {
            let stack = ThreadStack { thread, frames: Vec::new(), users: 0 };
            match free.pop() {
                Some(place) => {
                    all[place] = stack;
                    place
                }
                None => {
                    all.push(stack);
                    all.len() - 1
                }
            }
        });
        self.all[place].users += 1;
        place
    }

    /// Removes a source that used the stack.
    fn leave(&mut self, place: usize) {
        let stack = &mut self.all[place];
        stack.users -= 1;
        if stack.users == 0 && stack.frames.is_empty() {
            self.of_thread.remove(&stack.thread);
            self.free.push(place);
        }
    }
}

struct Resolver<'a, F> {
    trace: &'a Trace,
    visit: F,
    totals: Totals,
    ticket: Ticket,
    stopped: bool,
    objects: ObjectIds,
    slots: Slots,
    last_stores: LastStores,
    fields: Fields,
    allocs: Allocs<'a>,
    methods: Recent<()>,
    stacks: Stacks,
    /// Index of the stack on which each source's actions happen, from its first turn to its end.
    stack_of_source: Vec<Option<usize>>,
    /// When the current piece of each source was filled.
    wall_of_source: Vec<Option<Wall>>,
    /// Ticket and time of the current segment.
    place: Place,
    /// Index of the stack of the current segment.
    current: usize,
    /// Whether the next record is the allocation of a constant.
    is_constant: bool,
    /// Index of the next class record whose mirror has no record yet.
    next_mirror: u32,
}

impl<'a, F: Visit> Resolver<'a, F> {
    fn new(trace: &'a Trace, visit: F) -> Self {
        Self {
            trace,
            visit,
            totals: Totals::default(),
            ticket: Ticket(0),
            stopped: false,
            objects: ObjectIds::default(),
            slots: Slots::default(),
            last_stores: LastStores::find(trace),
            fields: Fields::new(&trace.names),
            allocs: Allocs::new(trace),
            methods: Recent::default(),
            stack_of_source: vec![None; trace.threads.len()],
            wall_of_source: vec![None; trace.threads.len()],
            place: Place::new(Ticket(0), None),
            stacks: Stacks::default(),
            current: 0,
            is_constant: false,
            next_mirror: 0,
        }
    }

    #[inline(always)]
    fn emit(&mut self, record: Record) {
        if self.stopped {
            return;
        }
        self.totals.count(&record);
        let context = Context { trace: self.trace, place: self.place, is_constant: self.is_constant };
        self.stopped = self.visit.record(record, &context).is_break();
    }

    /// Thread of the record that is being made.
    fn thread(&self) -> ThreadId {
        self.stacks.all.get(self.current).map_or(ThreadId(0), |stack| stack.thread)
    }

    /// Makes the I records and sets the slots of these objects.
    fn initial(&mut self, anomalies: &mut Anomalies) -> Result<(), ReadError> {
        let trace = self.trace;
        trace.initial_objects(|object| {
            if object.object.is_null() || self.objects.current(object.object).is_some() {
                return;
            }
            let alloc = self.allocs.initial(object, anomalies);
            self.allocated(object.object, alloc);
        })?;
        let (objects, slots, stores) = (&mut self.objects, &mut self.slots, &self.last_stores);
        each_initial_reference(
            trace,
            &mut self.fields,
            |hash| objects.current(hash),
            |reference| match reference {
                Some((origin, slot, target)) => {
                    if origin.is_null() || stores.is_stored_into(ObjectIds::hash(origin)) {
                        slots.put(origin, slot, target);
                    }
                }
                None => anomalies.bad_initial_references += 1,
            },
        )?;
        self.last_stores.begin();
        Ok(())
    }

    /// Creates a new object with this hash.
    #[inline]
    fn allocate(&mut self, hash: ObjectHash) -> ObjectId {
        let (object, before) = self.objects.allocate(hash);
        if let Some(before) = before {
            self.slots.release(before);
        }
        object
    }

    /// Makes the V records for the mirrors of classes prepared before `ticket`.
    fn mirrors_until(&mut self, ticket: Ticket) {
        while (self.next_mirror as usize) < self.trace.classes.len() {
            let index = ClassIndex(self.next_mirror);
            let record = &self.trace.classes.get(index).record;
            if record.ticket >= ticket {
                return;
            }
            self.next_mirror += 1;
            if !record.class.is_null() && self.objects.current(record.class).is_none() {
                self.mirror(index, ThreadId(0));
            }
        }
    }

    fn mirror(&mut self, class: ClassIndex, thread: ThreadId) -> ObjectId {
        let alloc = self.allocs.mirror(class);
        self.allocated(self.trace.classes.get(class).record.class, Alloc { thread, ..alloc })
    }

    /// Makes the record of a new object with this hash.
    fn allocated(&mut self, hash: ObjectHash, alloc: Alloc) -> ObjectId {
        let object = self.allocate(hash);
        self.emit(Record::Alloc(Alloc { object, ..alloc }));
        object
    }

    /// The object with a hash; if it is unknown, an allocation record is made up.
    #[inline]
    fn object(&mut self, hash: ObjectHash, usage: Use, anomalies: &mut Anomalies) -> ObjectId {
        if hash.is_null() {
            return ObjectId::NULL;
        }
        match self.objects.current(hash) {
            Some(object) => object,
            None => self.make_up(hash, usage, anomalies),
        }
    }

    #[cold]
    fn make_up(&mut self, hash: ObjectHash, usage: Use, anomalies: &mut Anomalies) -> ObjectId {
        let thread = self.thread();
        if let Some(class) = self.trace.classes.at(hash, self.ticket) {
            return self.mirror(class, thread);
        }
        let alloc = self.allocs.unknown(usage, anomalies);
        self.allocated(hash, Alloc { thread, ..alloc })
    }

    fn is_known(&mut self, hash: ObjectHash) -> bool {
        hash.is_null() || self.objects.current(hash).is_some()
    }

    fn update(&mut self, origin: ObjectId, slot: Slot, target: ObjectId, if_changed: bool) {
        let old = self.slots.put(origin, slot, target);
        if if_changed && old == target {
            return;
        }
        let thread = self.thread();
        self.emit(Record::Update { old, origin, target, slot, thread });
    }

    fn subject(&mut self, subject: Subject, method: MethodId, anomalies: &mut Anomalies) -> ObjectId {
        if subject.0 & Subject::MADE_UP != 0 {
            return ObjectId(subject.0);
        }
        self.object(ObjectHash(subject.0 as u32), Use::Receiver(method), anomalies)
    }

    /// The frame that an action belongs to. The thread stage pairs them, but with wrong tickets a thread may continue
    /// the stack of a continuation before the previous carrier has made its entries.
    fn top(&self, anomalies: &mut Anomalies) -> Option<(MethodId, ObjectId)> {
        let top = self.stacks.all[self.current].frames.last();
        if top.is_none() {
            anomalies.unmatched_exits += 1;
        }
        top.copied()
    }

    fn pop(&mut self) {
        let frames = &mut self.stacks.all[self.current].frames;
        frames.pop();
        // There may be a million virtual threads, one after the other.
        if frames.is_empty() && frames.capacity() > ROOM_TO_KEEP {
            *frames = Vec::new();
        }
    }

    #[inline]
    fn act(&mut self, source: usize, action: Action, anomalies: &mut Anomalies) {
        match action {
            Action::Enter { method, receiver } => {
                let receiver = self.entered(method, receiver, anomalies);
                self.stacks.all[self.current].frames.push((method, receiver));
                let thread = self.thread();
                self.emit(Record::Entry { method, receiver, thread });
            }
            Action::Leaf { method, receiver } => {
                let receiver = self.entered(method, receiver, anomalies);
                let thread = self.thread();
                self.emit(Record::Entry { method, receiver, thread });
                self.emit(Record::Exit { method, receiver, thread });
            }
            Action::Leave => {
                let Some((method, receiver)) = self.top(anomalies) else { return };
                let thread = self.thread();
                self.pop();
                self.emit(Record::Exit { method, receiver, thread });
            }
            Action::LeaveThrow { exception } => {
                let exception = self.object(exception, Use::Exception, anomalies);
                let Some((method, receiver)) = self.top(anomalies) else { return };
                let thread = self.thread();
                self.pop();
                self.emit(Record::ExitThrow { method, receiver, exception, thread });
            }
            Action::Throw { exception } => {
                let exception = self.object(exception, Use::Exception, anomalies);
                let Some((method, receiver)) = self.top(anomalies) else { return };
                let thread = self.thread();
                self.emit(Record::Throw { method, receiver, exception, thread });
            }
            Action::Handle { exception } => {
                let exception = self.object(exception, Use::Exception, anomalies);
                let Some((method, receiver)) = self.top(anomalies) else { return };
                let thread = self.thread();
                self.emit(Record::Handle { method, receiver, exception, thread });
            }
            Action::Used { object } => {
                let object = self.object(object, Use::Any, anomalies);
                let thread = self.thread();
                if object != ObjectId::NULL {
                    self.emit(Record::Use { object, thread });
                }
            }
            Action::PutField { field, origin, target, if_changed } => {
                let origin = self.object(origin, Use::FieldOrigin(field), anomalies);
                let target = self.object(target, Use::FieldTarget(field), anomalies);
                let field = self.fields.of_ref(field, &self.trace.names, &self.trace.types, anomalies);
                self.update(origin, Slot::Field(field), target, if_changed);
            }
            Action::PutStatic { field, target } => {
                let target = self.object(target, Use::FieldTarget(field), anomalies);
                let field = self.fields.of_ref(field, &self.trace.names, &self.trace.types, anomalies);
                self.update(ObjectId::NULL, Slot::Field(field), target, false);
            }
            Action::PutElement { index, array, target, if_changed } => {
                let origin = self.object(array, Use::Array, anomalies);
                let target = self.object(target, Use::Any, anomalies);
                self.update(origin, Slot::Element(index), target, if_changed);
            }
            Action::New { site, object, class, known } => {
                if !known || !self.is_known(object) {
                    let alloc = self.allocs.new_object(site, class, self.ticket, anomalies);
                    let thread = self.thread();
                    self.allocated(object, Alloc { thread, ..alloc });
                }
            }
            Action::MadeUp { object, ty, site } => {
                let alloc = self.allocs.made_up(ty, site, anomalies);
                let thread = self.thread();
                self.emit(Record::Alloc(Alloc { object: ObjectId(object.0), thread, ..alloc }));
            }
            Action::NewArray { depth, site, object, length } => {
                let alloc = self.allocs.new_array(depth, site, length, anomalies);
                let thread = self.thread();
                self.allocated(object, Alloc { thread, ..alloc });
            }
            Action::Found { object, class, length } => {
                if !self.is_known(object) {
                    let (kind, now) = (AllocKind::Found, self.ticket);
                    let alloc = self.allocs.sighted(kind, object, class, length, now, anomalies);
                    let thread = self.thread();
                    self.allocated(object, Alloc { thread, ..alloc });
                }
            }
            Action::Made { object, class, length, fresh, constant, site } => {
                if !object.is_null() && (fresh || !self.is_known(object)) {
                    let alloc = self.allocs.sighted(AllocKind::Vm, object, class, length, self.ticket, anomalies);
                    let thread = self.thread();
                    let (_, stack) = self.trace.stacks.split(site);
                    self.is_constant = constant;
                    self.allocated(object, Alloc { thread, stack, ..alloc });
                    self.is_constant = false;
                }
            }
            Action::OnStack(thread) => self.go_to(source, thread),
            Action::Piece(number) => self.begin_piece(source, number),
        }
    }

    /// The receiver of a method that is entered.
    #[inline]
    fn entered(&mut self, method: MethodId, receiver: Subject, anomalies: &mut Anomalies) -> ObjectId {
        let names = &self.trace.names;
        if self.methods.get(method.0, || names.method_index(method).map(|_| ())).is_none() {
            anomalies.unknown_methods += 1;
        }
        self.subject(receiver, method, anomalies)
    }

    /// The following actions of the source come from this piece of its thread's events.
    fn begin_piece(&mut self, source: usize, number: u32) {
        let file = &self.trace.file;
        let events = file.thread(self.trace.threads[source].index);
        let wall = events.and_then(|events| file.wall(events, number as usize));
        self.wall_of_source[source] = wall;
        self.place = Place::new(self.ticket, wall);
    }

    /// The following actions of the source happen on the stack of that thread.
    fn go_to(&mut self, source: usize, thread: ThreadId) {
        let before = self.stack_of_source[source].replace(self.stacks.enter(thread));
        if let Some(before) = before {
            self.stacks.leave(before);
        }
        self.current = self.stack_of_source[source].unwrap_or_default();
    }
}

impl<'a, F: Visit> Sink<ThreadSource<'a>> for Resolver<'a, F> {
    fn segment(&mut self, source: usize, ticket: Ticket, shared: &mut Shared<'a>) {
        self.mirrors_until(ticket);
        let (objects, slots) = (&mut self.objects, &mut self.slots);
        let mut released = false;
        self.last_stores.until(ticket, |hash| {
            released = true;
            shared.forget(hash);
            if let Some(object) = objects.current(hash) {
                slots.release(object);
            }
        });
        if released {
            slots.tidy();
        }
        self.ticket = ticket;
        self.place = Place::new(ticket, self.wall_of_source[source]);
        match self.stack_of_source[source] {
            Some(stack) => self.current = stack,
            None => self.go_to(source, ThreadId(self.trace.threads[source].index)),
        }
    }

    #[inline]
    fn item(&mut self, source: usize, action: Action, shared: &mut Shared<'a>) -> ControlFlow<()> {
        self.act(source, action, &mut shared.anomalies);
        if self.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn end(&mut self, source: usize) {
        if let Some(stack) = self.stack_of_source[source].take() {
            self.stacks.leave(stack);
        }
    }
}
