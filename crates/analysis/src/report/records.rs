//! What the rows of objects do not contain: exceptions from throw to catch, the contents of arrays, and whether a
//! method was ever called on an object. Computed from records alone.

use et_names::{FieldId, MethodId, SiteId};
use et_reader::model::Objects;
use et_reader::record::{AllocKind, ObjectId, Record, Slot, ThreadId};
use et_reader::source::Source;
use et_reader::types::{TypeId, Types};
use rustc_hash::FxHashMap;

use crate::summary::Amount;

/// Where an exception went: its class, the method that threw it, and the one that caught it.
pub(super) type Flight = (TypeId, MethodId, Option<MethodId>);

/// Number of exceptions, and number of frames that they left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flights {
    pub count: u64,
    pub frames: u64,
}

/// How far arrays were filled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fill {
    pub arrays: Amount,
    pub slots: u64,
    pub filled: u64,
    pub empty: u64,
    pub sparse: u64,
    pub wasted_bytes: u64,
}

/// Objects that were used once they were made, and all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    pub all: Amount,
    pub unused: Amount,
}

/// Of the objects of a class: how many never got an array.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keeping {
    pub all: Amount,
    pub without: Amount,
}

/// State of a live object.
#[derive(Clone, Copy, Debug)]
struct State {
    class: TypeId,
    site: SiteId,
    size: u64,
    /// Elements of an array of references.
    length: u32,
    filled: u32,
    most: u32,
    /// The field that held the array last.
    owner: Option<FieldId>,
    /// Constructors that run on it.
    making: u8,
    is_initial: bool,
    /// Nothing is to be said of it, but others hold it.
    is_unwanted: bool,
    is_array: bool,
    is_used: bool,
    keeps: bool,
    is_gone: bool,
}

/// An exception in flight.
#[derive(Clone, Copy, Debug)]
struct Thrown {
    exception: ObjectId,
    class: TypeId,
    method: MethodId,
    frames: u64,
}

/// Everything that is looked for.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub flights: FxHashMap<Flight, Flights>,
    pub thrown: u64,
    pub arrays: FxHashMap<(Option<FieldId>, SiteId, TypeId), Fill>,
    pub keeping: FxHashMap<TypeId, Keeping>,
    pub classes: FxHashMap<TypeId, Use>,
    pub sites: FxHashMap<(SiteId, TypeId), Use>,
    /// Fields that what is alive at the end was stored into last, by site, with bytes.
    pub holders: FxHashMap<(SiteId, TypeId), FxHashMap<FieldId, u64>>,
    pub has_witnesses: bool,
    objects: Objects<State>,
    /// Whether arrays of a class hold references.
    holds: FxHashMap<TypeId, bool>,
    makes: FxHashMap<MethodId, bool>,
    /// Whether a field is declared to hold arrays.
    for_arrays: FxHashMap<FieldId, bool>,
    flying: FxHashMap<ThreadId, Thrown>,
}

impl Looked {
    /// The next record, in the order of the trace. Of an object that is made: whether it is wanted.
    pub fn record(&mut self, source: &Source, types: &Types, record: &Record, is_wanted: bool) {
        match *record {
            Record::Alloc(alloc) => {
                let holds = *self.holds.entry(alloc.ty).or_insert_with(|| holds_references(types.descriptor(alloc.ty)));
                let is_array = types.descriptor(alloc.ty).starts_with('[');
                let is_initial = alloc.kind == AllocKind::Initial;
                let state = State {
                    class: alloc.ty,
                    site: alloc.site,
                    size: alloc.size,
                    length: if holds && !is_initial { alloc.length } else { 0 },
                    filled: 0,
                    most: 0,
                    owner: None,
                    making: 0,
                    is_initial,
                    is_unwanted: !is_wanted,
                    is_array,
                    is_used: false,
                    keeps: false,
                    is_gone: false,
                };
                self.objects.insert(alloc.object, state);
            }
            Record::Death { object, .. } => {
                if let Some(node) = self.objects.forget(object) {
                    let state = self.objects[node];
                    // Freed places can still be visited, so the object is marked.
                    self.objects[node].is_gone = true;
                    self.objects.free(node);
                    self.over(&state);
                }
            }
            Record::Update { old, origin, target, slot, .. } => self.update(source, old, origin, target, slot),
            Record::Entry { method, receiver, .. } => {
                let makes = self.makes(source, method);
                self.with(receiver, |state| match makes {
                    true => state.making = state.making.saturating_add(1),
                    false => state.is_used |= state.making == 0,
                });
            }
            Record::Exit { method, receiver, .. } => self.left(source, method, receiver),
            Record::ExitThrow { method, receiver, exception, thread } => {
                self.left(source, method, receiver);
                if let Some(thrown) = self.flying.get_mut(&thread)
                    && thrown.exception == exception
                {
                    thrown.frames += 1;
                }
            }
            Record::Throw { method, exception, thread, .. } => {
                self.with(exception, |state| state.is_used = true);
                let state = self.objects.find(exception).map(|node| self.objects[node]);
                if state.is_some_and(|state| state.is_unwanted) {
                    return;
                }
                let class = state.map(|state| state.class);
                let thrown = Thrown { exception, class: class.unwrap_or(TypeId::UNKNOWN), method, frames: 0 };
                match self.flying.insert(thread, thrown) {
                    // Rethrown, for example by a `finally`: still the same flight.
                    Some(before) if before.exception == exception => {
                        self.flying.insert(thread, before);
                    }
                    before => {
                        self.thrown += 1;
                        before.into_iter().for_each(|before| self.landed(&before, None));
                    }
                }
            }
            Record::Handle { method, exception, thread, .. } => {
                self.with(exception, |state| state.is_used = true);
                if let Some(thrown) = self.flying.remove(&thread) {
                    let by = (thrown.exception == exception).then_some(method);
                    self.landed(&thrown, by);
                }
            }
            Record::Use { object, .. } => {
                self.has_witnesses = true;
                self.with(object, |state| state.is_used |= state.making == 0);
            }
        }
    }

