//! The comparison of runs as a page.

use et_analysis::Flame as Graph;
use et_analysis::diff::{Change, Diff, Line, Table as Lines, more_bytes, relative, spread};
use et_analysis::report::Words;
use et_names::shell::quoted;
use et_names::units::{bytes, counted, number};
use maud::{Markup, html};
use serde::Serialize;

use crate::data::safe_json;
use crate::document::{Document, Tab};
use crate::parts::{Flame, command_line, fact, flame, rows, words};
use crate::table::{Cell, Column, Table, numbers, words as names};

/// The content of a comparison page.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The differences.
    pub diff: &'a Diff,
    /// Origins of what was allocated, after and before.
    pub allocated: Graph,
    /// Origins of what is alive at the end; `None` if unknown.
    pub alive: Option<Graph>,
    /// Trace files of the runs before the change.
    pub before: Vec<String>,
    /// Trace files of the runs after the change.
    pub after: Vec<String>,
}

#[derive(Serialize)]
struct Data<'a> {
    flames: Flames<'a>,
}

#[derive(Serialize)]
struct Flames<'a> {
    allocated: &'a Graph,
    #[serde(skip_serializing_if = "Option::is_none")]
    alive: Option<&'a Graph>,
}

/// Maximum number of callers listed in a row.
const CALLERS: usize = 12;

/// Renders the comparison as one self-contained page.
pub fn diff_page(difference: &Difference<'_>) -> String {
    let Difference { diff, allocated, alive, .. } = difference;
    let command = command(difference);
    let table = |lines: &Lines, name, title: &str, columns: &[&'static str]| {
        let least = format!("{} %", diff.least_share * 100.0);
        let note = format!(
            "{} of {} changed by {least} of all bytes or more. The largest changes come first.",
            number(lines.changed as u64),
            number(lines.all as u64)
        );
        rows(
            &changed(lines, name, title, note, columns, alive.is_some()),
            &format!("{command} --top {}", lines.lines.len().max(10)),
            &crate::source::NONE,
        )
    };
    let tabs = vec![
        Tab { id: "overview", title: "What changed", content: overview(difference, &command) },
        Tab { id: "classes", title: "Classes", content: table(&diff.classes, "classes", "By class", &["Class"]) },
        Tab {
            id: "sites",
            title: "Sites",
            content: table(&diff.sites, "sites", "By method and class", &["Method", "Class"]),
        },
        Tab {
            id: "contexts",
            title: "Contexts",
            content: html! {
                (graph(allocated, alive.as_ref()))
                (table(&diff.contexts, "contexts", "By calling context", &["Method", "Class", "Called from"]))
            },
        },
    ];
    let data = Data { flames: Flames { allocated, alive: alive.as_ref() } };
    let document = Document {
        name: "what changed",
        tabs,
        from: html! { (files(&difference.before)) " and " (files(&difference.after)) },
        json: safe_json(&data),
        script: include_str!("../assets/diff.js"),
    };
    document.render()
}

/// The command that prints the same as text.
fn command(difference: &Difference<'_>) -> String {
    let list = |files: &[String]| files.iter().map(|file| quoted(file)).collect::<Vec<_>>().join(" ");
    let (before, after) = (list(&difference.before), list(&difference.after));
    match (&difference.before[..], &difference.after[..]) {
        ([_], [_]) => format!("et-trace diff {before} {after}"),
        _ => format!("et-trace diff --before {before} --after {after}"),
    }
}

fn files(files: &[String]) -> Markup {
    html! {
        @for (index, file) in files.iter().enumerate() {
            @if index > 0 { ", " }
            code { (file) }
        }
    }
}

