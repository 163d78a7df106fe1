//! A difference as text.

use std::fmt::Write;

use et_names::units::{bytes, number};

use super::{Change, Diff, Line, Spread, Table};
use crate::table::{more as and_more, table};

/// Formats a change in bytes: `+1.5 MiB`, `-3 B`, `0`.
pub fn more_bytes(by: i64) -> String {
    match by {
        0 => "0".to_owned(),
        by => format!("{}{}", if by < 0 { "-" } else { "+" }, bytes(by.unsigned_abs())),
    }
}

/// Formats a change in number: `+1,500`, `-3`, `0`.
pub fn more(by: i64) -> String {
    match by {
        0 => "0".to_owned(),
        by => format!("{}{}", if by < 0 { "-" } else { "+" }, number(by.unsigned_abs())),
    }
}

/// Formats a relative change: `+12.5 %`; `new`, `gone`.
pub fn relative(change: &Change) -> String {
    match (change.before.median, change.after.median) {
        (0, 0) => String::new(),
        (0, _) => "new".to_owned(),
        (_, 0) => "gone".to_owned(),
        (before, after) => format!("{:+.1} %", (after as f64 / before as f64 - 1.0) * 100.0),
    }
}

/// The median, with the least and the most if they differ.
pub fn spread(of: Spread, show: impl Fn(u64) -> String) -> String {
    if of.min == of.max {
        show(of.median)
    } else {
        format!("{} ({} to {})", show(of.median), show(of.min), show(of.max))
    }
}

/// Totals first, then what changed.
pub fn render(diff: &Diff) -> String {
    let mut out = String::new();
    let total = &diff.total;
    let mut rows = Vec::new();
    let mut row = |name: &str, change: &Change, show: &dyn Fn(u64) -> String| {
        rows.push(vec![name.to_owned(), spread(change.before, show), spread(change.after, show), relative(change)]);
    };
    row("bytes", &total.bytes, &bytes);
    row("objects", &total.objects, &number);
    row("peak-bytes", &diff.peak_bytes, &bytes);
    row("alive-bytes", &total.alive_bytes, &bytes);
    row("alive-objects", &total.alive_objects, &number);
    table(&mut out, 0, &["", "before", "after", "change"], &rows);
    section(&mut out, "Classes", &diff.classes, diff);
    section(&mut out, "Sites, by method and class", &diff.sites, diff);
    section(&mut out, "Calling contexts", &diff.contexts, diff);
    out
}

fn section(out: &mut String, title: &str, found: &Table, diff: &Diff) {
    let least = format!("{} %", diff.least_share * 100.0);
    if found.lines.is_empty() {
        let what = title.to_lowercase();
        let _ = writeln!(out, "\n{what}: none changed by {least} of all bytes or more");
        return;
    }
    let _ = writeln!(out, "\n{title}: {} of {} changed by {least} of all bytes or more", found.changed, found.all);
    let rows: Vec<Vec<String>> = found
        .lines
        .iter()
        .map(|Line { ty, method, callers, changes }| {
            let mut place = method.clone().unwrap_or_default();
            for caller in callers.iter().flatten().take(4) {
                let _ = write!(place, " < {caller}");
            }
            if callers.as_ref().is_some_and(|callers| callers.len() > 4) {
                place += " < …";
            }
            vec![
                more_bytes(changes.bytes.by()),
                relative(&changes.bytes),
                more(changes.objects.by()),
                more_bytes(changes.alive_bytes.by()),
                ty.clone(),
                place,
            ]
        })
        .collect();
    table(out, 4, &["bytes", "change", "objects", "alive at end", "class", ""], &rows);
    and_more(out, found.changed, found.lines.len());
}
