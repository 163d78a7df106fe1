//! The schema of a table: its columns with types and documentation, from which pages of `docs/` are generated.

use std::fmt::Write as _;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Signed 64-bit integers.
    Long,
    /// 64-bit floating-point numbers.
    Double,
    /// Booleans.
    Flag,
    /// Strings.
    Text,
}

impl Type {
    /// Name of the type in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Long => "bigint",
            Self::Double => "double",
            Self::Flag => "boolean",
            Self::Text => "varchar",
        }
    }

    /// Name of the type in documents.
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            other => other.sql(),
        }
    }
}

/// How the values of a column are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// By a dictionary, or plain if there are too many different values.
    Dictionary,
    /// By the differences between consecutive values.
    Delta,
    /// Plain, for objects: too many values for a dictionary, but the same sequences repeat, which compression
    /// exploits.
    Plain,
}

/// A column with its type, encoding and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub ty: Type,
    pub is_nullable: bool,
    pub packing: Packing,
    /// Documentation, beginning with a space.
    pub about: &'static str,
}

/// A table with its columns and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub name: &'static str,
    /// Documentation of a row, beginning with a space.
    pub about: &'static str,
    /// The order of the rows.
    pub order: &'static str,
    /// The column by which the rows are sorted, if there is one.
    pub sorted_by: Option<&'static str>,
    pub columns: &'static [Column],
}

impl Table {
    /// The Parquet schema.
    pub fn message(&self) -> String {
        let columns: String = self.columns.iter().map(Column::declaration).collect();
        format!("message {} {{ {columns} }}", self.name)
    }

    /// The columns as a Markdown table.
    pub fn markdown(&self) -> String {
        let mut out = "| column | type | |\n|---|---|---|\n".to_owned();
        for column in self.columns {
            let nullable = if column.is_nullable { ", or null" } else { "" };
            // Writing to a `String` cannot fail.
            let _ = writeln!(out, "| `{}` | {}{nullable} | {} |", column.name, column.ty.word(), column.about.trim());
        }
        out
    }
}

impl Column {
    fn declaration(&self) -> String {
        let presence = if self.is_nullable { "optional" } else { "required" };
        let (ty, meaning) = match self.ty {
            Type::Long => ("int64", ""),
            Type::Double => ("double", ""),
            Type::Flag => ("boolean", ""),
            Type::Text => ("binary", " (STRING)"),
        };
        format!("{presence} {ty} {}{meaning}; ", self.name)
    }
}