fn overview(difference: &Difference<'_>, command: &str) -> Markup {
    let Difference { diff, alive, .. } = difference;
    let total = &diff.total;
    let fact_of = |name: &str, change: &Change, show: &dyn Fn(u64) -> String| {
        let by = match relative(change) {
            by if change.by() == 0 || by.is_empty() => "no change".to_owned(),
            by => by,
        };
        fact(name, &by, &format!("before {}, after {}", spread(change.before, show), spread(change.after, show)))
    };
    html! {
        @for says in says(diff, alive.is_some()) { p { (words(&says)) } }
        div.facts {
            @if alive.is_some() {
                (fact_of("Bytes alive at the end", &total.alive_bytes, &bytes))
                (fact_of("Objects alive at the end", &total.alive_objects, &number))
                (fact_of("Most alive at once", &diff.peak_bytes, &bytes))
            }
            (fact_of("Bytes allocated", &total.bytes, &bytes))
            (fact_of("Objects allocated", &total.objects, &number))
        }
        @if alive.is_none() {
            div.alarm role="note" { p {
                strong { "Live memory is unknown. " }
                "One of the traces has no deaths; instrument with --events all."
            } }
        }
        h3 { "The runs" }
        dl.run {
            dt { "Before" } dd { (files(&difference.before)) }
            dt { "After" } dd { (files(&difference.after)) }
        }
        @if diff.runs.iter().any(|runs| *runs > 1) {
            p.hint { "With several runs the median counts, and the minimum and maximum are in parentheses. Differences within the variation between runs of one side are not listed." }
        }
        p.hint { "Classes, methods and contexts are compared by name: ids, lines and the numbers that the JVM gives to lambdas and proxies do not count." }
        (command_line(command))
    }
}

/// Summary of the differences in sentences.
fn says(diff: &Diff, has_deaths: bool) -> Vec<Words> {
    // What stays alive comes first, since it is what matters most; what is allocated and dies again only costs time.
    let mut says = Vec::new();
    if has_deaths {
        says.push(rather("At the end, ", " is alive", &diff.total.alive_bytes));
    }
    says.push(rather("The program allocates ", "", &diff.total.bytes));
    let place = |line: &Line, what: &str| {
        let by = line.changes.bytes.by();
        let words = Words::new().text(what).code(&line.ty);
        let words = match &line.method {
            Some(method) => words.text(", allocated in ").code(method),
            None => words,
        };
        words.text(": ").strong(more_bytes(by)).text(match relative(&line.changes.bytes).as_str() {
            "" => ".".to_owned(),
            share => format!(" ({share})."),
        })
    };
    match (diff.classes.lines.first(), diff.sites.lines.first()) {
        (None, None) => says.push(Words::new().text(format!(
            "No class, site or context changed by {} % of all bytes or more.",
            diff.least_share * 100.0
        ))),
        (class, site) => {
            says.extend(class.map(|line| place(line, "The class that changed most is ")));
            says.extend(site.map(|line| place(line, "The site that changed most makes ")));
        }
    }
    says
}

/// A sentence like `The program allocates 12.5 % more than before: 45 MiB rather than 40 MiB.`
fn rather(start: &str, verb: &str, change: &Change) -> Words {
    let (before, after) = (change.before.median, change.after.median);
    let words = Words::new().text(start);
    if before == after {
        return words.text(format!("as much{verb} as before: {}.", bytes(after)));
    }
    let share = match before {
        0 => String::new(),
        before => format!("{:.1} % ", (after as f64 / before as f64 - 1.0).abs() * 100.0),
    };
    let direction = if after > before { "more" } else { "less" };
    words.strong(format!("{share}{direction}")).text(format!(
        "{verb} than before: {} rather than {}.",
        bytes(after),
        bytes(before)
    ))
}

fn graph(allocated: &Graph, alive: Option<&Graph>) -> Markup {
    let mut graphs = vec![("allocated", "allocated")];
    graphs.extend(alive.map(|_| ("alive", "alive at the end")));
    let parts = ["after", "before", "increases", "decreases"].map(str::to_owned);
    html! {
        p {
            "Each box is a method or a class, as wide as what was allocated there. "
            "Red boxes have more than before, blue ones less, and darker boxes have changed more. "
            "Choose one to zoom in; the arrow keys go from box to box, Enter zooms, Escape zooms out."
        }
        (flame(&Flame { graphs: &graphs, parts: &parts }))
        p.hint { (counted(allocated.folded, "context")) " and classes too small to be seen are folded into the boxes below them." }
    }
}

