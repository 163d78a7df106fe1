//! Stays as rows of a table: how they are written and found again.

use std::fs::File;
use std::io;

use et_columns::{TableReader, TableWriter, Word, Written};
use et_names::FieldId;
use et_reader::model::{ContextId, Contexts};
use et_reader::record::{Slot, ThreadId};
use et_reader::references::{End, Follower, Group, Holding, Mark, References, Stay, Wanted};
use et_reader::resolve::ExtraField;
use et_reader::source::At;
use et_reader::told::Told;
use et_system::threads::Pool;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::known::{number32, unsigned};
use crate::tables::references::{Row, Rows};

/// Groups that are read at once.
const AT_ONCE: usize = 16;

/// The row of a stay.
pub fn row(stay: &Stay) -> Row {
    let (field, element) = match stay.slot {
        Slot::Field(field) => (Some(field.0.into()), None),
        Slot::Element(index) => (None, Some(index.into())),
    };
    let nanos = |mark: &Mark| mark.nanos.map(u64::cast_signed);
    let thread = |mark: &Mark| (mark.thread.0 != 0).then_some(mark.thread.0.into());
    let from = &stay.from;
    let to = stay.to.as_ref().map(|(to, _)| to);
    let by = stay.to.as_ref().filter(|(_, how)| *how == End::Overwritten).map(|(to, _)| to);
    Row {
        origin: stay.origin.map(u64::cast_signed),
        field,
        element,
        target: stay.target.cast_signed(),
        from_record: from.record.cast_signed(),
        from_tick: from.tick.cast_signed(),
        from_bytes: from.bytes.cast_signed(),
        from_nanos: nanos(from),
        thread: thread(from),
        context: from.context.0.into(),
        to_record: to.map(|to| to.record.cast_signed()),
        to_tick: to.map(|to| to.tick.cast_signed()),
        to_bytes: to.map(|to| to.bytes.cast_signed()),
        to_nanos: to.and_then(nanos),
        ended: stay.to.map(|(_, how)| Word(how.text())),
        end_thread: by.and_then(thread),
        end_context: by.map(|by| by.context.0.into()),
    }
}

/// Writes the stays of a trace while it is read.
pub struct Writing {
    follower: Follower,
    table: TableWriter<Rows>,
    fields: FxHashMap<FieldId, u64>,
}

/// What the rows alone do not tell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meanings {
    /// The fields that held something, each with its number of stays.
    pub fields: Vec<(u32, u64)>,
    pub extra_fields: Vec<ExtraField>,
}

impl Writing {
    pub fn new(file: File, contexts: Contexts) -> Self {
        Self { follower: Follower::new(contexts), table: TableWriter::new(file), fields: FxHashMap::default() }
    }

    #[inline]
    pub fn told(&mut self, told: &Told, at: &At<'_>) {
        let Self { follower, table, fields } = self;
        follower.told(told, at, |group| push(table, fields, &group));
    }

    pub fn has_failed(&self) -> bool {
        self.table.has_failed()
    }

    pub fn finish(self, extra_fields: Vec<ExtraField>) -> io::Result<(Written, Contexts, Meanings)> {
        let Self { follower, mut table, mut fields } = self;
        let contexts = follower.finish(|group| push(&mut table, &mut fields, &group));
        let mut fields: Vec<(u32, u64)> = fields.into_iter().map(|(field, stays)| (field.0, stays)).collect();
        fields.sort_unstable();
        Ok((table.finish()?, contexts, Meanings { fields, extra_fields }))
    }
}

fn push(table: &mut TableWriter<Rows>, fields: &mut FxHashMap<FieldId, u64>, group: &Group) {
    for stay in group {
        if let Slot::Field(field) = stay.slot {
            *fields.entry(field).or_default() += 1;
        }
        table.push(row(stay));
    }
    table.end_group();
}

/// Reads what [`Writing`] has written.
pub struct Table {
    rows: TableReader,
    contexts: Contexts,
    fields: Vec<(FieldId, u64)>,
    extra_fields: Vec<ExtraField>,
}

impl Table {
    pub fn open(file: File, contexts: Contexts, meanings: Meanings) -> io::Result<Self> {
        let Meanings { fields, extra_fields } = meanings;
        let fields = fields.into_iter().map(|(field, stays)| (FieldId(field), stays)).collect();
        Ok(Self { rows: TableReader::open(file)?, contexts, fields, extra_fields })
    }

