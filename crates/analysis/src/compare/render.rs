//! A comparison as text.

use std::fmt::Write;

use super::report::{Group, Report};
use crate::table::table;
use et_names::units::{bytes, counted, number, percent};

/// Rows of a table; the rest is summed up.
const ROWS: usize = 12;

/// Renders the whole comparison.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let share = if report.share > 1 { format!(", one in {}", report.share) } else { String::new() };
    let _ = writeln!(
        out,
        "{} that the collector was asked about{share}; {}",
        counted(report.objects, "object"),
        counted(report.collections, "collection")
    );
    verdicts(&mut out, report);
    groups(&mut out, report, "freed by the collector, held by the trace: errors of the trace", "cause", &report.errors);
    for example in &report.examples {
        let _ = writeln!(out, "  object {} ({}): {}", example.object, example.class, example.history);
    }
    groups(
        &mut out,
        report,
        "freed by the collector, held by the trace by definition (docs/semantics.md)",
        "why the trace holds it",
        &report.by_definition,
    );
    groups(
        &mut out,
        report,
        "held by the collector at the end, dead in the trace",
        "why the collector may hold it",
        &report.kept,
    );
    for example in &report.kept_examples {
        let _ = writeln!(out, "  object {} ({}): {}", example.object, example.class, example.history);
    }
    out
}

fn sum(groups: &[Group]) -> u64 {
    groups.iter().map(|group| group.objects).sum()
}

/// Always displayed.
const ERRORS: &str = "freed by the collector, held by the trace: errors";

fn verdicts(out: &mut String, report: &Report) {
    let alive = if report.asked_at_end { "alive at the end in both" } else { "alive at the end in the trace" };
    let late = format!("dead in both, freed by a later collection (up to {} late)", number(report.most_late));
    let counts = [
        (report.freed_at_once, "dead in both, freed by the first collection that could"),
        (report.freed_later, late.as_str()),
        (report.alive, alive),
        (report.died_after, "dead in the trace after the last collection"),
        (report.made_after, "allocated after the last collection, when the collector may have been asked already"),
        (report.not_freed, "dead in the trace; not freed while the collector was observed"),
        (sum(&report.kept), "dead in the trace, held by the collector at the end"),
        (sum(&report.by_definition), "freed by the collector, held by the trace by definition"),
        (sum(&report.errors), ERRORS),
        (report.not_told, "not reported by the collector"),
    ];
    let shown = counts.iter().filter(|&&(count, what)| count > 0 || what == ERRORS);
    let rows: Vec<_> =
        shown.map(|&(count, what)| vec![number(count), percent(count, report.objects), what.to_owned()]).collect();
    table(out, 2, &["objects", "share", "outcome"], &rows);
    for (count, what) in [
        (report.unknown, "freed without a death in the trace"),
        (report.unclear, "freed under an id that several objects had: left out"),
    ] {
        if count > 0 {
            let _ = writeln!(out, "  {} {what}", counted(count, "object"));
        }
    }
}

fn groups(out: &mut String, report: &Report, title: &str, cause: &str, groups: &[Group]) {
    if groups.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    let mut rows: Vec<_> = groups
        .iter()
        .take(ROWS)
        .map(|group| {
            let through = if group.through > 0 { number(group.through) } else { String::new() };
            let (objects, share) = (number(group.objects), percent(group.objects, report.objects));
            vec![objects, share, bytes(group.bytes), through, group.class.clone(), group.cause.clone()]
        })
        .collect();
    let rest = groups.get(ROWS..).unwrap_or_default();
    if !rest.is_empty() {
        let all = |part: fn(&Group) -> u64| rest.iter().map(part).sum::<u64>();
        let through = number(all(|group| group.through));
        let objects = all(|group| group.objects);
        let what = format!("{} more", counted(rest.len() as u64, "row"));
        let size = bytes(all(|group| group.bytes));
        rows.push(vec![number(objects), percent(objects, report.objects), size, through, what, String::new()]);
    }
    table(out, 4, &["objects", "share", "bytes", "through another", "class", cause], &rows);
}