/// A table of differences.
fn changed(
    lines: &Lines,
    name: &'static str,
    title: &str,
    note: String,
    columns: &[&'static str],
    has_deaths: bool,
) -> Table {
    // Subject, change and previous value; the callers, which are long, come last.
    let (columns, callers) = columns.split_at(columns.len().min(2));
    let mut all: Vec<Column> = columns.iter().map(|title| names(title)).collect();
    if has_deaths {
        all.push(numbers("Alive", "Change in bytes alive at the end"));
    }
    all.extend([
        numbers("Bytes", "Change in bytes allocated"),
        numbers("Change", "Of what was allocated before"),
        numbers("Objects", "Change in objects allocated"),
        numbers("Before", "Bytes allocated"),
        numbers("After", "Bytes allocated"),
    ]);
    all.extend(callers.iter().map(|title| names(title)));
    let with_callers = !callers.is_empty();
    let rows = lines.lines.iter().map(|line| {
        let Line { ty, method, callers, changes } = line;
        let class = Cell::Name(ty.clone());
        let method = Cell::Name(method.clone().unwrap_or_default());
        let mut row = if columns.len() == 1 { vec![class] } else { vec![method, class] };
        if has_deaths {
            row.push(Cell::MoreBytes(changes.alive_bytes.by()));
        }
        let change = &changes.bytes;
        let share = change.by() as f64 / change.before.median as f64;
        row.extend([
            Cell::MoreBytes(change.by()),
            Cell::Ranked(relative(change), if share.is_finite() { share } else { f64::MAX }),
            Cell::More(changes.objects.by()),
            Cell::Ranked(spread(change.before, bytes), change.before.median as f64),
            Cell::Ranked(spread(change.after, bytes), change.after.median as f64),
        ]);
        if with_callers {
            let callers = callers.iter().flatten();
            let mut calls = callers.clone().take(CALLERS).cloned().collect::<Vec<_>>().join(" < ");
            if callers.count() > CALLERS {
                calls += " < …";
            }
            row.push(Cell::Name(calls));
        }
        row
    });
    let rows = rows.collect();
    Table { page: name, name: "changes", title: title.to_owned(), note, columns: all, rows }
}

#[cfg(test)]
mod tests {
    use et_analysis::diff::Spread;

    use super::*;

    fn change(before: u64, after: u64) -> Change {
        let spread = |value| Spread { median: value, min: value, max: value };
        Change { before: spread(before), after: spread(after) }
    }

    #[test]
    fn what_matters_stands_first() {
        let lines = Lines { lines: Vec::new(), changed: 0, all: 0 };
        let titles = |columns: &[&'static str], has_deaths| {
            let table = changed(&lines, "contexts", "", String::new(), columns, has_deaths);
            table.columns.iter().map(|column| column.title).collect::<Vec<_>>()
        };
        let numbers = ["Alive", "Bytes", "Change", "Objects", "Before", "After"];
        assert_eq!(titles(&["Class"], true), [&["Class"], &numbers[..]].concat());
        assert_eq!(titles(&["Class"], false), [&["Class"], &numbers[1..]].concat());
        let all = ["Method", "Class", "Called from"];
        assert_eq!(titles(&all, true), [&all[..2], &numbers[..], &all[2..]].concat());
    }

    #[test]
    fn words_say_more_less_and_the_same() {
        let text = |words: &Words| words.0.iter().map(|piece| format!("{piece:?}")).collect::<String>();
        let more = text(&rather("", "", &change(4096, 5120)));
        assert!(more.contains("25.0 % more") && more.contains("5.0 KiB rather than 4.0 KiB"), "{more}");
        let less = text(&rather("", "", &change(5120, 4096)));
        assert!(less.contains("20.0 % less"), "{less}");
        let same = text(&rather("", "", &change(7, 7)));
        assert!(same.contains("as much as before: 7 B"), "{same}");
        let from_nothing = text(&rather("", "", &change(0, 7)));
        assert!(from_nothing.contains("\"more\""), "{from_nothing}");
    }
}
