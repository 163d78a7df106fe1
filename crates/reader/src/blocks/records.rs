//! The records of a trace, in order, with the deaths that are known: each part makes its own, with what only the past tells filled
//! in, in order.
//!
//! 1. [`walk`](super::walk) makes the records of a part, in which objects have numbers ([`script`](super::script)).
//! 2. In order: which objects these are, what slots held before, which stores changed nothing, and the deaths of the part.
//! 3. [`Sheet::write`]: each part on its own, its records as they are in the whole.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;

use et_format::event::{ObjectHash, Ticket};
use rustc_hash::FxHashMap;

use super::BlocksError;
use super::driver::{Driver, Mode, Options, cut_off, drive};
use super::literals::Literals;
use super::pool::{Promise, Urgency};
use super::script::Script;
use super::walk::{self, Named, Part};
use crate::batch::{Filler, Written};
use crate::lifetimes::{AllKnown, Known};
use crate::place::Place;
use crate::record::{Alloc, Clock, ObjectId, Record, Totals};
use crate::resolve::{ObjectIds, Outcome, Slots};
use crate::told::{Hold, Told};
use crate::trace::Trace;

/// Number of items up to which a part is written at once rather than by another thread.
const FEW: usize = 512;
/// Maximum number of items of what existed when tracing began that are written together.
const MOST_INITIAL: usize = 8192;

/// What to tell.
pub struct Wanted<'k> {
    /// The deaths, and what else was computed.
    pub known: Option<AllKnown<'k>>,
    /// Whether to tell what holds objects although no record does.
    pub holders: bool,
    pub clock: Clock,
}

/// Tells everything, until the filler breaks or the trace ends.
///
/// # Errors
/// The trace cannot be read, or not in this way, perhaps after a part of it has been told; or what is known cannot be read.
pub(crate) fn read(trace: &Trace, wanted: Wanted<'_>, filler: &mut Filler) -> Result<Outcome, BlocksError> {
    match read_with(trace, wanted, filler, &Options::default()) {
        Err(BlocksError::Stopped) => Ok(Outcome { stopped: true, ..Outcome::default() }),
        read => read,
    }
}

