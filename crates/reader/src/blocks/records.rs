//! The records of a trace, in order, with the deaths that are known: each part makes its own, with what only the past tells filled
//! in, in order.
//!
//! 1. [`walk`](super::walk) makes the records of a part, in which objects have numbers ([`script`](super::script)).
//! 2. In order: which objects these are, what slots held before, which stores changed nothing, and the deaths of the part.
//! 3. [`Sheet::each`]: who reads the records has them made, one after the other.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;

use et_format::event::{ObjectHash, Ticket};
use rustc_hash::FxHashMap;

use super::BlocksError;
use super::driver::{Driver, Mode, Options, cut_off, drive};
use super::literals::Literals;
use super::script::Script;
use super::sheet::{Form, Sheet};
use super::walk::{self, Birth, Named, Part};
use crate::batch::Filler;
use crate::lifetimes::{AllKnown, Known};
use crate::place::Place;
use crate::record::{Alloc, Clock, ObjectId, RecordKind, ThreadId, Totals};
use crate::resolve::{ObjectIds, Outcome, Slots};
use crate::told::Hold;
use crate::trace::Trace;

/// Number of items of what existed when tracing began that are told together.
const MOST_INITIAL: u32 = 8192;

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
        births: Vec::new(),
        ids: Vec::new(),
        slots: Slots::default(),
        place: Place::new(Ticket(0), None),
        step: 0,
        depths: FxHashMap::default(),
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

struct Records<'f, 'k> {
    filler: &'f mut Filler,
    known: Upcoming<'k>,
    form: Form,
    /// What existed when tracing began, as far as it has not been written: its items, births, and objects.
    script: Script,
    births: Vec<Birth>,
    ids: Vec<ObjectId>,
    /// What slots hold whose objects may be stored into again.
    slots: Slots,
    /// The place of the last item.
    place: Place,
    /// Number of the next step.
    step: u64,
    /// Number of frames on each stack that is not empty.
    depths: FxHashMap<u32, usize>,
}

impl Records<'_, '_> {
    /// An object existed when tracing began.
    fn tell_object(&mut self, alloc: Alloc) -> Result<(), BlocksError> {
        self.script.alloc(self.ids.len() as u32);
        self.ids.push(alloc.object);
        self.births.push(Birth { alloc, step: 0, tick: 0, frame: walk::NONE, bytes: 0 });
        self.tell_many()
    }

    /// Something holds an object, at the beginning or the end.
    fn tell_hold(&mut self, hold: Hold) -> Result<(), BlocksError> {
        let ids = &mut self.ids;
        self.script.hold(hold, |id| {
            ids.push(id);
            ids.len() as u32 - 1
        });
        self.tell_many()
    }

    fn tell_many(&mut self) -> Result<(), BlocksError> {
        if self.script.count < MOST_INITIAL { Ok(()) } else { self.tell_rest() }
    }

    fn tell_rest(&mut self) -> Result<(), BlocksError> {
        let (births, ids) = (std::mem::take(&mut self.births), std::mem::take(&mut self.ids));
        let script = std::mem::take(&mut self.script);
        let mut totals = Totals::default();
        totals.0[RecordKind::Initial as usize] = births.len() as u64;
        self.hand_over(Sheet { births, ids, ..Sheet::of(script) }, totals)
    }

    /// Numbers the steps of the next part, finds what is known of it, and hands it over. `totals` are those of its events.
    fn hand_over(&mut self, mut sheet: Sheet, totals: Totals) -> Result<(), BlocksError> {
        (sheet.step, sheet.place) = (self.step, self.place);
        self.step += sheet.steps();
        self.place = sheet.script.places.last().map_or(self.place, |(_, last)| *last);
        sheet.known = self.known.until(self.step)?;
        let extent = sheet.extent(totals, self.form);
        match self.filler.deliver(sheet, extent, self.form) {
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
                flow = driver.mode.tell_object(alloc);
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
                flow = mode.tell_hold(hold);
            }
        })?;
        flow?;
        mode.tell_rest()
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
        let (births, thread) = (part.births, ThreadId(part.thread));
        let sheet = Sheet { births, thread, ids: found, olds, unchanged, ..Sheet::of(script) };
        driver.mode.hand_over(sheet, part.totals)
    }

    fn advance(_driver: &mut Driver<'_, 'a, Self>, _all: bool) -> Result<(), BlocksError> {
        Ok(())
    }

    fn end(driver: &mut Driver<'_, 'a, Self>) -> Result<(), BlocksError> {
        let mode = &mut driver.mode;
        mode.place = mode.place.behind_all();
        for thread in driver.trace.threads.iter().filter(|thread| thread.end.is_none() && !thread.object.is_null()) {
            if let Some(object) = driver.before.ids.current(thread.object) {
                mode.tell_hold(Hold::ToTheEnd { object })?;
            }
        }
        mode.tell_rest()
    }
}
