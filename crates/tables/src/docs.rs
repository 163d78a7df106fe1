//! Generates the documentation of the tables for `docs/tables.md`.

use std::fmt::Write;

use crate::schema::{Table, Type};
use crate::tables::ALL;

/// All tables in Markdown.
pub fn markdown() -> String {
    let mut out = String::new();
    for table in ALL {
        let _ = writeln!(out, "### {}\n\n{} Order: {}.\n", table.name, table.about.trim(), table.order);
        out += "| column | type | |\n|---|---|---|\n";
        columns(&mut out, table);
        out.push('\n');
    }
    out
}

fn columns(out: &mut String, table: &Table) {
    for column in table.columns {
        let ty = match column.ty {
            Type::Long => "bigint",
            Type::Double => "double",
            Type::Flag => "boolean",
            Type::Text => "text",
        };
        let nullable = if column.is_nullable { ", or null" } else { "" };
        let _ = writeln!(out, "| `{}` | {ty}{nullable} | {} |", column.name, column.about.trim());
    }
}
