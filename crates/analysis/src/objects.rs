//! Single objects: those that meet all conditions, with what their rows in the life table say of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;
use std::io;

use et_names::units::{bytes, counted, number, seconds};
use et_reader::made_in::Places;
use et_reader::model::ContextId;
use et_reader::population::{Columns, Groups, Moment as When, Population, Rows};
use et_reader::record::{AllocKind, ThreadId};
use et_reader::types::TypeId;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::drag;
use crate::fold::{fold, fold_groups};
use crate::heap::{Moment, Resident, dominance};
use crate::labels::Labels;
use crate::pattern::fits;
use crate::place::Spot;
use crate::span::{Bound, Bounds, QueryError, Span};
use crate::table::{more, table};
use et_reader::amount::Amount;

/// Number of methods of a calling context that are displayed.
const CONTEXT: usize = 8;

/// What objects are listed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Largest first.
    #[default]
    Size,
    /// First those during whose lives the program allocated most.
    Age,
    /// First those that were kept longest after their last use.
    Drag,
    /// First those that would free most, at the moment at which they are alive.
    Retained,
    /// In the order of their births.
    Birth,
    /// In the order of their deaths; those alive at the end last.
    Death,
    /// First those that survived most collections, as far as walks through the heap tell.
    Survived,
}

impl Sort {
    /// The columns that [`key`](Self::key) reads.
    pub(crate) fn columns(self) -> Columns {
        match self {
            Self::Size => Columns::SIZE,
            Self::Age => Columns::BIRTH_BYTES | Columns::DEATH_BYTES,
            Self::Drag => Columns::KIND | Columns::LAST_USE_TICK | Columns::DEATH_TICK,
            Self::Birth | Self::Retained => Columns::NUMBER,
            Self::Death => Columns::DEATH_TICK,
            Self::Survived => Columns::FATE,
        }
    }

    /// What a list is ordered by, the first highest.
    pub(crate) fn key(self, rows: &Rows, row: usize, end: When) -> u64 {
        match self {
            Self::Size => rows.size[row],
            Self::Age => age(rows, row, end),
            Self::Drag => {
                let is_initial = rows.kind[row] == AllocKind::Initial;
                drag::ticks(is_initial, rows.last_use_tick[row], rows.death_tick[row]).unwrap_or(0)
            }
            // Sizes that rows do not tell are looked up.
            Self::Retained => 0,
            Self::Birth => u64::MAX - rows.number[row],
            Self::Death => u64::MAX - rows.death_tick[row].unwrap_or(u64::MAX),
            Self::Survived => rows.fate[row].map_or(0, |fate| fate.survived.into()),
        }
    }
}

/// Which objects are wanted. Conditions that are `None` hold for all.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Class as displayed; with `*` for any text.
    pub class: Option<String>,
    /// Site or method as displayed; with `*` for any text.
    pub site: Option<String>,
    /// Text that some method of the calling context contains.
    pub context: Option<String>,
    pub thread: Option<u32>,
    /// The object was alive then.
    pub alive_at: Option<Moment>,
    pub born: Option<Span>,
    pub died: Option<Span>,
    /// The program allocated more than that during its life, in bytes.
    pub older_than: Option<u64>,
    /// It certainly survived that many collections.
    pub survived: Option<u32>,
    pub sort: Sort,
    /// Maximum number of objects to list.
    pub top: usize,
}

impl Query {
    /// The first condition that only makes sense if deaths are known.
    pub fn needs_deaths(&self) -> Option<&'static str> {
        let needs = [
            (self.alive_at.is_some(), "--alive-at"),
            (self.died.is_some(), "--died"),
            (self.older_than.is_some(), "--age"),
            (self.sort == Sort::Age, "--sort age"),
            (self.sort == Sort::Drag, "--sort drag"),
            (self.sort == Sort::Retained, "--sort retained"),
            (self.sort == Sort::Death, "--sort death"),
        ];
        needs.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, option)| option)
    }

    /// The first condition that only walks through the heap can tell.
    pub fn needs_walks(&self) -> Option<&'static str> {
        let needs = [(self.survived.is_some(), "--survived"), (self.sort == Sort::Survived, "--sort survived")];
        needs.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, option)| option)
    }
}