pub(super) fn read_with(
    trace: &Trace,
    wanted: Wanted<'_>,
    filler: &mut Filler,
    options: &Options,
) -> Result<Outcome, BlocksError> {
    let Wanted { known, holders, clock } = wanted;
    let mode = |_| Records {
        filler,
        known: Upcoming { all: known, next: None },
        form: Form { holders, clock },
        script: Script::default(),
        slots: Slots::default(),
        place: Place::new(Ticket(0), None),
        step: 0,
        depths: FxHashMap::default(),
        writing: VecDeque::new(),
    };
    let driven = drive(trace, true, VecDeque::new(), options, None, mode)?;
    let mut anomalies = driven.anomalies;
    let cut_off = cut_off(trace, driven.mode.depths, &mut anomalies);
    if driven.mode.known.next.is_some() {
        let what = "it has deaths after records that are not in the trace";
        return Err(BlocksError::Known(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    let extra_fields = driven.before.fields.into_extra();
    Ok(Outcome { anomalies, lost: driven.lost, cut_off, extra_fields, ..Outcome::default() })
}

/// What is known, in order.
struct Upcoming<'k> {
    all: Option<AllKnown<'k>>,
    next: Option<Known>,
}

impl std::fmt::Debug for Wanted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wanted").field("holders", &self.holders).field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Upcoming<'_> {
    fn advance(&mut self) -> Result<(), BlocksError> {
        let next = self.all.as_mut().and_then(Iterator::next);
        self.next = next.transpose().map_err(BlocksError::Known)?;
        Ok(())
    }

    /// What belongs to steps before this one.
    fn until(&mut self, step: u64) -> Result<Vec<Known>, BlocksError> {
        let mut found = Vec::new();
        while let Some(known) = self.next
            && known.step() < step
        {
            found.push(known);
            self.advance()?;
        }
        Ok(found)
    }
}

/// What records are written like.
#[derive(Clone, Copy, Debug)]
struct Form {
    holders: bool,
    clock: Clock,
}

/// A part whose records can be written.
#[derive(Debug)]
struct Sheet {
    script: Script,
    /// The objects, by their numbers; `None` if the script has their ids.
    ids: Option<Vec<ObjectId>>,
    /// What slots held before the part: by the index of the record of their first store, in order.
    olds: Vec<(u32, ObjectId)>,
    /// Records that are none, since the store changed nothing, in order.
    unchanged: Vec<u32>,
    /// The place of the items before the first of `script.places`.
    place: Place,
    /// Number of the first step.
    step: u64,
    known: Vec<Known>,
}

impl Sheet {
    #[inline]
    fn id(&self, number: ObjectId) -> ObjectId {
        match &self.ids {
            Some(ids) => ids.get(number.0 as usize).copied().unwrap_or_default(),
            None => number,
        }
    }

    fn hold(&self, hold: Hold) -> Hold {
        match hold {
            Hold::Initial { .. } => hold,
            Hold::Until { object, thread } => Hold::Until { object: self.id(object), thread },
            Hold::ToTheEnd { object } => Hold::ToTheEnd { object: self.id(object) },
        }
    }

    #[inline(always)]
    fn record(&self, record: &Record) -> Record {
        match *record {
            Record::Alloc(alloc) => Record::Alloc(Alloc { object: self.id(alloc.object), ..alloc }),
            Record::Update { old, origin, target, slot, thread } => {
                let (old, origin, target) = (self.id(old), self.id(origin), self.id(target));
                Record::Update { old, origin, target, slot, thread }
            }
            Record::Entry { method, receiver, thread } => Record::Entry { method, receiver: self.id(receiver), thread },
            Record::Exit { method, receiver, thread } => Record::Exit { method, receiver: self.id(receiver), thread },
            Record::ExitThrow { method, receiver, exception, thread } => {
                let (receiver, exception) = (self.id(receiver), self.id(exception));
                Record::ExitThrow { method, receiver, exception, thread }
            }
            Record::Throw { method, receiver, exception, thread } => {
                let (receiver, exception) = (self.id(receiver), self.id(exception));
                Record::Throw { method, receiver, exception, thread }
            }
            Record::Handle { method, receiver, exception, thread } => {
                let (receiver, exception) = (self.id(receiver), self.id(exception));
                Record::Handle { method, receiver, exception, thread }
            }
            Record::Death { object, thread } => Record::Death { object: self.id(object), thread },
            Record::Use { object, thread } => Record::Use { object: self.id(object), thread },
        }
    }

    /// Writes what is to be told. `room` is a buffer.
    fn write(self, form: Form, mut room: Vec<Told>) -> Written {
        room.reserve(self.script.told.len() + self.known.len());
        let mut written = Written {
            told: room,
            places: vec![(0, self.place)],
            clearings: Vec::new(),
            ticks: 0,
            totals: Totals::default(),
        };
        let mut step = self.step;
        let mut places = self.script.places.iter().peekable();
        let mut olds = self.olds.iter().peekable();
        let mut unchanged = self.unchanged.iter().peekable();
        let mut known = self.known.iter().peekable();
        for (index, told) in (0u32..).zip(&self.script.told) {
            while let Some((_, place)) = places.next_if(|(at, _)| *at <= index) {
                written.at(*place);
            }
            let record = match told {
                Told::Hold(hold) => {
                    if form.holders {
                        written.told.push(Told::Hold(self.hold(*hold)));
                    }
                    if matches!(hold, Hold::ToTheEnd { .. }) {
                        continue;
                    }
                    None
                }
                Told::Record(_) if unchanged.next_if_eq(&&index).is_some() => {
                    olds.next_if(|(at, _)| *at == index);
                    continue;
                }
                Told::Record(record) => Some(record),
            };
            if let Some(record) = record {
                let mut record = self.record(record);
                if let Record::Update { old, .. } = &mut record {
                    if let Some((_, before)) = olds.next_if(|(at, _)| *at == index) {
                        *old = *before;
                    }
                    if known.next_if(|known| matches!(known, Known::Cleared { at } if *at == step)).is_some() {
                        *old = ObjectId::NULL;
                    }
                }
                written.record(record, form.clock);
            }
            while let Some(Known::Found { record, .. }) = known.next_if(|known| known.step() <= step) {
                if matches!(record, Record::Update { .. }) {
                    written.clearings.push(written.told.len() as u32);
                }
                written.record(*record, form.clock);
            }
            step += 1;
        }
        for (_, place) in places {
            written.at(*place);
        }
        written
    }
}

/// Whether a later part may name the object.
#[inline]
fn may_be_named(named: &Named, literals: &Literals) -> bool {
    // Few are made up, and a hash may be all that names them.
    named.is(Named::LATER) || u32::try_from(named.key).map_or(true, |hash| literals.may_name(hash))
}

/// Notes which objects of a part, whose blocks have not been passed, its events were expected to name.
fn foresee(part: &mut Part, literals: &Literals) {
    for named in part.named.iter_mut().filter(|named| named.birth == walk::NONE) {
        if may_be_named(named, literals) {
            named.flags |= Named::FORESEEN;
        }
    }
}

/// A part on its way to who reads the records.
enum Writing {
    Promised(Promise<Written>),
    Done(Written),
}

struct Records<'f, 'k> {
    filler: &'f mut Filler,
    known: Upcoming<'k>,
    form: Form,
    /// What existed when tracing began, as far as it has not been written.
    script: Script,
    /// What slots hold whose objects may be stored into again.
    slots: Slots,
    /// The place of the last item.
    place: Place,
    /// Number of the next step.
    step: u64,
    /// Number of frames on each stack that is not empty.
    depths: FxHashMap<u32, usize>,
    writing: VecDeque<Writing>,
}

impl Records<'_, '_> {
    /// Tells what existed when tracing began, in pieces of some size unless it is the rest.
    fn tell_initial(&mut self, told: Option<Told>) -> Result<(), BlocksError> {
        self.script.told.extend(told);
        self.script.no_steps += u32::from(matches!(told, Some(Told::Hold(Hold::ToTheEnd { .. }))));
        if told.is_some() && self.script.told.len() < MOST_INITIAL {
            return Ok(());
        }
        let script = std::mem::take(&mut self.script);
        let sheet = self.sheet(script, None, Vec::new(), Vec::new())?;
        let written = sheet.write(self.form, self.filler.room());
        self.hand_over(written)
    }

    /// The next part, with what is known of it.
    fn sheet(
        &mut self,
        script: Script,
        ids: Option<Vec<ObjectId>>,
        olds: Vec<(u32, ObjectId)>,
        unchanged: Vec<u32>,
    ) -> Result<Sheet, BlocksError> {
        let (step, place) = (self.step, self.place);
        self.step += (script.told.len() - script.no_steps as usize - unchanged.len()) as u64;
        self.place = script.places.last().map_or(place, |(_, last)| *last);
        let known = self.known.until(self.step)?;
        Ok(Sheet { script, ids, olds, unchanged, place, step, known })
    }

    fn hand_over(&mut self, written: Written) -> Result<(), BlocksError> {
        match self.filler.deliver(written) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(BlocksError::Stopped),
        }
    }
}