    fn with(&mut self, object: ObjectId, change: impl FnOnce(&mut State)) {
        if object.is_null() {
            return;
        }
        if let Some(node) = self.objects.node(object) {
            change(&mut self.objects[node]);
        }
    }

    fn makes(&mut self, source: &Source, method: MethodId) -> bool {
        *self.makes.entry(method).or_insert_with(|| source.naming().method(method).ends_with(".<init>"))
    }

    fn left(&mut self, source: &Source, method: MethodId, receiver: ObjectId) {
        if receiver.is_null() || !self.makes(source, method) {
            return;
        }
        self.with(receiver, |state| state.making = state.making.saturating_sub(1));
    }

    fn update(&mut self, source: &Source, old: ObjectId, origin: ObjectId, target: ObjectId, slot: Slot) {
        match slot {
            Slot::Element(_) => self.with(origin, |state| {
                match (old.is_null(), target.is_null()) {
                    (true, false) => state.filled = (state.filled + 1).min(state.length),
                    (false, true) => state.filled = state.filled.saturating_sub(1),
                    _ => {}
                }
                state.most = state.most.max(state.filled);
            }),
            Slot::Field(field) => {
                let mut keeps = false;
                self.with(target, |state| {
                    state.owner = Some(field);
                    keeps = state.is_array && state.length > 0;
                });
                // A field of any type may hold an array now and then, as the value of an entry does: it keeps none.
                if keeps && self.is_for_arrays(source, field) {
                    self.with(origin, |state| state.keeps = true);
                }
            }
        }
    }

    fn is_for_arrays(&mut self, source: &Source, field: FieldId) -> bool {
        *self.for_arrays.entry(field).or_insert_with(|| source.naming().is_array_field(field).unwrap_or(true))
    }

    fn landed(&mut self, thrown: &Thrown, by: Option<MethodId>) {
        let flights = self.flights.entry((thrown.class, thrown.method, by)).or_default();
        flights.count += 1;
        flights.frames += thrown.frames;
    }

    /// An object has died, or the trace has ended.
    fn over(&mut self, state: &State) {
        if state.is_initial || state.is_unwanted {
            return;
        }
        if state.length > 0 {
            let fill = self.arrays.entry((state.owner, state.site, state.class)).or_default();
            fill.arrays.add(state.size);
            fill.slots += u64::from(state.length);
            fill.filled += u64::from(state.most);
            fill.empty += u64::from(state.most == 0);
            fill.sparse += u64::from(u64::from(state.most) * 4 <= u64::from(state.length));
            // Elements take what the array takes but for its header, which is 16 bytes or 24.
            let elements = state.size.saturating_sub(16);
            let unfilled = u64::from(state.length - state.most.min(state.length));
            fill.wasted_bytes += elements.saturating_mul(unfilled) / u64::from(state.length);
        }
        if !state.is_array {
            let keeping = self.keeping.entry(state.class).or_default();
            keeping.all.add(state.size);
            if !state.keeps {
                keeping.without.add(state.size);
            }
        }
        // Reads of elements are seen by witnesses only.
        if !state.is_array || self.has_witnesses {
            let uses = [
                self.classes.entry(state.class).or_default(),
                self.sites.entry((state.site, state.class)).or_default(),
            ];
            for uses in uses {
                uses.all.add(state.size);
                if !state.is_used {
                    uses.unused.add(state.size);
                }
            }
        }
    }

    pub fn end(&mut self) {
        let flying: Vec<Thrown> = self.flying.drain().map(|(_, thrown)| thrown).collect();
        flying.iter().for_each(|thrown| self.landed(thrown, None));
        let left: Vec<State> = self.objects.iter().map(|(_, state)| *state).filter(|state| !state.is_gone).collect();
        for state in &left {
            if let Some(owner) = state.owner
                && !(state.is_initial || state.is_unwanted)
            {
                *self.holders.entry((state.site, state.class)).or_default().entry(owner).or_default() += state.size;
            }
            self.over(state);
        }
        self.objects = Objects::default();
    }
}

fn holds_references(descriptor: &str) -> bool {
    descriptor.strip_prefix('[').is_some_and(|element| element.starts_with(['L', '[']))
}