    /// Whether a group may have stays that are wanted, according to its statistics.
    fn may_have(&self, group: usize, wanted: &Wanted) -> io::Result<bool> {
        let bounds = |column| self.rows.bounds(group, column);
        if wanted.at.is_some() || wanted.within.is_some() {
            let (from, to) = (bounds("from_tick")?, bounds("to_tick")?);
            let first = from.range.map_or(0, |(first, _)| first.cast_unsigned());
            let last = to.range.filter(|_| !to.has_nulls).map_or(u64::MAX, |(_, last)| last.cast_unsigned());
            if wanted.at.is_some_and(|at| first > at || last < at)
                || wanted.within.as_ref().is_some_and(|within| first > *within.end() || last < *within.start())
            {
                return Ok(false);
            }
        }
        if let Some(objects) = &wanted.of {
            let has_some = |column| -> io::Result<bool> {
                let Some((first, last)) = bounds(column)?.range else { return Ok(false) };
                let next = objects.partition_point(|&object| object < first.cast_unsigned());
                Ok(objects.get(next).is_some_and(|&object| object <= last.cast_unsigned()))
            };
            if !has_some("origin")? && !has_some("target")? {
                return Ok(false);
            }
        }
        if let Some(fields) = &wanted.fields {
            let Some((first, last)) = bounds("field")?.range else { return Ok(false) };
            let next = fields.partition_point(|&field| i64::from(field) < first);
            return Ok(fields.get(next).is_some_and(|&field| i64::from(field) <= last));
        }
        Ok(true)
    }

    /// The rows of a group that are wanted, according to the columns that conditions are about. The others are read only if there are any.
    fn chosen(&self, group: usize, wanted: &Wanted) -> io::Result<Vec<bool>> {
        let mut chosen = vec![true; self.rows.rows_of(group)];
        let column = |name| self.rows.numbers(group, name);
        let mut keep = |holds: &dyn Fn(usize) -> bool| {
            chosen.iter_mut().enumerate().for_each(|(row, chosen)| *chosen = *chosen && holds(row));
        };
        if let Some(fields) = &wanted.fields {
            let field = column("field")?;
            keep(&|row| field[row].is_some_and(|field| fields.iter().any(|&wanted| i64::from(wanted) == field)));
        }
        if let Some(objects) = &wanted.of {
            let (origin, target) = (column("origin")?, column("target")?);
            let is_one = |object: Option<i64>| {
                object.is_some_and(|object| objects.binary_search(&object.cast_unsigned()).is_ok())
            };
            keep(&|row| is_one(origin[row]) || is_one(target[row]));
        }
        if let Some(at) = wanted.at {
            let (record, from, to) = (column("from_record")?, column("from_tick")?, column("to_tick")?);
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            keep(&|row| (record[row] == Some(0) || from[row] < Some(at)) && to[row].is_none_or(|to| to >= at));
        }
        if let Some(within) = &wanted.within {
            let (from, to) = (column("from_tick")?, column("to_tick")?);
            // To the end is to any tick.
            let signed = |tick: &u64| i64::try_from(*tick).unwrap_or(i64::MAX);
            let (first, last) = (signed(within.start()), signed(within.end()));
            keep(&|row| from[row] <= Some(last) && to[row].is_none_or(|to| to >= first));
        }
        Ok(chosen)
    }

    /// Reads rows that are wanted, some groups at once, and calls `visit` with them in the order of the rows.
    fn groups_with<T: Send>(
        &self,
        wanted: &Wanted,
        read: impl Fn(usize, &[bool]) -> io::Result<Vec<T>> + Sync,
        mut visit: impl FnMut(T),
    ) -> io::Result<()> {
        let mut groups = Vec::new();
        for group in 0..self.rows.groups() {
            if self.may_have(group, wanted)? {
                groups.push(group);
            }
        }
        let rows = |&group: &usize| {
            let chosen = self.chosen(group, wanted)?;
            if chosen.contains(&true) { read(group, &chosen) } else { Ok(Vec::new()) }
        };
        // What is read and not yet visited stays small.
        for groups in groups.chunks(AT_ONCE) {
            let read: io::Result<Vec<Vec<T>>> = Pool::shared().run(|| groups.par_iter().map(rows).collect());
            read?.into_iter().flatten().for_each(&mut visit);
        }
        Ok(())
    }

