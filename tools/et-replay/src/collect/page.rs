//! The curves as a self-contained HTML page.

use et_names::units::{bytes, number, seconds};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::curve::{Curve, Point, charts};
use super::repeat::Range;
use crate::chart::side_by_side;
use et_simulate::ops::Tables;

/// Style of reports, including print, dark mode and small screens.
const STYLE: &str = concat!(
    include_str!("../../../../crates/report/assets/colours.css"),
    include_str!("../../../../crates/report/assets/report.css")
);
/// Additional style for charts, whose colors are fixed.
const CHARTS: &str = "
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 36rem), 1fr)); gap: 1rem; }
figure.chart { overflow-x: auto; }
.chart svg { width: 100%; min-width: 34rem; height: auto; }
.chart svg rect[fill=\"#FFFFFF\"] { fill: var(--background); }
.chart svg text, .chart svg [fill=\"#000000\"] { fill: var(--text); }
.chart svg [stroke=\"#000000\"] { stroke: var(--text); }
.chart svg [stroke=\"#FFFFFF\"] { stroke: var(--background); }
@media (prefers-color-scheme: dark) { .chart svg polyline { filter: brightness(1.4); } }
.spread { color: var(--muted); display: block; font-size: .85em; }
.scroll thead .number { white-space: normal; vertical-align: bottom; }
/* All rows: there is no text to have the others from. */
@media print {
  .chart svg { min-width: 0; }
  .scroll .number { white-space: normal; }
  .scroll tbody tr:nth-child(n + 21 of :not([hidden])) { display: table-row; }
}
";

const COLUMNS: [&str; 11] = [
    "Times the smallest",
    "Heap",
    "Pauses",
    "Median",
    "99th percentile",
    "Longest",
    "Total time",
    "Mutator",
    "Copied",
    "Scanned",
    "Replay's own",
];

/// The page: charts, and a table of their data.
pub fn page(tables: &Tables, curves: &[Curve], command: &str) -> String {
    let totals = &tables.totals;
    let runs = curves.iter().flat_map(|curve| &curve.points).filter_map(|point| point.spread).map(|spread| spread.runs);
    let document: Markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "et-replay " (env!("CARGO_PKG_VERSION")) };
                title { "Collectors: " (tables.trace_name()) }
                style { (PreEscaped(STYLE)) (PreEscaped(CHARTS)) }
            }
            body {
                header { h1 { "Elephant Tracks " span.program { (tables.trace_name()) } } }
                main {
                    h2 { "What " code { (tables.trace_name()) } " costs under MMTk's collectors" }
                    p {
                        "The trace " code { (tables.trace) } " has " (number(totals.births)) " objects, " (bytes(totals.allocated.bytes)) " allocated, at most "
                        (bytes(totals.peak.bytes)) " alive at a time. Each plan runs in heaps of "
                        "1.25 to 6 times the smallest in which it can, which is given in parentheses."
                    }
                    div.charts {
                        @for chart in charts(tables.trace_name(), curves) {
                            figure.chart tabindex="0" role="img" aria-label=(chart.title) { (PreEscaped(side_by_side(&[chart]))) }
                        }
                    }
                    p {
                        "Times are those of the replay: allocation, stores, and collections are real, and the program's own work is left out. Pauses "
                        "include what the replay needs to list roots, which the last column says. "
                        @match runs.max() {
                            Some(runs) => { "Each is the run of " (runs) " with the median total time; below it, and as bars, the minimum and the maximum." }
                            None => { "Each is of one run: with --repeat 5 the page shows how much runs vary." }
                        }
                    }
                    div.scroll tabindex="0" role="region" aria-label="All replays" {
                        table {
                            thead { tr {
                                th scope="col" { "Plan" }
                                @for column in COLUMNS { th.number scope="col" { (column) } }
                            } }
                            tbody {
                                @for curve in curves { @for point in &curve.points { (row(curve, point)) } }
                            }
                        }
                    }
                    p.command { "Made by " code { (command) } }
                }
                footer { "Made by et-replay " (env!("CARGO_PKG_VERSION")) ". This page loads nothing and sends nothing." }
            }
        }
    };
    document.into_string()
}

fn row(curve: &Curve, point: &Point) -> Markup {
    let (report, spread) = (&point.report, point.spread.as_ref());
    let nanos = |nanos: u64| seconds(nanos as f64 / 1e9);
    html! {
        tr {
            th scope="row" { (curve.plan.name()) }
            td.number { (format!("{:.2}", point.times)) }
            td.number { (bytes(report.heap)) }
            (cell(report.collections, spread.map(|spread| spread.collections), number))
            (cell(report.pauses.median, spread.map(|spread| spread.median_pause), nanos))
            (cell(report.pauses.percentile99, spread.map(|spread| spread.percentile99_pause), nanos))
            (cell(report.pauses.max, spread.map(|spread| spread.longest_pause), nanos))
            (cell(report.seconds, spread.map(|spread| spread.seconds), seconds))
            (cell(report.mutator_seconds, spread.map(|spread| spread.mutator_seconds), seconds))
            td.number { (bytes(report.copied.bytes)) }
            td.number { (bytes(report.scanned.bytes)) }
            td.number { (seconds(report.own_seconds)) }
        }
    }
}

/// A cell with a value, and the range over several runs.
fn cell<T: Copy>(value: T, range: Option<Range<T>>, shown: impl Fn(T) -> String) -> Markup {
    html! {
        td.number {
            (shown(value))
            @if let Some(Range { least, most }) = range { span.spread { (shown(least)) " to " (shown(most)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::repeat::tests::replay_of;
    use super::*;
    use et_simulate::mmtk::Plan;
    use et_simulate::testing::{bytes_of, node};

    fn page_of(seconds: &[u64]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ops");
        std::fs::write(&path, bytes_of(&[node(1)])).unwrap();
        let ops = et_simulate::ops::OpsReader::open(&path).unwrap();
        let replay = replay_of(seconds);
        let point = |times| Point { times, report: replay.report.clone(), spread: replay.spread };
        let curve = Curve { plan: Plan::GenImmix, smallest: 1 << 20, points: vec![point(1.25), point(2.0)] };
        page(ops.tables(), &[curve], "et-replay collect a.ops --curve a.html")
    }

    #[test]
    fn it_looks_as_a_report_does() {
        let page = page_of(&[2]);
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"), "the style sheet");
        assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (2, 2));
        assert!(page.contains("2.0 ms") && page.contains("--repeat 5") && !page.contains("class=\"spread\""), "{page}");
        for loads in ["src=\"", "@import", "url(", "href="] {
            assert!(!page.contains(loads), "{loads}");
        }
    }

    #[test]
    fn the_spread_of_runs_is_in_the_table_and_in_the_curves() {
        let page = page_of(&[5, 1, 9]);
        assert!(page.contains("5.00 s<span class=\"spread\">1.00 s to 9.00 s</span>"), "{page}");
        assert!(page.contains("run of 3 with the median total time"), "{page}");
        // A line per series, and an error bar per point.
        let lines = |page: &str| page.matches("stroke=\"#0072B2\"").count();
        assert_eq!(lines(&page) - lines(&page_of(&[5])), 4, "{page}");
    }
}
