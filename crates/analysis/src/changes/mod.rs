//! What changed in the heap between two moments of a run: what came, what went, what stayed.

mod roots;

use std::cmp::Reverse;
use std::fmt::Write;
use std::hash::Hash;
use std::io;

use et_names::units::{bytes, number};
use et_reader::model::ContextId;
use et_reader::population::{Columns, Groups, Population, Rows};
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fold::{fold_groups, groups_where};
use crate::heap::Moment;
use crate::labels::Labels;
use crate::objects::{born, died};
use crate::pattern::fits;
use crate::place::{Spot, by_place};
use crate::span::{Bound, QueryError, in_order};
use crate::table::{more, table};
use et_reader::amount::Amount;

/// Methods of a calling context that are displayed.
const CONTEXT: usize = 4;

pub use roots::{AtRoots, changes_by_root};

/// What objects are grouped by, as far as rows tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    #[default]
    Class,
    Site,
    Context,
}

/// Why two moments could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Rows(#[from] io::Error),
}

/// What became of some objects between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Alive at the second moment only.
    pub came: Amount,
    /// Alive at the first moment only.
    pub went: Amount,
    /// Alive at both.
    pub stayed: Amount,
}

impl Change {
    fn merge(&mut self, other: Self) {
        self.came += other.came;
        self.went += other.went;
        self.stayed += other.stayed;
    }

    /// Bytes by which it is larger at the second moment.
    pub fn growth(&self) -> i64 {
        self.came.bytes.cast_signed() - self.went.bytes.cast_signed()
    }
}

/// A class, a site, a context or a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeLine {
    /// The class, the site with its class, the innermost methods of the context with the class, or what holds the objects from outside.
    pub name: String,
    #[serde(flatten)]
    pub change: Change,
    /// Bytes by which it is larger at the second moment.
    pub growth_bytes: i64,
}

/// Result: what changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    pub from: String,
    pub to: String,
    pub all: Change,
    /// What grew most first, then what shrank least.
    pub lines: Vec<ChangeLine>,
    /// Number of all lines.
    pub all_lines: u64,
}

/// Compares what was alive at two moments. `objects` are those of the population, in whatever order: in that of time, few of their groups are read. `class`: only objects of classes whose names fit, in which `*` is any text.
///
/// # Errors
/// A moment is behind the end of the trace, or rows do not tell it; the moments are in the wrong order; the life table cannot be
/// read.
pub fn changes(
    population: &Population,
    objects: &dyn Groups,
    labels: Labels<'_>,
    [from, to]: [&Moment; 2],
    by: By,
    class: Option<&str>,
    top: usize,
) -> Result<Changes, ChangesError> {
    let bounds = [Bound::within(from, population)?, Bound::within(to, population)?];
    in_order([from, to], bounds, population)?;
    let of = Compared { objects, bounds, classes: class.map(|pattern| classes(population, labels, pattern)) };
    let lines: Vec<(String, Change)> = match by {
        By::Class => {
            let sums = sums(&of, Columns::CLASS, |rows, row| rows.class[row])?;
            sums.into_iter().map(|(class, change)| (labels.class(class), change)).collect()
        }
        By::Site => {
            let sums = sums(&of, Spot::columns(), Spot::of)?;
            let sums = by_place(sums, population, labels.naming(), Change::merge);
            let name = |at| {
                let place = labels.place(at);
                format!("{} at {}", place.ty, place.site)
            };
            sums.into_iter().map(|(at, change)| (name(at), change)).collect()
        }
        By::Context => {
            let key = |rows: &Rows, row: usize| (rows.context[row], rows.class[row]);
            let sums = sums(&of, Columns::CONTEXT | Columns::CLASS, key)?;
            let name = |(context, class)| {
                let methods = population.contexts.methods(context).take(CONTEXT);
                let methods: Vec<String> = methods.map(|method| labels.method(method)).collect();
                let methods = if context == ContextId::EMPTY { "no method".to_owned() } else { methods.join(" < ") };
                format!("{} in {methods}", labels.class(class))
            };
            sums.into_iter().map(|(key, change)| (name(key), change)).collect()
        }
    };
    Ok(of_lines([from, to], lines, top))
}

/// Which classes have names that fit, by number.
fn classes(population: &Population, labels: Labels<'_>, pattern: &str) -> Vec<bool> {
    (0..population.types.len() as u32).map(|class| fits(pattern, &labels.class(TypeId(class)))).collect()
}

