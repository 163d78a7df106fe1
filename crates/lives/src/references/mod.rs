//! The table of references: made when it is first asked for, and kept with the life table.

mod table;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use et_columns::Written;
use et_reader::model::Contexts;
use et_reader::population::Population;
use et_reader::references::References;
use et_reader::source::{Reading, Source, SourceError};

pub use table::row;
use table::{Meanings, Table, Writing};

use crate::added::{self, Added};
use crate::population::PopulationError;
use crate::{LifeTable, REFERENCE_CONTEXTS, REFERENCES, names, tables};

/// What is known of both, by the version of what their rows mean.
const KEPT: &str = "references-1.json";

/// Returns the stays of all references of a trace. `lives` and `population` belong to it: if a table of references is kept
/// with them, it is used, otherwise it is made in one reading of the records, and kept if the life table is.
///
/// # Errors
/// The trace cannot be read, or the table could not be written.
pub fn references(
    source: &Source,
    lives: Option<&LifeTable>,
    population: &Population,
    reading: Reading,
) -> Result<Box<dyn References>, PopulationError> {
    let lives = lives.filter(|lives| lives.is_for(source, reading));
    if let Some(lives) = lives
        && let Some(table) = kept(lives, population)
    {
        return Ok(Box::new(table));
    }
    let made = added::make(lives, "references are", |file| make(source, population, reading, file), keep)?;
    made.map_err(PopulationError::Temporary)?.open()
}

/// Returns the stays of all references of a trace if they are kept with its life table.
pub fn kept_references(lives: &LifeTable, population: &Population) -> Option<Box<dyn References>> {
    kept(lives, population).map(|table| Box::new(table) as Box<dyn References>)
}

/// A table that was made.
struct Made {
    table: Written,
    /// Contexts that the life table does not have.
    more: Written,
    /// All contexts.
    contexts: Contexts,
    meanings: Meanings,
}

impl Made {
    fn open(self) -> Result<Box<dyn References>, PopulationError> {
        let table = Table::open(self.table.file, self.contexts, self.meanings).map_err(PopulationError::Temporary)?;
        Ok(Box::new(table))
    }
}

/// Makes the table in a reading of the records. The inner error is that of its files.
fn make(
    source: &Source,
    population: &Population,
    reading: Reading,
    file: &dyn Fn() -> io::Result<File>,
) -> Result<io::Result<Made>, SourceError> {
    let mut writing = match file() {
        Ok(file) => Writing::new(file, population.contexts.clone()),
        Err(error) => return Ok(Err(error)),
    };
    let ending =
        source.for_each_told(Reading { holders: source.tells_holders(), places: true, ..reading }, |told, at| {
            writing.told(told, at);
            if writing.has_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    let finish = || {
        let (table, contexts, meanings) = writing.finish(ending.outcome.extra_fields)?;
        let more = names::contexts(file()?, &contexts, population.contexts.len())?;
        Ok(Made { table, more, contexts, meanings })
    };
    Ok(finish())
}

/// The table that is kept, if it is intact.
fn kept(lives: &LifeTable, population: &Population) -> Option<Table> {
    let (files, meanings) = added::open::<Meanings, 2>(lives, &ADDED)?;
    let [table, more] = files;
    Table::open(table, names::read_contexts(more, population.contexts.clone()).ok()?, meanings).ok()
}

/// Keeps a table with the life table.
fn keep(lives: &LifeTable, made: &Made) -> io::Result<()> {
    added::keep(lives, &ADDED, [&made.table, &made.more], &made.meanings)
}

const ADDED: Added<2> = Added {
    kept: KEPT,
    names: [REFERENCES, REFERENCE_CONTEXTS],
    tables: [&tables::references::TABLE, &tables::contexts::TABLE],
};
