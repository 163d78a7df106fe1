//! The summary for people: one screen. The rest is in `long`.

use std::fmt::Write;

use et_names::EventSet;
use et_names::escape::OneLine;
use et_names::units::{bytes, counted, number, percent, seconds};

use super::{Amount, HeldBy, Origin, Summary};

/// The columns that a terminal has at least.
const WIDTH: usize = 80;

/// An entry of a list: bytes, their share, objects, and then text, on separate lines if it does not fit.
fn entry(out: &mut String, numbers: [&str; 3], text: &str, more: &str) {
    let [bytes, share, objects] = numbers;
    // Names may hold line ends, which would begin a line of their own.
    let (text, more) = (OneLine(text).to_string(), OneLine(more).to_string());
    let mut line = format!("{bytes:>11} {share:>7} {objects:>11}  ");
    let indent = line.chars().count();
    let mut column = indent;
    let parts = text.split("  ").chain(Some(more.as_str()).filter(|more| !more.is_empty()));
    for (index, part) in parts.enumerate() {
        let (gap, length) = (if index == 0 { 0 } else { 2 }, part.chars().count());
        if index > 0 && column + gap + length > WIDTH {
            line += &format!("\n{:indent$}  {part}", "");
            column = indent + 2 + length;
        } else {
            line += &format!("{:gap$}{part}", "");
            column += gap + length;
        }
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

fn amounts(amount: Amount, whole: Amount) -> [String; 3] {
    [bytes(amount.bytes), percent(amount.bytes, whole.bytes), number(amount.objects)]
}

fn borrowed(numbers: &[String; 3]) -> [&str; 3] {
    [&numbers[0], &numbers[1], &numbers[2]]
}

/// `for shop.Main.run and 2 others`, and how much of the whole, unless that reads the same.
fn asked_by(caller: Option<&str>, callers: usize, (for_callers, whole): (Amount, Amount)) -> String {
    let Some(caller) = caller else { return String::new() };
    let others = match callers {
        0 | 1 => String::new(),
        more => format!(" and {}", counted(more as u64 - 1, "other")),
    };
    let (part, whole) = (bytes(for_callers.bytes), bytes(whole.bytes));
    let part = if part == whole { String::new() } else { format!(", {part} of it") };
    format!("for {caller}{others}{part}")
}

/// Renders one screen: the peak, whose code caused it, where it was allocated, what grew, and what the trace lacks.
pub fn render(summary: &Summary) -> String {
    let mut out = String::new();
    header(&mut out, summary);
    packages(&mut out, summary);
    sites(&mut out, summary);
    grew(&mut out, summary);
    survived(&mut out, summary);
    held(&mut out, summary);
    health(&mut out, summary);
    out
}

/// A line of the header or of the health.
fn line(out: &mut String, name: &str, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "{name:<11}{}", OneLine(text));
    }
}

