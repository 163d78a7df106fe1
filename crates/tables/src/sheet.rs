//! The files of one table: groups of rows are encoded by any thread, and stand in the files in the order of their numbers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use et_files::Hashed;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, SchemaDescPtr, SchemaDescriptor, TypePtr};

use crate::row::Values;
use crate::schema::{Packing, Table};

/// Groups of rows in a file. What a file says of its groups at its end stays small this way, and is all that is kept of them.
const GROUPS: usize = 128;

/// Groups whose memory waits for other rows: more than are filled at a time would wait in vain.
const KEPT: usize = 2;

/// A column of a group as it will stand in the file.
type Encoded = (Bytes, ColumnCloseResult);

/// A file that is complete.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
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
    schema: TypePtr,
    columns: SchemaDescPtr,
    properties: WriterPropertiesPtr,
    failed: AtomicBool,
    state: Mutex<State>,
    written: Mutex<Vec<Vec<Values>>>,
}

#[derive(Default)]
struct State {
    /// Number of the group that comes next.
    next: u64,
    /// Groups that were encoded before the one that comes next.
    waiting: BTreeMap<u64, Vec<Encoded>>,
    open: Option<Open>,
    parts: Vec<Part>,
    error: Option<io::Error>,
}

struct Open {
    writer: SerializedFileWriter<Hashed>,
    name: String,
    groups: usize,
    rows: u64,
}

impl std::fmt::Debug for Sheet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sheet").field("folder", &self.folder).finish()
    }
}

impl Sheet {
    /// A table without rows in a folder, which is made.
    pub fn new(table: &'static Table, folder: PathBuf) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let schema = Arc::new(parse_message_type(&table.message()).map_err(other)?);
        let columns = Arc::new(SchemaDescriptor::new(Arc::clone(&schema)));
        let properties = Arc::new(properties(table)?);
        let state = Mutex::default();
        Ok(Self {
            table,
            folder,
            schema,
            columns,
            properties,
            failed: AtomicBool::new(false),
            state,
            written: Mutex::default(),
        })
    }

    /// What it is of.
    pub fn table(&self) -> &'static Table {
        self.table
    }

    /// Whether the disk takes no more; [`finish`](Self::finish) says why.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the group with that number, now or when those before it are there.
    pub fn add(&self, number: u64, mut values: Vec<Values>) {
        if self.has_failed() {
            return;
        }
        let encoded = self.encode(&values);
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

    /// Values that are encoded, whose memory the next rows may have.
    pub fn take_written(&self) -> Option<Vec<Values>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn encode(&self, values: &[Values]) -> io::Result<Vec<Encoded>> {
        let columns = self.columns.columns().iter().zip(values);
        columns.map(|(column, values)| self.encode_column(column, values).map_err(other)).collect()
    }

    fn encode_column(
        &self,
        column: &parquet::schema::types::ColumnDescPtr,
        values: &Values,
    ) -> parquet::errors::Result<Encoded> {
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(Arc::clone(column), Arc::clone(&self.properties), pages);
        match (&mut writer, values) {
            (ColumnWriter::Int64ColumnWriter(writer), Values::Long(values, levels)) => {
                writer.write_batch(values, levels.as_deref(), None)?
            }
            (ColumnWriter::DoubleColumnWriter(writer), Values::Double(values, levels)) => {
                writer.write_batch(values, levels.as_deref(), None)?
            }
            (ColumnWriter::BoolColumnWriter(writer), Values::Flag(values, levels)) => {
                writer.write_batch(values, levels.as_deref(), None)?
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Text(values, levels)) => {
                writer.write_batch(values, levels.as_deref(), None)?
            }
            _ => return Err(ParquetError::General(format!("column {} has a different type", column.name()))),
        };
        let closed = writer.close()?;
        Ok((Bytes::from(sink.into_inner()?), closed))
    }

    fn append(&self, state: &mut State, group: Vec<Encoded>) -> io::Result<()> {
        if state.open.is_none() {
            state.open = Some(self.open(state.parts.len())?);
        }
        let Some(open) = &mut state.open else { return Ok(()) };
        let mut writer = open.writer.next_row_group().map_err(other)?;
        open.rows += group.first().map_or(0, |(_, closed)| closed.rows_written);
        for (bytes, closed) in group {
            writer.append_column(&bytes, closed).map_err(other)?;
        }
        writer.close().map_err(other)?;
        open.groups += 1;
        if open.groups == GROUPS {
            Self::close(state)?;
        }
        Ok(())
    }

    fn open(&self, number: usize) -> io::Result<Open> {
        let name = format!("part-{number:05}.parquet");
        let file = File::create_new(self.folder.join(&name))?;
        let writer =
            SerializedFileWriter::new(Hashed::new(file), Arc::clone(&self.schema), Arc::clone(&self.properties))
                .map_err(other)?;
        Ok(Open { writer, name, groups: 0, rows: 0 })
    }

    fn close(state: &mut State) -> io::Result<()> {
        let Some(Open { writer, name, rows, .. }) = state.open.take() else { return Ok(()) };
        let (_, bytes, xxh3) = writer.into_inner().map_err(other)?.finish()?;
        state.parts.push(Part { name, rows, bytes, xxh3 });
        Ok(())
    }

    /// That was all. A table without rows has a file, too: it says which columns there are.
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

fn properties(table: &Table) -> io::Result<WriterProperties> {
    let level = ZstdLevel::try_new(1).map_err(other)?;
    let sorted_by = table.columns.iter().position(|column| Some(column.name) == table.sorted_by);
    let sorting =
        sorted_by.map(|at| vec![SortingColumn { column_idx: at as i32, descending: false, nulls_first: false }]);
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_sorting_columns(sorting);
    for column in table.columns {
        let encoding = match column.packing {
            Packing::Dictionary => continue,
            Packing::Delta => Encoding::DELTA_BINARY_PACKED,
            Packing::Plain => Encoding::PLAIN,
        };
        let path = ColumnPath::from(column.name);
        builder = builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    Ok(builder.build())
}

/// What Parquet says of the system's errors is only that they are external.
fn other(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