    /// What the slots of a group hold, those that were chosen.
    fn holdings(&self, group: usize, chosen: &[bool]) -> io::Result<Vec<Holding>> {
        let column = |name| self.rows.numbers(group, name);
        let (origin, field, element, target) =
            (column("origin")?, column("field")?, column("element")?, column("target")?);
        let rows = chosen.iter().enumerate().filter(|(_, is_chosen)| **is_chosen);
        rows.map(|(row, _)| {
            let (slot, target) = (slot(field[row], element[row])?, unsigned(target[row])?);
            Ok(Holding { origin: origin[row].map(i64::cast_unsigned), slot, target })
        })
        .collect()
    }

    /// The stays of a group, those that were chosen.
    fn stays(&self, group: usize, chosen: &[bool]) -> io::Result<Vec<Stay>> {
        let column = |name| self.rows.numbers(group, name);
        let (origin, field, element, target) =
            (column("origin")?, column("field")?, column("element")?, column("target")?);
        let (from, to) = (
            self.marks(group, ["from_record", "from_tick", "from_bytes", "from_nanos", "thread", "context"])?,
            self.marks(group, ["to_record", "to_tick", "to_bytes", "to_nanos", "end_thread", "end_context"])?,
        );
        let ended = self
            .rows
            .words_as(group, "ended", |text| Ok(End::ALL.into_iter().find(|end| end.text().as_bytes() == text)))?;
        let rows = chosen.iter().enumerate().filter(|(_, is_chosen)| **is_chosen);
        rows.map(|(row, _)| {
            let slot = slot(field[row], element[row])?;
            let to = match ended[row] {
                None => None,
                Some(how) => {
                    let how = how.ok_or_else(|| invalid("an unknown end of a reference"))?;
                    Some((self.mark(&to, row)?, how))
                }
            };
            let from = self.mark(&from, row)?;
            let origin = origin[row].map(i64::cast_unsigned);
            Ok(Stay { origin, slot, target: unsigned(target[row])?, from, to })
        })
        .collect()
    }

    /// The columns of the marks of a group.
    fn marks(&self, group: usize, columns: [&str; 6]) -> io::Result<Vec<Vec<Option<i64>>>> {
        columns.into_iter().map(|column| self.rows.numbers(group, column)).collect()
    }

    /// A mark; where no thread is told, none did it.
    fn mark(&self, columns: &[Vec<Option<i64>>], row: usize) -> io::Result<Mark> {
        let at = |column: usize| columns[column][row];
        Ok(Mark {
            record: unsigned(at(0))?,
            tick: unsigned(at(1))?,
            bytes: unsigned(at(2))?,
            nanos: at(3).map(i64::cast_unsigned),
            thread: ThreadId(number32(Some(at(4).unwrap_or(0)))?),
            context: self.context(at(5).unwrap_or(0))?,
        })
    }

    fn context(&self, number: i64) -> io::Result<ContextId> {
        let number = number32(Some(number))?;
        if (number as usize) < self.contexts.len() {
            Ok(ContextId(number))
        } else {
            Err(invalid("a reference has a context that is not there"))
        }
    }
}

fn slot(field: Option<i64>, element: Option<i64>) -> io::Result<Slot> {
    Ok(match field {
        Some(_) => Slot::Field(FieldId(number32(field)?)),
        None => Slot::Element(number32(element)?),
    })
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl References for Table {
    fn len(&self) -> u64 {
        self.rows.rows().cast_unsigned()
    }

    fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    fn fields(&self) -> &[(FieldId, u64)] {
        &self.fields
    }

    fn extra_fields(&self) -> &[ExtraField] {
        &self.extra_fields
    }

    fn for_each(&self, wanted: &Wanted, visit: &mut dyn FnMut(&Stay)) -> io::Result<()> {
        self.groups_with(wanted, |group, chosen| self.stays(group, chosen), |stay| visit(&stay))
    }

    fn held_at(&self, tick: u64, visit: &mut dyn FnMut(Holding)) -> io::Result<()> {
        let wanted = Wanted { at: Some(tick), ..Wanted::default() };
        self.groups_with(&wanted, |group, chosen| self.holdings(group, chosen), visit)
    }
}