fn header(out: &mut String, summary: &Summary) {
    let program = &summary.program;
    line(out, "program", &program.command);
    let mut jvm = program.jvm.clone();
    if let Some(run) = summary.seconds {
        let paused = summary.gcs.iter().map(|gc| gc.pause_seconds).fold(0.0, |a, b| a + b);
        let least = if summary.complete && !summary.recovered { "" } else { "at least " };
        jvm += &format!(", ran {least}{}", seconds(run));
        if !summary.gcs.is_empty() {
            jvm += &format!(", {} of it in {}", seconds(paused), counted(summary.gcs.len() as u64, "collection"));
        }
    }
    line(out, "JVM", jvm.trim_start_matches(", "));
    let records = summary.records.get("total").copied().unwrap_or(0);
    let completeness = match &summary.cut_off {
        None if summary.recovered => "recovered",
        None => "complete",
        Some(_) => "cut off",
    };
    let content = match &summary.counts {
        Some(slice) => format!("counts of allocations in slices of {slice}"),
        None => counted(records, "record"),
    };
    let sizes = format!("{}, {content}, {completeness}", bytes(summary.trace_bytes));
    line(out, "trace", &format!("{}, {sizes}", summary.trace));
    if let Some(selected) = &summary.selected {
        line(out, "selected", &format!("only what was allocated {}", selected.text()));
    }
    let whole = summary.allocated;
    line(out, "made", &format!("{}, {}", counted(whole.objects, "object"), bytes(whole.bytes)));
    match &summary.peak {
        Some(peak) => {
            let when = percent(peak.tick, summary.ticks);
            let place = peak.method.as_ref().map_or_else(String::new, |method| format!("in {method}; "));
            let when = if when.is_empty() { when } else { format!(", after {when} of all {}", summary.ticks_of()) };
            line(out, "live", &format!("{} at most{when};", bytes(peak.live.bytes)));
            line(out, "", &format!("{place}{} at the end", bytes(peak.at_the_end.bytes)));
        }
        None if let (Some(_), Some(lives)) = (&summary.selected, &summary.lifetimes) => {
            let alive = lives.alive_at_end;
            let objects = counted(alive.objects, "object");
            line(out, "live", &format!("{objects}, {} at the end", bytes(alive.bytes)));
        }
        None => {
            if let Some(survival) = &summary.survival {
                let when = survival.when_last();
                let most = survival.walks.iter().map(|walk| walk.alive.bytes).max().unwrap_or(0);
                let last = survival.walks.last().map_or(0, |walk| walk.alive.bytes);
                line(out, "live", &format!("{} {when}; {} at most, at any walk", bytes(last), bytes(most)));
                return;
            }
            let used = summary.gcs.last().filter(|gc| gc.heap_used_bytes > 0);
            let heap = used.map_or_else(String::new, |gc| {
                format!("; heap after the last collection: {}", bytes(gc.heap_used_bytes))
            });
            let why =
                if summary.counts.is_some() { "unknown: objects were only counted" } else { "unknown without deaths" };
            line(out, "live", &format!("{why}{heap}"));
        }
    }
}

/// How many of a list are shown on the first screen.
const SHOWN: usize = 3;

fn packages(out: &mut String, summary: &Summary) {
    if summary.packages.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nBytes by package, including what the JDK allocated for it");
    let mut shown = 0;
    for (origin, whose) in [(Origin::Program, "program"), (Origin::Library, "library"), (Origin::Jdk, "JDK")] {
        let lines = summary.packages.iter().filter(|line| line.origin == origin);
        for line in lines.take(if origin == Origin::Jdk { 2 } else { SHOWN }) {
            shown += 1;
            let numbers = amounts(line.amount, summary.allocated);
            entry(out, borrowed(&numbers), &format!("{whose:<8} {}", line.package), "");
        }
    }
    if summary.package_count > shown {
        let _ = writeln!(out, "{:>33}and {} more", "", summary.package_count - shown);
    }
}

fn sites(out: &mut String, summary: &Summary) {
    if summary.sites.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nBytes by site, those of the program and what it asked for first");
    for line in &summary.sites {
        let numbers = amounts(line.amount, summary.allocated);
        let caller = asked_by(line.caller.as_deref(), line.callers, (line.for_callers, line.amount));
        entry(out, borrowed(&numbers), &format!("{}  {}", line.ty, line.site), &caller);
    }
    if summary.stacks.is_none() && !summary.records.iter().any(|(letter, count)| letter == "M" && *count > 0) {
        let _ = writeln!(out, "  their callers are unknown: there are no records of calls");
    }
}

fn grew(out: &mut String, summary: &Summary) {
    let Some(peak) = &summary.peak else { return };
    if summary.grew.is_empty() {
        let _ = writeln!(out, "\nNothing grew: no site has more alive at the end than in the middle of the run");
        return;
    }
    let _ = writeln!(out, "\nGrew: alive at the end, share of all, and growth since the middle of the run");
    for line in summary.grew.iter().take(SHOWN) {
        let more = line.at_the_end.bytes - line.in_the_middle.bytes;
        let numbers = [
            bytes(line.at_the_end.bytes),
            percent(line.at_the_end.bytes, peak.at_the_end.bytes),
            format!("+{}", bytes(more)),
        ];
        let caller = asked_by(line.caller.as_deref(), line.callers, (line.for_callers, line.at_the_end));
        entry(out, borrowed(&numbers), &format!("{}  {}", line.ty, line.site), &caller);
    }
}

