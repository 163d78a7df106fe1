//! The selection of tables.

use std::str::FromStr;

use crate::tables::{self, ALL};
use et_columns::Table;

/// A selection of tables, which always includes `trace`.
#[derive(Clone, Debug)]
pub struct Wanted(Vec<&'static str>);

impl Default for Wanted {
    fn default() -> Self {
        Self(ALL.iter().map(|table| table.name).collect())
    }
}

/// Tables that are made from rows of the life table.
const OF_OBJECTS: [&Table; 8] = [
    &tables::objects::TABLE,
    &tables::counts::TABLE,
    &tables::allocations_by_second::TABLE,
    &tables::threads::TABLE,
    &tables::classes::TABLE,
    &tables::methods::TABLE,
    &tables::sites::TABLE,
    &tables::contexts::TABLE,
];
/// Tables that are made from records.
const OF_RECORDS: [&Table; 5] = [
    &tables::calls::TABLE,
    &tables::updates::TABLE,
    &tables::refs::TABLE,
    &tables::exceptions::TABLE,
    &tables::fields::TABLE,
];

impl Wanted {
    /// Selects these tables only.
    pub fn only(names: &[TableName]) -> Self {
        let mut all = Self::default();
        all.0.retain(|name| *name == tables::trace::TABLE.name || names.iter().any(|wanted| wanted.0 == *name));
        all
    }

    /// Whether the table is selected.
    pub fn has(&self, table: &Table) -> bool {
        self.0.contains(&table.name)
    }

    /// Names of the selected tables.
    pub fn names(&self) -> &[&'static str] {
        &self.0
    }

    /// Whether a selected table is made from the rows of objects.
    pub fn need_objects(&self) -> bool {
        OF_OBJECTS.iter().any(|table| self.has(table))
    }

    /// Whether a selected table is made from records.
    pub fn need_records(&self) -> bool {
        OF_RECORDS.iter().any(|table| self.has(table))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableName(&'static str);

impl FromStr for TableName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = ALL.iter().find(|table| table.name == text).map(|table| Self(table.name));
        known.ok_or_else(|| format!("there is no table of that name; choose from: {}", Wanted::default().0.join(", ")))
    }
}
