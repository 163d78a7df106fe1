//! Rows of objects whose deaths showed late: stored behind those of the others that died, and read in their places.

use std::io;
use std::ops::{Range, RangeInclusive};

use et_columns::TableReader;
use et_reader::population::{Columns, Key, Rows};

use crate::rows::{stored, wider};

/// The late rows of a table.
#[derive(Debug, Default)]
pub struct LateRows {
    /// All of them, in the order of their deaths.
    rows: Rows,
    steps: Vec<i64>,
    /// By group: which of its rows are late, and which of all late rows belong to it.
    places: Vec<(Range<usize>, Range<usize>)>,
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
            let steps = table.numbers(group, "death_step")?;
            let is_first_late = late.contains(&start);
            firsts.push(steps.first().copied().flatten().filter(|_| !is_first_late));
            if !of_group.is_empty() {
                let range = here[group].clone();
                for step in &steps[range.clone()] {
                    found.steps.push(step.ok_or_else(damaged)?);
                }
                let order: Vec<(bool, usize)> = range.map(|row| (false, row)).collect();
                let rows = stored(table, group, Columns::ALL)?.arranged(&Rows::default(), &order);
                found.rows.append(rows);
            }
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
            found.places.push((here, from..next));
        }
        Ok(found)
    }

    /// The smallest and the largest value of the late rows that belong to a group.
    pub fn range(&self, group: usize, key: Key) -> Option<RangeInclusive<u64>> {
        let rows = self.places.get(group)?.1.clone();
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
        let Some((elsewhere, here)) = self.places.get(group) else { return Ok(rows) };
        if elsewhere.is_empty() && here.is_empty() {
            return Ok(rows);
        }
        let mut order = Vec::with_capacity(rows.len + here.len());
        let mut late = here.clone().peekable();
        for (row, step) in table.numbers(group, "death_step")?.into_iter().enumerate() {
            if elsewhere.contains(&row) {
                continue;
            }
            while let Some(number) = late.next_if(|&number| step.is_none_or(|step| self.steps[number] < step)) {
                order.push((true, number));
            }
            order.push((false, row));
        }
        order.extend(late.map(|number| (true, number)));
        Ok(rows.arranged(&self.rows, &order))
    }
}
