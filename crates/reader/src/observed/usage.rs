//! How objects were used: whether a method was ever called on them, how far arrays were filled, what objects never got an array,
//! what was stored where; and where exceptions went.
//!
//! What is known of a living object is its [`InUse`]; when it has died, or at the end, the [`Tally`] adds it to sums by place and class.
//! Records and blocks ([`crate::blocks`]) have these in common.

use std::ops::AddAssign;

use et_names::{FieldId, MethodId, SiteId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::model::Objects;
use crate::naming::Naming;
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId};
use crate::types::{TypeId, Types};

/// What was observed of the use of all objects but those that were there when tracing began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// By where objects were made, in order.
    pub places: Vec<PlaceUsage>,
    /// Arrays of references, by what held them last.
    pub arrays: Vec<ArrayUsage>,
    /// What is alive at the end, by the field that it was stored into last.
    pub stored_in: Vec<StoredIn>,
    pub flights: Vec<Flights>,
    /// Number of exceptions thrown, each counted once however often it is thrown again on its way.
    pub thrown: u64,
    /// Whether records say when objects are read.
    pub has_witnesses: bool,
}

/// Use of the objects of a class that were made at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceUsage {
    pub site: SiteId,
    pub ty: TypeId,
    pub is_array: bool,
    pub all: Amount,
    /// Those that were not used once they were made.
    pub unused: Amount,
    /// Those that never got an array with elements into a field for arrays.
    pub without_array: Amount,
}

/// How far arrays of a class were filled that were made at a site and held by a field last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArrayUsage {
    pub owner: Option<FieldId>,
    pub site: SiteId,
    pub ty: TypeId,
    pub fill: Fill,
}

/// How far arrays were filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fill {
    pub arrays: Amount,
    /// Total number of their elements.
    pub slots: u64,
    /// Of these, the most that were not null at once, summed over the arrays.
    pub filled: u64,
    /// Arrays that never held anything.
    pub empty: u64,
    /// Arrays of which never more than a quarter was filled, the empty ones included.
    pub sparse: u64,
    /// Bytes of elements that were never filled.
    pub wasted_bytes: u64,
}

/// Bytes of objects alive at the end that a field was the last to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredIn {
    pub site: SiteId,
    pub ty: TypeId,
    pub field: FieldId,
    pub bytes: u64,
}

/// Exceptions of a class from one method to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flights {
    pub ty: TypeId,
    pub thrown_in: MethodId,
    /// `None`: none that has hooks.
    pub caught_in: Option<MethodId>,
    pub count: u64,
    /// Number of frames that they left.
    pub frames: u64,
}

/// What is known of the use of a living object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InUse {
    /// Elements that hold something, of an array of references, and the largest number of them so far.
    filled: u32,
    most: u32,
    /// The field that it was stored into last.
    pub owner: Option<FieldId>,
    pub making: Making,
    /// It got an array with elements.
    pub keeps: bool,
}

impl InUse {
    /// The same of an object that was stored into that field last.
    pub fn held_by(self, owner: Option<FieldId>) -> Self {
        Self { owner, ..self }
    }

    /// An element of an array with so many of references got another content.
    #[inline]
    pub fn element(&mut self, length: u32, was_null: bool, is_null: bool) {
        match (was_null, is_null) {
            (true, false) => self.filled = (self.filled + 1).min(length),
            (false, true) => self.filled = self.filled.saturating_sub(1),
            _ => {}
        }
        self.most = self.most.max(self.filled);
    }
}

/// How many constructors run on an object, and whether it was used when none did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Making {
    running: u8,
    pub is_used: bool,
}

impl Making {
    pub fn after(self, change: MakingChange) -> Self {
        let running = i16::from(self.running);
        Self {
            running: (running + i16::from(change.more)).max(change.least.into()).clamp(0, i8::MAX.into()) as u8,
            is_used: self.is_used || running <= i16::from(change.used_up_to),
        }
    }
}

/// What events do to the [`Making`] of an object of which is not known how many constructors run on it. Their number, when it was `x` before, is
/// `max(x + more, least)`, since there cannot be less than none. Counts no further than 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MakingChange {
    more: i8,
    least: u8,
    /// The largest number before with which a use came when none ran.
    used_up_to: i8,
}

impl MakingChange {
    pub const NONE: Self = Self { more: 0, least: 0, used_up_to: i8::MIN };

    /// A constructor begins.
    #[inline]
    pub fn begin(&mut self) {
        self.more = self.more.saturating_add(1);
        self.least = self.least.saturating_add(1);
    }

    /// A constructor ends.
    #[inline]
    pub fn end(&mut self) {
        self.more = self.more.saturating_sub(1);
        self.least = self.least.saturating_sub(1);
    }

