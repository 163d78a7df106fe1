//! Takes down what happens to objects, and what no record says of what holds them.

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

/// Takes steps and keeps account of what the end of the trace holds.
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
    /// Nothing taken down yet.
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

    /// Who is told how far the work on what was taken down has come.
    pub fn watch(&mut self, watcher: &Watcher) {
        self.watcher = watcher.clone();
    }

    /// What is told next. `false`: as of [`record`](Self::record).
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

    /// The next record. `false`: the disk takes no more, and [`finish`](Self::finish) says why.
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

    /// Keeps where each step stands, for [`Played::At`](super::Played::At).
    pub fn keep_places(&mut self) {
        self.writer.keep_places();
    }

    /// Where the next steps stand.
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

    /// Number of the next step.
    pub fn steps(&self) -> u64 {
        self.writer.steps()
    }

    /// A slot held this when tracing began.
    pub fn initial(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> bool {
        let weak = self.weak.is_weak(origin, slot);
        self.writer.push(&Step::Initial { origin, target, slot, weak })
    }

    /// The VM held the object until here.
    pub fn held(&mut self, object: ObjectId, thread: ThreadId) -> bool {
        self.writer.push(&Step::Held { object, thread })
    }

    /// The VM holds the object to the end of the trace.
    pub fn held_to_the_end(&mut self, object: ObjectId) {
        self.held_at_end.insert(object);
    }

    /// Ends the taking down.
    pub fn finish(self) -> Result<Recording, LifetimesError> {
        // The stacks of threads that were cut off still hold what they held.
        Recording::new(self.writer.finish()?, self.held_at_end, self.stacks.held(), self.times, self.watcher)
    }
}
