//! Rows of objects whose deaths showed late: stored behind those of the others that died, and read in their places.

use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use et_columns::TableReader;
use et_reader::population::{Columns, Key, Rows};

use crate::rows::{stored, wider};

/// The late rows of a table.
#[derive(Debug, Default)]
pub struct LateRows {
    /// All of them, in the order of their deaths.
    rows: Rows,
    steps: Vec<i64>,
    places: Vec<Place>,
}

/// What is late in a group.
#[derive(Debug, Default)]
struct Place {
    /// Which of its rows belong elsewhere, and which of all late rows belong here.
    elsewhere: Range<usize>,
    here: Range<usize>,
    /// The rows before which those go; known once the group has been read.
    before: OnceLock<Vec<usize>>,
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "rows that are out of order lack the step of the death")
}

impl LateRows {
    /// Finds the places of those rows, counted from 0.
    pub fn of(table: &TableReader, late: Range<u64>) -> io::Result<Self> {
        if late.is_empty() {
            return Ok(Self::default());
        }
        let mut found = Self::default();
        let (mut firsts, mut here) = (Vec::new(), Vec::new());
        let mut start = 0;
        for group in 0..table.groups() {
            let rows = start..start + table.rows_of(group) as u64;
            let of_group = overlap(&rows, &late);
            here.push((of_group.start - start) as usize..(of_group.end - start) as usize);
            let first = if of_group.is_empty() {
                // The others are in order, those that live come last.
                table.bounds(group, "death_step")?.range.map(|(first, _)| first)
            } else {
                let steps = table.numbers(group, "death_step")?;
                let range = here[group].clone();
                for step in &steps[range.clone()] {
                    found.steps.push(step.ok_or_else(damaged)?);
                }
                found.rows.append(stored(table, group, Columns::ALL)?.arranged(&Rows::default(), &[(false, range)]));
                let is_first_late = late.contains(&start);
                steps.first().copied().flatten().filter(|_| !is_first_late)
            };
            firsts.push(first);
            start = rows.end;
        }
        // Each belongs to the last group that begins with an earlier death.
        let mut next = 0;
        for (group, here) in here.into_iter().enumerate() {
            let later = firsts[group + 1..].iter().copied().flatten().next();
            let from = next;
            while next < found.steps.len() && later.is_none_or(|later| found.steps[next] < later) {
                next += 1;
            }
            found.places.push(Place { elsewhere: here, here: from..next, before: OnceLock::new() });
        }
        Ok(found)
    }

    /// The smallest and the largest value of the late rows that belong to a group.
    pub fn range(&self, group: usize, key: Key) -> Option<RangeInclusive<u64>> {
        let rows = self.places.get(group)?.here.clone();
        let value = |row: usize| match key {
            Key::Number => Some(self.rows.number[row]),
            Key::BirthTick => Some(self.rows.birth_tick[row]),
            Key::DeathTick => self.rows.death_tick[row],
            Key::DeathRecord => self.rows.death_record[row],
        };
        rows.filter_map(value).map(|value| value..=value).reduce(wider)
    }

    /// Puts the rows of a group in order: without those that belong elsewhere, and with those that belong here.
    pub fn put_in_order(&self, table: &TableReader, group: usize, rows: Rows) -> io::Result<Rows> {
        let Some(place) = self.places.get(group) else { return Ok(rows) };
        let Place { elsewhere, here, before } = place;
        if elsewhere.is_empty() && here.is_empty() {
            return Ok(rows);
        }
        let before = match before.get() {
            Some(before) => before,
            None => {
                let found = self.before(&table.numbers(group, "death_step")?, place);
                before.get_or_init(|| found)
            }
        };
        let mut order = Vec::with_capacity(2 * before.len() + 3);
        let mut next = 0;
        for (number, &row) in here.clone().zip(before) {
            add(&mut order, elsewhere, next..row);
            order.push((true, number..number + 1));
            next = row;
        }
        add(&mut order, elsewhere, next..rows.len);
        Ok(rows.arranged(&self.rows, &order))
    }

    /// The rows of a group before which those go that belong there, given the steps of the deaths in it.
    fn before(&self, steps: &[Option<i64>], Place { elsewhere, here, .. }: &Place) -> Vec<usize> {
        let mut before = Vec::with_capacity(here.len());
        let mut late = self.steps[here.clone()].iter().peekable();
        for (row, step) in steps.iter().enumerate().filter(|(row, _)| !elsewhere.contains(row)) {
            while late.next_if(|late| step.is_none_or(|step| **late < step)).is_some() {
                before.push(row);
            }
        }
        before.extend(late.map(|_| steps.len()));
        before
    }
}

/// Adds a run of rows of a group, without those that belong elsewhere.
fn add(order: &mut Vec<(bool, Range<usize>)>, elsewhere: &Range<usize>, run: Range<usize>) {
    let ends = [run.start..run.end.min(elsewhere.start), run.start.max(elsewhere.end)..run.end];
    match elsewhere.is_empty() {
        true => order.push((false, run)),
        false => order.extend(ends.into_iter().filter(|run| run.start < run.end).map(|run| (false, run))),
    }
}