    /// The object is thrown or handled, which uses it also while it is made.
    pub fn flies(&mut self) {
        self.used_up_to = i8::MAX;
    }

    /// A method that is no constructor is called on the object, or it is read.
    #[inline]
    pub fn used(&mut self) {
        if self.least == 0 {
            self.used_up_to = self.used_up_to.max(self.more.saturating_neg());
        }
    }
}

/// What usage depends on of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    /// An array of primitive values.
    Primitives,
    References,
}

/// Kinds of classes, as they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Kinds(Vec<Option<Kind>>);

impl Kinds {
    #[inline]
    pub fn of(&mut self, ty: TypeId, types: &Types) -> Kind {
        match self.0.get(ty.0 as usize) {
            Some(&Some(known)) => known,
            _ => self.look_up(ty, types),
        }
    }

    #[cold]
    fn look_up(&mut self, ty: TypeId, types: &Types) -> Kind {
        let kind = match types.descriptor(ty).strip_prefix('[') {
            None => Kind::Object,
            Some(element) if element.starts_with(['L', '[']) => Kind::References,
            Some(_) => Kind::Primitives,
        };
        // Those of a text come as it is read.
        if (ty.0 as usize) < types.len() {
            self.0.resize(self.0.len().max(types.len()), None);
            self.0[ty.0 as usize] = Some(kind);
        }
        kind
    }

    /// Number of elements that may hold references, of an array that was made while tracing was on: what others held at first is not told.
    pub fn length(&mut self, alloc: &Alloc, types: &Types) -> u32 {
        match self.of(alloc.ty, types) {
            Kind::References if alloc.kind != AllocKind::Initial => alloc.length,
            _ => 0,
        }
    }
}

/// Which fields are declared to hold arrays of references. A field of any type may hold one now and then, as the value of an entry does.
#[derive(Debug, Default)]
pub(crate) struct ForArrays(FxHashMap<FieldId, bool>);

impl ForArrays {
    pub fn has(&mut self, field: FieldId, naming: Naming<'_>) -> bool {
        *self.0.entry(field).or_insert_with(|| naming.is_array_field(field).unwrap_or(true))
    }
}

/// An exception in flight.
#[derive(Clone, Copy, Debug)]
struct Thrown {
    exception: ObjectId,
    ty: TypeId,
    method: MethodId,
    frames: u64,
}

/// Sums so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    places: FxHashMap<(SiteId, TypeId), PlaceUsage>,
    arrays: FxHashMap<(Option<FieldId>, SiteId, TypeId), Fill>,
    stored_in: FxHashMap<(SiteId, TypeId, FieldId), u64>,
    flights: FxHashMap<(TypeId, MethodId, Option<MethodId>), (u64, u64)>,
    flying: FxHashMap<ThreadId, Thrown>,
    thrown: u64,
    pub has_witnesses: bool,
}

impl Tally {
    /// An object of a class of this kind has died.
    pub fn over(&mut self, alloc: &Alloc, kind: Kind, state: &InUse) {
        if alloc.kind == AllocKind::Initial {
            return;
        }
        let (place, size) = ((alloc.site, alloc.ty), alloc.size);
        if kind == Kind::References && alloc.length > 0 {
            let fill = self.arrays.entry((state.owner, alloc.site, alloc.ty)).or_default();
            fill.arrays.add(size);
            fill.slots += u64::from(alloc.length);
            fill.filled += u64::from(state.most);
            fill.empty += u64::from(state.most == 0);
            fill.sparse += u64::from(u64::from(state.most) * 4 <= u64::from(alloc.length));
            // Elements take what the array takes but for its header, which is 16 bytes or 24.
            let elements = size.saturating_sub(16);
            let unfilled = u64::from(alloc.length - state.most.min(alloc.length));
            fill.wasted_bytes += elements.saturating_mul(unfilled) / u64::from(alloc.length);
        }
        let none = || PlaceUsage {
            site: alloc.site,
            ty: alloc.ty,
            is_array: kind != Kind::Object,
            all: Amount::default(),
            unused: Amount::default(),
            without_array: Amount::default(),
        };
        let sums = self.places.entry(place).or_insert_with(none);
        sums.all.add(size);
        if !state.making.is_used {
            sums.unused.add(size);
        }
        if !state.keeps {
            sums.without_array.add(size);
        }
    }

    /// An object is alive at the end.
    pub fn remains(&mut self, alloc: &Alloc, kind: Kind, state: &InUse) {
        if let Some(owner) = state.owner.filter(|_| alloc.kind != AllocKind::Initial) {
            *self.stored_in.entry((alloc.site, alloc.ty, owner)).or_default() += alloc.size;
        }
        self.over(alloc, kind, state);
    }

