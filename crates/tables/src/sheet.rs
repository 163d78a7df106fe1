//! The files of one table: row groups may be encoded on any thread, and are written in the order of their numbers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use et_columns::{Encoder, FileWriter, Group, Table, Values};

/// Row groups per file. Limits the metadata at the end of a file, which is kept in memory until then.
const GROUPS: usize = 128;

/// Number of row groups whose memory is kept for reuse: not more than are filled at a time.
const KEPT: usize = 2;

/// A complete file.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    pub rows: u64,
    pub bytes: u64,
    pub xxh3: u64,
}

/// A table that is being written.
pub struct Sheet {
    table: &'static Table,
    folder: PathBuf,
    encoder: Encoder,
    failed: AtomicBool,
    state: Mutex<State>,
    written: Mutex<Vec<Vec<Values>>>,
}

#[derive(Default)]
struct State {
    /// Number of the next row group to write.
    next: u64,
    /// Row groups that were encoded before their turn.
    waiting: BTreeMap<u64, Group>,
    open: Option<Open>,
    parts: Vec<Part>,
    error: Option<io::Error>,
}

struct Open {
    writer: FileWriter,
    name: String,
    groups: usize,
}

impl std::fmt::Debug for Sheet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sheet").field("folder", &self.folder).finish()
    }
}

impl Sheet {
    /// Creates an empty table in a folder, which is created.
    pub fn new(table: &'static Table, folder: PathBuf) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let encoder = Encoder::new(table)?;
        let (failed, state, written) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Ok(Self { table, folder, encoder, failed, state, written })
    }

    pub fn table(&self) -> &'static Table {
        self.table
    }

    /// Whether writing has failed; [`finish`](Self::finish) returns the error.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Encodes the row group with that number and writes it as soon as those before it are written.
    pub fn add(&self, number: u64, mut values: Vec<Values>) {
        if self.has_failed() {
            return;
        }
        let encoded = self.encoder.encode(&values);
        values.iter_mut().for_each(Values::clear);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() < KEPT {
            written.push(values);
        }
        drop(written);
        let mut state = self.state();
        let done = encoded.and_then(|group| {
            state.waiting.insert(number, group);
            while let Some(group) = {
                let next = state.next;
                state.waiting.remove(&next)
            } {
                state.next += 1;
                self.append(&mut state, group)?;
            }
            Ok(())
        });
        if let Err(error) = done {
            self.failed.store(true, Ordering::Relaxed);
            state.error.get_or_insert(error);
        }
    }

    /// Takes the memory of values that have been written, for reuse.
    pub fn take_written(&self) -> Option<Vec<Values>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn append(&self, state: &mut State, group: Group) -> io::Result<()> {
        if state.open.is_none() {
            state.open = Some(self.open(state.parts.len())?);
        }
        let Some(open) = &mut state.open else { return Ok(()) };
        open.writer.append(group)?;
        open.groups += 1;
        if open.groups == GROUPS {
            Self::close(state)?;
        }
        Ok(())
    }

    fn open(&self, number: usize) -> io::Result<Open> {
        let name = format!("part-{number:05}.parquet");
        let file = File::create_new(self.folder.join(&name))?;
        Ok(Open { writer: self.encoder.begin(file)?, name, groups: 0 })
    }

    fn close(state: &mut State) -> io::Result<()> {
        let Some(Open { writer, name, .. }) = state.open.take() else { return Ok(()) };
        let written = writer.finish()?;
        state.parts.push(Part { name, rows: written.rows, bytes: written.bytes, xxh3: written.hash });
        Ok(())
    }

    /// Completes the table. A table without rows has a file as well, which defines the columns.
    pub fn finish(&self) -> io::Result<Vec<Part>> {
        let mut state = self.state();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if state.parts.is_empty() && state.open.is_none() {
            state.open = Some(self.open(0)?);
        }
        Self::close(&mut state)?;
        Ok(std::mem::take(&mut state.parts))
    }
}