impl<'a> Mode<'a> for Records<'_, '_> {
    const TELLS: bool = true;
    /// By their numbers; null for those that the part makes.
    type Found = Vec<ObjectId>;

    fn begin(driver: &mut Driver<'_, 'a, Self>) -> Result<(), BlocksError> {
        driver.mode.known.advance()?;
        let mut flow = Ok(());
        let object = |driver: &mut Driver<'_, 'a, Self>, _: ObjectHash, alloc: Alloc| {
            if flow.is_ok() {
                flow = driver.mode.tell_initial(Some(Told::Record(Record::Alloc(alloc))));
            }
        };
        let mut vm = driver.initial(object, |mode, literals, (origin, slot, target)| {
            if origin.is_null() || literals.may_name(ObjectIds::hash(origin).0) {
                mode.slots.put(origin, slot, target);
            }
        })?;
        let mode = &mut driver.mode;
        vm.begin(&mut |hold| {
            if flow.is_ok() {
                flow = mode.tell_initial(Some(Told::Hold(hold)));
            }
        })?;
        flow?;
        mode.tell_initial(None)
    }

    fn identify(driver: &mut Driver<'_, 'a, Self>, part: &mut Part) -> Option<Vec<ObjectId>> {
        foresee(part, &driver.literals);
        let ids = &mut driver.before.ids;
        let find = |named: &Named| match u32::try_from(named.key) {
            Err(_) => Some(ObjectId(named.key)),
            Ok(hash) if named.birth == walk::NONE => ids.current(ObjectHash(hash)),
            Ok(hash) if named.is(Named::UNKNOWN) && ids.current(ObjectHash(hash)).is_some() => None,
            Ok(_) => Some(ObjectId::NULL),
        };
        part.named.iter().map(find).collect()
    }

    fn identify_exact(driver: &mut Driver<'_, 'a, Self>, part: &mut Part) -> Vec<ObjectId> {
        foresee(part, &driver.literals);
        let ids = &mut driver.before.ids;
        let find = |named: &Named| match u32::try_from(named.key) {
            Err(_) => ObjectId(named.key),
            Ok(hash) if named.birth == walk::NONE => ids.current(ObjectHash(hash)).unwrap_or_default(),
            Ok(_) => ObjectId::NULL,
        };
        part.named.iter().map(find).collect()
    }

