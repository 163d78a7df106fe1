//! The second pass over all objects: how what is shown of them was alive from moment to moment, and how old it became.

use std::hash::Hash;
use std::io;
use std::ops::AddAssign;

use et_reader::made_in::MadeIn;
use et_reader::model::ContextId;
use et_reader::naming::Naming;
use et_reader::population::{Moment as End, Population};
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;

use super::data::{Axis, AxisUnit, Histogram, Moment};
use super::rows::{self, Object};
use super::totals::Totals;
use crate::fold::add_all;
use crate::summary::Amount;

/// Number of moments.
const MOMENTS: u64 = 64;
/// Maximum number of classes, sites and contexts distinguished, by each measure.
const SHOWN: usize = 150;
/// Bins of ages: the last has all that is older.
const AGES: usize = 48;

/// What was born and died between two moments.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    objects: i64,
    bytes: i64,
}

/// Of one class, site or context.
#[derive(Clone, Debug)]
pub(super) struct Course {
    changes: Vec<Change>,
    ages: [Amount; AGES],
}

impl Course {
    fn new(moments: usize) -> Self {
        Self { changes: vec![Change::default(); moments], ages: [Amount::default(); AGES] }
    }

    fn add(&mut self, object: &Object, born: usize, died: Option<usize>) {
        let size = object.size.cast_signed();
        if let Some(change) = self.changes.get_mut(born) {
            change.objects += 1;
            change.bytes += size;
        }
        if let Some(change) = died.and_then(|died| self.changes.get_mut(died)) {
            change.objects -= 1;
            change.bytes -= size;
        }
        if let Some(death) = &object.death {
            let age = death.bytes.saturating_sub(object.birth.bytes);
            let bin = (u64::BITS - age.leading_zeros()) as usize;
            self.ages[bin.min(AGES - 1)].add(object.size);
        }
    }

    /// Objects and bytes at each moment.
    pub fn alive(&self) -> (Vec<u64>, Vec<u64>) {
        let mut sum = Change::default();
        let alive = self.changes.iter().map(|change| {
            sum.objects += change.objects;
            sum.bytes += change.bytes;
            (sum.objects.max(0).cast_unsigned(), sum.bytes.max(0).cast_unsigned())
        });
        alive.unzip()
    }

    /// Histogram of lifetimes.
    pub fn ages(&self) -> Histogram {
        let last = self.ages.iter().rposition(|amount| amount.objects > 0).map_or(0, |last| last + 1);
        Histogram {
            objects: self.ages[..last].iter().map(|amount| amount.objects).collect(),
            bytes: self.ages[..last].iter().map(|amount| amount.bytes).collect(),
        }
    }
}

impl AddAssign for Course {
    fn add_assign(&mut self, other: Self) {
        for (sum, change) in self.changes.iter_mut().zip(other.changes) {
            sum.objects += change.objects;
            sum.bytes += change.bytes;
        }
        self.ages.iter_mut().zip(other.ages).for_each(|(sum, amount)| *sum += amount);
    }
}

/// Those with most by one of several measures, most of the first first.
pub(super) fn most<K: Copy + Eq + Hash + Ord, V>(
    of: &FxHashMap<K, V>,
    shown: usize,
    measures: &[&dyn Fn(&V) -> f64],
) -> Vec<K> {
    let mut chosen: Vec<K> = Vec::new();
    let mut known = rustc_hash::FxHashSet::default();
    for measure in measures {
        let mut all: Vec<(f64, K)> = of.iter().map(|(key, value)| (measure(value), *key)).collect();
        all.retain(|(value, _)| *value > 0.0);
        all.sort_unstable_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
        all.truncate(shown);
        chosen.extend(all.into_iter().map(|(_, key)| key).filter(|key| known.insert(*key)));
    }
    chosen
}

/// The place of the first of these values, which are in order, that is no less than one; their number if all are less. They are evenly spaced, so
/// that it is near where a division says.
fn first_at_least(values: &[u64], value: u64) -> usize {
    let last = values.last().copied().unwrap_or_default();
    let near = (value as f64 / last as f64 * values.len() as f64) as usize;
    let mut at = near.min(values.len());
    while at > 0 && values[at - 1] >= value {
        at -= 1;
    }
    while values.get(at).is_some_and(|other| *other < value) {
        at += 1;
    }
    at
}

/// Values over time of the selected items.
#[derive(Clone, Debug)]
pub(super) struct Courses {
    /// Ticks of the moments.
    ticks: Vec<u64>,
    pub all: Course,
    pub classes: FxHashMap<TypeId, Course>,
    pub sites: FxHashMap<(MadeIn, TypeId), Course>,
    pub contexts: FxHashMap<(ContextId, TypeId), Course>,
}

