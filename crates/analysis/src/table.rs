//! Tables for a terminal.

use std::fmt::Write;

use et_names::escape::OneLine;
use et_names::units::number;

/// Appends a line that says how many entries were omitted.
pub fn more(out: &mut String, all: usize, shown: usize) {
    if all > shown {
        let _ = writeln!(out, "  and {} more (--top)", number((all - shown) as u64));
    }
}

/// Rows with aligned columns; the first `right` columns are aligned to the right.
pub fn table(out: &mut String, right: usize, head: &[&str], rows: &[Vec<String>]) {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|text| OneLine(text).to_string()).collect()).collect();
    let head: Vec<String> = head.iter().map(|&text| text.to_owned()).collect();
    let width = |column: usize| {
        rows.iter().chain([&head]).filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in [&head].into_iter().chain(&rows) {
        let mut line = String::from(" ");
        for (column, text) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - text.chars().count());
            let (before, after) = if column < right { (padding.as_str(), "") } else { ("", padding.as_str()) };
            line += &format!(" {before}{text}{after} ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