    /// A method throws an exception of a class.
    pub fn throw(&mut self, thread: ThreadId, method: MethodId, exception: ObjectId, ty: TypeId) {
        let thrown = Thrown { exception, ty, method, frames: 0 };
        match self.flying.insert(thread, thrown) {
            // Rethrown, for example by a `finally`: still the same flight.
            Some(before) if before.exception == exception => _ = self.flying.insert(thread, before),
            before => {
                self.thrown += 1;
                before.into_iter().for_each(|before| self.landed(&before, None));
            }
        }
    }

    /// An exception has left a method.
    pub fn pass(&mut self, thread: ThreadId, exception: ObjectId) {
        if let Some(thrown) = self.flying.get_mut(&thread).filter(|thrown| thrown.exception == exception) {
            thrown.frames += 1;
        }
    }

    /// A method handles an exception.
    pub fn handle(&mut self, thread: ThreadId, method: MethodId, exception: ObjectId) {
        if let Some(thrown) = self.flying.remove(&thread) {
            self.landed(&thrown, (thrown.exception == exception).then_some(method));
        }
    }

    fn landed(&mut self, thrown: &Thrown, by: Option<MethodId>) {
        let flights = self.flights.entry((thrown.ty, thrown.method, by)).or_default();
        *flights = (flights.0 + 1, flights.1 + thrown.frames);
    }

    /// Adds the dead of another tally.
    pub fn add(&mut self, other: Self) {
        for (place, sums) in other.places {
            match self.places.get_mut(&place) {
                Some(known) => {
                    known.all += sums.all;
                    known.unused += sums.unused;
                    known.without_array += sums.without_array;
                }
                None => _ = self.places.insert(place, sums),
            }
        }
        for (key, fill) in other.arrays {
            *self.arrays.entry(key).or_default() += fill;
        }
    }

    /// The trace has ended.
    pub fn finish(mut self) -> Usage {
        let flying: Vec<Thrown> = self.flying.drain().map(|(_, thrown)| thrown).collect();
        flying.iter().for_each(|thrown| self.landed(thrown, None));
        let flights = self.flights.into_iter();
        let flights = flights.map(|((ty, thrown_in, caught_in), (count, frames))| Flights {
            ty,
            thrown_in,
            caught_in,
            count,
            frames,
        });
        let arrays = self.arrays.into_iter();
        let stored_in = self.stored_in.into_iter();
        let mut usage = Usage {
            places: self.places.into_values().collect(),
            arrays: arrays.map(|((owner, site, ty), fill)| ArrayUsage { owner, site, ty, fill }).collect(),
            stored_in: stored_in.map(|((site, ty, field), bytes)| StoredIn { site, ty, field, bytes }).collect(),
            flights: flights.collect(),
            thrown: self.thrown,
            has_witnesses: self.has_witnesses,
        };
        usage.places.sort_unstable_by_key(|place| (place.site, place.ty));
        usage.arrays.sort_unstable_by_key(|arrays| (arrays.owner, arrays.site, arrays.ty));
        usage.stored_in.sort_unstable_by_key(|stored| (stored.site, stored.ty, stored.field));
        usage.flights.sort_unstable_by_key(|flights| (flights.ty, flights.thrown_in, flights.caught_in));
        usage
    }
}

impl AddAssign for Fill {
    fn add_assign(&mut self, other: Self) {
        self.arrays += other.arrays;
        self.slots += other.slots;
        self.filled += other.filled;
        self.empty += other.empty;
        self.sparse += other.sparse;
        self.wasted_bytes += other.wasted_bytes;
    }
}

/// A living object, for those who read records.
#[derive(Clone, Copy, Debug)]
struct Life {
    alloc: Alloc,
    /// Elements that may hold references.
    length: u32,
    in_use: InUse,
    /// Nothing is to be said of it, but others hold it.
    is_unwanted: bool,
    is_gone: bool,
}

/// Computes [`Usage`] from the records, in their order.
#[derive(Debug)]
pub struct UsageObserver<'a> {
    naming: Naming<'a>,
    objects: Objects<Life>,
    tally: Tally,
    kinds: Kinds,
    for_arrays: ForArrays,
    constructors: FxHashMap<MethodId, bool>,
}

impl<'a> UsageObserver<'a> {
    pub fn new(naming: Naming<'a>) -> Self {
        Self {
            naming,
            objects: Objects::default(),
            tally: Tally::default(),
            kinds: Kinds::default(),
            for_arrays: ForArrays::default(),
            constructors: FxHashMap::default(),
        }
    }

