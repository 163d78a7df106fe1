//! Reads columns of a Parquet file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
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
        self.numbers_as(group, column, Ok)
    }

    /// An integer column of a row group, as what its numbers stand for; `None` for null.
    pub fn numbers_as<T>(
        &self,
        group: usize,
        column: &str,
        of: impl Fn(Option<i64>) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        self.read::<Int64Type, _>(group, column, |page| page, of)
    }

    /// A string column of a row group, as what its texts stand for; `None` for null. `of` is called once for each text of a dictionary.
    ///
    /// # Errors
    ///
    /// As for all columns, and if `of` fails.
    pub fn words_as<T: Copy>(
        &self,
        group: usize,
        column: &str,
        of: impl Fn(&[u8]) -> io::Result<T>,
    ) -> io::Result<Vec<Option<T>>> {
        let dictionary = Arc::new(Mutex::new(Dictionary::default()));
        let read = {
            let dictionary = Arc::clone(&dictionary);
            let numbered = move |pages| -> Box<dyn PageReader> { Box::new(Numbered { pages, dictionary }) };
            self.read::<Int64Type, _>(group, column, numbered, Ok)
        };
        let Dictionary { texts, is_partial } =
            std::mem::take(&mut *dictionary.lock().unwrap_or_else(PoisonError::into_inner));
        if is_partial {
            // Texts are in the pages themselves.
            let texts = self.read::<ByteArrayType, _>(group, column, |pages| pages, Ok)?;
            return texts.into_iter().map(|value| value.map(|text| of(text.data())).transpose()).collect();
        }
        let meanings: Vec<T> = texts.iter().map(|text| of(text.data())).collect::<io::Result<_>>()?;
        let meaning = |number: i64| usize::try_from(number).ok().and_then(|number| meanings.get(number)).copied();
        Ok(read?.into_iter().map(|number| number.and_then(meaning)).collect())
    }

    /// A string column of a row group; `None` for null.
    pub fn texts(&self, group: usize, column: &str) -> io::Result<Vec<Option<String>>> {
        self.read::<ByteArrayType, _>(
            group,
            column,
            |pages| pages,
            |value| Ok(value.map(|text| String::from_utf8_lossy(text.data()).into_owned())),
        )
    }

    /// A boolean column of a row group; `None` for null.
    pub fn flags(&self, group: usize, column: &str) -> io::Result<Vec<Option<bool>>> {
        self.read::<BoolType, _>(group, column, |pages| pages, Ok)
    }

    /// Reads a column from its pages, as `pages` makes them.
    fn read<T: DataType, U>(
        &self,
        group: usize,
        column: &str,
        pages: impl FnOnce(Box<dyn PageReader>) -> Box<dyn PageReader>,
        of: impl Fn(Option<T::T>) -> io::Result<U>,
    ) -> io::Result<Vec<U>> {
        let group = self.reader.get_row_group(group).map_err(io_error)?;
        let rows = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        let at = self.place_of(column)?;
        let described = group.metadata().schema_descr().column(at);
        let is_optional = described.max_def_level() > 0;
        let pages = pages(group.get_column_page_reader(at).map_err(io_error)?);
        let mut reader = ColumnReaderImpl::<T>::new(described, pages);
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
        // Collecting results does not know how many there will be, and grows the vector again and again.
        let mut made = Vec::with_capacity(rows);
        if !is_optional || values.len() == rows {
            for value in values {
                made.push(of(Some(value))?);
            }
        } else {
            let mut values = values.into_iter();
            for level in levels {
                made.push(of(if level > 0 { values.next() } else { None })?);
            }
        }
        Ok(made)
    }
}

/// The texts of a dictionary, by number.
#[derive(Default)]
struct Dictionary {
    texts: Vec<ByteArray>,
    /// Whether there are texts outside of it.
    is_partial: bool,
}

/// Pages of a column of texts, as those of a column of numbers: each text's place in the dictionary. Decoding a text for each row, with a count of who
/// uses it, takes ten times as long.
struct Numbered {
    pages: Box<dyn PageReader>,
    dictionary: Arc<Mutex<Dictionary>>,
}

impl Iterator for Numbered {
    type Item = parquet::errors::Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Numbered {
    fn get_next_page(&mut self) -> parquet::errors::Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        let mut dictionary = self.dictionary.lock().unwrap_or_else(PoisonError::into_inner);
        match page {
            Some(Page::DictionaryPage { buf, num_values, encoding, is_sorted }) => {
                dictionary.texts = texts_of(&buf, num_values)?;
                let numbers: Vec<u8> = (0..i64::from(num_values)).flat_map(i64::to_le_bytes).collect();
                Ok(Some(Page::DictionaryPage { buf: numbers.into(), num_values, encoding, is_sorted }))
            }
            Some(page)
                if page.encoding() != Encoding::RLE_DICTIONARY && page.encoding() != Encoding::PLAIN_DICTIONARY =>
            {
                dictionary.is_partial = true;
                Err(ParquetError::NYI("texts outside of the dictionary".to_owned()))
            }
            page => Ok(page),
        }
    }

    fn peek_next_page(&mut self) -> parquet::errors::Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> parquet::errors::Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> parquet::errors::Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// The texts of a dictionary page: each behind its length.
fn texts_of(buffer: &Bytes, number: u32) -> parquet::errors::Result<Vec<ByteArray>> {
    let cut = || ParquetError::EOF("a dictionary is cut short".to_owned());
    let mut texts = Vec::new();
    let mut at = 0;
    for _ in 0..number {
        let length = buffer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let end = at + 4 + length.ok_or_else(cut)? as usize;
        if end > buffer.len() {
            return Err(cut());
        }
        texts.push(buffer.slice(at + 4..end).into());
        at = end;
    }
    Ok(texts)
}
