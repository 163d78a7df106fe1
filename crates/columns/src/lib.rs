//! Tables of columns in Parquet files. [`table!`] declares a table once: its columns, their types, encodings and meanings. A [`TableWriter`]
//! writes its rows into one file; an [`Encoder`] encodes groups of them on any thread, for tables of many files; a [`TableReader`] reads
//! single columns.

mod encode;
mod reader;
mod row;
mod schema;
mod writer;

pub use encode::{Encoder, FileWriter, Group, Written};
pub use parquet::data_type::ByteArray;
pub use reader::TableReader;
pub use row::{Cell, Maybe, Rows, Values, Word};
pub use schema::{Column, Packing, Table, Type};
pub use writer::{GROUP, TableWriter};
