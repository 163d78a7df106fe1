//! Rows of a life table, from a reading of the trace by blocks.

use std::fs::File;
use std::io;

use et_columns::{TableWriter, Word};
use et_reader::blocks::{self, BlocksError, LifeRow, Passed, Rows};
use et_reader::lifetimes::Known;
use et_reader::population::Moment;
use et_reader::record::Alloc;
use et_reader::{Trace, deaths_unknown};

use crate::maker::{Made, Named, clearing_row, nanos};
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

fn object_row(life: &LifeRow) -> objects::Row {
    let Alloc { kind, object, size, ty, site, length, thread } = life.alloc;
    let death = life.death;
    let by_record = death.and_then(|death| death.record);
    objects::Row {
        number: life.number.cast_signed(),
        object: object.0.cast_signed(),
        class: ty.0.into(),
        kind: Word(kind.record_kind().text()),
        size: size.cast_signed(),
        length: length.into(),
        site: site.0.into(),
        context: life.context.0.into(),
        thread: thread.0.into(),
        birth_tick: life.tick.cast_signed(),
        birth_bytes: life.bytes.cast_signed(),
        birth_nanos: nanos(life.time),
        last_use_tick: life.last_use.cast_signed(),
        death_tick: death.map(|death| death.tick.cast_signed()),
        death_bytes: death.map(|death| death.bytes.cast_signed()),
        death_nanos: death.and_then(|death| nanos(death.time)),
        death_step: death.map(|death| death.step.cast_signed()),
        death_thread: death.map(|death| death.thread.0.into()),
        death_context: death.map(|death| death.context.0.into()),
        death_record: by_record.map(|(_, number)| number.cast_signed()),
        death_kind: by_record.map(|(kind, _)| Word(kind.text())),
        // Which thread made what was there when tracing began is not known.
        escaped_thread: (thread.0 != 0).then_some(life.escaped_thread),
        escaped_frame: life.escaped_frame,
    }
}

impl Rows for Writing {
    fn row(&mut self, row: &LifeRow) {
        self.used.saw(row);
        self.lives.push(object_row(row));
    }

    fn clearing(&mut self, clearing: &Known) {
        if let Some(row) = clearing_row(clearing) {
            self.cleared.push(row);
        }
    }
}

/// Makes the tables of a trace in the two files that `files` returns; it is called again if they have to be made again.
///
/// # Errors
/// The trace cannot be read by blocks, or a file cannot be written.
pub fn make(trace: &Trace, files: impl Fn() -> io::Result<[File; 2]>) -> Result<(Made, Passed<()>), BlocksError> {
    let rows = || {
        let [lives, clearings] = files()?;
        Ok(Writing::new(lives, clearings))
    };
    let (written, passed) = blocks::read(trace, deaths_unknown(trace.events).is_none(), rows)?.take_rows();
    let made = Made {
        lives: written.lives.finish()?,
        clearings: written.cleared.finish()?,
        contexts: passed.contexts.plain(),
        objects: passed.objects,
        used: written.used,
        end: Moment { tick: passed.ticks, bytes: passed.bytes, nanos: passed.time.map(|time| time.0) },
        late: passed.late.clone(),
    };
    Ok((made, passed))
}
