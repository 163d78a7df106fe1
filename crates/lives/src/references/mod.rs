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
use serde::{Deserialize, Serialize};

pub use table::row;
use table::{Meanings, Table, Writing};

use crate::folder::{self, TableFile};
use crate::population::PopulationError;
use crate::stamp::Stamp;
use crate::{LifeTable, REFERENCE_CONTEXTS, REFERENCES, names, tables};

/// What is known of both, by the version of what their rows mean.
const KEPT: &str = "references-1.json";

/// What is kept of the files, which the manifest does not have: they are made later, or never.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// XXH3 of the schemas.
    columns: String,
    files: [TableFile; 2],
    /// The state of the files when they were last found intact.
    stamps: [Option<Stamp>; 2],
    meanings: Meanings,
}

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
    if let Some(lives) = lives.filter(|lives| lives.manifest().is_some())
        && let Some(folder) = lives.folder()
    {
        match make(source, population, reading, || folder::nameless(folder))? {
            Ok(made) => {
                if let Err(error) = keep(lives, &made) {
                    lives.is_not_kept("references are", &error);
                }
                return made.open();
            }
            // There may be room for it elsewhere.
            Err(error) => lives.is_not_kept("references are", &error),
        }
    }
    make(source, population, reading, tempfile::tempfile)?.map_err(PopulationError::Temporary)?.open()
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
    file: impl Fn() -> io::Result<File>,
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
    let folder = lives.folder()?;
    let mut kept: Kept = serde_json::from_slice(&lives.kept(KEPT)?).ok()?;
    if kept.columns != columns() {
        return None;
    }
    let paths = [REFERENCES, REFERENCE_CONTEXTS].map(|name| folder.join(name));
    let stamps = paths.each_ref().map(|path| Stamp::of(path));
    let [table, more] = if stamps == kept.stamps && stamps.iter().all(Option::is_some) {
        [File::open(&paths[0]).ok()?, File::open(&paths[1]).ok()?]
    } else {
        // The folder may have been copied.
        let [one, other] = &kept.files;
        let files = [folder::open_as(folder, one).ok()?, folder::open_as(folder, other).ok()?];
        kept.stamps = stamps;
        put(lives, &kept);
        files
    };
    Table::open(table, names::read_contexts(more, population.contexts.clone()).ok()?, kept.meanings).ok()
}

/// Keeps a table with the life table.
fn keep(lives: &LifeTable, made: &Made) -> io::Result<()> {
    let Some(folder) = lives.folder() else { return Ok(()) };
    let names = [(REFERENCES, &made.table), (REFERENCE_CONTEXTS, &made.more)];
    for (name, written) in names {
        if !folder::add(folder, name, written)? {
            return Ok(());
        }
    }
    let files = names.map(|(name, written)| folder::entry(name, written));
    let stamps = names.map(|(name, _)| Stamp::of(&folder.join(name)));
    put(lives, &Kept { columns: columns(), files, stamps, meanings: made.meanings.clone() });
    Ok(())
}

fn put(lives: &LifeTable, kept: &Kept) {
    if let Ok(text) = serde_json::to_vec(kept) {
        lives.keep(KEPT, &text);
    }
}

fn columns() -> String {
    format!("{:016x}", tables::schemas(&[&tables::references::TABLE, &tables::contexts::TABLE]))
}