    /// The next record, in the order of the trace. Of an object that is made: whether it counts.
    pub fn record(&mut self, record: &Record, types: &Types, is_wanted: bool) {
        match *record {
            Record::Alloc(alloc) => {
                let length = self.kinds.length(&alloc, types);
                let (in_use, is_unwanted) = (InUse::default(), !is_wanted);
                self.objects.insert(alloc.object, Life { alloc, length, in_use, is_unwanted, is_gone: false });
            }
            Record::Death { object, .. } => {
                if let Some(node) = self.objects.forget(object) {
                    let life = self.objects[node];
                    // Freed places can still be visited, so the object is marked.
                    self.objects[node].is_gone = true;
                    self.objects.free(node);
                    if !life.is_unwanted {
                        self.tally.over(&life.alloc, self.kinds.of(life.alloc.ty, types), &life.in_use);
                    }
                }
            }
            Record::Update { old, origin, target, slot, .. } => self.update(old, origin, target, slot),
            Record::Entry { method, receiver, .. } => {
                let makes = self.makes(method);
                self.change(receiver, |change| if makes { change.begin() } else { change.used() });
            }
            Record::Exit { method, receiver, .. } => self.left(method, receiver),
            Record::ExitThrow { method, receiver, exception, thread } => {
                self.left(method, receiver);
                self.tally.pass(thread, exception);
            }
            Record::Throw { method, exception, thread, .. } => {
                self.change(exception, MakingChange::flies);
                let life = self.objects.find(exception).map(|node| self.objects[node]);
                if !life.is_some_and(|life| life.is_unwanted) {
                    let ty = life.map_or(TypeId::UNKNOWN, |life| life.alloc.ty);
                    self.tally.throw(thread, method, exception, ty);
                }
            }
            Record::Handle { method, exception, thread, .. } => {
                self.change(exception, MakingChange::flies);
                self.tally.handle(thread, method, exception);
            }
            Record::Use { object, .. } => {
                self.tally.has_witnesses = true;
                self.change(object, MakingChange::used);
            }
        }
    }

    fn with(&mut self, object: ObjectId, change: impl FnOnce(&mut Life)) {
        if let Some(node) = self.objects.node(object) {
            change(&mut self.objects[node]);
        }
    }

    fn change(&mut self, object: ObjectId, change: impl FnOnce(&mut MakingChange)) {
        self.with(object, |life| {
            let mut made = MakingChange::NONE;
            change(&mut made);
            life.in_use.making = life.in_use.making.after(made);
        });
    }

    fn makes(&mut self, method: MethodId) -> bool {
        *self.constructors.entry(method).or_insert_with(|| self.naming.method(method).ends_with(".<init>"))
    }

    fn left(&mut self, method: MethodId, receiver: ObjectId) {
        if !receiver.is_null() && self.makes(method) {
            self.change(receiver, MakingChange::end);
        }
    }

    fn update(&mut self, old: ObjectId, origin: ObjectId, target: ObjectId, slot: Slot) {
        match slot {
            Slot::Element(_) => {
                self.with(origin, |life| life.in_use.element(life.length, old.is_null(), target.is_null()));
            }
            Slot::Field(field) => {
                let mut keeps = false;
                self.with(target, |life| {
                    life.in_use.owner = Some(field);
                    keeps = life.is_array_with_elements();
                });
                if keeps && self.for_arrays.has(field, self.naming) {
                    self.with(origin, |life| life.in_use.keeps = true);
                }
            }
        }
    }

    /// The trace has ended.
    pub fn finish(mut self, types: &Types) -> Usage {
        let left = self.objects.iter().map(|(_, life)| life).filter(|life| !(life.is_gone || life.is_unwanted));
        for life in left {
            self.tally.remains(&life.alloc, self.kinds.of(life.alloc.ty, types), &life.in_use);
        }
        self.tally.finish()
    }
}

impl Life {
    fn is_array_with_elements(&self) -> bool {
        self.length > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is found without knowing how many constructors run is what is found one event at a time.
        #[test]
        fn changes_are_combined(before in 0..5u8, events in prop::collection::vec(0..3u8, 0..12)) {
            let apply = |change: &mut MakingChange, event: u8| match event {
                0 => change.begin(),
                1 => change.end(),
                _ => change.used(),
            };
            let start = Making { running: before, is_used: false };
            let one_by_one = events.iter().fold(start, |making, &event| {
                let mut change = MakingChange::NONE;
                apply(&mut change, event);
                making.after(change)
            });
            let mut all = MakingChange::NONE;
            events.iter().for_each(|&event| apply(&mut all, event));
            prop_assert_eq!(start.after(all), one_by_one);
            let (mut running, mut is_used) = (before, false);
            for event in events {
                match event {
                    0 => running += 1,
                    1 => running = running.saturating_sub(1),
                    _ => is_used |= running == 0,
                }
            }
            prop_assert_eq!(one_by_one, Making { running, is_used });
        }
    }
}
