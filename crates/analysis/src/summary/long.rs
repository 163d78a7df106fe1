//! The parts of the summary after the first screen: `et-trace summary --long`.

use std::fmt::Write;

use et_format::dynamic::DynamicCounts;
use et_format::progress::OVERFLOWS;
use et_reader::record::RecordKind;

use super::render::render;
use super::{Amount, Origin, Summary};
use crate::table::table;
use et_names::units::{bytes, counted, number, percent, seconds};

/// The first screen, and everything else.
pub fn render_long(summary: &Summary) -> String {
    let mut out = render(summary);
    objects(&mut out, summary);
    lifetimes(&mut out, summary);
    if let Some(survival) = &summary.survival {
        survival.render(&mut out);
    }
    threads(&mut out, summary);
    collections(&mut out, summary);
    if let Some(contention) = &summary.contention {
        contention.render(&mut out);
    }
    not_seen(&mut out, summary);
    records(&mut out, summary);
    out
}

fn amount_row(amount: Amount, whole: Amount, rest: &[&str]) -> Vec<String> {
    let mut row = vec![bytes(amount.bytes), percent(amount.bytes, whole.bytes), number(amount.objects)];
    row.extend(rest.iter().map(|&text| text.to_owned()));
    row
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
    let packages = summary.packages.iter().map(|line| {
        let whose = match line.origin {
            Origin::Program => "program",
            Origin::Library => "library",
            Origin::Jdk => "JDK",
        };
        amount_row(line.amount, whole, &[whose, &line.package])
    });
    let _ = writeln!(out, "\nPackages");
    table(out, 3, &["bytes", "", "objects", "", "package"], &packages.collect::<Vec<_>>());
    if summary.without_site.objects > 0 {
        let _ = writeln!(
            out,
            "\nAllocated at no line of code, listed by method: {}, {}",
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
    let (Some(mean_drag), Some(all)) = (part.mean_drag, part.drag_byte_ticks) else {
        let _ = writeln!(out, "  mean lifetime {} {}", ticks(part.mean_lifetime), summary.ticks_of());
        return;
    };
    let _ = writeln!(
        out,
        "  mean lifetime {} ticks, of which {} after the last use (drag)",
        ticks(part.mean_lifetime),
        ticks(mean_drag)
    );
    for (title, lines, last) in
        [("Drag by class", &part.classes, "class"), ("Drag by site", &part.sites, "type and site")]
    {
        let rows: Vec<_> = lines
            .iter()
            .filter_map(|line| Some((line, line.drag_byte_ticks.filter(|drag| *drag > 0)?, line.mean_drag?)))
            .map(|(line, drag, mean_drag)| {
                let site = line.site.as_ref().map(|site| format!("  {site}")).unwrap_or_default();
                vec![
                    percent(drag, all),
                    number(line.died.objects),
                    number(line.alive_at_end),
                    ticks(line.mean_lifetime),
                    ticks(mean_drag),
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
            let id = line.id.to_string();
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
    if lost.discarded_bytes > 0 {
        let _ = write!(out, " ({} of events discarded, not counted)", bytes(lost.discarded_bytes));
    }
    let overflows: u64 = summary.problems.iter().filter(|p| p.what == OVERFLOWS).map(|p| p.count).sum();
    if overflows > 0 {
        let _ = write!(out, ", and {} that had no room on the stack", number(overflows));
    }
    out.push('\n');
    for problem in summary.problems.iter().filter(|problem| !problem.is_serious()) {
        let _ = writeln!(out, "  {} {}", number(problem.count), problem.what);
    }
}

/// The kinds of records in the order in which they are listed. The length makes a kind without a row a compile error.
const KINDS: [(RecordKind, &str); RecordKind::ALL.len()] = [
    (RecordKind::Entry, "method entries"),
    (RecordKind::Exit, "normal exits"),
    (RecordKind::ExitThrow, "exits by exception"),
    (RecordKind::Throw, "exceptions thrown"),
    (RecordKind::Handle, "exceptions caught"),
    (RecordKind::Update, "reference updates"),
    (RecordKind::New, "objects by new"),
    (RecordKind::Array, "arrays by bytecode"),
    (RecordKind::Vm, "objects by the VM"),
    (RecordKind::Found, "objects found later"),
    (RecordKind::Initial, "objects there at the start"),
    (RecordKind::Death, "deaths"),
    (RecordKind::Use, "objects held by a stack"),
];

fn records(out: &mut String, summary: &Summary) {
    let total = number(summary.records.get("total").copied().unwrap_or(0));
    let _ = writeln!(out, "\nRecords: {total}, {:.2} bytes each", summary.bytes_per_record);
    let row = |(kind, meaning): (RecordKind, &str)| {
        let letter = kind.text();
        let amount = summary.kinds.get(letter).map(|amount| bytes(amount.bytes)).unwrap_or_default();
        let count = summary.records.get(letter).copied().unwrap_or(0);
        vec![number(count), amount, letter.to_owned(), meaning.to_owned()]
    };
    table(out, 2, &["records", "bytes", "", ""], &KINDS.map(row));
}
