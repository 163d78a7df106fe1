//! Objects in groups, level by level: by package, class, site, context, thread, age, fate and owner, in any order. What is alive at a moment comes
//! from a [`Resident`], so that the cost grows with what is alive; what was made or died in a range comes from the rows of all objects.

mod by_bytes;
mod course;
mod flames;
mod keys;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::io;

use et_reader::made_in::Places;
use et_reader::population::{Columns, Groups, Key as Bounded, Population, Rows};
use et_reader::record::{AllocKind, ThreadId};
use et_reader::source::Source;
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;
use serde::Serialize;

pub use by_bytes::by_bytes;
pub use course::{Course, Timeline, timeline};
pub use flames::{Down, flame, profile};
pub use keys::Level;
use keys::{Key, Keys};

use crate::fold::{add_all, fold_groups, groups_where};
use crate::heap::retained::retained_by_group;
use crate::heap::{Dominance, Resident, died_at};
use crate::labels::Labels;
use crate::objects::{ObjectLine, Sort, lines, with_method};
use crate::pattern::fits;
use crate::place::Spot;
use et_reader::amount::Amount;

/// A moment with what was alive, as far as it has been worked out.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct At<'h, 'a> {
    pub tick: u64,
    /// Those that `resident` was taken from.
    pub objects: &'h dyn Groups,
    pub resident: &'h Resident<'a>,
    pub dominance: &'h Dominance,
}

/// Which objects.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub enum What<'h, 'a> {
    Alive(At<'h, 'a>),
    /// Made while the clock was in this range, its end excluded.
    Made {
        from: u64,
        to: u64,
    },
    /// Died while the clock was in this range, its end excluded.
    Died {
        from: u64,
        to: u64,
    },
}

/// Conditions; those that are `None` hold for all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Class as displayed; `*` is any text.
    pub class: Option<String>,
    /// Site as displayed; `*` is any text.
    pub site: Option<String>,
    /// Text that some method of the calling context contains.
    pub context: Option<String>,
    pub thread: Option<u32>,
}

/// A place in the tree of groups.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub filter: Filter,
    /// The levels, from the top.
    pub by: Vec<Level>,
    /// Keys of the groups that are opened, from the top.
    pub path: Vec<String>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Identifies it among its neighbours.
    pub key: String,
    pub name: String,
    #[serde(flatten)]
    pub amount: Amount,
    /// The least that would be freed with them, in bytes; `None` unless these are alive at a moment.
    pub retained_bytes: Option<u64>,
    /// Live bytes at moments of the whole run; `None` if age, fate or owner tell groups apart.
    pub curve: Option<Vec<u64>>,
}

/// Result: the groups of a place.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    pub by: Vec<Level>,
    pub total: Amount,
    pub retained_bytes: Option<u64>,
    /// What retains most first, or is largest.
    pub lines: Vec<Line>,
    /// Number of groups that are not listed.
    pub more: u64,
}

/// Result: some objects of a place.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub found: Amount,
    pub objects: Vec<ObjectLine>,
}

/// What objects are listed by, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    By(Sort),
    Retained,
}

/// All that questions about groups need.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Subject<'a> {
    pub source: &'a Source,
    pub population: &'a Population,
    /// Its objects in whatever order: in that of time, few of their groups are read for a range.
    pub objects: &'a dyn Groups,
}

impl<'a> Subject<'a> {
    fn labels(&self) -> Labels<'a> {
        Labels::of(self.source, self.population)
    }
}

/// Conditions in terms of rows.
struct Wanted<'q, 'a> {
    subject: Subject<'a>,
    query: &'q Query,
    keys: Keys<'a>,
    classes: Option<Vec<bool>>,
    contexts: Option<Vec<bool>>,
}

/// What one thread has found out about keys.
struct Known<'a> {
    places: Places<'a>,
    sites: FxHashMap<Spot, bool>,
    on_path: FxHashMap<(usize, Key), bool>,
}

impl<'q, 'a> Wanted<'q, 'a> {
    fn new(subject: Subject<'a>, query: &'q Query, keys: Keys<'a>) -> Self {
        let labels = subject.labels();
        let class = |pattern: &String| {
            let all = (0..subject.population.types.len() as u32).map(TypeId);
            all.map(|class| fits(pattern, &labels.class(class))).collect()
        };
        let context = |text: &String| with_method(subject.population, labels, text);
        let Filter { class: pattern, context: text, .. } = &query.filter;
        let (classes, contexts) = (pattern.as_ref().map(class), text.as_ref().map(context));
        Self { subject, query, keys, classes, contexts }
    }

