//! Encodes row groups and writes them to a file.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use et_system::files::Hashed;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescPtr, ColumnPath, SchemaDescPtr, SchemaDescriptor, TypePtr};

use crate::row::Values;
use crate::schema::{Packing, Table};

/// Encodes row groups of one table, on any thread.
#[derive(Debug)]
pub struct Encoder {
    schema: TypePtr,
    columns: SchemaDescPtr,
    properties: WriterPropertiesPtr,
}

/// An encoded row group.
#[derive(Debug)]
pub struct Group {
    columns: Vec<(Bytes, ColumnCloseResult)>,
}

/// A complete file.
#[derive(Debug)]
pub struct Written {
    /// The file, still open.
    pub file: File,
    /// Number of rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// XXH3 of the file's content.
    pub hash: u64,
}

/// Writes encoded row groups to a file.
pub struct FileWriter {
    writer: SerializedFileWriter<Hashed>,
    rows: u64,
}

impl std::fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWriter").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Encoder {
    /// Creates an encoder for a table.
    pub fn new(table: &Table) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(&table.message()).map_err(io_error)?);
        let columns = Arc::new(SchemaDescriptor::new(Arc::clone(&schema)));
        Ok(Self { schema, columns, properties: Arc::new(properties(table)?) })
    }

    /// Encodes a row group; `values` are the columns in the order of the table.
    pub fn encode(&self, values: &[Values]) -> io::Result<Group> {
        let columns = self.columns.columns().iter().zip(values);
        let columns = columns.map(|(column, values)| self.encode_column(column, values).map_err(io_error));
        Ok(Group { columns: columns.collect::<io::Result<_>>()? })
    }

    fn encode_column(
        &self,
        column: &ColumnDescPtr,
        values: &Values,
    ) -> parquet::errors::Result<(Bytes, ColumnCloseResult)> {
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

    /// Begins a Parquet file in an empty file.
    pub fn begin(&self, file: File) -> io::Result<FileWriter> {
        let (schema, properties) = (Arc::clone(&self.schema), Arc::clone(&self.properties));
        let writer = SerializedFileWriter::new(Hashed::new(file), schema, properties).map_err(io_error)?;
        Ok(FileWriter { writer, rows: 0 })
    }
}

impl FileWriter {
    /// Appends a row group.
    pub fn append(&mut self, group: Group) -> io::Result<()> {
        let mut writer = self.writer.next_row_group().map_err(io_error)?;
        self.rows += group.columns.first().map_or(0, |(_, closed)| closed.rows_written);
        for (bytes, closed) in group.columns {
            writer.append_column(&bytes, closed).map_err(io_error)?;
        }
        writer.close().map_err(io_error)?;
        Ok(())
    }

    /// Writes the footer.
    pub fn finish(self) -> io::Result<Written> {
        let (file, bytes, hash) = self.writer.into_inner().map_err(io_error)?.finish()?;
        Ok(Written { file, rows: self.rows, bytes, hash })
    }
}

fn properties(table: &Table) -> io::Result<WriterProperties> {
    let level = ZstdLevel::try_new(1).map_err(io_error)?;
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

/// The I/O error behind a Parquet error, if there is one: Parquet's message says only that it is external.
pub fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}