    fn passed(&mut self, _hash: u32) {}

    fn commit(
        driver: &mut Driver<'_, 'a, Self>,
        mut part: Part,
        mut found: Vec<ObjectId>,
        passed: Vec<u64>,
    ) -> Result<(), BlocksError> {
        driver.before.now = Ticket(part.ticket);
        driver.anomalies.add(&part.anomalies);
        driver.lost.add(&part.lost);
        let (ids, slots, literals) = (&mut driver.before.ids, &mut driver.mode.slots, &driver.literals);
        for (named, id) in part.named.iter().zip(&mut found).filter(|(named, _)| named.birth != walk::NONE) {
            if let Ok(hash) = u32::try_from(named.key) {
                let (object, before) = ids.allocate(ObjectHash(hash));
                // Nothing can name an object whose hash is used again.
                if let Some(before) = before {
                    slots.release(before);
                }
                *id = object;
            }
        }
        let mut script = std::mem::take(&mut part.script);
        if part.ticket == u64::MAX {
            let end = driver.mode.place.behind_all();
            script.places.iter_mut().for_each(|(_, place)| *place = end);
        }
        let slots = &mut driver.mode.slots;
        let id = |number: u32| found.get(number as usize).copied().unwrap_or_default();
        let (mut olds, mut unchanged) = (Vec::new(), Vec::new());
        for slot in &script.slots {
            let (origin, target) = (id(slot.origin), id(slot.target));
            // Static fields belong to no object.
            let (is_kept, is_foreseen) = match part.named.get(slot.origin as usize) {
                Some(named) => (may_be_named(named, literals), named.is(Named::FORESEEN)),
                None => (true, true),
            };
            let is_new = slot.first == walk::NONE;
            if is_new && !(is_kept && !target.is_null()) {
                continue;
            }
            if !is_new && !is_foreseen {
                return Err(BlocksError::Surprise);
            }
            let old = slots.put(origin, slot.slot, if is_kept { target } else { ObjectId::NULL });
            match slot.if_changed {
                _ if is_new => {}
                Some(first) if id(first) == old => unchanged.push(slot.first),
                _ => olds.push((slot.first, old)),
            }
        }
        for (named, id) in part.named.iter().zip(&found) {
            if named.birth == walk::NONE && !may_be_named(named, literals) {
                slots.release(*id);
            }
        }
        for key in passed {
            if let Ok(hash) = u32::try_from(key)
                && !literals.may_name(hash)
                && let Some(object) = ids.current(ObjectHash(hash))
            {
                slots.release(object);
            }
        }
        slots.tidy();
        if script.depth > 0 {
            driver.mode.depths.insert(part.thread, script.depth as usize);
        } else {
            driver.mode.depths.remove(&part.thread);
        }
        let sheet = driver.mode.sheet(script, Some(found), olds, unchanged)?;
        let (form, room) = (driver.mode.form, driver.mode.filler.room());
        let writing = match sheet.script.told.len() <= FEW {
            true => Writing::Done(sheet.write(form, room)),
            false => Writing::Promised(driver.pool.add(Urgency::Settle, move |_| sheet.write(form, room))),
        };
        driver.mode.writing.push_back(writing);
        Ok(())
    }

    fn advance(driver: &mut Driver<'_, 'a, Self>, all: bool) -> Result<(), BlocksError> {
        loop {
            let writing = &mut driver.mode.writing;
            let is_ready = match writing.front() {
                Some(Writing::Promised(promise)) => promise.is_kept(),
                Some(Writing::Done(_)) => true,
                None => return Ok(()),
            };
            if !all && !is_ready && writing.len() <= driver.ahead {
                return Ok(());
            }
            let written = match writing.pop_front() {
                Some(Writing::Promised(promise)) => driver.pool.wait(&promise, driver.hands),
                Some(Writing::Done(written)) => written,
                None => return Ok(()),
            };
            driver.mode.hand_over(written)?;
        }
    }

    fn end(driver: &mut Driver<'_, 'a, Self>) -> Result<(), BlocksError> {
        let mode = &mut driver.mode;
        mode.place = mode.place.behind_all();
        for thread in driver.trace.threads.iter().filter(|thread| thread.end.is_none() && !thread.object.is_null()) {
            if let Some(object) = driver.before.ids.current(thread.object) {
                mode.tell_initial(Some(Told::Hold(Hold::ToTheEnd { object })))?;
            }
        }
        mode.tell_initial(None)
    }
}
