//! Sums over the rows of all objects, computed on all cores.

use std::hash::Hash;
use std::io;

use et_names::MethodId;
use rustc_hash::FxHashMap;

use super::Amount;
use super::peak::{Course, PeakTally};
use super::rows::{KindCounts, Row, Sum};
use crate::fold::{add_all, fold_read};
use crate::place::Spot;
use crate::survival;
use et_reader::attribution::{Attribution, Callers, Origins};
use et_reader::axis;
use et_reader::made_in::Places;
use et_reader::model::{ContextId, Contexts};
use et_reader::population::{Columns, Population, Rows};
use et_reader::record::{AllocKind, ThreadId};
use et_reader::source::Source;

/// Everything that is summed up.
#[derive(Debug)]
pub(super) struct Sums<'a> {
    pub attribution: Attribution<'a>,
    /// Objects made while tracing was on, in the order in which the first of each row was made.
    pub rows: Vec<Row>,
    pub kinds: [Amount; AllocKind::ALL.len()],
    /// What each thread allocated.
    pub threads: FxHashMap<ThreadId, Amount>,
    /// What is there at the end, including what was there before.
    pub alive: Amount,
    /// `None` if deaths are unknown, or objects were left out.
    pub peak: Option<PeakTally>,
    /// Groups that have rows of objects alive at the end.
    pub groups_alive: Vec<usize>,
    /// What walks through the heap found, if there were some.
    pub survived: Option<survival::Sums>,
}

impl<'a> Sums<'a> {
    /// Reads all rows. If they are not those of all objects (`is_all`), how much was alive when does not follow from them.
    pub fn of(source: &'a Source, population: &Population, is_all: bool) -> io::Result<Self> {
        let mut attribution = Attribution::of(source);
        let askers = Askers::of(&population.contexts, &mut attribution);
        let middle = axis::middle(&population.end);
        let walks = population.survival.as_deref().map(survival::middle);
        let columns = walks.map_or(Part::columns(), |_| Part::columns() | survival::columns());
        let groups: Vec<usize> = (0..population.groups.len()).collect();
        let joined = population.groups.joined();
        let part = fold_read(
            &groups,
            |group| joined(group, columns),
            || Part { survived: walks.map(|_| survival::Sums::default()), ..Part::default() },
            |part, group, rows| {
                part.group(group, rows, middle, &askers);
                if let (Some(survived), Some(middle)) = (&mut part.survived, walks) {
                    (0..rows.len).for_each(|at| survived.row(rows, at, middle));
                }
            },
            Part::merge,
        )?;
        let Part { sums, kinds, threads, alive, courses, mut groups_alive, survived } = part;
        let peak = match population.has_deaths && is_all {
            true => Some(PeakTally::find(population, courses, initial(&kinds), |context| askers.nearest(context))?),
            false => None,
        };
        let mut places = Places::new(source.naming());
        let mut rows: FxHashMap<Origins, Sum> = FxHashMap::default();
        for (Key { spot, asker }, sum) in sums {
            let (place, ty) = spot.place(&mut places, population);
            let Asker { callers, nearest } = askers.all[asker as usize];
            *rows.entry(attribution.origins(place, ty, callers, nearest)).or_default() += sum;
        }
        let mut rows: Vec<Row> = rows.into_iter().map(|(key, sum)| Row { key, sum }).collect();
        rows.sort_unstable_by_key(|row| row.sum.first);
        groups_alive.sort_unstable();
        Ok(Self { attribution, rows, kinds, threads, alive, peak, groups_alive, survived })
    }

    /// All objects made while tracing was on.
    pub fn allocated(&self) -> Amount {
        let mut all = Amount::default();
        for (kind, amount) in AllocKind::ALL.iter().zip(&self.kinds) {
            if *kind != AllocKind::Initial {
                all += *amount;
            }
        }
        all
    }

    /// Sums of rows with the same key.
    pub fn by<K: Eq + Hash>(&self, key: impl Fn(&Row) -> K) -> FxHashMap<K, (Amount, KindCounts)> {
        let mut sums: FxHashMap<K, (Amount, KindCounts)> = FxHashMap::default();
        for row in &self.rows {
            let (amount, kinds) = sums.entry(key(row)).or_default();
            *amount += row.sum.made;
            kinds.iter_mut().zip(row.sum.kinds).for_each(|(sum, count)| *sum += count);
        }
        sums
    }
}

