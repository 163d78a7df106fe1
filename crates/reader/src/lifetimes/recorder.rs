//! Records everything that happens to objects, and what holds objects although no record says so.

use rustc_hash::FxHashSet;

use super::special::Special;
use super::spool::{Limits, SpoolWriter};
use super::step::Step;
use super::times::Times;
use super::weak::WeakSlots;
use super::{LifetimesError, Recording};
use crate::model::Stacks;
use crate::place::Place;
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId};
use crate::told::{Hold, Told};
use crate::watch::Watcher;

/// Receives steps and tracks what is held at the end of the trace.
#[derive(Debug)]
pub struct Recorder {
    special: Special,
    writer: SpoolWriter,
    weak: WeakSlots,
    held_at_end: FxHashSet<ObjectId>,
    stacks: Stacks,
    times: Times,
    place: Place,
    watcher: Watcher,
}

impl Recorder {
    pub fn new(special: Special, limits: Limits) -> Self {
        Self {
            weak: WeakSlots::new(&special),
            special,
            writer: SpoolWriter::new(limits),
            held_at_end: FxHashSet::default(),
            stacks: Stacks::default(),
            times: Times::default(),
            place: Place::default(),
            watcher: Watcher::default(),
        }
    }

    /// Sets the watcher that is informed about the progress of the work after recording.
    pub fn watch(&mut self, watcher: &Watcher) {
        self.watcher = watcher.clone();
    }

    /// Receives the next item. Returns false in the cases of [`record`](Self::record).
    #[inline]
    pub fn told(&mut self, told: &Told) -> bool {
        match *told {
            Told::Record(ref record) => self.record(record),
            Told::Hold(Hold::Initial { origin, slot, target }) => self.initial(origin, slot, target),
            Told::Hold(Hold::Until { object, thread }) => self.held(object, thread),
            Told::Hold(Hold::ToTheEnd { object }) => {
                self.held_to_the_end(object);
                true
            }
        }
    }

    /// Receives the next record. Returns false if the disk is full; then [`finish`](Self::finish) returns the error.
    #[inline]
    pub fn record(&mut self, record: &Record) -> bool {
        let mut step = Step::Record(*record);
        match *record {
            Record::Alloc(ref alloc @ Alloc { kind, object, ty, .. }) => {
                let is_constant = kind == AllocKind::Vm && Some(ty) == self.special.string;
                if is_constant || Some(ty) == self.special.class {
                    self.held_at_end.insert(object);
                }
                self.weak.saw(alloc);
            }
            Record::Update { old, origin, target, slot, thread } if self.weak.put(origin, slot, target) => {
                step = Step::WeakUpdate { old, origin, target, slot, thread };
            }
            _ => self.stacks.record(record),
        }
        self.writer.push(&step)
    }

    /// Keeps the place of each step, for [`Played::At`](super::Played::At).
    pub fn keep_places(&mut self) {
        self.writer.keep_places();
    }

    /// Sets the place of the steps that follow.
    #[inline]
    pub fn at(&mut self, place: Place) {
        if place == self.place {
            return;
        }
        self.place = place;
        if let Some(wall) = place.wall() {
            self.times.note(self.writer.steps(), wall.begin);
        }
        self.writer.at(place);
    }

    /// Number of steps so far, which is the number of the next one.
    pub fn steps(&self) -> u64 {
        self.writer.steps()
    }

    /// Receives a slot's target when tracing began. Returns false in the cases of [`record`](Self::record).
    pub fn initial(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> bool {
        let weak = self.weak.is_weak(origin, slot);
        self.writer.push(&Step::Initial { origin, target, slot, weak })
    }

    /// Receives an object that the VM held until now. Returns false in the cases of [`record`](Self::record).
    pub fn held(&mut self, object: ObjectId, thread: ThreadId) -> bool {
        self.writer.push(&Step::Held { object, thread })
    }

    /// Receives an object that the VM holds to the end of the trace.
    pub fn held_to_the_end(&mut self, object: ObjectId) {
        self.held_at_end.insert(object);
    }

    /// Ends the recording. Fails if the spool could not be written.
    pub fn finish(self) -> Result<Recording, LifetimesError> {
        // The stacks of threads without an end still hold objects.
        Recording::new(self.writer.finish()?, self.held_at_end, self.stacks.held(), self.times, self.watcher)
    }
}
