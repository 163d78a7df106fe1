//! Rows of a life table, from a reading of the trace by blocks.

use std::fs::File;
use std::io;

use et_columns::{TableWriter, Written};
use et_reader::blocks::{self, BlocksError, LifeRow, Passed, Rows};
use et_reader::lifetimes::Known;
use et_reader::population::Moment;
use et_reader::{Trace, deaths_unknown};

use crate::maker::{Made, Named, clearing_row, escaped_thread, object_row};
use crate::tables::{clearings, objects};

/// Writes rows to tables.
pub struct Writing {
    lives: TableWriter<objects::Rows>,
    cleared: TableWriter<clearings::Rows>,
    used: Named,
}

impl Writing {
    pub fn new(lives: File, clearings: File) -> Self {
        Self { lives: TableWriter::new(lives), cleared: TableWriter::new(clearings), used: Named::default() }
    }
}

impl Rows for Writing {
    fn row(&mut self, row: &LifeRow) {
        self.used.saw(row);
        self.lives.push(object_row(row, escaped_thread(row)));
    }

    fn clearing(&mut self, clearing: &Known) {
        if let Some(row) = clearing_row(clearing) {
            self.cleared.push(row);
        }
    }
}

/// Writes rows that say how objects were made.
struct WritingBirths {
    lives: TableWriter<objects::Rows>,
}

impl Rows for WritingBirths {
    fn row(&mut self, row: &LifeRow) {
        self.lives.push(object_row(row, None));
    }

    // Without deaths there are none.
    fn clearing(&mut self, _clearing: &Known) {}
}

/// Writes rows that say how the objects of a trace were made to a file that `file` returns.
///
/// # Errors
/// The trace cannot be read by blocks, or the file cannot be written.
pub fn births(trace: &Trace, file: impl Fn() -> io::Result<File>) -> Result<(Written, Passed), BlocksError> {
    let (written, passed) = blocks::read_births(trace, || Ok(WritingBirths { lives: TableWriter::new(file()?) }))?;
    Ok((written.lives.finish()?, passed))
}

/// Makes the tables of a trace in the two files that `files` returns; it is called again if they have to be made again.
///
/// # Errors
/// The trace cannot be read by blocks, or a file cannot be written.
pub fn make(trace: &Trace, files: impl Fn() -> io::Result<[File; 2]>) -> Result<(Made, Passed), BlocksError> {
    let rows = || {
        let [lives, clearings] = files()?;
        Ok(Writing::new(lives, clearings))
    };
    let (written, passed) = blocks::read(trace, deaths_unknown(trace.events).is_none(), rows)?;
    let made = Made {
        lives: written.lives.finish()?,
        clearings: written.cleared.finish()?,
        contexts: passed.contexts.plain(),
        objects: passed.objects,
        used: written.used,
        end: end(&passed),
        late: passed.late.clone(),
    };
    Ok((made, passed))
}

/// The end of the trace.
pub fn end(passed: &Passed) -> Moment {
    Moment { tick: passed.ticks, bytes: passed.bytes, nanos: passed.time.map(|time| time.0) }
}
