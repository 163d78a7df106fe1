//! Rows of a life table, from a reading of the trace by blocks.

use std::fs::File;
use std::io;

use et_columns::TableWriter;
use et_reader::blocks::{self, BlocksError, LifeRow, Passed, Rows};
use et_reader::lifetimes::Known;
use et_reader::population::Moment;
use et_reader::survival::Fates;
use et_reader::{Trace, deaths_unknown};

use crate::fates;
use crate::maker::{Follows, Made, MadeFates, Named, clearing_row, escaped_thread, object_row};
use crate::tables::{clearings, objects};

/// Writes rows to tables.
pub struct Writing {
    follows: Follows,
    lives: TableWriter<objects::Rows>,
    cleared: TableWriter<clearings::Rows>,
    used: Named,
}

impl Writing {
    pub fn new(lives: File, clearings: File, follows: Follows) -> Self {
        let (lives, cleared) = (TableWriter::new(lives), TableWriter::new(clearings));
        Self { follows, lives, cleared, used: Named::default() }
    }
}

impl Rows for Writing {
    fn row(&mut self, row: &LifeRow) {
        self.used.saw(row);
        let escaped = if self.follows == Follows::Lives { escaped_thread(row) } else { None };
        self.lives.push(object_row(row, escaped));
    }

    fn clearing(&mut self, clearing: &Known) {
        if let Some(row) = clearing_row(clearing) {
            self.cleared.push(row);
        }
    }
}

/// Makes the tables of a trace in files that `file` returns; they may have to be made again.
///
/// # Errors
/// The trace cannot be read by blocks, or a file cannot be written.
pub fn make(
    trace: &Trace,
    follows: Follows,
    file: impl Fn() -> io::Result<File>,
) -> Result<(Made, Passed), BlocksError> {
    let rows = || Ok(Writing::new(file()?, file()?, follows));
    let (written, mut passed) = match follows {
        Follows::Lives => blocks::read(trace, deaths_unknown(trace.events).is_none(), rows)?,
        Follows::Births => blocks::read_births(trace, rows)?,
    };
    let lives = written.lives.finish()?;
    let survival = match passed.fates.take() {
        Some(fates) => Some(judged(&fates, &lives.file, file)?),
        None => None,
    };
    let made = Made {
        lives,
        clearings: written.cleared.finish()?,
        contexts: passed.contexts.plain(),
        objects: passed.objects,
        used: written.used,
        end: end(&passed),
        late: passed.late.clone(),
        follows,
        survival,
    };
    Ok((made, passed))
}

/// Writes what walks say of the objects of a table.
pub fn judged(known: &Fates, objects: &File, file: impl Fn() -> io::Result<File>) -> io::Result<MadeFates> {
    Ok(MadeFates {
        fates: fates::write(file()?, objects.try_clone()?, known)?,
        walks: fates::write_walks(file()?, known.survival())?,
        survival: known.survival().clone(),
    })
}

/// The end of the trace.
fn end(passed: &Passed) -> Moment {
    Moment { tick: passed.ticks, bytes: passed.bytes, nanos: passed.time.map(|time| time.0) }
}