/// Why objects could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Rows(#[from] io::Error),
}

/// Result: the objects.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Objects {
    /// All that meet the conditions.
    pub found: Amount,
    /// Of these, alive at the end; `None` if the trace does not tell deaths.
    pub alive: Option<Amount>,
    /// The first of them.
    pub objects: Vec<ObjectLine>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectLine {
    /// Hexadecimal, as in texts.
    pub id: String,
    pub class: String,
    /// Bytes; 0 if unknown.
    pub size: u64,
    /// Bytes that would be freed with it at the moment that was asked about; `None` if none was, or it was not asked what objects retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained_bytes: Option<u64>,
    /// Elements of an array; 0 for other objects.
    pub length: u32,
    /// Site, or method and how.
    pub site: String,
    /// Methods on the stack at allocation, innermost first.
    pub context: Vec<String>,
    /// Index of the thread that allocated it; 0 if unknown.
    pub thread: u32,
    pub born: When,
    /// Value of the clock at its last use; `None`: the trace does not tell it.
    pub last_use_tick: Option<u64>,
    /// `None`: it is alive at the end.
    pub died: Option<When>,
    /// Method and thread in which it became unreachable.
    pub died_in: Option<String>,
    pub death_thread: Option<u32>,
    /// Bytes allocated during its life, up to the end of the trace if it is alive then.
    pub age_bytes: u64,
    /// Ticks between its last use and its death; `None` if it is alive at the end.
    pub drag_ticks: Option<u64>,
    /// What walks through the heap say of it, where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survival: Option<Survived>,
}

/// What walks through the heap say of an object.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Survived {
    /// Number of collections that it has certainly survived.
    pub collections: u32,
    pub at_most: u32,
    /// It was there then, and was gone at that time; `None`: it was not.
    pub gone_after: When,
    pub gone_by: Option<When>,
    /// Walks say what does not fit, or may say it of another object with the same id.
    pub is_uncertain: bool,
}

/// What the objects that are alive at a moment retain.
#[derive(Debug)]
pub struct RetainedAt {
    /// In ascending order.
    numbers: Vec<u64>,
    bytes: Vec<u64>,
}

impl RetainedAt {
    /// Of a heap.
    pub fn of(resident: Resident<'_>) -> Self {
        let dominance = dominance(&resident.snapshot);
        let Resident { rows, .. } = resident;
        let mut bytes = dominance.retained;
        // The root is the last.
        bytes.truncate(rows.len);
        Self { numbers: rows.number, bytes }
    }

    /// Of an object by its number; `None`: it is not alive then.
    fn bytes(&self, number: u64) -> Option<u64> {
        self.numbers.binary_search(&number).ok().map(|at| self.bytes[at])
    }
}

/// The conditions in terms of rows.
struct Wanted<'q> {
    query: &'q Query,
    alive_at: Option<Bound>,
    born: Bounds,
    /// `None`: objects need not have died.
    died: Option<Bounds>,
    classes: Option<FxHashSet<TypeId>>,
    contexts: Option<Vec<bool>>,
    end: When,
}

impl<'q> Wanted<'q> {
    fn new(query: &'q Query, population: &Population, labels: Labels<'_>) -> Result<Self, QueryError> {
        let bounds = |span: &Option<Span>| span.as_ref().map(|span| Bounds::of(span, population)).transpose();
        let classes = query.class.as_ref().map(|pattern| {
            let all = (0..population.types.len() as u32).map(TypeId);
            all.filter(|class| fits(pattern, &labels.class(*class))).collect()
        });
        let contexts = query.context.as_ref().map(|text| with_method(population, labels, text));
        let end = population.end;
        let alive_at = query.alive_at.as_ref().map(|moment| Bound::within(moment, population)).transpose()?;
        let (born, died) = (bounds(&query.born)?.unwrap_or_default(), bounds(&query.died)?);
        Ok(Self { query, alive_at, born, died, classes, contexts, end })
    }

