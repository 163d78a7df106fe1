//! The curves as a page that loads nothing.

use et_names::units::{bytes, number, seconds};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::curve::{Curve, draw};
use crate::ops::Tables;

const STYLE: &str = "\
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1560px; padding: 0 1em; color: #222; background: #fff }
svg { width: 100%; height: auto } table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums }
td { white-space: nowrap } th:first-child, td:first-child { text-align: left } code { background: #f4f4f4; padding: 0 .2em; overflow-wrap: anywhere }";

/// Charts, and a table with what they are drawn from.
pub fn page(tables: &Tables, curves: &[Curve], command: &str) -> String {
    let totals = &tables.totals;
    let document: Markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Collectors: " (tables.trace_name()) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "What " code { (tables.trace_name()) } " costs under MMTk's collectors" }
                p {
                    "The trace " code { (tables.trace) } " has " (number(totals.births)) " objects, " (bytes(totals.allocated.bytes)) " allocated, at most "
                    (bytes(totals.peak.bytes)) " alive at a time. Each plan runs in heaps of "
                    "1.25 to 6 times the smallest in which it can, which is given in parentheses."
                }
                (PreEscaped(draw(tables.trace_name(), curves)))
                p {
                    "Times are those of the replay: allocation, stores, and collections are real, and the program's own work is left out. Pauses "
                    "include what the replay needs to list roots, which the last column says."
                }
                table {
                    thead { tr {
                        th { "plan" } th { "times the smallest" } th { "heap" } th { "pauses" } th { "median" } th { "99th percentile" }
                        th { "longest" } th { "total time" } th { "mutator" } th { "copied" } th { "scanned" } th { "replay's own" }
                    } }
                    tbody {
                        @for curve in curves { @for point in &curve.points {
                            @let report = &point.report;
                            @let time = |nanos: u64| seconds(nanos as f64 / 1e9);
                            tr {
                                td { (curve.plan.name()) } td { (format!("{:.2}", point.times)) } td { (bytes(report.heap)) }
                                td { (number(report.collections)) } td { (time(report.pauses.median)) }
                                td { (time(report.pauses.percentile99)) } td { (time(report.pauses.max)) }
                                td { (seconds(report.seconds)) } td { (seconds(report.mutator_seconds)) }
                                td { (bytes(report.copied.bytes)) } td { (bytes(report.scanned.bytes)) }
                                td { (seconds(report.own_seconds)) }
                            }
                        } }
                    }
                }
                p { code { (command) } }
            }
        }
    };
    document.into_string()
}
