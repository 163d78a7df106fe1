//! The deaths in a life table, in the order in which readers of the trace see them.

use std::fs::File;
use std::io;
use std::ops::Range;

use et_columns::TableReader;
use et_names::FieldId;
use et_reader::blocks::Late;
use et_reader::lifetimes::Known;
use et_reader::record::{ObjectId, Record, Slot, ThreadId};

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

pub fn unsigned(value: Option<i64>) -> io::Result<u64> {
    value.map(i64::cast_unsigned).ok_or_else(|| invalid("a number is missing"))
}

pub fn number32(value: Option<i64>) -> io::Result<u32> {
    u32::try_from(unsigned(value)?).map_err(|_| invalid("a number is too large"))
}

/// Iterates over items that are read one row group at a time, in the order of their steps.
struct Groups<F> {
    table: TableReader,
    next: usize,
    read: F,
    items: std::iter::Peekable<std::vec::IntoIter<(u64, Known)>>,
    /// Number of rows in the groups before the next one, and which rows are not in order.
    rows: u64,
    late: Range<u64>,
    /// The items of these rows.
    late_items: std::iter::Peekable<std::vec::IntoIter<(u64, Known)>>,
}

/// Items of a group with the numbers of their rows in it.
type Items = Vec<(usize, u64, Known)>;

impl<F: FnMut(&TableReader, usize) -> io::Result<Items>> Groups<F> {
    fn new(file: File, mut read: F, late: Range<u64>) -> io::Result<Self> {
        let table = TableReader::open(file)?;
        let mut late_items = Vec::new();
        let mut start = 0;
        for group in 0..table.groups() {
            let end = start + table.rows_of(group) as u64;
            if late.start < end && start < late.end {
                let items = read(&table, group)?.into_iter();
                let is_late = |row: usize| late.contains(&(start + row as u64));
                late_items.extend(items.filter(|(row, ..)| is_late(*row)).map(|(_, step, known)| (step, known)));
            }
            start = end;
        }
        let late_items = late_items.into_iter().peekable();
        Ok(Self { table, next: 0, read, items: Vec::new().into_iter().peekable(), rows: 0, late, late_items })
    }

    fn next(&mut self) -> io::Result<Option<(u64, Known)>> {
        loop {
            if let Some((step, _)) = self.items.peek() {
                let late = self.late_items.next_if(|(late, _)| late < step);
                return Ok(late.or_else(|| self.items.next()));
            }
            if self.next == self.table.groups() {
                return Ok(self.late_items.next());
            }
            let items = (self.read)(&self.table, self.next)?;
            let in_order = items.into_iter().filter(|(row, ..)| !self.late.contains(&(self.rows + *row as u64)));
            self.items = in_order.map(|(_, step, known)| (step, known)).collect::<Vec<_>>().into_iter().peekable();
            self.rows += self.table.rows_of(self.next) as u64;
            self.next += 1;
        }
    }
}

fn deaths(table: &TableReader, group: usize) -> io::Result<Items> {
    let steps = table.numbers(group, "death_step")?;
    let objects = table.numbers(group, "object")?;
    let threads = table.numbers(group, "death_thread")?;
    let rows = steps.into_iter().zip(objects).zip(threads).enumerate();
    rows.filter_map(|(row, ((step, object), thread))| step.map(|step| (row, step.cast_unsigned(), object, thread)))
        .map(|(row, step, object, thread)| {
            let (object, thread) = (ObjectId(unsigned(object)?), ThreadId(number32(thread)?));
            Ok((row, step, Known::Found { after: step, record: Record::Death { object, thread } }))
        })
        .collect()
}

fn clearings(table: &TableReader, group: usize) -> io::Result<Items> {
    let steps = table.numbers(group, "step")?;
    let are_steps = table.flags(group, "is_step")?;
    let old = table.numbers(group, "old")?;
    let origins = table.numbers(group, "origin")?;
    let slots = table.numbers(group, "slot")?;
    let threads = table.numbers(group, "thread")?;
    let mut all = Vec::with_capacity(steps.len());
    for (at, step) in steps.into_iter().enumerate() {
        let step = unsigned(step)?;
        let known = match are_steps[at] {
            Some(true) => Known::Cleared { at: step },
            _ => Known::Found {
                after: step,
                record: Record::Update {
                    old: ObjectId(unsigned(old[at])?),
                    origin: ObjectId(unsigned(origins[at])?),
                    target: ObjectId::NULL,
                    slot: Slot::Field(FieldId(number32(slots[at])?)),
                    thread: ThreadId(number32(threads[at])?),
                },
            },
        };
        all.push((at, step, known));
    }
    Ok(all)
}

/// Merges both tables: references are cleared before their referents die.
pub fn all(lives: File, cleared: File, late: &Late) -> io::Result<impl Iterator<Item = io::Result<Known>> + use<>> {
    let mut lives = Groups::new(lives, deaths, late.rows.clone())?;
    let mut cleared = Groups::new(cleared, clearings, late.clearings.clone())?;
    let (mut death, mut clearing) = (lives.next()?, cleared.next()?);
    let mut failed = false;
    Ok(std::iter::from_fn(move || {
        if failed {
            return None;
        }
        let is_clearing = match (&death, &clearing) {
            (Some((death, _)), Some((clearing, _))) => clearing <= death,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return None,
        };
        let (item, next) = if is_clearing { (clearing.take(), cleared.next()) } else { (death.take(), lives.next()) };
        match next {
            Ok(next) if is_clearing => clearing = next,
            Ok(next) => death = next,
            Err(error) => {
                failed = true;
                return Some(Err(error));
            }
        }
        item.map(|(_, known)| Ok(known))
    }))
}