    /// The columns that the conditions and the order need.
    fn columns(&self) -> Columns {
        let mut columns = Columns::SIZE | Columns::DEATH_TICK | self.born.columns();
        columns = self.died.map_or(columns, |died| columns | died.columns());
        columns = self.alive_at.map_or(columns, |at| columns | at.columns());
        let query = self.query;
        let mut need = |is_needed: bool, more: Columns| {
            if is_needed {
                columns = columns | more;
            }
        };
        need(query.class.is_some(), Columns::CLASS);
        need(query.site.is_some(), Spot::columns());
        need(query.context.is_some(), Columns::CONTEXT);
        need(query.thread.is_some(), Columns::THREAD);
        need(query.survived.is_some(), Columns::FATE);
        need(query.older_than.is_some(), Columns::BIRTH_BYTES | Columns::DEATH_BYTES);
        columns | query.sort.columns()
    }

    fn holds(&self, rows: &Rows, row: usize) -> bool {
        let query = self.query;
        if query.thread.is_some_and(|thread| rows.thread[row] != ThreadId(thread))
            || self.classes.as_ref().is_some_and(|classes| !classes.contains(&rows.class[row]))
            || self.contexts.as_ref().is_some_and(|contexts| !contexts[rows.context[row].0 as usize])
            || query.survived.is_some_and(|least| rows.fate[row].is_none_or(|fate| fate.survived < least))
            || query.older_than.is_some_and(|least| age(rows, row, self.end) <= least)
        {
            return false;
        }
        let (born, died) = (born(rows, row), died(rows, row));
        let was_alive = self.alive_at.is_none_or(|at| at.is_in_life(born, died));
        let has_died = self.died.is_none_or(|bounds| died.is_some_and(|died| bounds.has(died)));
        was_alive && self.born.has(born) && has_died
    }
}

/// The contexts of which some method contains the text.
pub(crate) fn with_method(population: &Population, labels: Labels<'_>, text: &str) -> Vec<bool> {
    let contexts = &population.contexts;
    let mut methods: FxHashMap<_, bool> = FxHashMap::default();
    let mut found = vec![false; contexts.len()];
    // Callers precede callees.
    for id in (1..contexts.len() as u32).map(ContextId) {
        let context = contexts.get(id);
        let is_it = *methods.entry(context.method).or_insert_with(|| labels.method(context.method).contains(text));
        found[id.0 as usize] = is_it || found[context.caller.0 as usize];
    }
    found
}

/// A column that was not read is 0.
fn at<T: Copy + Default>(column: &[T], row: usize) -> T {
    column.get(row).copied().unwrap_or_default()
}

pub(crate) fn born(rows: &Rows, row: usize) -> When {
    When { tick: at(&rows.birth_tick, row), bytes: at(&rows.birth_bytes, row), nanos: at(&rows.birth_nanos, row) }
}

pub(crate) fn died(rows: &Rows, row: usize) -> Option<When> {
    let tick = at(&rows.death_tick, row)?;
    Some(When { tick, bytes: at(&rows.death_bytes, row).unwrap_or(0), nanos: at(&rows.death_nanos, row) })
}

/// Bytes allocated during its life.
fn age(rows: &Rows, row: usize, end: When) -> u64 {
    rows.death_bytes[row].unwrap_or(end.bytes).saturating_sub(rows.birth_bytes[row])
}

/// The key of an object, highest first, and where its row is: of equal ones the first row is first.
type Entry = (u64, Reverse<(usize, usize)>);

/// The first objects found so far, the last of them on top.
#[derive(Default)]
struct Tally {
    found: Amount,
    alive: Amount,
    first: BinaryHeap<Reverse<Entry>>,
}

impl Tally {
    fn keep(&mut self, entry: Entry, top: usize) {
        self.first.push(Reverse(entry));
        if self.first.len() > top {
            self.first.pop();
        }
    }
}

/// How many objects were alive at a moment.
///
/// # Errors
/// The life table cannot be read, or does not tell the moment.
pub fn alive_at(population: &Population, moment: &Moment) -> Result<u64, ObjectsError> {
    let at = Bound::within(moment, population)?;
    let each = |count: &mut u64, rows: &Rows| {
        *count += (0..rows.len).filter(|&row| at.is_in_life(born(rows, row), died(rows, row))).count() as u64;
    };
    Ok(fold(population, at.columns(), || 0, each, |one, other| one + other)?)
}

