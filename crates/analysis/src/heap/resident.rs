//! The heap at a moment from tables: the rows of the objects and the stays of references that a tick is in. Nothing of the trace is read, so the cost
//! grows with what is alive.
//!
//! Two things the tables do not tell: which method's stack held an object, and whether a thread that has an object was running. What nothing
//! recorded holds is therefore [`RootKind::Unrecorded`], unless the trace itself says what it is (a loader, a thread, something that was
//! there before tracing began).

use std::io;

use et_reader::population::{Columns, Groups, Key, Population, Rows};
use et_reader::record::{AllocKind, RecordKind, Slot, ThreadId};
use et_reader::references::{Holding, References};
use et_reader::source::Source;
use et_system::threads::Pool;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::freeze::{self, Freezing, Outside};
use super::snapshot::{Object, Root, RootKind, Snapshot, Taken};
use super::take::NO_REFERENT;
use crate::fold::{fold_groups, groups_where};
use et_reader::model::Node;

/// The heap at a moment, with a row for each object: nodes are in the order of births.
#[derive(Debug)]
pub struct Resident<'a> {
    pub snapshot: Snapshot<'a>,
    /// What the life table says of the objects, by node: [`COLUMNS`].
    pub rows: Rows,
    /// Where their rows are: group and number in it.
    pub places: Vec<(u32, u32)>,
}

/// The columns of the rows of a [`Resident`]: what objects are grouped and ordered by. Single objects are looked up.
pub const COLUMNS: Columns = Columns::NUMBER
    .and(Columns::OBJECT)
    .and(Columns::CLASS)
    .and(Columns::KIND)
    .and(Columns::SIZE)
    .and(Columns::LENGTH)
    .and(Columns::SITE)
    .and(Columns::CONTEXT)
    .and(Columns::THREAD)
    .and(Columns::BIRTH_TICK)
    .and(Columns::BIRTH_BYTES)
    .and(Columns::LAST_USE_TICK)
    .and(Columns::DEATH_TICK)
    .and(Columns::DEATH_KIND)
    .and(Columns::DEATH_BYTES);

/// Which numbers are in a set, and how many before each.
pub(super) struct Ranks {
    words: Vec<u64>,
    before: Vec<u32>,
}

impl Ranks {
    pub fn new(most: u64, numbers: &[u64]) -> Self {
        let mut words = vec![0u64; (most / 64 + 1) as usize];
        numbers.iter().for_each(|number| words[(number / 64) as usize] |= 1 << (number % 64));
        let mut count = 0;
        let before = |word: &u64| {
            let before = count;
            count += word.count_ones();
            before
        };
        let before = words.iter().map(before).collect();
        Self { words, before }
    }

    /// How many of the set are less than this number; `None`: it is not in the set.
    pub fn of(&self, number: u64) -> Option<u32> {
        let (at, bit) = ((number / 64) as usize, 1u64 << (number % 64));
        let word = *self.words.get(at)?;
        (word & bit != 0).then(|| self.before[at] + (word & (bit - 1)).count_ones())
    }
}

/// The clock when the record begins that made an object unreachable; it may tick at it.
pub(crate) fn died_at(rows: &Rows, row: usize) -> Option<u64> {
    let ticks = rows.death_kind[row].is_some_and(RecordKind::ticks);
    rows.death_tick[row].map(|died| died.saturating_sub(ticks.into()))
}

/// Whether an object is alive after all records that begin before the clock is at this tick, and after what died of them.
pub(crate) fn is_at(rows: &Rows, row: usize, tick: u64) -> bool {
    let was_made = rows.kind[row] == AllocKind::Initial || rows.birth_tick[row] < tick;
    was_made && died_at(rows, row).is_none_or(|died| died >= tick)
}

/// What tells whether an object is alive.
const LIFE: Columns = Columns::KIND.and(Columns::BIRTH_TICK).and(Columns::DEATH_TICK).and(Columns::DEATH_KIND);

/// The rows of all objects alive at a tick, in the order of births, and where they are.
fn rows_at(objects: &dyn Groups, tick: u64) -> io::Result<(Rows, Vec<(u32, u32)>)> {
    let groups = groups_where(objects, |group| objects.may_have(group, tick))?;
    rows_where(objects, &groups, LIFE, |rows, row| is_at(rows, row, tick))
}

/// Some rows of groups: the numbers of the groups, ascending, and of their rows.
pub(super) type Chosen = Vec<(usize, Vec<u32>)>;

