//! Parquet tables.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use et_files::Hashed;
use et_threads::{NoThread, spawn};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::get_typed_column_reader;
pub use parquet::data_type::ByteArray;
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Values of a column, one per row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers; ids with 32 bits or more are unsigned.
    Number(Vec<i64>),
    /// Numbers or null.
    Maybe(Vec<Option<i64>>),
    /// Booleans.
    Flag(Vec<bool>),
    /// Booleans or null.
    MaybeFlag(Vec<Option<bool>>),
    /// Strings.
    Text(Vec<ByteArray>),
    /// Strings or null.
    MaybeText(Vec<Option<ByteArray>>),
}

/// Name and values of a column.
pub type Column = (&'static str, Values);

impl Values {
    fn declaration(&self, name: &str) -> String {
        match self {
            Self::Number(_) => format!("required int64 {name};"),
            Self::Maybe(_) => format!("optional int64 {name};"),
            Self::Flag(_) => format!("required boolean {name};"),
            Self::MaybeFlag(_) => format!("optional boolean {name};"),
            Self::Text(_) => format!("required binary {name} (STRING);"),
            Self::MaybeText(_) => format!("optional binary {name} (STRING);"),
        }
    }
}

/// A completed table.
#[derive(Debug)]
pub struct Written {
    /// Its file, which has no name yet.
    pub file: File,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// XXH3 of the file.
    pub hash: u64,
}

/// Writes a table on a separate thread, one row group at a time.
#[derive(Debug)]
pub struct TableWriter {
    groups: Option<SyncSender<Vec<Column>>>,
    thread: Result<JoinHandle<io::Result<Written>>, NoThread>,
}

impl TableWriter {
    /// Starts a table in `file`. All groups have the columns of `first`.
    pub fn new(name: &'static str, file: File, first: &[Column]) -> Self {
        let columns: String = first.iter().map(|(name, values)| values.declaration(name)).collect();
        let schema = format!("message {name} {{ {columns} }}");
        let (groups, receiver) = sync_channel::<Vec<Column>>(1);
        let thread = spawn(move || {
            let schema = Arc::new(parse_message_type(&schema).map_err(io::Error::other)?);
            let level = ZstdLevel::try_new(1).map_err(io::Error::other)?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(level))
                .set_statistics_enabled(EnabledStatistics::Chunk)
                .build();
            let mut writer =
                SerializedFileWriter::new(Hashed::new(file), schema, Arc::new(properties)).map_err(other)?;
            for columns in &receiver {
                let mut group = writer.next_row_group().map_err(other)?;
                let mut columns = columns.into_iter();
                while let Some(mut column) = group.next_column().map_err(other)? {
                    let Some((_, values)) = columns.next() else { break };
                    write_column(&mut column, &values).map_err(other)?;
                    column.close().map_err(other)?;
                }
                group.close().map_err(other)?;
            }
            let (file, bytes, hash) = writer.into_inner().map_err(other)?.finish()?;
            Ok(Written { file, bytes, hash })
        });
        // Without the thread, rows are refused.
        Self { groups: thread.is_ok().then_some(groups), thread }
    }

    /// Writes the next group. Returns false if the disk is full or there is no thread; then [`finish`](Self::finish)
    /// returns the error.
    pub fn push(&self, columns: Vec<Column>) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.send(columns).is_ok())
    }

    /// Completes the table.
    pub fn finish(mut self) -> io::Result<Written> {
        self.groups = None;
        match self.thread?.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Restores the system's error: Parquet only says that it is external.
fn other(error: parquet::errors::ParquetError) -> io::Error {
    match error {
        parquet::errors::ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

fn write_column(
    column: &mut parquet::file::writer::SerializedColumnWriter<'_>,
    values: &Values,
) -> parquet::errors::Result<()> {
    fn some<T: Clone>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
        (values.iter().flatten().cloned().collect(), values.iter().map(|value| i16::from(value.is_some())).collect())
    }
    match values {
        Values::Number(values) => column.typed::<Int64Type>().write_batch(values, None, None)?,
        Values::Maybe(values) => {
            let (values, levels) = some(values);
            column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?
        }
        Values::Flag(values) => column.typed::<BoolType>().write_batch(values, None, None)?,
        Values::MaybeFlag(values) => {
            let (values, levels) = some(values);
            column.typed::<BoolType>().write_batch(&values, Some(&levels), None)?
        }
        Values::Text(values) => column.typed::<ByteArrayType>().write_batch(values, None, None)?,
        Values::MaybeText(values) => {
            let (values, levels) = some(values);
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?
        }
    };
    Ok(())
}

/// A file that several threads read. Reads have explicit offsets, since the threads share the file position.
struct Shared {
    file: Arc<File>,
    bytes: u64,
}

/// Reads sequentially from an offset.
struct From {
    file: Arc<File>,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Length for Shared {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Shared {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(From { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // Lengths in a damaged file may be anything.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(parquet::errors::ParquetError::EOF("a column leads beyond the file".to_owned()));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// Reads columns of a table; can be shared between threads.
pub struct TableReader {
    reader: SerializedFileReader<Shared>,
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReader").field("groups", &self.groups()).finish()
    }
}

impl TableReader {
    /// Opens a table. Fails if it is not a valid Parquet file.
    pub fn open(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let shared = Shared { file: Arc::new(file), bytes };
        Ok(Self { reader: SerializedFileReader::new(shared).map_err(other)? })
    }

    /// Name of the table.
    pub fn name(&self) -> &str {
        self.reader.metadata().file_metadata().schema().name()
    }

    /// Number of row groups.
    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// Number of rows.
    pub fn rows(&self) -> i64 {
        self.reader.metadata().file_metadata().num_rows()
    }

    /// Number of rows in a group.
    pub fn rows_of(&self, group: usize) -> usize {
        let groups = self.reader.metadata().row_groups();
        groups.get(group).and_then(|group| usize::try_from(group.num_rows()).ok()).unwrap_or(0)
    }

    /// Reads numbers of a column in a row group; `None` for null.
    pub fn numbers(&self, group: usize, column: &str) -> io::Result<Vec<Option<i64>>> {
        self.read::<Int64Type>(group, column)
    }

    /// Reads strings of a column in a row group; `None` for null.
    pub fn texts(&self, group: usize, column: &str) -> io::Result<Vec<Option<String>>> {
        let texts = self.read::<ByteArrayType>(group, column)?;
        let text = |text: ByteArray| String::from_utf8_lossy(text.data()).into_owned();
        Ok(texts.into_iter().map(|value| value.map(text)).collect())
    }

    /// Reads booleans of a column in a row group; `None` for null.
    pub fn flags(&self, group: usize, column: &str) -> io::Result<Vec<Option<bool>>> {
        self.read::<BoolType>(group, column)
    }

    fn read<T: DataType>(&self, group: usize, column: &str) -> io::Result<Vec<Option<T::T>>> {
        let group = self.reader.get_row_group(group).map_err(other)?;
        let rows = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        let schema = group.metadata().schema_descr();
        let at = schema.columns().iter().position(|described| described.name() == column).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("the life table has no column {column}"))
        })?;
        let is_optional = schema.column(at).max_def_level() > 0;
        let mut reader = get_typed_column_reader::<T>(group.get_column_reader(at).map_err(other)?);
        let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::new());
        let mut read = 0;
        while read < rows {
            let wanted = is_optional.then_some(&mut levels);
            let (records, ..) = reader.read_records(rows - read, wanted, None, &mut values).map_err(other)?;
            if records == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("column {column} is cut short")));
            }
            read += records;
        }
        if !is_optional {
            return Ok(values.into_iter().map(Some).collect());
        }
        let mut values = values.into_iter();
        Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let file = tempfile::tempfile().unwrap();
        let columns = |at: i64| -> Vec<Column> {
            vec![
                ("number", Values::Number(vec![at, i64::MAX, -1])),
                ("maybe", Values::Maybe(vec![None, Some(at), None])),
                ("kind", Values::Text(vec!["A".into(), "N".into(), "A".into()])),
                ("flag", Values::Flag(vec![true, false, true])),
                ("whether", Values::MaybeFlag(vec![None, Some(true), Some(false)])),
                ("word", Values::MaybeText(vec![Some("ü".into()), None, None])),
            ]
        };
        let writer = TableWriter::new("things", file.try_clone().unwrap(), &columns(0));
        assert!(writer.push(columns(7)) && writer.push(columns(8)));
        let written = writer.finish().unwrap();
        assert_eq!(written.bytes, file.metadata().unwrap().len());
        let reader = TableReader::open(file).unwrap();
        assert_eq!((reader.name(), reader.groups(), reader.rows()), ("things", 2, 6));
        assert_eq!(reader.numbers(1, "number").unwrap(), [Some(8), Some(i64::MAX), Some(-1)]);
        assert_eq!(reader.numbers(0, "maybe").unwrap(), [None, Some(7), None]);
        assert_eq!(reader.texts(0, "kind").unwrap()[1].as_deref(), Some("N"));
        assert_eq!(reader.texts(0, "word").unwrap(), [Some("ü".to_owned()), None, None]);
        assert_eq!(reader.flags(0, "flag").unwrap(), [Some(true), Some(false), Some(true)]);
        assert_eq!(reader.flags(0, "whether").unwrap(), [None, Some(true), Some(false)]);
        assert!(reader.numbers(0, "nothing").is_err());
    }
}
