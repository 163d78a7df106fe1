//! Rows of a life table, from a reading of the trace by blocks.

use std::fs::File;

use et_columns::{TableReader, TableWriter, Word};
use et_reader::Trace;
use et_reader::blocks::{self, BlocksError, LifeRow, Passed, Rows};
use et_reader::lifetimes::Known;
use et_reader::population::{Moment, Population};
use et_reader::record::Alloc;

use crate::maker::{Named, clearing_row, nanos};
use crate::population::{HeldRows, Table};
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

/// All objects of a trace, in a temporary file, with what else the reading has found.
///
/// # Errors
/// As of [`blocks::read`]; and if the temporary file cannot be written.
pub fn population_by_blocks(trace: &Trace, knows_deaths: bool) -> Result<(Population, Passed<()>), BlocksError> {
    let file = tempfile::tempfile;
    let passed = blocks::read(trace, knows_deaths, || Ok(Writing::new(file()?, file()?)))?;
    let (written, passed) = passed.take_rows();
    let lives = written.lives.finish()?;
    let population = Population {
        groups: Box::new(Table { objects: TableReader::open(lives.file)?, held: HeldRows::Known(passed.held_by_stacks.clone()) }),
        objects: passed.objects,
        contexts: passed.contexts.clone(),
        types: std::sync::Arc::clone(&trace.types),
        has_deaths: knows_deaths,
        end: Moment { tick: passed.ticks, bytes: passed.bytes, nanos: passed.time.map(|time| time.0) },
        lost: passed.outcome.lost,
        warnings: Vec::new(),
    };
    Ok((population, passed))
}