/// The rows of the objects that are alive at each of `count` moments, which the columns `life` tell: these are read only once.
pub(super) fn alive_at_each(
    objects: &dyn Groups,
    count: usize,
    life: Columns,
    is_alive: impl Fn(usize, &Rows, usize) -> bool + Send + Sync,
) -> io::Result<Vec<Chosen>> {
    let groups: Vec<usize> = (0..objects.len()).collect();
    let mut chosen = fold_groups(
        objects,
        &groups,
        life,
        || vec![Chosen::new(); count],
        |chosen, group, rows| {
            for (number, chosen) in chosen.iter_mut().enumerate() {
                let alive = (0..rows.len).filter(|&row| is_alive(number, rows, row));
                let alive: Vec<u32> = alive.map(|row| row as u32).collect();
                if !alive.is_empty() {
                    chosen.push((group, alive));
                }
            }
        },
        |mut one, other| {
            one.iter_mut().zip(other).for_each(|(one, mut other)| one.append(&mut other));
            one
        },
    )?;
    chosen.iter_mut().for_each(|chosen| chosen.sort_unstable_by_key(|(group, _)| *group));
    Ok(chosen)
}

/// The chosen rows, in the order of births.
pub(super) fn rows_of(objects: &dyn Groups, chosen: &Chosen) -> io::Result<Rows> {
    let groups: Vec<usize> = chosen.iter().map(|(group, _)| *group).collect();
    let mut parts = fold_groups(
        objects,
        &groups,
        COLUMNS,
        Vec::new,
        |parts: &mut Vec<(usize, Rows)>, group, rows| {
            let place = chosen.partition_point(|(before, _)| *before < group);
            let wanted: Vec<usize> = chosen[place].1.iter().map(|&row| row as usize).collect();
            parts.push((group, rows.only(&wanted, COLUMNS)));
        },
        |mut one, mut other| {
            one.append(&mut other);
            one
        },
    )?;
    parts.sort_unstable_by_key(|(group, _)| *group);
    let mut all = Rows::default();
    parts.into_iter().for_each(|(_, part)| all.append(part));
    Ok(in_order_of_births(&all).1)
}

/// Rows in the order of births, and which of the given ones each is.
fn in_order_of_births(all: &Rows) -> (Vec<usize>, Rows) {
    let mut order: Vec<usize> = (0..all.len).collect();
    order.sort_unstable_by_key(|&row| all.number[row]);
    let rows = all.only(&order, COLUMNS);
    (order, rows)
}

/// The rows of all objects of some groups that are alive, which the columns `life` tell, in the order of births, and where they are.
fn rows_where(
    objects: &dyn Groups,
    groups: &[usize],
    life: Columns,
    is_alive: impl Fn(&Rows, usize) -> bool + Send + Sync,
) -> io::Result<(Rows, Vec<(u32, u32)>)> {
    /// Rows of a group that are alive.
    type Part = (usize, Vec<usize>, Rows);
    let parts = fold_groups(
        objects,
        groups,
        life,
        Vec::new,
        |parts: &mut Vec<io::Result<Part>>, group, rows| {
            let alive: Vec<usize> = (0..rows.len).filter(|&row| is_alive(rows, row)).collect();
            // Most groups have few that were alive, or none: the other columns are only read if there are some.
            if !alive.is_empty() {
                let others = objects.read(group, COLUMNS.without(life));
                let part = |others: Rows| rows.only(&alive, life).with(others.only(&alive, COLUMNS.without(life)));
                parts.push(others.map(part).map(|part| (group, alive, part)));
            }
        },
        |mut one, mut other| {
            one.append(&mut other);
            one
        },
    )?;
    let mut parts: Vec<Part> = parts.into_iter().collect::<io::Result<_>>()?;
    parts.sort_unstable_by_key(|(group, ..)| *group);
    let len = parts.iter().map(|(_, alive, _)| alive.len()).sum();
    let (mut all, mut places) = (Rows::default(), Vec::with_capacity(len));
    for (group, alive, part) in parts {
        places.extend(alive.into_iter().map(|row| (group as u32, row as u32)));
        all.append(part);
    }
    let (order, rows) = in_order_of_births(&all);
    let places = order.iter().map(|&row| places[row]).collect();
    Ok((rows, places))
}

/// Bytes of all objects that had been allocated before a tick, and when the last of them was.
fn allocated_by(objects: &dyn Groups, tick: u64) -> io::Result<(u64, Option<u64>)> {
    let mut needed = Vec::new();
    // Of the groups that are older as a whole, only the youngest matter.
    let (mut youngest, mut older) = (0, Vec::new());
    for group in 0..objects.len() {
        let born = objects.range(group, Key::BirthTick)?;
        if born.is_empty() || *born.start() >= tick {
            continue;
        }
        if *born.end() >= tick {
            needed.push(group);
        } else if *born.end() > youngest || older.is_empty() {
            (youngest, older) = (*born.end(), vec![group]);
        } else if *born.end() == youngest {
            older.push(group);
        }
    }
    needed.append(&mut older);
    let columns = Columns::KIND | Columns::BIRTH_TICK | Columns::BIRTH_BYTES | Columns::BIRTH_NANOS;
    fold_groups(
        objects,
        &needed,
        columns,
        Default::default,
        |last: &mut (u64, Option<u64>), _, rows| {
            let made = (0..rows.len).filter(|&row| rows.kind[row] != AllocKind::Initial && rows.birth_tick[row] < tick);
            *last = made.map(|row| (rows.birth_bytes[row], rows.birth_nanos[row])).fold(*last, Ord::max);
        },
        Ord::max,
    )
}

