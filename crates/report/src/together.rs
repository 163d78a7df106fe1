//! The page that joins reports of several processes, such as the JVMs of one run: their figures side by side, what stands out in each,
//! and links.

use et_analysis::report::{Finding, Report, Weight};
use et_names::units::{bytes, counted, number, seconds};
use maud::{Markup, PreEscaped, html};

use crate::document::START;
use crate::page::program;
use crate::parts::{fact, words};

const STYLE: &str = concat!(include_str!("../assets/colours.css"), include_str!("../assets/report.css"));

/// A process on the joint page.
#[derive(Debug)]
pub struct Part {
    name: String,
    command: String,
    trace: String,
    page: String,
    pid: u32,
    start_unix_millis: u64,
    seconds: Option<f64>,
    is_complete: bool,
    objects: u64,
    bytes: u64,
    peak: Option<u64>,
    findings: Vec<Finding>,
}

impl Part {
    /// What the joint page tells of a report, which is in the file `page` of the same folder.
    pub fn new(report: &Report, page: &str) -> Self {
        let summary = &report.summary;
        Self {
            name: program(report),
            command: summary.program.command.clone(),
            trace: summary.trace.clone(),
            page: page.to_owned(),
            pid: summary.program.pid,
            start_unix_millis: summary.program.start_unix_millis,
            seconds: summary.seconds,
            is_complete: summary.complete,
            objects: summary.allocated.objects,
            bytes: summary.allocated.bytes,
            peak: summary.peak.as_ref().map(|peak| peak.live.bytes),
            findings: report.findings.iter().filter(|finding| finding.weight != Weight::Low).cloned().collect(),
        }
    }
}

/// Renders the joint page. Processes are in the order of their starts.
pub fn together(mut parts: Vec<Part>) -> String {
    parts.sort_by_key(|part| (part.start_unix_millis, part.pid));
    let first = parts.first().map_or(0, |part| part.start_unix_millis);
    let (objects, allocated) = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.objects, sum.1 + part.bytes));
    let processes = counted(parts.len() as u64, "process");
    let markup = html! {
        (PreEscaped(START))
        html lang="en" {
            head {
                meta charset="utf-8";
                // Nothing is loaded, and no script runs.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (processes) " – Elephant Tracks" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { "Elephant Tracks " span.program { (processes) } } }
                main {
                    div.facts {
                        (fact("Processes", &number(parts.len() as u64), "in the order of their starts"))
                        (fact("Allocated", &bytes(allocated), &counted(objects, "object")))
                    }
                    div.scroll { table {
                        thead { tr {
                            th { "Program" } th.number { "Process" } th.number { "Began" } th.number { "Ran" } th.number { "Objects" } th.number { "Bytes" }
                            th.number { "Most alive at once" } th { "Trace" }
                        } }
                        tbody { @for part in &parts { (row(part, first)) } }
                    } }
                    @for part in parts.iter().filter(|part| !part.findings.is_empty()) {
                        h3 { a href=(part.page) { (part.name) } ", process " (part.pid) }
                        div.findings { @for finding in &part.findings {
                            article.finding.(if finding.weight == Weight::High { "high" } else { "medium" }) {
                                h4 { (finding.title) }
                                p { (words(&finding.says)) }
                            }
                        } }
                    }
                    p { "For questions across processes, put their tables into one folder (" code { "et-trace tables" } ") and ask with " code { "et-trace sql" } "." }
                }
                footer { "Made by et-trace " (env!("CARGO_PKG_VERSION")) ". This page loads nothing and sends nothing." }
            }
        }
    };
    markup.into_string()
}

fn row(part: &Part, first: u64) -> Markup {
    let began = part.start_unix_millis.saturating_sub(first) as f64 / 1000.0;
    html! {
        tr {
            td { a href=(part.page) title=(part.command) { (part.name) } @if !part.is_complete { " (cut off)" } }
            td.number { (part.pid) }
            td.number { "+" (seconds(began)) }
            td.number { (part.seconds.map_or_else(|| "?".to_owned(), seconds)) }
            td.number { (number(part.objects)) }
            td.number { (bytes(part.bytes)) }
            td.number { (part.peak.map_or_else(|| "?".to_owned(), bytes)) }
            td { code { (part.trace) } }
        }
    }
}