    fn known(&self) -> Known<'a> {
        let places = Places::new(self.subject.labels().naming());
        Known { places, sites: FxHashMap::default(), on_path: FxHashMap::default() }
    }

    fn columns(&self) -> Columns {
        let levels = self.query.by.iter().take(self.query.path.len() + 1);
        let mut columns = levels.fold(Columns::SIZE, |columns, level| columns | level.columns());
        let Filter { class, site, context, thread } = &self.query.filter;
        let needs = [
            (class.is_some(), Columns::CLASS),
            (site.is_some(), Spot::columns()),
            (context.is_some(), Columns::CONTEXT),
            (thread.is_some(), Columns::THREAD),
        ];
        needs.into_iter().filter(|(is_needed, _)| *is_needed).for_each(|(_, more)| columns = columns | more);
        columns
    }

    /// Whether the object of a row is in the opened group.
    fn holds(&self, known: &mut Known<'a>, rows: &Rows, row: usize) -> bool {
        let filter = &self.query.filter;
        if filter.thread.is_some_and(|thread| rows.thread[row] != ThreadId(thread))
            || self.classes.as_ref().is_some_and(|classes| !classes[rows.class[row].0 as usize])
            || self.contexts.as_ref().is_some_and(|contexts| !contexts[rows.context[row].0 as usize])
        {
            return false;
        }
        let Known { places, sites, on_path } = known;
        if let Some(pattern) = &filter.site {
            let (labels, population) = (self.subject.labels(), self.subject.population);
            let is_there = |spot: &Spot| fits(pattern, &labels.made_in(spot.place(places, population).0));
            if !*sites.entry(Spot::of(rows, row)).or_insert_with_key(is_there) {
                return false;
            }
        }
        self.query.path.iter().zip(&self.query.by).enumerate().all(|(depth, (wanted, &level))| {
            let key = self.keys.of(level, rows, row);
            *on_path.entry((depth, key)).or_insert_with(|| self.keys.name(level, key, places).0 == *wanted)
        })
    }

    /// The level below the opened group.
    fn level(&self) -> Option<Level> {
        self.query.by.get(self.query.path.len()).copied()
    }
}

/// Whether a row was made or died in the range.
fn is_in_range(what: What<'_, '_>, rows: &Rows, row: usize) -> bool {
    match what {
        What::Alive(_) => true,
        What::Made { from, to } => rows.kind[row] != AllocKind::Initial && (from..to).contains(&rows.birth_tick[row]),
        What::Died { from, to } => died_at(rows, row).is_some_and(|tick| (from..to).contains(&tick)),
    }
}

/// Whether a group may have a row that was made or died in the range, as far as that is known without reading it.
fn may_have(objects: &dyn Groups, group: usize, what: What<'_, '_>) -> io::Result<bool> {
    let (key, from, to) = match what {
        What::Alive(_) => return Ok(true),
        What::Made { from, to } => (Bounded::BirthTick, from, to),
        // A record may tick.
        What::Died { from, to } => (Bounded::DeathTick, from, to.saturating_add(1)),
    };
    let ticks = objects.range(group, key)?;
    Ok(!ticks.is_empty() && *ticks.start() < to && *ticks.end() >= from)
}

const OF_RANGES: Columns = Columns::KIND.and(Columns::BIRTH_TICK).and(Columns::DEATH_TICK).and(Columns::DEATH_KIND);

/// Calls `each` with all rows that are wanted, and merges what it has made.
fn each<'a, T: Send>(
    what: What<'_, '_>,
    wanted: &Wanted<'_, 'a>,
    columns: Columns,
    new: impl Fn() -> T + Sync + Send,
    each: impl Fn(&mut T, (usize, usize), &Rows) + Sync + Send,
    merge: impl Fn(T, T) -> T + Sync + Send,
) -> io::Result<T> {
    if let What::Alive(At { resident, .. }) = what {
        let (mut known, mut sum) = (wanted.known(), new());
        for row in (0..resident.rows.len).filter(|&row| wanted.holds(&mut known, &resident.rows, row)) {
            each(&mut sum, (0, row), &resident.rows);
        }
        return Ok(sum);
    }
    let objects = wanted.subject.objects;
    let groups = groups_where(objects, |group| may_have(objects, group, what))?;
    let see = |sum: &mut T, group: usize, rows: &Rows| {
        let mut known = wanted.known();
        let in_range = (0..rows.len).filter(|&row| is_in_range(what, rows, row));
        for row in in_range.filter(|&row| wanted.holds(&mut known, rows, row)) {
            each(sum, (group, row), rows);
        }
    };
    fold_groups(objects, &groups, columns | wanted.columns() | OF_RANGES, new, see, merge)
}