fn survived(out: &mut String, summary: &Summary) {
    let Some(survival) = &summary.survival else { return };
    let _ = writeln!(out, "\nCollections survived");
    for row in survival.rows() {
        let _ = writeln!(out, "{:>11} {:>7} {:>11}  {}", row[1], row[2], row[3], row[0]);
    }
    let sites: Vec<_> = survival.sites.iter().filter(|line| line.survived.objects > 0).take(SHOWN).collect();
    if !sites.is_empty() {
        let _ = writeln!(out, "\nBytes that survived a collection, by site");
    }
    for line in sites {
        let numbers = amounts(line.survived, survival.at_least_one);
        let share = percent(line.survived.bytes, line.made.bytes);
        let site = line.site.as_deref().unwrap_or_default();
        entry(out, borrowed(&numbers), &format!("{}  {site}", line.ty), &format!("{share} of what it made"));
    }
}

fn held(out: &mut String, summary: &Summary) {
    // Objects of negligible size exist in every program.
    let least = summary.peak.as_ref().map_or(0, |peak| peak.live.bytes / 100);
    let lines: Vec<_> = summary.held_by_running_methods.iter().filter(|line| line.amount.bytes > least).collect();
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nHeld only by methods running at the end, including everything it holds");
    for line in lines.into_iter().take(SHOWN) {
        let numbers = amounts(line.amount, summary.allocated);
        let how = match line.by {
            HeldBy::Receiver => "receiver of",
            HeldBy::Exception => "thrown in",
            HeldBy::Local => "maybe a local of",
        };
        entry(out, borrowed(&numbers), &format!("{}  {}", line.ty, line.site), &format!("{how} {}", line.method));
    }
}

/// Renders problems. Threads that were still running at the end are normal; `--long` reports them.
fn health(out: &mut String, summary: &Summary) {
    out.push('\n');
    let lost = match (summary.lost, summary.lost_details.discarded_bytes) {
        (0, _) => "nothing lost".into(),
        (lost, 0) => format!("{} lost", counted(lost, "event")),
        (_, discarded) => format!("{} of events discarded, not counted", bytes(discarded)),
    };
    line(out, "health", &lost);
    let mut parts = Vec::new();
    for (count, what) in [
        (summary.anomalies.iter().map(|(_, count)| count).sum(), "event that did not fit"),
        (summary.not_instrumented.classes as u64, "class without hooks"),
        (summary.shortfall_count as u64, "method without some hooks"),
    ] {
        if count > 0 {
            let (one, rest) = what.split_once(' ').unwrap_or((what, ""));
            parts.push(format!("{} {rest}", counted(count, one)));
        }
    }
    if !parts.is_empty() {
        line(out, "", &format!("{}: see --long", parts.join(", ")));
    }
    if let Some(cut) = &summary.cut_off {
        line(out, "", cut);
    }
    let missing = EventSet::ALL
        .names()
        .filter(|name| !summary.events.iter().any(|event| event == name))
        .collect::<Vec<_>>()
        .join(", ");
    if !missing.is_empty() {
        line(out, "", &format!("events: {} only; the classes have no hooks for {missing}", summary.events.join(", ")));
    }
    if let Some(stacks) = &summary.stacks {
        let whole = match stacks.walked_whole {
            0 => String::new(),
            whole => format!("; {} of {} recorded as the VM told them", number(whole), counted(stacks.stacks, "stack")),
        };
        line(out, "", &format!("stacks: {} of allocations{whole}", counted(stacks.frames, "frame")));
        if stacks.beyond_limit > 0 {
            let count = counted(stacks.beyond_limit, "allocation");
            line(
                out,
                "",
                &format!("{count} beyond the limit of stacks have only their nearest callers: run with -Det.stacks=N"),
            );
        }
    }
    for note in summary.survival.iter().flat_map(|survival| survival.notes()) {
        line(out, "", &format!("survival: {note}"));
    }
    for problem in summary.problems.iter().filter(|problem| problem.is_serious()) {
        line(out, "", &format!("the runtime reports: {} ({})", problem.what, number(problem.count)));
    }
    for overlap in &summary.overlaps {
        line(out, "", &format!("the same ids are used by {overlap}: instrument one of them again with --id-base"));
    }
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