/// The result, of lines in any order.
fn of_lines([from, to]: [&Moment; 2], lines: Vec<(String, Change)>, top: usize) -> Changes {
    // Classes of one name, of several loaders, are one for people.
    let mut by_name: FxHashMap<String, Change> = FxHashMap::default();
    let mut all = Change::default();
    for (name, change) in lines {
        all.merge(change);
        by_name.entry(name).or_default().merge(change);
    }
    let mut lines: Vec<(String, Change)> = by_name.into_iter().collect();
    lines.retain(|(_, change)| change.came.objects + change.went.objects > 0);
    lines.sort_by(|(a, one), (b, other)| {
        let key = |change: &Change| (Reverse(change.growth()), Reverse(change.came.bytes));
        key(one).cmp(&key(other)).then_with(|| a.cmp(b))
    });
    let all_lines = lines.len() as u64;
    lines.truncate(top);
    let line = |(name, change): (String, Change)| ChangeLine { name, change, growth_bytes: change.growth() };
    let lines = lines.into_iter().map(line).collect();
    Changes { from: from.to_string(), to: to.to_string(), all, lines, all_lines }
}

/// The objects that are compared.
struct Compared<'a> {
    objects: &'a dyn Groups,
    bounds: [Bound; 2],
    /// Which classes are wanted; `None`: all.
    classes: Option<Vec<bool>>,
}

/// The groups that may have objects alive at one of the moments.
fn groups(objects: &dyn Groups, bounds: [Bound; 2]) -> io::Result<Vec<usize>> {
    let may_have = |group: usize, bound: Bound| match bound {
        // What is born or dies at that very tick is in or out by its kind.
        Bound::Tick(tick) => Ok(objects.may_have(group, tick)? || objects.may_have(group, tick.saturating_add(1))?),
        Bound::End => objects.may_have(group, u64::MAX),
        Bound::Bytes(_) | Bound::Nanos(_) => Ok(true),
    };
    groups_where(objects, |group| Ok(may_have(group, bounds[0])? || may_have(group, bounds[1])?))
}

fn sums<K: Eq + Hash + Send>(
    Compared { objects, bounds: [from, to], classes }: &Compared<'_>,
    columns: Columns,
    key: impl Fn(&Rows, usize) -> K + Sync + Send,
) -> io::Result<FxHashMap<K, Change>> {
    let columns = columns | Columns::SIZE | from.columns() | to.columns();
    let columns = if classes.is_some() { columns | Columns::CLASS } else { columns };
    let is_wanted =
        |rows: &Rows, row: usize| classes.as_ref().is_none_or(|classes| classes[rows.class[row].0 as usize]);
    fold_groups(
        *objects,
        &groups(*objects, [*from, *to])?,
        columns,
        FxHashMap::default,
        |sums: &mut FxHashMap<K, Change>, _, rows| {
            for row in (0..rows.len).filter(|&row| is_wanted(rows, row)) {
                let (born, died) = (born(rows, row), died(rows, row));
                let was_there = [from, to].map(|at| at.is_in_life(born, died));
                if was_there == [false, false] {
                    continue;
                }
                let change = sums.entry(key(rows, row)).or_default();
                let amount = match was_there {
                    [true, true] => &mut change.stayed,
                    [true, false] => &mut change.went,
                    _ => &mut change.came,
                };
                amount.add(rows.size[row]);
            }
        },
        |mut one, other| {
            other.into_iter().for_each(|(key, change)| one.entry(key).or_default().merge(change));
            one
        },
    )
}

/// `+1.5 MiB`, `-24 B`
fn signed(count: i64) -> String {
    let sign = if count < 0 { "-" } else { "+" };
    format!("{sign}{}", bytes(count.unsigned_abs()))
}

