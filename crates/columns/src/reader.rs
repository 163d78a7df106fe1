//! Reads columns of a Parquet file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::file::statistics::Statistics;

use crate::encode::io_error;

/// A file shared by several threads; all reads are positional, so the threads do not move each other's file offset.
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
        // In a damaged file, offsets and lengths can be arbitrary.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(parquet::errors::ParquetError::EOF("a column leads beyond the file".to_owned()));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// What the statistics of a row group say of an integer column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Smallest and largest value; `None` if all are null.
    pub range: Option<(i64, i64)>,
    pub has_nulls: bool,
}

/// Reads columns of a table; can be shared by threads.
pub struct TableReader {
    reader: SerializedFileReader<Shared>,
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReader").field("groups", &self.groups()).finish()
    }
}

impl TableReader {
    /// Opens a table and reads its footer.
    pub fn open(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let shared = Shared { file: Arc::new(file), bytes };
        Ok(Self { reader: SerializedFileReader::new(shared).map_err(io_error)? })
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

    /// Number of rows in a row group.
    pub fn rows_of(&self, group: usize) -> usize {
        let groups = self.reader.metadata().row_groups();
        groups.get(group).and_then(|group| usize::try_from(group.num_rows()).ok()).unwrap_or(0)
    }

    /// What a row group may contain in an integer column, without reading it.
    ///
    /// # Errors
    ///
    /// There is no such column, it has another type, or the file has no statistics of it.
    pub fn bounds(&self, group: usize, column: &str) -> io::Result<Bounds> {
        let group = self.reader.metadata().row_group(group);
        let statistics = group.column(self.place_of(column)?).statistics();
        let Some(Statistics::Int64(statistics)) = statistics else {
            let what = format!("the table {} has no statistics of {column}", self.name());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let range = statistics.min_opt().copied().zip(statistics.max_opt().copied());
        // Where the number of nulls is not told, there may be some.
        Ok(Bounds { range, has_nulls: statistics.null_count_opt() != Some(0) })
    }

    /// Index of a column.
    fn place_of(&self, column: &str) -> io::Result<usize> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.columns().iter().position(|described| described.name() == column).ok_or_else(|| {
            let table = self.name();
            io::Error::new(io::ErrorKind::InvalidData, format!("the table {table} has no column {column}"))
        })
    }

    /// An integer column of a row group; `None` for null.
    pub fn numbers(&self, group: usize, column: &str) -> io::Result<Vec<Option<i64>>> {
        self.read::<Int64Type>(group, column)
    }

    /// A string column of a row group; `None` for null.
    pub fn texts(&self, group: usize, column: &str) -> io::Result<Vec<Option<String>>> {
        self.texts_as(group, column, |text| String::from_utf8_lossy(text).into_owned())
    }

    /// A string column of a row group, as what its texts stand for; `None` for null.
    pub fn texts_as<T>(&self, group: usize, column: &str, of: impl Fn(&[u8]) -> T) -> io::Result<Vec<Option<T>>> {
        let texts = self.read::<ByteArrayType>(group, column)?;
        Ok(texts.into_iter().map(|value: Option<ByteArray>| value.map(|text| of(text.data()))).collect())
    }

    /// A boolean column of a row group; `None` for null.
    pub fn flags(&self, group: usize, column: &str) -> io::Result<Vec<Option<bool>>> {
        self.read::<BoolType>(group, column)
    }

    fn read<T: DataType>(&self, group: usize, column: &str) -> io::Result<Vec<Option<T::T>>> {
        let group = self.reader.get_row_group(group).map_err(io_error)?;
        let rows = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        let schema = group.metadata().schema_descr();
        let at = self.place_of(column)?;
        let is_optional = schema.column(at).max_def_level() > 0;
        let mut reader = get_typed_column_reader::<T>(group.get_column_reader(at).map_err(io_error)?);
        let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::new());
        let mut read = 0;
        while read < rows {
            let wanted = is_optional.then_some(&mut levels);
            let (records, ..) = reader.read_records(rows - read, wanted, None, &mut values).map_err(io_error)?;
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
