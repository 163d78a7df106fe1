//! The objects once more, in the order of [`Arranger`]: those that are alive at a moment are in few groups, however long the trace is. In the
//! order of deaths, in which the life table has them, they are in all groups behind the moment.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;

use et_columns::{TableReader, TableWriter, Word, Written};
use et_reader::lifetimes::HeldByStack;
use et_reader::population::{Columns, Groups, Key, Population, Rows};
use et_reader::references::{Arranger, Lasts};

use crate::added::{self, Added};
use crate::rows::{range, stored};
use crate::tables::objects;
use crate::{BY_TIME, LifeTable};

const ADDED: Added<1> = Added { kept: "by-time-1.json", names: [BY_TIME], tables: [&objects::TABLE] };

/// Objects of a group, and about as many as begin and end in one of the smallest pieces of time.
const GROUP: usize = 1 << 16;

/// A row on its way to its group. Time is measured in bytes allocated.
struct Waiting(objects::Row);

impl Lasts for Waiting {
    fn begins(&self) -> u64 {
        self.0.birth_bytes.cast_unsigned()
    }

    fn ends(&self) -> Option<u64> {
        self.0.death_bytes.map(i64::cast_unsigned)
    }

    fn order(&self, other: &Self) -> Ordering {
        self.0.number.cmp(&other.0.number)
    }
}

/// Objects in the order of time.
struct ByTime(TableReader);

impl Groups for ByTime {
    fn len(&self) -> usize {
        self.0.groups()
    }

    /// By the smallest and largest ticks of the group.
    fn may_have(&self, group: usize, tick: u64) -> io::Result<bool> {
        let (born, died) = (self.0.bounds(group, "birth_tick")?, self.0.bounds(group, "death_tick")?);
        let first = born.range.map_or(0, |(first, _)| first.cast_unsigned());
        let last = died.range.filter(|_| !died.has_nulls).map_or(u64::MAX, |(_, last)| last.cast_unsigned());
        // What was there when tracing began was born at tick 0.
        Ok((first < tick || first == 0) && last >= tick)
    }

    fn range(&self, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
        // These have no such column.
        if key == Key::DeathRecord { Ok(0..=u64::MAX) } else { range(&self.0, group, key) }
    }

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        stored(&self.0, group, columns)
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        Ok(Vec::new())
    }
}

/// Returns the objects of a trace in the order of time if they are kept with its life table.
pub fn kept_by_time(lives: &LifeTable) -> Option<Box<dyn Groups>> {
    let ([file], ()) = added::open(lives, &ADDED)?;
    Some(Box::new(ByTime(TableReader::open(file).ok()?)))
}

/// Returns the objects of a trace in the order of time: if they are kept with its life table, those, otherwise they are put in that order, and kept if
/// the life table is. They have all columns but `death_step`, `death_record`, `escaped_thread` and `escaped_frame`.
///
/// # Errors
/// The rows cannot be read, or the table could not be written.
pub fn by_time(lives: Option<&LifeTable>, population: &Population) -> io::Result<Box<dyn Groups>> {
    if let Some(kept) = lives.and_then(kept_by_time) {
        return Ok(kept);
    }
    let make =
        |file: &dyn Fn() -> io::Result<File>| Ok::<_, Infallible>(file().and_then(|file| make(population, file)));
    let keep = |lives: &LifeTable, written: &Written| added::keep(lives, &ADDED, [written], &());
    let Ok(written) = added::make(lives, "objects by time are", make, keep);
    Ok(Box::new(ByTime(TableReader::open(written?.file)?)))
}

fn make(population: &Population, file: File) -> io::Result<Written> {
    // As long as about a group of objects.
    let each = population.end.bytes / population.objects.max(1);
    let smallest = (each.max(1) * GROUP as u64).ilog2();
    let (mut arranger, mut table) = (Arranger::with(smallest, GROUP), TableWriter::<objects::Rows>::new(file));
    let mut push = |group: Vec<Waiting>| {
        group.into_iter().for_each(|Waiting(row)| table.push(row));
        table.end_group();
    };
    for group in 0..population.groups.len() {
        let rows = population.groups.read(group, Columns::ALL)?;
        (0..rows.len).for_each(|at| arranger.add(Waiting(row(&rows, at)), &mut push));
    }
    arranger.finish(push);
    table.finish()
}

/// The row of an object, without what moments are not asked about.
fn row(rows: &Rows, at: usize) -> objects::Row {
    let signed = |number: Option<u64>| number.map(u64::cast_signed);
    objects::Row {
        number: rows.number[at].cast_signed(),
        object: rows.object[at].0.cast_signed(),
        class: rows.class[at].0.into(),
        kind: Word(rows.kind[at].record_kind().text()),
        size: rows.size[at].cast_signed(),
        length: rows.length[at].into(),
        site: rows.site[at].0.into(),
        context: rows.context[at].0.into(),
        thread: rows.thread[at].0.into(),
        birth_tick: rows.birth_tick[at].cast_signed(),
        birth_bytes: rows.birth_bytes[at].cast_signed(),
        birth_nanos: signed(rows.birth_nanos[at]),
        last_use_tick: rows.last_use_tick[at].cast_signed(),
        death_tick: signed(rows.death_tick[at]),
        death_bytes: signed(rows.death_bytes[at]),
        death_nanos: signed(rows.death_nanos[at]),
        death_step: None,
        death_thread: rows.death_thread[at].map(|thread| thread.0.into()),
        death_context: rows.death_context[at].map(|context| context.0.into()),
        death_record: None,
        death_kind: rows.death_kind[at].map(|kind| Word(kind.text())),
        escaped_thread: None,
        escaped_frame: None,
    }
}
