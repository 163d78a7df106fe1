//! The page: all that can be read without a script is in it; the script draws, sorts and searches.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use et_analysis::report::{Finding, Lack, Page, Piece, Report, Top, Weight, Words};
use et_names::units::{bytes, counted, number, percent, seconds};
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::data;
use crate::shell::quoted;
use crate::table::{Cell, Table};
use crate::tables::tables;

/// How a page begins: who finds it knows what it is.
pub const START: &str = "<!DOCTYPE html><!-- Elephant Tracks report -->";

/// Libraries that draw, with their own styles: made by `cargo xtask assets`.
const LIBRARIES: &str = include_str!("../assets/vendor/libraries.js");
const LIBRARY_STYLE: &str = include_str!("../assets/vendor/libraries.css");
const SCRIPT: &str = include_str!("../assets/report.js");
const STYLE: &str = include_str!("../assets/report.css");

/// The report as one page that loads nothing.
pub fn page(report: &Report) -> String {
    let libraries = LIBRARIES.trim_end();
    let style = format!("{LIBRARY_STYLE}\n{STYLE}");
    // What is not written here does not run: names out of the program are text, whatever they are.
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(libraries),
        hash(SCRIPT),
        hash(&style)
    );
    let tables = tables(report);
    let name = program(report);
    let markup = html! {
        (PreEscaped(START))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "et-trace " (env!("CARGO_PKG_VERSION")) };
                title { (name) " – Elephant Tracks" }
                style { (PreEscaped(&style)) }
            }
            body {
                header {
                    h1 { "Elephant Tracks " span.program { (name) } }
                    nav aria-label="Pages" {
                        div role="tablist" aria-label="Pages" {
                            @for page in Page::ALL {
                                a role="tab" id={ "tab-" (page.id()) } href={ "#" (page.id()) }
                                    aria-controls=(page.id()) aria-selected=(if page == Page::Overview { "true" } else { "false" }) {
                                    (page.title())
                                }
                            }
                        }
                    }
                }
                main {
                    @for page in Page::ALL {
                        section role="tabpanel" id=(page.id()) aria-labelledby={ "tab-" (page.id()) } tabindex="-1" {
                            h2 { (page.title()) }
                            @match page {
                                Page::Overview => (overview(report)),
                                Page::Allocation => (allocation(report)),
                                Page::Alive => (alive(report)),
                                Page::Lifetimes => (lifetimes(report)),
                                Page::Suspects => (suspects(report)),
                                Page::Threads => (threads(report)),
                            }
                            @for table in tables.iter().filter(|table| table.page == page) {
                                (rows(table, &report.summary.trace))
                            }
                        }
                    }
                }
                footer {
                    "Made by et-trace " (env!("CARGO_PKG_VERSION")) " from " code { (report.summary.trace) } ". "
                    "Drawn with uPlot and d3-flame-graph, whose licences are in this page's source. "
                    "This page loads nothing and sends nothing."
                }
                script type="application/json" id="data" { (PreEscaped(data::json(report))) }
                script { (PreEscaped(libraries)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// The program in a word: its main class or jar.
fn program(report: &Report) -> String {
    let command = &report.summary.program.command;
    let mut words = command.split_whitespace().skip(1);
    let mut main = None;
    while let Some(word) = words.next() {
        match word {
            "-cp" | "-classpath" | "--class-path" | "-p" | "--module-path" | "--add-modules" => _ = words.next(),
            "-jar" | "-m" | "--module" => {
                main = words.next();
                break;
            }
            word if word.starts_with('-') || word.starts_with('@') => {}
            word => {
                main = Some(word);
                break;
            }
        }
    }
    // Tests and texts have no command line of a launcher.
    let name = main.or(command.split_whitespace().next()).unwrap_or("a trace");
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

fn words(words: &Words) -> Markup {
    html! {
        @for piece in &words.0 {
            @match piece {
                Piece::Text(text) => (text),
                Piece::Code(text) => code { (text) },
                Piece::Strong(text) => strong { (text) },
            }
        }
    }
}

fn overview(report: &Report) -> Markup {
    let summary = &report.summary;
    let program = &summary.program;
    let records = summary.records.get("total").copied().unwrap_or(0);
    let complete = match &summary.cut_off {
        None if summary.recovered => "recovered",
        None => "complete",
        Some(_) => "cut off",
    };
    let is_broken = summary.lost > 0 || summary.cut_off.is_some();
    html! {
        @if is_broken {
            div.alarm role="note" {
                @for lack in report.lacks.iter().take(usize::from(summary.lost > 0) + usize::from(summary.cut_off.is_some())) {
                    p { strong { (lack.what) ". " } (lack.why) ". " (lack.remedy) "." }
                }
            }
        }
        div.facts {
            (fact("Allocated", &bytes(summary.allocated.bytes), &counted(summary.allocated.objects, "object")))
            @if let Some(peak) = &summary.peak {
                (fact("Most alive at once", &bytes(peak.live.bytes), &format!(
                    "after {} of all calls{}",
                    percent(peak.tick, summary.ticks),
                    peak.method.as_ref().map_or_else(String::new, |method| format!(", in {method}"))
                )))
                (fact("Alive at the end", &bytes(peak.at_the_end.bytes), &counted(peak.at_the_end.objects, "object")))
            }
            @if let Some(run) = summary.seconds {
                (fact("Ran", &seconds(run), &format!("{}, with tracing on", counted(summary.ticks, "call and return").replace("call and returns", "calls and returns"))))
            }
            (fact("Collections", &number(summary.gcs.len() as u64), &format!(
                "{} of pauses",
                seconds(summary.gcs.iter().map(|gc| gc.pause_seconds).fold(0.0, |a, b| a + b))
            )))
        }
        @if !report.findings.is_empty() {
            h3 { "What stands out" }
            div.findings {
                @for finding in &report.findings { (self::finding(finding)) }
            }
        }
        h3 { "Over time" }
        div.controls {
            fieldset {
                legend { "Axis" }
                @for axis in &report.axes {
                    @let (value, label) = match axis.unit {
                        et_analysis::report::AxisUnit::Nanos => ("nanos", "wall time"),
                        et_analysis::report::AxisUnit::Ticks => ("ticks", "calls and returns"),
                        et_analysis::report::AxisUnit::Bytes => ("bytes", "bytes allocated"),
                    };
                    label { input type="radio" name="axis" value=(value); (label) }
                }
            }
            fieldset {
                legend { "Show" }
                label { input type="radio" name="axis-measure" value="bytes" checked; "bytes" }
                label { input type="radio" name="axis-measure" value="objects"; "objects" }
            }
        }
        (chart("chart-live", "What is alive over time, with the collections of the JVM"))
        (chart("chart-rate", "Allocation and deaths over time"))
        p.hint { "Drag over a graph to zoom in, double-click to zoom out. Both graphs move together." }
        h3 { "The first of each list" }
        div.tops {
            @for top in &report.tops { (self::top(top)) }
        }
        h3 { "The run" }
        dl.run {
            dt { "Program" } dd { code { (program.command) } }
            @if !program.jvm.is_empty() { dt { "JVM" } dd { (program.jvm) ", " code { (program.java_home) } } }
            dt { "Trace" } dd { code { (summary.trace) } ", " (bytes(summary.trace_bytes)) ", " (counted(records, "record")) ", " (complete) }
            dt { "Events" } dd { (summary.events.join(", ")) }
            @for (name, value) in program.options.iter().filter(|(name, _)| *name != "program") {
                dt { "Option " code { (name) } } dd { code { (value) } }
            }
        }
        h3 { "What this report cannot tell" }
        ul.lacks {
            @for lack in &report.lacks { (self::lack(lack)) }
        }
        (command_line(&summary.trace, "et-trace summary --long", ""))
    }
}

fn fact(name: &str, value: &str, more: &str) -> Markup {
    html! { div.fact { div.name { (name) } div.value { (value) } div.more { (more) } } }
}

fn finding(finding: &Finding) -> Markup {
    let class = match finding.weight {
        Weight::High => "high",
        Weight::Medium => "medium",
        Weight::Low => "low",
    };
    html! {
        article.finding.(class) {
            h4 { (finding.title) }
            p { (words(&finding.says)) }
            p { a href={ "#" (finding.page.id()) } { "More under " (finding.page.title()) } }
        }
    }
}

fn top(top: &Top) -> Markup {
    html! {
        article.top {
            h4 { (top.title) }
            p.means { (top.means) }
            ol { @for says in &top.says { li { (words(says)) } } }
            p { a href={ "#" (top.page.id()) } aria-label={ "More about " (top.title) } { "More" } }
        }
    }
}

fn lack(lack: &Lack) -> Markup {
    html! {
        li {
            (lack.what)
            @if !lack.why.is_empty() { ": " (lack.why) }
            @if !lack.remedy.is_empty() { "; " (lack.remedy) }
            "."
        }
    }
}

fn chart(id: &str, label: &str) -> Markup {
    html! { figure.chart { figcaption { (label) } div id=(id) {} } }
}

/// What the page lacks without deaths, and what to do.
fn without_deaths(report: &Report, what: &str) -> Option<Markup> {
    let lack = report.lacks.iter().find(|lack| lack.what.starts_with("Deaths"))?;
    Some(
        html! { div.alarm role="note" { p { strong { (what) " needs deaths, which this trace does not tell. " } (lack.why) "; " (lack.remedy) "." } } },
    )
}

fn allocation(report: &Report) -> Markup {
    let limits = &report.flames.limits;
    html! {
        @if !report.has_contexts {
            div.alarm role="note" { p {
                strong { "Calling contexts are not known. " }
                "The graph shows classes and sites without callers: the trace has no records of calls. Instrument with --events that include method, or without --events."
            } }
        }
        p { "Each box is a method, a site or a class, as wide as what was allocated there. Choose one to zoom in; the arrow keys go from box to box, Enter zooms, Escape zooms out." }
        div.controls {
            fieldset {
                legend { "Graph" }
                label { input type="radio" name="flame" value="byContext" checked; "from callers to classes" }
                label { input type="radio" name="flame" value="bySite"; "from sites to callers" }
            }
            fieldset {
                legend { "Weight" }
                label { input type="radio" name="flame-measure" value="bytes" checked; "bytes" }
                label { input type="radio" name="flame-measure" value="objects"; "objects" }
            }
            label { "Of " select id="flame-part" {
                option value="0" { "all that was allocated" }
                @if report.has_deaths {
                    option value="1" { "what is alive at the end" }
                    @for (index, limit) in limits.iter().enumerate() {
                        option value=(index + 2) { "what died within " (bytes(*limit)) }
                    }
                }
            } }
            label { "Search " input type="search" id="flame-search" placeholder="part of a name"; }
            button type="button" id="flame-reset" { "Zoom out" }
        }
        p id="flame-details" role="status" aria-live="polite" {}
        div id="flame-class" {}
        div.flame id="flame-graph" {}
        p.hint {
            "Boxes below " (format!("{:.1}", report.flames.folded_below / 10.0)) " % of everything, by every weight, are folded into the box below them: "
            (number(report.flames.by_context.folded)) " contexts and classes here, " (number(report.flames.by_site.folded)) " callers of sites in the other graph."
        }
        (command_line(&report.summary.trace, "et-trace report --show allocation", ""))
    }
}

fn alive(report: &Report) -> Markup {
    let Some(alive) = &report.alive else {
        return without_deaths(report, "What was alive at a moment").unwrap_or_default();
    };
    let last = alive.moments.len().saturating_sub(1);
    html! {
        p { "Choose a moment: what was alive then, by class, by site, and by the context that made it." }
        div.controls {
            label.wide { "Moment "
                input type="range" id="moment" min="0" max=(last) value=(last) step="1"; }
            output id="moment-says" for="moment" {}
            label { "Search " input type="search" id="alive-search" placeholder="part of a name"; }
        }
        (chart("chart-moment", "Live bytes; choose a moment in the graph or with the slider"))
        p.command { "As text: " code id="moment-command" {} }
        h3 { "Classes alive at that moment" } div id="alive-classes" {}
        h3 { "Sites whose objects were alive" } div id="alive-sites" {}
        h3 { "Contexts that made them" } div id="alive-contexts" {}
    }
}

fn lifetimes(report: &Report) -> Markup {
    if let Some(lack) = without_deaths(report, "Lifetimes") {
        return lack;
    }
    html! {
        p {
            "How old objects become, in bytes that the program allocates between their birth and their death: this is what a collector goes by, "
            "and does not depend on the speed of the machine."
        }
        div.controls {
            fieldset {
                legend { "Weight" }
                label { input type="radio" name="ages-measure" value="bytes" checked; "bytes" }
                label { input type="radio" name="ages-measure" value="objects"; "objects" }
            }
            span id="ages-of" role="status" { "all objects" }
            button type="button" id="ages-all" { "Show all objects" }
        }
        (chart("chart-ages", "Objects by their age at death"))
    }
}

fn suspects(report: &Report) -> Markup {
    if let Some(lack) = without_deaths(report, "Suspicion") {
        return lack;
    }
    html! {
        p {
            "These are heuristics: each says what it looks at. What the trace cannot tell: contents of strings and of arrays of numbers, "
            "so equal strings are not found here."
        }
        @if report.suspects.growing.is_empty() {
            p { "No site has notably more alive at the end than in the middle of the run." }
        }
    }
}

fn threads(report: &Report) -> Markup {
    html! {
        @if report.summary.gcs.is_empty() {
            p { "The JVM did not collect garbage while the program was traced." }
        } @else {
            (chart("chart-gcs", "Heap in use after collections, and what was really alive"))
        }
    }
}

/// The command that prints the same.
fn command_line(trace: &str, command: &str, more: &str) -> Markup {
    let (verb, options) =
        command.split_once(" --").map_or((command, String::new()), |(verb, rest)| (verb, format!(" --{rest}")));
    html! { p.command { "As text: " code { (verb) " " (quoted(trace)) (options) (more) } } }
}

fn rows(table: &Table, trace: &str) -> Markup {
    let id = table.id();
    let caption = format!("caption-{}-{}", table.page.id(), table.name);
    html! {
        h3 id=(caption) { (table.title) }
        p.note { (table.note) }
        @if table.rows.is_empty() {
            p { "Nothing." }
        } @else {
            @if table.rows.len() > 8 {
                p.filter { label { "Filter " input type="search" data-filter=(id) placeholder="part of a name"; } }
            }
            div.scroll tabindex="0" role="region" aria-labelledby=(caption) {
                table data-table=(id) aria-labelledby=(caption) {
                    thead { tr {
                        @for column in &table.columns {
                            th scope="col" class=[column.is_number.then_some("number")] title=[(!column.help.is_empty()).then_some(column.help)] {
                                (column.title)
                            }
                        }
                        th scope="col" { "Command" }
                    } }
                    tbody {
                        @for row in &table.rows {
                            tr data-key=(Table::key(row)) {
                                @for (index, cell) in row.iter().enumerate() {
                                    @let is_number = table.columns.get(index).is_some_and(|column| column.is_number);
                                    (self::cell(cell, is_number, index == 0))
                                }
                                td {
                                    details.command { summary aria-label={ "Command that prints " (Table::key(row)) } { "$" }
                                        code { "et-trace report " (quoted(trace)) " --show " (id) " --match " (quoted(&Table::key(row))) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        (command_line(trace, &format!("et-trace report --show {id}"), ""))
    }
}

fn cell(cell: &Cell, is_number: bool, is_first: bool) -> Markup {
    let value = cell.value().filter(|_| is_number);
    let class = is_number.then_some("number");
    let content = match cell {
        Cell::Name(name) => html! { code { (name) } },
        Cell::Course(values) => course(values),
        cell => html! { (cell.text()) },
    };
    match is_first {
        true => html! { th scope="row" { (content) } },
        false => html! { td class=[class] data-value=[value] { (content) } },
    }
}

/// A small graph.
fn course(values: &[u64]) -> Markup {
    const WIDTH: f64 = 96.0;
    const HEIGHT: f64 = 20.0;
    let most = values.iter().copied().max().unwrap_or(0).max(1) as f64;
    let step = WIDTH / values.len().saturating_sub(1).max(1) as f64;
    let points: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(index, value)| {
            format!("{:.1},{:.1}", index as f64 * step, HEIGHT - 1.0 - (HEIGHT - 2.0) * *value as f64 / most)
        })
        .collect();
    html! {
        svg.course viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT) role="img" aria-label="live bytes over time" {
            polyline points=(points.join(" ")) fill="none" stroke="currentColor" stroke-width="1.5" {}
        }
    }
}
