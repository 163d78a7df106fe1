//! The rows of a table of objects.

use std::fs::File;
use std::io;
use std::ops::{Range, RangeInclusive};

use et_columns::TableReader;
use et_reader::lifetimes::HeldByStack;
use et_reader::population::{Columns, Groups, Key, Rows};
use et_reader::source::{Deaths, Reading, Source};
use et_reader::{deaths_of_heap, deaths_unknown};

use crate::late::LateRows;
use crate::rows::{range, stored, wider};
use crate::{fates, held};

/// Reads the table of objects.
pub struct ObjectTable {
    objects: TableReader,
    /// What walks through the heap say of them.
    fates: Option<TableReader>,
    held: HeldRows,
    late: LateRows,
}

/// What is alive at the end only because methods hold it: few analyses need it.
pub enum HeldRows {
    /// The file of its table.
    Kept(File),
    Known(Vec<HeldByStack>),
}

impl ObjectTable {
    /// Opens a table of objects, with those rows behind the others of dead objects.
    pub fn open(objects: File, held: HeldRows, late: Range<u64>) -> io::Result<Self> {
        let objects = TableReader::open(objects)?;
        let late = LateRows::of(&objects, late)?;
        Ok(Self { objects, fates: None, held, late })
    }

    /// With the table of their fates, which has the same groups.
    pub fn with_fates(self, fates: Option<TableReader>) -> Self {
        Self { fates, ..self }
    }
}

impl Groups for ObjectTable {
    fn len(&self) -> usize {
        self.objects.groups()
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        match &self.held {
            HeldRows::Kept(file) => held::read(file.try_clone()?),
            HeldRows::Known(all) => Ok(all.clone()),
        }
    }

    fn range(&self, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
        let stored = range(&self.objects, group, key)?;
        Ok(self.late.range(group, key).into_iter().fold(stored, wider))
    }

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        let mut rows = stored(&self.objects, group, columns)?;
        if let Some(fates) = self.fates.as_ref().filter(|_| columns.has(Columns::FATE)) {
            rows.fate = fates::read(fates, group, rows.len)?;
        }
        self.late.put_in_order(&self.objects, group, rows)
    }
}

/// What users are told about anything unusual in the rows of a reading.
pub fn warnings(source: &Source, reading: Reading) -> Vec<String> {
    let events = source.events();
    let warning = match source.deaths(reading.deaths) {
        Deaths::Trace => deaths_of_heap(events),
        Deaths::None => deaths_unknown(events).filter(|_| reading.deaths == Deaths::Trace),
    };
    warning.into_iter().collect()
}