/// Finds the objects that meet the conditions. Reads the columns that these need of all objects, and all columns of those
/// listed. `retained`: only objects that are alive at that moment, with what they retain.
///
/// # Errors
/// The life table cannot be read, or does not tell a moment.
pub fn objects(
    population: &Population,
    labels: Labels<'_>,
    query: &Query,
    retained: Option<&RetainedAt>,
) -> Result<Objects, ObjectsError> {
    let wanted = Wanted::new(query, population, labels)?;
    let groups: Vec<usize> = (0..population.groups.len()).collect();
    let each = |(tally, sites): &mut (Tally, FxHashMap<Spot, bool>), group: usize, rows: &Rows| {
        let mut places = Places::new(labels.naming());
        for row in (0..rows.len).filter(|&row| wanted.holds(rows, row)) {
            if let Some(pattern) = &query.site {
                let is_there = *sites.entry(Spot::of(rows, row)).or_insert_with_key(|spot| {
                    let (place, _) = spot.place(&mut places, population);
                    fits(pattern, &labels.made_in(place))
                });
                if !is_there {
                    continue;
                }
            }
            let key = match retained {
                None => query.sort.key(rows, row, wanted.end),
                Some(retained) => match (retained.bytes(rows.number[row]), query.sort) {
                    (None, _) => continue,
                    (Some(bytes), Sort::Retained) => bytes,
                    _ => query.sort.key(rows, row, wanted.end),
                },
            };
            tally.found.add(rows.size[row]);
            if rows.death_tick[row].is_none() {
                tally.alive.add(rows.size[row]);
            }
            tally.keep((key, Reverse((group, row))), query.top);
        }
    };
    let merge = |(mut one, sites): (Tally, _), (other, _): (Tally, _)| {
        one.found += other.found;
        one.alive += other.alive;
        other.first.into_iter().for_each(|Reverse(entry)| one.keep(entry, query.top));
        (one, sites)
    };
    let columns = wanted.columns();
    let columns = if retained.is_some() { columns | Columns::NUMBER } else { columns };
    let (tally, _) = fold_groups(&*population.groups, &groups, columns, Default::default, each, merge)?;
    let first = tally.first.into_sorted_vec();
    let rows: Vec<(usize, usize)> = first.iter().map(|&Reverse((_, Reverse(at)))| at).collect();
    let mut objects = lines(population, &*population.groups, labels, &rows)?;
    if query.sort == Sort::Retained {
        let keys = first.iter().map(|Reverse((key, _))| *key);
        objects.iter_mut().zip(keys).for_each(|(object, bytes)| object.retained_bytes = Some(bytes));
    }
    Ok(Objects { found: tally.found, alive: population.has_deaths.then_some(tally.alive), objects })
}

