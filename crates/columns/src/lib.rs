//! Tables in Parquet files. [`table!`] declares a table once: its columns with types, encodings and documentation. A
//! [`TableWriter`] writes its rows to one file; an [`Encoder`] encodes row groups on any thread, for tables in several
//! files; a [`TableReader`] reads single columns.

mod encode;
mod reader;
mod row;
mod schema;
mod writer;

pub use encode::{Encoder, FileWriter, Group, Written};
pub use parquet::data_type::ByteArray;
pub use reader::{Bounds, TableReader};
pub use row::{Cell, Maybe, Rows, Values, Word};
pub use schema::{Column, Packing, Table, Type};
pub use writer::{GROUP, TableWriter};
