//! Generates the documentation of the tables for `docs/tables.md`.

use std::fmt::Write;

use crate::tables::ALL;

/// All tables in Markdown.
pub fn markdown() -> String {
    let mut out = String::new();
    for table in ALL {
        let _ = writeln!(out, "### {}\n\n{} Order: {}.\n", table.name, table.about.trim(), table.order);
        out += &table.markdown();
        out.push('\n');
    }
    out
}