impl Courses {
    /// Goes through all objects. Without deaths nothing is known of how many were alive, nor how old they became: what is shown is chosen, and nothing
    /// more.
    pub fn of(population: &Population, naming: Naming<'_>, totals: &Totals) -> io::Result<Self> {
        let none = Self::new(totals, &population.end);
        if !population.has_deaths {
            return Ok(none);
        }
        rows::fold(population, naming, rows::OF_LIVES, || none.clone(), Self::object, |_, _| {}, Self::add)
    }

    fn add(mut self, others: Self) -> Self {
        self.all += others.all;
        add_all(&mut self.classes, others.classes);
        add_all(&mut self.sites, others.sites);
        add_all(&mut self.contexts, others.contexts);
        self
    }

    fn new(totals: &Totals, end: &End) -> Self {
        let ticks = ticks_until(end.tick);
        let course = Course::new(ticks.len());
        let mut contexts: FxHashMap<(ContextId, TypeId), (u64, u64)> = FxHashMap::default();
        for ((context, _, class), weights) in &totals.places {
            let sum = contexts.entry((*context, *class)).or_default();
            sum.0 += weights.made.bytes;
            sum.1 += weights.alive.bytes;
        }
        let sums = |of: Vec<_>| of.into_iter().map(|key| (key, course.clone())).collect();
        let of_sites: Vec<(MadeIn, TypeId)> = most(
            &totals.sites.iter().map(|(&(place, class), sums)| ((place, class.0), *sums)).collect(),
            SHOWN,
            &[&|sums| sums.made.bytes as f64, &|sums| sums.alive.bytes as f64, &|sums| sums.space_time as f64],
        )
        .into_iter()
        .map(|(place, class)| (place, TypeId(class)))
        .collect();
        let of_classes = most(
            &totals.classes.iter().map(|(class, sums)| (class.0, *sums)).collect(),
            SHOWN,
            &[&|sums| sums.made.bytes as f64, &|sums| sums.alive.bytes as f64, &|sums| sums.space_time as f64],
        );
        let of_contexts: Vec<(ContextId, TypeId)> = most(
            &contexts.iter().map(|(&(context, class), sums)| ((context, class.0), *sums)).collect(),
            SHOWN,
            &[&|(made, _): &(u64, u64)| *made as f64, &|(_, alive)| *alive as f64],
        )
        .into_iter()
        .map(|(context, class)| (context, TypeId(class)))
        .collect();
        Self {
            all: course.clone(),
            classes: of_classes.into_iter().map(|class| (TypeId(class), course.clone())).collect(),
            sites: sums(of_sites),
            contexts: of_contexts.into_iter().map(|key| (key, course.clone())).collect(),
            ticks,
        }
    }

    /// The first moment at which something of that tick has happened.
    fn moment(&self, tick: u64) -> usize {
        first_at_least(&self.ticks, tick)
    }

    fn object(&mut self, object: &Object) {
        let born = self.moment(object.birth.tick);
        let died = object.death.as_ref().map(|death| self.moment(death.tick));
        self.all.add(object, born, died);
        if object.is_initial {
            return;
        }
        let courses = [
            self.classes.get_mut(&object.class),
            self.sites.get_mut(&(object.place, object.class)),
            self.contexts.get_mut(&(object.context, object.class)),
        ];
        courses.into_iter().flatten().for_each(|course| course.add(object, born, died));
    }

    /// The moments with their times according to the axis of ticks.
    pub fn moments(&self, axes: &[Axis]) -> Vec<Moment> {
        let axis = axes.iter().find(|axis| axis.unit == AxisUnit::Ticks);
        let at = |tick: u64| {
            let bin = |axis: &Axis| ((tick / axis.width) as usize).min(axis.ticks.len().saturating_sub(1));
            let value =
                |of: fn(&Axis) -> &Vec<u64>| axis.and_then(|axis| of(axis).get(bin(axis))).copied().unwrap_or_default();
            Moment { tick, bytes: value(|axis| &axis.bytes), nanos: value(|axis| &axis.nanos) }
        };
        self.ticks.iter().map(|&tick| at(tick)).collect()
    }
}

/// The ticks of the moments: at equal distances, and the last is the end.
fn ticks_until(end: u64) -> Vec<u64> {
    let moments = MOMENTS.min(end.max(1));
    (1..=moments).map(|n| (u128::from(end) * u128::from(n) / u128::from(moments)) as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_found_as_by_a_search() {
        for end in [0, 1, 5, 63, 64, 1000, 6_538_123_457, u64::MAX] {
            let ticks = ticks_until(end);
            let around = ticks.iter().flat_map(|tick| [tick.saturating_sub(1), *tick, tick.saturating_add(1)]);
            for tick in around.chain([0, end / 3, u64::MAX]) {
                assert_eq!(
                    first_at_least(&ticks, tick),
                    ticks.partition_point(|moment| *moment < tick),
                    "{tick} of {end}"
                );
            }
        }
        assert_eq!(first_at_least(&[], 3), 0);
    }
}
