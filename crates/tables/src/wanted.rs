//! Which tables are wanted.

use std::str::FromStr;

use crate::schema::Table;
use crate::tables::{self, ALL};

/// Some of the tables. `trace` is always among them.
#[derive(Clone, Debug)]
pub struct Wanted(Vec<&'static str>);

impl Default for Wanted {
    fn default() -> Self {
        Self(ALL.iter().map(|table| table.name).collect())
    }
}

/// From rows of the life table come these.
const OF_OBJECTS: [&Table; 7] = [
    &tables::objects::TABLE,
    &tables::allocations_by_second::TABLE,
    &tables::threads::TABLE,
    &tables::classes::TABLE,
    &tables::methods::TABLE,
    &tables::sites::TABLE,
    &tables::contexts::TABLE,
];
/// And from records these.
const OF_RECORDS: [&Table; 4] =
    [&tables::calls::TABLE, &tables::updates::TABLE, &tables::exceptions::TABLE, &tables::fields::TABLE];

impl Wanted {
    /// Only these.
    pub fn only(names: &[TableName]) -> Self {
        let mut all = Self::default();
        all.0.retain(|name| *name == tables::trace::TABLE.name || names.iter().any(|wanted| wanted.0 == *name));
        all
    }

    /// Whether that one is wanted.
    pub fn has(&self, table: &Table) -> bool {
        self.0.contains(&table.name)
    }

    /// Their names.
    pub fn names(&self) -> &[&'static str] {
        &self.0
    }

    /// Whether one of them needs a row for each object.
    pub fn need_objects(&self) -> bool {
        OF_OBJECTS.iter().any(|table| self.has(table))
    }

    /// Whether one of them needs the records.
    pub fn need_records(&self) -> bool {
        OF_RECORDS.iter().any(|table| self.has(table))
    }
}

/// The name of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableName(&'static str);

impl FromStr for TableName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = ALL.iter().find(|table| table.name == text).map(|table| Self(table.name));
        known.ok_or_else(|| format!("there is no table of that name; choose from: {}", Wanted::default().0.join(", ")))
    }
}
