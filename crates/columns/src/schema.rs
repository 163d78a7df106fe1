//! What a table is: its columns with their types and meanings. Documents are generated from this.

use std::fmt::Write as _;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Numbers of 64 bits with a sign.
    Long,
    /// Floating-point numbers.
    Double,
    /// Yes or no.
    Flag,
    /// Text.
    Text,
}

impl Type {
    /// As SQL calls it.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Long => "bigint",
            Self::Double => "double",
            Self::Flag => "boolean",
            Self::Text => "varchar",
        }
    }

    /// As documents call it.
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            other => other.sql(),
        }
    }
}

/// How the values of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Each value once, and numbers that stand for them. Where there are too many values, as they are.
    Dictionary,
    /// Differences between neighbours.
    Delta,
    /// As they are, for objects: there are too many for a dictionary, and the same ones come again in the same order, which compression finds.
    Plain,
}

/// A column.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Column {
    pub name: &'static str,
    pub ty: Type,
    pub is_nullable: bool,
    pub packing: Packing,
    /// What it means, with a space in front.
    pub about: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Table {
    pub name: &'static str,
    /// What a row is, with a space in front.
    pub about: &'static str,
    /// In which order the rows are.
    pub order: &'static str,
    /// The column that they are sorted by, if they are by one.
    pub sorted_by: Option<&'static str>,
    pub columns: &'static [Column],
}

impl Table {
    /// As a schema of Parquet.
    pub fn message(&self) -> String {
        let columns: String = self.columns.iter().map(Column::declaration).collect();
        format!("message {} {{ {columns} }}", self.name)
    }

    /// Its columns as a table of Markdown.
    pub fn markdown(&self) -> String {
        let mut out = "| column | type | |\n|---|---|---|\n".to_owned();
        for column in self.columns {
            let nullable = if column.is_nullable { ", or null" } else { "" };
            // Writing into a string does not fail.
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
