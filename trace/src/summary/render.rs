//! The summary for people.

use std::fmt::Write;

use et_names::EventSet;
pub(crate) use et_names::units::bytes;

use super::{Amount, Summary};
use crate::file::dynamic::DynamicCounts;
use crate::file::progress::OVERFLOWS;

/// A number with its thousands apart.
pub fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 class`, `2 classes`, `1,234 events`.
pub fn counted(count: u64, what: &str) -> String {
    let ending = match what.as_bytes() {
        _ if count == 1 => "",
        [.., b's' | b'h' | b'x'] => "es",
        _ => "s",
    };
    format!("{} {what}{ending}", number(count))
}

fn seconds(value: f64) -> String {
    if value < 0.001 {
        format!("{:.0} µs", value * 1e6)
    } else if value < 1.0 {
        format!("{:.1} ms", value * 1e3)
    } else {
        format!("{value:.2} s")
    }
}

/// A share of the whole.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// Rows with aligned columns; the first `right` columns are aligned to the right.
pub fn table(out: &mut String, right: usize, head: &[&str], rows: &[Vec<String>]) {
    let head: Vec<String> = head.iter().map(|&text| text.to_owned()).collect();
    let width = |column: usize| {
        rows.iter().chain([&head]).filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in [&head].into_iter().chain(rows) {
        let mut line = String::from(" ");
        for (column, text) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - text.chars().count());
            let (before, after) = if column < right { (padding.as_str(), "") } else { ("", padding.as_str()) };
            line += &format!(" {before}{text}{after} ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn amount_row(amount: Amount, whole: Amount, rest: &[&str]) -> Vec<String> {
    let mut row = vec![bytes(amount.bytes), percent(amount.bytes, whole.bytes), number(amount.objects)];
    row.extend(rest.iter().map(|&text| text.to_owned()));
    row
}

/// The whole text.
pub fn render(summary: &Summary) -> String {
    let mut out = String::new();
    header(&mut out, summary);
    records(&mut out, summary);
    objects(&mut out, summary);
    lifetimes(&mut out, summary);
    threads(&mut out, summary);
    collections(&mut out, summary);
    not_seen(&mut out, summary);
    out
}

fn header(out: &mut String, summary: &Summary) {
    let program = &summary.program;
    let mut line = |name: &str, text: String| {
        if !text.is_empty() {
            let _ = writeln!(out, "{name:<9}{text}");
        }
    };
    line("program", program.command.clone());
    line("JVM", program.jvm.clone());
    let completeness = match &summary.cut_off {
        None if summary.recovered => "recovered".to_owned(),
        None => "complete".to_owned(),
        Some(cut) => cut.clone(),
    };
    line(
        "trace",
        format!(
            "{} ({}, {:.2} bytes a record), {completeness}",
            summary.trace,
            bytes(summary.trace_bytes),
            summary.bytes_per_record
        ),
    );
    let missing = EventSet::ALL.names().filter(|name| !summary.events.contains(name)).collect::<Vec<_>>().join(", ");
    if !missing.is_empty() {
        line("events", format!("{} only; the classes have no hooks for {missing}", summary.events.join(", ")));
    }
    if let Some(run) = summary.seconds {
        let paused = summary.gcs.iter().map(|gc| gc.pause_seconds).fold(0.0, |a, b| a + b);
        let share = if run > 0.0 { format!(" ({:.1} %)", paused * 100.0 / run) } else { String::new() };
        let least = if summary.complete && !summary.recovered { "" } else { "at least " };
        line("time", format!("{least}{}, of which in collections {}{share}", seconds(run), seconds(paused)));
    }
}

fn records(out: &mut String, summary: &Summary) {
    let _ = writeln!(out, "\nRecords: {}", number(summary.records.get("total").copied().unwrap_or(0)));
    let rows: Vec<Vec<String>> = [
        ("M", "method entries"),
        ("E", "normal exits"),
        ("X", "exits by exception"),
        ("T", "exceptions thrown"),
        ("H", "exceptions caught"),
        ("U", "reference updates"),
        ("N", "objects by new"),
        ("A", "arrays by bytecode"),
        ("V", "objects by the VM"),
        ("P", "objects found later"),
        ("I", "objects there at the start"),
        ("D", "deaths"),
        ("R", "objects held by a stack"),
    ]
    .into_iter()
    .map(|(letter, meaning)| {
        let amount = summary.kinds.get(letter).map(|amount| bytes(amount.bytes)).unwrap_or_default();
        let count = summary.records.get(letter).copied().unwrap_or(0);
        vec![number(count), amount, letter.to_owned(), meaning.to_owned()]
    })
    .collect();
    table(out, 2, &["records", "bytes", "", ""], &rows);
}

fn objects(out: &mut String, summary: &Summary) {
    let whole = summary.allocated;
    let _ = writeln!(
        out,
        "\nObjects made: {}, {}, of {} at {}",
        number(whole.objects),
        bytes(whole.bytes),
        counted(summary.class_count as u64, "class"),
        counted(summary.site_count as u64, "site")
    );
    let rows: Vec<_> = summary.classes.iter().map(|line| amount_row(line.amount, whole, &[&line.ty])).collect();
    if !rows.is_empty() {
        let _ = writeln!(out, "\nClasses by bytes");
        table(out, 3, &["bytes", "", "objects", "class"], &rows);
    }
    for (title, lines) in [("Sites by bytes", &summary.sites_by_bytes), ("Sites by objects", &summary.sites_by_objects)]
    {
        let rows: Vec<_> = lines.iter().map(|line| amount_row(line.amount, whole, &[&line.ty, &line.site])).collect();
        if !rows.is_empty() {
            let _ = writeln!(out, "\n{title}");
            table(out, 3, &["bytes", "", "objects", "type", "site"], &rows);
        }
    }
    if summary.without_site.objects > 0 {
        let _ = writeln!(
            out,
            "\nWithout a site: {}, {}",
            counted(summary.without_site.objects, "object"),
            bytes(summary.without_site.bytes)
        );
    }
}

/// A number of ticks, rounded.
fn ticks(mean: f64) -> String {
    if mean < 100.0 { format!("{mean:.1}") } else { number(mean.round() as u64) }
}

fn lifetimes(out: &mut String, summary: &Summary) {
    let Some(part) = &summary.lifetimes else { return };
    let _ = writeln!(
        out,
        "\nLifetimes: {} died ({}), alive at the end: {} ({})",
        counted(part.died.objects, "object"),
        bytes(part.died.bytes),
        number(part.alive_at_end.objects),
        bytes(part.alive_at_end.bytes)
    );
    if part.died.objects == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "  mean lifetime {} ticks, of which {} after the last use (drag)",
        ticks(part.mean_lifetime),
        ticks(part.mean_drag)
    );
    let all = part.drag_byte_ticks;
    for (title, lines, last) in
        [("Drag by class", &part.classes, "class"), ("Drag by site", &part.sites, "type and site")]
    {
        let rows: Vec<_> = lines
            .iter()
            .filter(|line| line.drag_byte_ticks > 0)
            .map(|line| {
                let site = line.site.as_ref().map(|site| format!("  {site}")).unwrap_or_default();
                vec![
                    percent(line.drag_byte_ticks, all),
                    number(line.died.objects),
                    number(line.alive_at_end),
                    ticks(line.mean_lifetime),
                    ticks(line.mean_drag),
                    format!("{}{site}", line.ty),
                ]
            })
            .collect();
        if !rows.is_empty() {
            let _ = writeln!(out, "\n{title} (bytes times ticks)");
            table(out, 5, &["", "died", "alive", "lifetime", "drag", last], &rows);
        }
    }
}

fn threads(out: &mut String, summary: &Summary) {
    let _ = writeln!(out, "\nThreads: {}", summary.threads.len());
    const SHOWN: usize = 20;
    let mut lines: Vec<_> = summary.threads.iter().collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.records), line.id));
    let rows: Vec<Vec<String>> = lines
        .iter()
        .take(SHOWN)
        .map(|line| {
            let state = match (line.ended, line.frames_left) {
                (true, 0) => String::new(),
                (_, 0) => "still there at the end".to_owned(),
                (_, frames) => format!("{} on its stack at the end", counted(frames as u64, "frame")),
            };
            let id = format!("{:x}", line.id);
            vec![number(line.records), number(line.allocated.objects), id, line.name.clone(), state]
        })
        .collect();
    table(out, 3, &["records", "objects", "id", "name", ""], &rows);
    if lines.len() > SHOWN {
        let _ = writeln!(out, "  … and {} more", lines.len() - SHOWN);
    }
}

fn collections(out: &mut String, summary: &Summary) {
    let gcs = &summary.gcs;
    let Some(last) = gcs.last() else {
        let _ = writeln!(out, "\nCollections: none");
        return;
    };
    let paused = gcs.iter().map(|gc| gc.pause_seconds).fold(0.0, |a, b| a + b);
    let longest = gcs.iter().map(|gc| gc.pause_seconds).fold(0.0, f64::max);
    let _ = write!(out, "\nCollections: {}, {} in all, the longest {}", gcs.len(), seconds(paused), seconds(longest));
    if last.heap_used_bytes > 0 {
        let _ = write!(out, "; heap after the last {}", bytes(last.heap_used_bytes));
    }
    out.push('\n');
}

/// Classes that passed the rewriter while the program ran.
fn dynamic(out: &mut String, counts: &DynamicCounts, last_known: Option<f64>) {
    let seconds = seconds(counts.nanos as f64 / 1e9);
    let (seen, rewritten) = (number(counts.seen), number(counts.rewritten));
    let when = last_known.map_or_else(String::new, |at| format!(" (last known after {at:.2} s)"));
    let _ = write!(out, "\nClasses defined while tracing{when}: {seen}, {rewritten} of them given hooks, in {seconds}");
    if counts.redefined > 0 {
        let _ = write!(out, "; {} of all replaced a class's", number(counts.redefined));
    }
    for (count, what) in [
        (counts.already_instrumented, "instrumented before the run"),
        (counts.excluded, "excluded"),
        (counts.malformed, "no class files"),
        (counts.refused, "refused by the VM with hooks and defined without"),
        (counts.failed, "not rewritten, see below"),
    ] {
        if count > 0 {
            let _ = write!(out, "; {} {what}", number(count));
        }
    }
    out.push('\n');
}

fn not_seen(out: &mut String, summary: &Summary) {
    if let Some(counts) = &summary.dynamic {
        dynamic(out, counts, summary.seconds.filter(|_| !summary.complete || summary.recovered));
    }
    let not = &summary.not_instrumented;
    let _ = writeln!(
        out,
        "\nClasses without hooks: {} ({} of them hidden classes, such as lambdas)",
        number(not.classes as u64),
        number(not.hidden as u64)
    );
    let rows: Vec<_> = not.top.iter().take(10).map(|line| vec![number(line.amount.objects), line.ty.clone()]).collect();
    if !rows.is_empty() {
        table(out, 1, &["objects", "class"], &rows);
    }
    if summary.shortfall_count > 0 {
        let _ = writeln!(out, "\nMethods that ran without some hooks: {}", number(summary.shortfall_count as u64));
        for line in &summary.shortfalls {
            let _ = writeln!(out, "  {}: {} ({})", line.method, line.hooks, line.why);
        }
    }
    let anomalies: Vec<_> = summary.anomalies.iter().collect();
    if !anomalies.is_empty() {
        let _ = writeln!(out, "\nDid not fit");
        let rows: Vec<_> = anomalies.iter().map(|(what, count)| vec![number(*count), (*what).to_owned()]).collect();
        table(out, 1, &["", ""], &rows);
    }
    for problem in &summary.problems {
        let _ = writeln!(out, "\nThe runtime says: {} ({})", problem.what, number(problem.count));
    }
    for overlap in &summary.overlaps {
        let _ = writeln!(out, "\nThe same ids are used by {overlap}: instrument one of them again with --id-base");
    }
    let lost = &summary.lost_details;
    let _ = write!(out, "\nLost: {}", number(summary.lost));
    if lost.undecodable_pieces > 0 {
        let _ = write!(
            out,
            " ({}, {} undecodable)",
            counted(lost.undecodable_pieces, "block"),
            bytes(lost.undecodable_bytes)
        );
    }
    let overflows: u64 = summary.problems.iter().filter(|p| p.what == OVERFLOWS).map(|p| p.count).sum();
    if overflows > 0 {
        let _ = write!(out, ", and {} that had no room on the stack", number(overflows));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_for_people() {
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(12), "12");
        assert_eq!(seconds(0.0001), "100 µs");
        assert_eq!(percent(1, 0), "");
    }
}
