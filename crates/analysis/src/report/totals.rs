//! The first pass over all objects: what happened when, and totals by class, site and context.

use std::io;
use std::ops::AddAssign;

use et_reader::axis::{BINS, NANOS, Span};
use et_reader::made_in::MadeIn;
use et_reader::model::ContextId;
use et_reader::naming::Naming;
use et_reader::population::{Moment, Population};
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;

use super::bins::Bins;
use super::data::{Axis, AxisUnit};
use super::rows::{self, Object};
use crate::drag;
use crate::flame::Parts;
use crate::fold::add_all;
use crate::summary::Amount;

/// *Dead within*: bytes allocated between birth and death, as nurseries are large.
pub(super) const LIMITS: [u64; 3] = [64 << 10, 1 << 20, 16 << 20];

/// Events in a bin.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    born: Amount,
    died: Amount,
    last: Last,
}

/// The last values seen.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    tick: u64,
    bytes: u64,
    nanos: u64,
}

impl AddAssign for Bin {
    fn add_assign(&mut self, other: Self) {
        self.born += other.born;
        self.died += other.died;
        self.last.see(&other.last);
    }
}

impl Last {
    fn see(&mut self, other: &Self) {
        self.tick = self.tick.max(other.tick);
        self.bytes = self.bytes.max(other.bytes);
        self.nanos = self.nanos.max(other.nanos);
    }
}

impl From<&Moment> for Last {
    fn from(point: &Moment) -> Self {
        Self { tick: point.tick, bytes: point.bytes, nanos: point.nanos.unwrap_or(0) }
    }
}

/// Totals of the objects of a class or a site.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub made: Amount,
    pub alive: Amount,
    pub young: [Amount; LIMITS.len()],
    pub stale: Amount,
    pub on_stack: Amount,
    pub in_thread: Amount,
    pub with_thread: Amount,
    /// Sum of bytes allocated between birth and death. Of whole numbers, these sums do not depend on the order of the objects.
    pub age_bytes: u128,
    /// Bytes times ticks between birth and death of those that died.
    pub space_time: u128,
    /// Of it what was after the last use.
    pub drag: u128,
}

/// Values of the objects allocated in one place, from which flame graphs are made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weights {
    pub made: Amount,
    pub alive: Amount,
    /// Dead within each limit. Where walks through the heap stand in for deaths, the first is what survived a collection.
    pub others: [Amount; LIMITS.len()],
}

impl Weights {
    fn add(&mut self, object: &Object) {
        let size = object.size;
        self.made += object.amount;
        match &object.death {
            None => {
                if !object.is_missed() {
                    self.alive += object.amount;
                }
                if object.fate.is_some_and(|fate| fate.survived > 0) {
                    self.others[0] += object.amount;
                }
            }
            Some(death) => {
                let age = death.bytes.saturating_sub(object.birth.bytes);
                self.others.iter_mut().zip(LIMITS).filter(|(_, limit)| age < *limit).for_each(|(sum, _)| sum.add(size));
            }
        }
    }
}

/// Allocated, alive, and the others.
impl Parts for Weights {
    fn all(&self) -> impl Iterator<Item = Amount> {
        [self.made, self.alive].into_iter().chain(self.others)
    }
}

impl AddAssign for Weights {
    fn add_assign(&mut self, other: Self) {
        self.made += other.made;
        self.alive += other.alive;
        self.others.iter_mut().zip(other.others).for_each(|(sum, other)| *sum += other);
    }
}

impl Sums {
    fn add(&mut self, object: &Object, end: &Moment) {
        let size = object.size;
        self.made += object.amount;
        match &object.death {
            None if object.is_missed() => {}
            None => {
                self.alive += object.amount;
                if object.last_use < end.tick / 2 {
                    self.stale += object.amount;
                }
            }
            Some(death) => {
                let age = death.bytes.saturating_sub(object.birth.bytes);
                self.age_bytes += u128::from(age);
                self.young.iter_mut().zip(LIMITS).filter(|(_, limit)| age < *limit).for_each(|(sum, _)| sum.add(size));
                let ticks = death.tick.saturating_sub(object.birth.tick);
                self.space_time += u128::from(size) * u128::from(ticks);
            }
        }
        let death = object.death.as_ref().map(|death| death.tick);
        let ticks = drag::ticks(object.is_initial, object.last_use, death).unwrap_or(0);
        self.drag += u128::from(size) * u128::from(ticks);
        if let Some(escaped) = object.escaped_thread {
            self.with_thread.add(size);
            if !escaped {
                self.in_thread.add(size);
                // An object that is alive may yet outlive its method.
                if object.escaped_frame == Some(false) && object.death.is_some() {
                    self.on_stack.add(size);
                }
            }
        }
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.made += other.made;
        self.alive += other.alive;
        self.young.iter_mut().zip(other.young).for_each(|(sum, other)| *sum += other);
        self.stale += other.stale;
        self.on_stack += other.on_stack;
        self.in_thread += other.in_thread;
        self.with_thread += other.with_thread;
        self.age_bytes += other.age_bytes;
        self.space_time += other.space_time;
        self.drag += other.drag;
    }
}

