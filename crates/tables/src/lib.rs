//! A trace as tables: Parquet files for DuckDB, Spark and others. `docs/tables.md`, which is generated from the code,
//! documents the columns; `docs/inside/tables.md` describes how they are made.

mod book;
mod convert;
pub mod docs;
mod folder;
mod meanings;
mod object_pass;
mod queries;
mod record_pass;
mod sheet;
mod sql;
pub mod tables;
#[cfg(test)]
mod tests;
mod wanted;

pub use convert::{ConvertError, Converted, Converter, Options};
pub use folder::{FolderError, Manifest, TableFile, Tables};
pub use sql::{Query, SettingError, literal};
pub use wanted::{TableName, Wanted};
