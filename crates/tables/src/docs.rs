//! The tables as a page: `docs/tables.md` has it.

use std::fmt::Write;

use crate::tables::ALL;

/// Markdown of all tables.
pub fn markdown() -> String {
    let mut out = String::new();
    for table in ALL {
        let _ = writeln!(out, "### {}\n\n{} Order: {}.\n", table.name, table.about.trim(), table.order);
        out += &table.markdown();
        out.push('\n');
    }
    out
}