/// Works out the groups below the opened one, `top` of them. `course`: how all objects fared over the run, for curves.
///
/// # Errors
/// The life table cannot be read.
pub fn tree(
    subject: Subject<'_>,
    what: What<'_, '_>,
    query: &Query,
    course: Option<&Course>,
    top: usize,
) -> io::Result<Tree> {
    let keys = Keys::new(subject, what, query);
    let wanted = Wanted::new(subject, query, keys);
    let level = wanted.level();
    let key = |rows: &Rows, row| level.map(|level| wanted.keys.of(level, rows, row));
    let sums = each(
        what,
        &wanted,
        Columns::SIZE,
        FxHashMap::<Option<Key>, Amount>::default,
        |sums, (_, row), rows| *sums.entry(key(rows, row)).or_default() += Amount::of(rows, row),
        |mut one, other| {
            add_all(&mut one, other);
            one
        },
    )?;
    let mut total = Amount::default();
    sums.values().for_each(|&amount| total += amount);
    let mut known = wanted.known();
    // Several keys may have one name: classes of several loaders.
    let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
    let mut of_key: FxHashMap<Key, u32> = FxHashMap::default();
    let mut all: Vec<Line> = Vec::new();
    for (key, amount) in sums {
        let (Some(level), Some(key)) = (level, key) else { continue };
        let (text, name) = wanted.keys.name(level, key, &mut known.places);
        let number = *numbers.entry(text).or_insert_with_key(|text| {
            let line = Line { key: text.clone(), name, amount: Amount::default(), retained_bytes: None, curve: None };
            all.push(line);
            all.len() as u32 - 1
        });
        of_key.insert(key, number);
        all[number as usize].amount += amount;
    }
    let mut retained_bytes = None;
    if let What::Alive(at) = what {
        let rows = &at.resident.rows;
        // Of each node, 0 if it is not in the opened group, else 1 more than the number of its line; if there are none, 1.
        let line =
            |row: usize| key(rows, row).and_then(|key| of_key.get(&key)).map_or(1, |&number| number as usize + 1);
        let of = |row| if wanted.holds(&mut known, rows, row) { line(row) } else { 0 };
        let lines: Vec<usize> = (0..rows.len).map(of).collect();
        // The root has no row.
        let group = |node: u32| lines.get(node as usize).and_then(|line| line.checked_sub(1));
        let Dominance { tree, children, retained } = at.dominance;
        let by =
            |groups, group: &dyn Fn(u32) -> Option<usize>| retained_by_group(tree, children, retained, groups, group);
        retained_bytes = by(1, &|node| group(node).map(|_| 0)).pop();
        let of_groups = if all.is_empty() { Vec::new() } else { by(all.len(), &group) };
        all.iter_mut().zip(of_groups).for_each(|(line, bytes)| line.retained_bytes = Some(bytes));
    }
    all.sort_by(|one, other| {
        let key = |line: &Line| Reverse((line.retained_bytes, line.amount.bytes, line.amount.objects));
        key(one).cmp(&key(other)).then_with(|| one.key.cmp(&other.key))
    });
    let more = all.len().saturating_sub(top) as u64;
    all.truncate(top);
    if let (Some(course), Some(level)) = (course, level)
        && query.by.iter().take(query.path.len() + 1).all(|level| level.is_of_birth())
    {
        course.add_curves(&wanted, level, &mut all);
    }
    Ok(Tree { by: query.by.clone(), total, retained_bytes, lines: all, more })
}

/// Lists objects of the opened group, `limit` of them behind the first `offset`.
///
/// # Errors
/// The life table cannot be read.
pub fn list(
    subject: Subject<'_>,
    what: What<'_, '_>,
    query: &Query,
    order: Order,
    (offset, limit): (usize, usize),
) -> io::Result<Listed> {
    let wanted = Wanted::new(subject, query, Keys::new(subject, what, query));
    let end = subject.population.end;
    let sort = match order {
        Order::By(sort) => sort,
        Order::Retained => Sort::Size,
    };
    let rank = |row: usize, rows: &Rows| match (order, what) {
        (Order::Retained, What::Alive(at)) => at.dominance.retained[row],
        _ => sort.key(rows, row, end),
    };
    type Found = (Amount, Vec<(Reverse<u64>, (usize, usize))>);
    let most = offset.saturating_add(limit);
    let cut = |first: &mut Vec<(Reverse<u64>, (usize, usize))>| {
        first.sort_unstable();
        first.truncate(most);
    };
    let (found, mut first): Found = each(
        what,
        &wanted,
        sort.columns(),
        Found::default,
        |(found, first), (group, row), rows| {
            *found += Amount::of(rows, row);
            first.push((Reverse(rank(row, rows)), (group, row)));
            if first.len() > 2 * most.max(1 << 12) {
                cut(first);
            }
        },
        |mut one, mut other| {
            one.0 += other.0;
            one.1.append(&mut other.1);
            one
        },
    )?;
    cut(&mut first);
    let places: Vec<(usize, usize)> = first.into_iter().skip(offset).map(|(_, at)| at).collect();
    let retained = |&(_, row): &(usize, usize)| match what {
        What::Alive(at) => Some(at.dominance.retained[row]),
        _ => None,
    };
    let place = |&(group, row): &(usize, usize)| match what {
        What::Alive(at) => {
            let (group, row) = at.resident.places[row];
            (group as usize, row as usize)
        }
        _ => (group, row),
    };
    let stored: Vec<(usize, usize)> = places.iter().map(place).collect();
    let groups = match what {
        What::Alive(at) => at.objects,
        _ => subject.objects,
    };
    let mut objects = lines(subject.population, groups, subject.labels(), &stored)?;
    objects.iter_mut().zip(&places).for_each(|(object, place)| object.retained_bytes = retained(place));
    Ok(Listed { found, objects })
}