/// Adds the objects of rows.
pub(super) fn add_rows(freezing: &mut Freezing<'_, '_>, population: &Population, rows: &Rows) {
    for row in 0..rows.len {
        freezing.object(rows.class[row], &population.types, |class| Object {
            id: rows.object[row],
            size: rows.size[row],
            class,
            length: rows.length[row],
            site: rows.site[row],
            thread: rows.thread[row],
            kind: rows.kind[row],
            born: rows.birth_tick[row],
        });
    }
}

/// The hashes of the loaders of a trace's classes, which the VM holds with them.
pub(super) fn loaders(source: &Source) -> FxHashSet<u32> {
    let classes = source.trace().into_iter().flat_map(|trace| trace.classes.iter());
    classes.map(|class| class.record.loader.0).filter(|&hash| hash != 0).collect()
}

/// Takes the heap at a tick, [as when the trace is read up to there](super::take); `u64::MAX`: at the end. `objects` are those of the
/// population, in whatever order: in that of time, few of their groups are read.
///
/// # Errors
/// A table cannot be read.
pub fn resident<'a>(
    source: &'a Source,
    population: &Population,
    objects: &dyn Groups,
    references: &dyn References,
    tick: u64,
) -> io::Result<Resident<'a>> {
    let (rows, places) = rows_at(objects, tick)?;
    let ranks = Ranks::new(population.objects, &rows.number);
    let weak = source.weak_fields();
    let mut freezing = Freezing::new(source, &weak, rows.len);
    add_rows(&mut freezing, population, &rows);
    let (mut edges, mut statics) = (Vec::new(), Vec::new());
    references.held_at(tick, &mut |Holding { origin, slot, target }| {
        let Some(target) = ranks.of(target) else { return };
        match (origin, slot) {
            (Some(origin), slot) => edges.extend(ranks.of(origin).map(|origin| (origin, slot.number(), target))),
            (None, Slot::Field(field)) => statics.push((field, Node(target))),
            (None, Slot::Element(_)) => {}
        }
    })?;
    Pool::shared().run(|| edges.par_sort_unstable());
    let threads = source.trace().map(|trace| &*trace.threads).unwrap_or_default();
    let of_threads: FxHashMap<u32, ThreadId> =
        threads.iter().rev().map(|thread| (thread.object.0, ThreadId(thread.index))).collect();
    let loaders = loaders(source);
    let hash = |node: Node| rows.object[node.0 as usize].identity_hash();
    let nodes = (0..rows.len as u32).map(Node);
    let is_loader = |node: &Node| hash(*node).is_some_and(|hash| loaders.contains(&hash));
    let roots = nodes.filter(is_loader).map(|node| Root { kind: RootKind::Loader, node }).collect();
    let unheld = |node: Node, thread| {
        let of = hash(node).filter(|&hash| hash != 0).and_then(|hash| of_threads.get(&hash));
        match of {
            Some(&of) => RootKind::Thread(of),
            None if rows.kind[node.0 as usize] == AllocKind::Initial => RootKind::Vm,
            None => RootKind::Unrecorded(thread),
        }
    };
    let named = freezing.named(std::iter::empty());
    let end = population.end;
    let (allocated_bytes, nanos) = match tick {
        u64::MAX => (end.bytes, end.nanos),
        tick => allocated_by(objects, tick)?,
    };
    let mut warnings = population.warnings.clone();
    warnings.extend(weak.referent.is_none().then(|| NO_REFERENT.to_owned()));
    let taken = Taken {
        moment: if tick == u64::MAX { "end".to_owned() } else { format!("tick:{tick}") },
        tick: tick.min(end.tick),
        allocated_bytes,
        seconds: nanos.map(|nanos| nanos as f64 / 1e9),
        lost: population.lost,
        warnings,
        ..Taken::default()
    };
    let held = freeze::references(statics, edges);
    let outside = Outside { roots, stacks: Vec::new(), threads: Vec::new(), unheld };
    let snapshot = freezing.freeze(&named, held, outside, references.extra_fields(), taken);
    Ok(Resident { snapshot, rows, places })
}