/// The answer first, then a table.
pub fn render(found: &Changes) -> String {
    let mut out = String::new();
    let Changes { from, to, all, .. } = found;
    let amount = |amount: Amount| format!("{} in {} objects", bytes(amount.bytes), number(amount.objects));
    let _ = writeln!(out, "{} from {from} to {to}", signed(all.growth()));
    let _ = writeln!(out, "came {}; went {}; stayed {}", amount(all.came), amount(all.went), amount(all.stayed));
    if found.lines.is_empty() {
        return out;
    }
    let rows: Vec<Vec<String>> = found
        .lines
        .iter()
        .map(|line| {
            let Change { came, went, stayed } = line.change;
            let [came, went, stayed] = [came, went, stayed].map(|amount| (bytes(amount.bytes), number(amount.objects)));
            vec![signed(line.growth_bytes), came.0, came.1, went.0, went.1, stayed.0, stayed.1, line.name.clone()]
        })
        .collect();
    let _ = writeln!(out);
    table(&mut out, 7, &["growth", "came", "objects", "went", "objects", "stayed", "objects", "what"], &rows);
    more(&mut out, found.all_lines as usize, rows.len());
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use et_reader::Trace;
    use et_reader::source::{Reading, Source};

    use super::*;
    use crate::fold::in_order;
    use crate::testing::REAL;

    #[test]
    fn what_came_and_went_is_by_heart() {
        let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
        let population = et_lives::population(&source, None, Reading::default()).unwrap();
        let labels = Labels::of(&source, &population);
        let end = population.end;
        let (first, second) = (end.tick / 3, end.tick / 3 * 2);
        let mut expected: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        in_order(&population, Columns::ALL, |rows| {
            for row in 0..rows.len {
                let alive =
                    |tick| rows.birth_tick[row] <= tick && rows.death_tick[row].is_none_or(|death| death > tick);
                let sums = expected.entry(labels.class(rows.class[row])).or_default();
                match (alive(first), alive(second)) {
                    (false, true) => sums[0] += rows.size[row],
                    (true, false) => sums[1] += rows.size[row],
                    (true, true) => sums[2] += rows.size[row],
                    (false, false) => {}
                }
            }
        })
        .unwrap();
        let moments = [&Moment::Tick(first), &Moment::Tick(second)];
        let found = changes(&population, &*population.groups, labels, moments, By::Class, None, usize::MAX).unwrap();
        assert!(found.lines.is_sorted_by_key(|line| Reverse(line.growth_bytes)));
        let sums = |change: &Change| [change.came.bytes, change.went.bytes, change.stayed.bytes];
        let total = expected.values().fold([0; 3], |all, sums| [0, 1, 2].map(|at| all[at] + sums[at]));
        assert_eq!(sums(&found.all), total);
        assert!(total.iter().all(|&bytes| bytes > 0), "{total:?}");
        let mut lines: BTreeMap<String, [u64; 3]> =
            found.lines.iter().map(|line| (line.name.clone(), sums(&line.change))).collect();
        // The sizes of some are not known.
        lines.retain(|_, sums| sums[0] + sums[1] > 0);
        expected.retain(|_, sums| sums[0] + sums[1] > 0);
        assert_eq!(lines, expected);
        // In the order of time, of which few groups are read, they are the same.
        let by_time = et_lives::by_time(None, &population).unwrap();
        for by in [By::Class, By::Site, By::Context] {
            for tick in (0..population.end.tick).step_by((population.end.tick / 40).max(1) as usize) {
                for moments in [
                    [Moment::Tick(tick), Moment::End],
                    [Moment::Tick(0), Moment::Tick(tick)],
                    [Moment::Tick(tick), Moment::Tick(tick + 1)],
                ] {
                    let compare = |objects| {
                        changes(&population, objects, labels, [&moments[0], &moments[1]], by, None, 50).unwrap()
                    };
                    assert_eq!(compare(&*by_time), compare(&*population.groups), "{moments:?}");
                }
            }
        }
        for by in [By::Site, By::Context] {
            let other = changes(&population, &*population.groups, labels, moments, by, None, 5).unwrap();
            assert_eq!((other.all, other.lines.len()), (found.all, 5), "{by:?}");
        }
        // Of some classes the same, by whatever they are grouped.
        let grown = &found.lines[0];
        let pattern = format!("{}*", grown.name.split_at(grown.name.len() - 1).0);
        let some =
            changes(&population, &*population.groups, labels, moments, By::Class, Some(&pattern), usize::MAX).unwrap();
        let fits = |line: &&ChangeLine| crate::pattern::fits(&pattern, &line.name);
        assert_eq!(some.lines, found.lines.iter().filter(fits).cloned().collect::<Vec<_>>());
        assert!(some.all.came.bytes > 0 && some.all.came.bytes < found.all.came.bytes);
        for by in [By::Site, By::Context] {
            let other = changes(&population, &*population.groups, labels, moments, by, Some(&pattern), 5).unwrap();
            assert_eq!(other.all, some.all, "{by:?}");
        }
        let text = render(&Changes { lines: found.lines[..2].to_vec(), ..found });
        assert!(text.contains(&format!("from tick:{first} to tick:{second}\ncame ")), "{text}");
    }

    #[test]
    fn moments_are_in_their_order_and_in_the_trace() {
        let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
        let population = et_lives::population(&source, None, Reading::default()).unwrap();
        let labels = Labels::of(&source, &population);
        let compare = |from: &str, to: &str| {
            let moments = [&from.parse().unwrap(), &to.parse().unwrap()];
            changes(&population, &*population.groups, labels, moments, By::Class, None, 5).map(|changes| changes.all)
        };
        let nothing = compare("40%", "40%").unwrap();
        assert_eq!((nothing.came, nothing.went), Default::default());
        assert!(nothing.stayed.objects > 0);
        for (from, to) in [("60%", "40%"), ("end", "40%"), ("bytes:10", "bytes:5")] {
            let error = compare(from, to).unwrap_err().to_string();
            assert!(
                error.ends_with("is not before 40%: give the earlier moment first") || from == "bytes:10",
                "{error}"
            );
            assert!(error.contains(": give the earlier moment first"), "{error}");
        }
        let error = compare("40%", "tick:99999999999").unwrap_err().to_string();
        assert!(error.starts_with("tick:99999999999 is past the end of the trace"), "{error}");
    }
}