/// What rows say, each by its group and its number in it.
pub(crate) fn lines(
    population: &Population,
    groups: &dyn Groups,
    labels: Labels<'_>,
    wanted: &[(usize, usize)],
) -> io::Result<Vec<ObjectLine>> {
    let mut of_group: FxHashMap<usize, Vec<(usize, usize)>> = FxHashMap::default();
    for (index, &(group, row)) in wanted.iter().enumerate() {
        of_group.entry(group).or_default().push((index, row));
    }
    let mut places = Places::new(labels.naming());
    let mut lines: Vec<(usize, ObjectLine)> = Vec::with_capacity(wanted.len());
    for (group, all) in of_group {
        let rows = groups.read(group, COLUMNS)?;
        for (index, row) in all {
            lines.push((index, line(population, labels, &mut places, &rows, row)));
        }
    }
    lines.sort_by_key(|(index, _)| *index);
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

/// The columns that [`line`] reads.
const COLUMNS: Columns = Spot::columns()
    .and(Columns::OBJECT)
    .and(Columns::SIZE)
    .and(Columns::LENGTH)
    .and(Columns::THREAD)
    .and(Columns::BIRTH_TICK)
    .and(Columns::BIRTH_BYTES)
    .and(Columns::BIRTH_NANOS)
    .and(Columns::LAST_USE_TICK)
    .and(Columns::DEATH_TICK)
    .and(Columns::DEATH_BYTES)
    .and(Columns::DEATH_NANOS)
    .and(Columns::DEATH_THREAD)
    .and(Columns::DEATH_CONTEXT)
    .and(Columns::FATE);

/// What a row says.
pub(crate) fn line(
    population: &Population,
    labels: Labels<'_>,
    places: &mut Places<'_>,
    rows: &Rows,
    row: usize,
) -> ObjectLine {
    let (place, _) = Spot::of(rows, row).place(places, population);
    let context = population.contexts.methods(rows.context[row]).take(CONTEXT);
    let died_in = rows.death_context[row].filter(|context| *context != ContextId::EMPTY);
    let is_initial = rows.kind[row] == AllocKind::Initial;
    let last_use = population.has_uses.then_some(rows.last_use_tick[row]);
    ObjectLine {
        id: format!("{:x}", rows.object[row].0),
        class: labels.class(rows.class[row]),
        size: rows.size[row],
        retained_bytes: None,
        length: rows.length[row],
        site: labels.made_in(place),
        context: context.map(|method| labels.method(method)).collect(),
        thread: rows.thread[row].0,
        born: born(rows, row),
        last_use_tick: last_use,
        died: died(rows, row),
        died_in: died_in.map(|context| labels.method(population.contexts.get(context).method)),
        death_thread: rows.death_thread[row].map(|thread| thread.0),
        age_bytes: age(rows, row, population.end),
        drag_ticks: last_use.and_then(|last_use| drag::ticks(is_initial, last_use, rows.death_tick[row])),
        survival: survived(population, rows, row),
    }
}

fn survived(population: &Population, rows: &Rows, row: usize) -> Option<Survived> {
    let (survival, fate) = (population.survival.as_ref()?, rows.fate.get(row).copied().flatten()?);
    let (gone_after, gone_by) = survival.death_of(&fate, born(rows, row));
    Some(Survived {
        collections: fate.survived,
        at_most: fate.survived_at_most,
        gone_after,
        gone_by,
        is_uncertain: fate.is_uncertain,
    })
}

/// The answer first, then a table.
pub fn render(found: &Objects) -> String {
    let mut out = String::new();
    let Objects { found: all, alive, objects } = found;
    let _ = write!(out, "{}, {}", counted(all.objects, "object"), bytes(all.bytes));
    let _ = match alive {
        Some(alive) => writeln!(out, "; {} of them alive at the end, {}", number(alive.objects), bytes(alive.bytes)),
        None => writeln!(out),
    };
    if objects.is_empty() {
        return out;
    }
    let when = |when: &When| match when.nanos {
        Some(nanos) => format!("{} ({})", number(when.tick), seconds(nanos as f64 / 1e9)),
        None => number(when.tick),
    };
    // Then nobody knows deaths.
    let has_walks = objects.iter().any(|line| line.survival.is_some());
    let rows: Vec<Vec<String>> = objects
        .iter()
        .map(|line| {
            let class = match line.length {
                0 => line.class.clone(),
                length => format!("{} of {}", line.class, number(length.into())),
            };
            let died = line.died.as_ref().map_or_else(|| "-".to_owned(), &when);
            let died_in = line.died_in.clone().unwrap_or_default();
            let mut cells = vec![
                bytes(line.size),
                bytes(line.age_bytes),
                line.id.clone(),
                class,
                line.site.clone(),
                when(&line.born),
                died,
                died_in,
            ];
            if let Some(retained) = line.retained_bytes {
                cells.insert(0, bytes(retained));
            }
            if has_walks {
                // Without calls the clock stands still.
                let fate = line.survival.map_or_else(Default::default, |survived| gone(line.born, &survived));
                cells.truncate(5);
                cells[1] = bytes(line.born.bytes);
                cells.splice(0..0, fate);
            }
            cells
        })
        .collect();
    let _ = writeln!(out);
    if has_walks {
        let head = ["collections", "gone after", "gone by", "size", "born at", "object", "class", "made at"];
        table(&mut out, 5, &head, &rows);
        more(&mut out, all.objects as usize, objects.len());
        return out;
    }
    let head = ["retained", "size", "age", "object", "class", "made at", "born at tick", "died at tick", "in"];
    match objects[0].retained_bytes {
        Some(_) => table(&mut out, 3, &head, &rows),
        None => table(&mut out, 2, &head[1..], &rows),
    }
    more(&mut out, all.objects as usize, objects.len());
    out
}

/// How many collections it survived, and when it was gone, in bytes allocated since its birth.
fn gone(born: When, survived: &Survived) -> [String; 3] {
    let Survived { collections, at_most, gone_after, gone_by, is_uncertain } = *survived;
    let doubt = if is_uncertain { "?" } else { "" };
    let collections = match at_most > collections {
        true => format!("{collections} to {at_most}{doubt}"),
        false => format!("{collections}{doubt}"),
    };
    let since = |when: When| bytes(when.bytes.saturating_sub(born.bytes));
    [collections, since(gone_after), gone_by.map_or_else(|| "-".to_owned(), since)]
}

#[cfg(test)]
mod tests {
    use et_reader::Trace;
    use et_reader::source::{Reading, Source};

    use super::*;
    use crate::fold::in_order;
    use crate::heap::resident;
    use crate::testing::{REAL, with_references};

    /// Ids of the objects that meet a condition, by key; equal ones in the order of their deaths.
    fn by_heart(
        population: &Population,
        holds: impl Fn(&Rows, usize) -> bool,
        key: impl Fn(&Rows, usize) -> u64,
    ) -> Vec<String> {
        let mut all = Vec::new();
        in_order(population, Columns::ALL, |rows| {
            for row in (0..rows.len).filter(|&row| holds(rows, row)) {
                all.push((Reverse(key(rows, row)), all.len(), format!("{:x}", rows.object[row].0)));
            }
        })
        .unwrap();
        all.sort();
        all.into_iter().map(|(.., id)| id).collect()
    }

    #[test]
    fn objects_are_those_that_meet_all_conditions() {
        let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
        let population = et_lives::population(&source, None, Reading::default()).unwrap();
        let labels = Labels::of(&source, &population);
        let end = population.end;
        let check = |query: Query, holds: &dyn Fn(&Rows, usize) -> bool, key: &dyn Fn(&Rows, usize) -> u64| {
            let expected = by_heart(&population, holds, key);
            let found = objects(&population, labels, &Query { top: 25, ..query.clone() }, None).unwrap();
            assert_eq!(found.found.objects, expected.len() as u64, "{query:?}");
            let ids: Vec<&str> = found.objects.iter().map(|line| line.id.as_str()).collect();
            assert_eq!(ids, expected.iter().take(25).map(String::as_str).collect::<Vec<_>>(), "{query:?}");
            expected.len()
        };
        let size = |rows: &Rows, row: usize| rows.size[row];
        let all = check(Query::default(), &|_, _| true, &size);
        assert_eq!(all as u64, population.objects);
        let half = end.tick / 2;
        let alive = check(
            Query { alive_at: Some(Moment::Tick(half)), ..Query::default() },
            &|rows, row| rows.birth_tick[row] <= half && rows.death_tick[row].is_none_or(|tick| tick > half),
            &size,
        );
        assert!(alive > 100 && alive < all, "{alive} of {all}");
        let (from, to) = (end.bytes / 4, end.bytes / 2);
        let span = Some(Span { from: Some(Moment::Bytes(from)), to: Some(Moment::Bytes(to)) });
        let born = check(
            Query { born: span.clone(), sort: Sort::Birth, ..Query::default() },
            &|rows, row| rows.birth_bytes[row] > from && rows.birth_bytes[row] <= to,
            &|rows, row| u64::MAX - rows.number[row],
        );
        assert!(born > 10, "{born}");
        check(
            Query { died: span, sort: Sort::Death, ..Query::default() },
            &|rows, row| rows.death_bytes[row].is_some_and(|bytes| bytes > from && bytes <= to),
            &|rows, row| u64::MAX - rows.death_tick[row].unwrap(),
        );
        let age = |rows: &Rows, row: usize| rows.death_bytes[row].unwrap_or(end.bytes) - rows.birth_bytes[row];
        check(
            Query { older_than: Some(1000), sort: Sort::Age, ..Query::default() },
            &|rows, row| age(rows, row) > 1000,
            &age,
        );
        let strings = check(
            Query { class: Some("java.lang.String".to_owned()), ..Query::default() },
            &|rows, row| labels.class(rows.class[row]) == "java.lang.String",
            &size,
        );
        assert!(strings > 10, "{strings}");
        let drag = |rows: &Rows, row: usize| {
            drag::ticks(rows.kind[row] == AllocKind::Initial, rows.last_use_tick[row], rows.death_tick[row])
                .unwrap_or(0)
        };
        check(
            Query { thread: Some(1), sort: Sort::Drag, ..Query::default() },
            &|rows, row| rows.thread[row] == ThreadId(1),
            &drag,
        );
    }

    #[test]
    fn objects_by_what_they_retain_are_those_of_the_heap() {
        let (source, population, references) = with_references(std::fs::read(REAL).unwrap());
        let labels = Labels::of(&source, &population);
        let tick = population.end.tick / 2;
        let take = || resident(&source, &population, &*population.groups, &*references, tick).unwrap();
        let Resident { snapshot, rows, .. } = take();
        let dominance = dominance(&snapshot);
        let retained = RetainedAt::of(take());
        let query = Query { sort: Sort::Retained, top: 50, ..Query::default() };
        let found = objects(&population, labels, &query, Some(&retained)).unwrap();
        assert_eq!((found.found.objects as usize, found.objects.len()), (rows.len, 50));
        let mut expected: Vec<u64> = dominance.retained[..rows.len].to_vec();
        expected.sort_unstable_by_key(|&bytes| Reverse(bytes));
        let bytes: Vec<u64> = found.objects.iter().filter_map(|line| line.retained_bytes).collect();
        assert_eq!(bytes, expected[..50]);
        for line in &found.objects {
            let node = snapshot.find(line.id.parse().unwrap()).unwrap();
            assert_eq!(line.retained_bytes, Some(dominance.retained[node.0 as usize]));
        }
        assert!(render(&found).contains(" retained  "), "{}", render(&found));
        // In another order they are the same.
        let other = objects(&population, labels, &Query { sort: Sort::Size, ..query }, Some(&retained)).unwrap();
        assert_eq!(other.found, found.found);
        assert!(other.objects.iter().all(|line| line.retained_bytes.is_none()));
    }

    #[test]
    fn a_context_is_found_by_any_of_its_methods() {
        let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
        let population = et_lives::population(&source, None, Reading::default()).unwrap();
        let labels = Labels::of(&source, &population);
        let first = objects(&population, labels, &Query { top: 1000, ..Query::default() }, None).unwrap();
        let line = first.objects.iter().find(|line| line.context.len() > 1).unwrap();
        let outermost = line.context.last().unwrap();
        let query = Query { context: Some(outermost.clone()), top: 100_000, ..Query::default() };
        let found = objects(&population, labels, &query, None).unwrap();
        assert!(found.objects.contains(line) && found.found.objects < population.objects);
        let nowhere = Query { context: Some("no.such.Method".into()), top: 5, ..Query::default() };
        assert_eq!(objects(&population, labels, &nowhere, None).unwrap().found, Amount::default());
    }

    #[test]
    fn moments_that_rows_do_not_tell_are_refused() {
        let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
        let population = et_lives::population(&source, None, Reading::default()).unwrap();
        let query = Query { alive_at: Some("method:a.B.c".parse().unwrap()), ..Query::default() };
        let error = objects(&population, Labels::of(&source, &population), &query, None).unwrap_err();
        assert!(error.to_string().starts_with("method:a.B.c#1: when a method is entered is not"), "{error}");
        let query = Query { alive_at: Some(Moment::Tick(population.end.tick + 1)), ..Query::default() };
        let error = objects(&population, Labels::of(&source, &population), &query, None).unwrap_err();
        assert!(error.to_string().contains(" is past the end of the trace, which is at tick "), "{error}");
    }
}