fn initial(kinds: &[Amount; AllocKind::ALL.len()]) -> Amount {
    kinds[AllocKind::Initial.record_kind() as usize]
}

/// Who asks for objects in a context: all that matters of it where the site is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Asker {
    callers: Callers,
    /// The innermost method outside the JDK, or the innermost of all.
    nearest: MethodId,
}

/// The askers of all contexts: there are far fewer of them.
struct Askers {
    all: Vec<Asker>,
    of_contexts: Vec<u32>,
}

impl Askers {
    fn of(contexts: &Contexts, attribution: &mut Attribution<'_>) -> Self {
        let callers = Callers::of_contexts(contexts, &mut attribution.owners);
        let mut all = Vec::new();
        let mut numbers: FxHashMap<Asker, u32> = FxHashMap::default();
        let mut of_contexts = Vec::with_capacity(contexts.len());
        for ((_, context), callers) in contexts.iter().zip(callers) {
            let asker = Asker { callers, nearest: callers.nearest(context.method) };
            of_contexts.push(*numbers.entry(asker).or_insert_with(|| {
                all.push(asker);
                all.len() as u32 - 1
            }));
        }
        Self { all, of_contexts }
    }

    /// The number of the asker. The first is that of the empty stack.
    #[inline]
    fn number(&self, context: ContextId) -> u32 {
        self.of_contexts.get(context.0 as usize).copied().unwrap_or(0)
    }

    fn nearest(&self, context: ContextId) -> MethodId {
        self.all[self.number(context) as usize].nearest
    }
}

/// What rows have in common that are summed up at first: their origins follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    spot: Spot,
    asker: u32,
}

/// Sums over some groups.
#[derive(Default)]
struct Part {
    sums: FxHashMap<Key, Sum>,
    kinds: [Amount; AllocKind::ALL.len()],
    threads: FxHashMap<ThreadId, Amount>,
    alive: Amount,
    courses: Vec<Course>,
    groups_alive: Vec<usize>,
    survived: Option<survival::Sums>,
}

impl Part {
    fn columns() -> Columns {
        Spot::columns()
            | Columns::NUMBER
            | Columns::SIZE
            | Columns::THREAD
            | Columns::BIRTH_TICK
            | Columns::LAST_USE_TICK
            | Columns::DEATH_TICK
            | Columns::DEATH_BYTES
    }

    fn group(&mut self, group: usize, rows: &Rows, middle: u64, askers: &Askers) {
        let alive_before = self.alive.objects;
        for at in 0..rows.len {
            self.row(rows, at, middle, askers);
        }
        if self.alive.objects > alive_before {
            self.groups_alive.push(group);
        }
        self.courses.extend(Course::of(group, rows));
    }

    #[inline]
    fn row(&mut self, rows: &Rows, at: usize, middle: u64, askers: &Askers) {
        let (kind, size, amount) = (rows.kind[at], rows.size[at], Amount::of(rows, at));
        self.kinds[kind.record_kind() as usize] += amount;
        let death = rows.death_tick[at];
        if death.is_none() {
            self.alive += amount;
        }
        if kind == AllocKind::Initial {
            return;
        }
        *self.threads.entry(rows.thread[at]).or_default() += amount;
        let key = Key { spot: Spot::of(rows, at), asker: askers.number(rows.context[at]) };
        let sum = self.sums.entry(key).or_default();
        sum.first = sum.first.min(rows.number[at]);
        sum.made += amount;
        sum.kinds[kind.record_kind() as usize] += amount.objects;
        let birth = rows.birth_tick[at];
        if birth <= middle && death.is_none_or(|death| death > middle) {
            sum.middle += amount;
        }
        match death {
            Some(death) => sum.lifetime.died(size, birth, rows.last_use_tick[at], death),
            None => sum.alive += amount,
        }
    }

    fn merge(mut self, mut other: Self) -> Self {
        // The smaller one goes into the larger.
        if self.sums.len() < other.sums.len() {
            std::mem::swap(&mut self, &mut other);
        }
        add_all(&mut self.sums, other.sums);
        self.kinds.iter_mut().zip(other.kinds).for_each(|(sum, amount)| *sum += amount);
        add_all(&mut self.threads, other.threads);
        self.alive += other.alive;
        self.courses.extend(other.courses);
        self.groups_alive.extend(other.groups_alive);
        self.survived = match (self.survived, other.survived) {
            (Some(one), Some(other)) => Some(one.merge(other)),
            (one, other) => one.or(other),
        };
        self
    }
}