/// Where objects were made: context, place in it, and class.
pub(crate) type Place = (ContextId, MadeIn, TypeId);

/// Of all objects, or of some while they are gone through: sums of all and by class are added up from those by site at the end.
#[derive(Debug)]
pub(super) struct Totals {
    end: Moment,
    has_deaths: bool,
    axes: [(AxisUnit, Bins<Bin>); 3],
    pub initial: Amount,
    pub all: Sums,
    pub classes: FxHashMap<TypeId, Sums>,
    pub sites: FxHashMap<(MadeIn, TypeId), Sums>,
    pub places: FxHashMap<Place, Weights>,
}

impl Totals {
    /// Goes through all objects.
    pub fn of(population: &Population, naming: Naming<'_>) -> io::Result<Self> {
        let new = || Self::new(population.end, population.has_deaths);
        let mut totals = rows::fold(population, naming, rows::ALL, new, Self::object, Self::spans, Self::add)?;
        for (&(_, class), sums) in &totals.sites {
            totals.all += *sums;
            *totals.classes.entry(class).or_default() += *sums;
        }
        Ok(totals)
    }

    fn new(end: Moment, has_deaths: bool) -> Self {
        Self {
            end,
            has_deaths,
            axes: [
                (AxisUnit::Nanos, Bins::new(NANOS, BINS)),
                (AxisUnit::Ticks, Bins::new(1, BINS)),
                (AxisUnit::Bytes, Bins::new(1, BINS)),
            ],
            initial: Amount::default(),
            all: Sums::default(),
            classes: FxHashMap::default(),
            sites: FxHashMap::default(),
            places: FxHashMap::default(),
        }
    }

    /// Something happened at that point.
    fn happened(&mut self, point: &Moment, count: impl Fn(&mut Bin)) {
        for (unit, bins) in &mut self.axes {
            let at = match unit {
                AxisUnit::Nanos => point.nanos,
                AxisUnit::Ticks => Some(point.tick),
                AxisUnit::Bytes => Some(point.bytes),
            };
            if let Some(at) = at {
                let bin = bins.at(at);
                bin.last.see(&point.into());
                count(bin);
            }
        }
    }

    /// When objects were born whose rows do not say it.
    fn spans(&mut self, spans: &[Span]) {
        for Span { last, objects, bytes } in spans {
            let born = Amount { objects: *objects, bytes: *bytes };
            self.happened(last, |bin| bin.born += born);
        }
    }

    fn object(&mut self, object: &Object) {
        if !object.is_initial && !object.has_span {
            self.happened(&object.birth, |bin| bin.born += object.amount);
        }
        if let Some(death) = &object.death {
            self.happened(death, |bin| bin.died.add(object.size));
        }
        if object.is_initial {
            self.initial += object.amount;
            return;
        }
        // A site allocates objects of a single class, except for the inner arrays of a `multianewarray` and objects
        // without a site.
        self.sites.entry((object.place, object.class)).or_default().add(object, &self.end);
        self.places.entry((object.context, object.place, object.class)).or_default().add(object);
    }

    fn add(mut self, others: Self) -> Self {
        self.axes.iter_mut().zip(others.axes).for_each(|((_, bins), (_, other))| bins.add(other));
        self.initial += others.initial;
        add_all(&mut self.sites, others.sites);
        add_all(&mut self.places, others.places);
        self
    }

    /// The axes that the trace has.
    pub fn axes(&mut self) -> Vec<Axis> {
        let end = Last { tick: self.end.tick, bytes: self.end.bytes, nanos: self.end.nanos.unwrap_or(0) };
        let (has_times, has_deaths) = (self.end.nanos.is_some(), self.has_deaths);
        let axis = |(unit, bins): &mut (AxisUnit, Bins<Bin>)| {
            let last = match unit {
                AxisUnit::Nanos => end.nanos,
                AxisUnit::Ticks => end.tick,
                AxisUnit::Bytes => end.bytes,
            };
            bins.at(last).last.see(&end);
            let (width, bins) = bins.finish();
            // Where nothing happened it is as it was before.
            let mut so_far = Last::default();
            let lasts: Vec<Last> = bins
                .iter()
                .map(|bin| {
                    so_far.see(&bin.last);
                    so_far
                })
                .collect();
            let died = |of: fn(&Amount) -> u64| {
                if has_deaths { bins.iter().map(|bin| of(&bin.died)).collect() } else { Vec::new() }
            };
            Axis {
                unit: *unit,
                width,
                born_objects: bins.iter().map(|bin| bin.born.objects).collect(),
                born_bytes: bins.iter().map(|bin| bin.born.bytes).collect(),
                died_objects: died(|amount| amount.objects),
                died_bytes: died(|amount| amount.bytes),
                ticks: lasts.iter().map(|last| last.tick).collect(),
                nanos: lasts.iter().map(|last| last.nanos).collect(),
                bytes: lasts.iter().map(|last| last.bytes).collect(),
            }
        };
        let wanted = |(unit, _): &&mut (AxisUnit, _)| has_times || *unit != AxisUnit::Nanos;
        self.axes.iter_mut().filter(wanted).map(axis).collect()
    }
}
