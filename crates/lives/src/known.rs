//! The deaths in a life table, in the order in which readers of the trace see them.

use std::fs::File;
use std::io;

use et_columns::TableReader;
use et_names::FieldId;
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

/// Iterates over items that are read one row group at a time.
struct Groups<F> {
    table: TableReader,
    next: usize,
    read: F,
    items: std::vec::IntoIter<(u64, Known)>,
}

impl<F: FnMut(&TableReader, usize) -> io::Result<Vec<(u64, Known)>>> Groups<F> {
    fn new(file: File, read: F) -> io::Result<Self> {
        Ok(Self { table: TableReader::open(file)?, next: 0, read, items: Vec::new().into_iter() })
    }

    fn next(&mut self) -> io::Result<Option<(u64, Known)>> {
        loop {
            if let Some(item) = self.items.next() {
                return Ok(Some(item));
            }
            if self.next == self.table.groups() {
                return Ok(None);
            }
            self.items = (self.read)(&self.table, self.next)?.into_iter();
            self.next += 1;
        }
    }
}

fn deaths(table: &TableReader, group: usize) -> io::Result<Vec<(u64, Known)>> {
    let steps = table.numbers(group, "death_step")?;
    let objects = table.numbers(group, "object")?;
    let threads = table.numbers(group, "death_thread")?;
    let rows = steps.into_iter().zip(objects).zip(threads);
    rows.filter_map(|((step, object), thread)| step.map(|step| (step.cast_unsigned(), object, thread)))
        .map(|(step, object, thread)| {
            let (object, thread) = (ObjectId(unsigned(object)?), ThreadId(number32(thread)?));
            Ok((step, Known::Found { after: step, record: Record::Death { object, thread } }))
        })
        .collect()
}

fn clearings(table: &TableReader, group: usize) -> io::Result<Vec<(u64, Known)>> {
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
        all.push((step, known));
    }
    Ok(all)
}

/// Merges both tables: references are cleared before their referents die.
pub fn all(lives: File, cleared: File) -> io::Result<impl Iterator<Item = io::Result<Known>>> {
    let (mut lives, mut cleared) = (Groups::new(lives, deaths)?, Groups::new(cleared, clearings)?);
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
