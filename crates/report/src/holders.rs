//! The page "What holds the heap": dominator trees that can be opened level by level, without a script.

use et_analysis::report::{Report, Retained, RetainedLine};
use et_names::shell::quoted;
use et_names::units::{bytes, counted, number, percent};
use maud::{Markup, html};

use crate::parts::{bar, command_line, name};
use crate::tables::{AT_END, AT_PEAK, others};

/// Names of the tables that the page shows as trees.
pub(crate) const TREES: [&str; 2] = [AT_END, AT_PEAK];

/// The trees: when most was alive, and at the end.
pub(crate) fn trees(report: &Report) -> Markup {
    html! {
        p {
            "An object " em { "retains" } " what would be freed with it. Each row opens to the largest objects that it retains; those below 0.5 % of the heap are together, by class where that is more. "
            "What only a running method, a local variable or a native handle held has no static field or thread as its holder. "
            "The heap at the peak is, in large traces, that of the largest of the moments at which it was looked at."
        }
        @match (&report.retained_at_peak, &report.retained) {
            (Some(peak), Some(end)) => {
                (tree(report, peak, AT_PEAK, "At the peak"))
                (tree(report, end, AT_END, "At the end"))
            }
            (None, Some(end)) => (tree(report, end, AT_END, when_most(report))),
            (_, None) => {}
        }
    }
}

/// What the end is called where it stands for the peak.
fn when_most(report: &Report) -> &'static str {
    match &report.summary.peak {
        Some(peak) if peak.live.bytes > peak.at_the_end.bytes => {
            "At the end, when nearly as much was alive as at the peak"
        }
        _ => "At the end, when most was alive",
    }
}

fn tree(report: &Report, heap: &Retained, table: &str, title: &str) -> Markup {
    let trace = quoted(&report.summary.trace);
    let id = format!("tree-{table}");
    html! {
        h3 id=(id) { (title) }
        p.note {
            (bytes(heap.bytes)) " in " (counted(heap.count, "object")) ", after " (percent(heap.tick, report.summary.ticks)) " of all " (report.summary.ticks_of()) "."
        }
        div.tree role="group" aria-labelledby=(id) { (rows(&heap.objects, heap.bytes, true)) }
        (command_line(&format!("et-trace report {trace} --show holders/{table}")))
        p.command { "Everything: " code { "et-trace heap " (trace) " --at tick:" (heap.tick) " --dominators" } }
    }
}

/// The rows of the first level, each with those below it. The first is open, so that it is seen that rows can be.
fn rows(lines: &[RetainedLine], whole: u64, is_first: bool) -> Markup {
    let Some(level) = lines.first().map(|line| line.level) else { return html! {} };
    let starts = lines.iter().enumerate().filter(|(_, line)| line.level == level).map(|(at, _)| at);
    let ends = starts.clone().skip(1).chain([lines.len()]);
    let parts: Vec<&[RetainedLine]> = starts.zip(ends).map(|(start, end)| &lines[start..end]).collect();
    html! {
        ul {
            @for (at, part) in parts.into_iter().enumerate() {
                li {
                    @if part.len() > 1 {
                        details.unfold open[is_first && at == 0] {
                            summary { (row(&part[0], whole)) }
                            (rows(&part[1..], whole, false))
                        }
                    } @else {
                        div.leaf { (row(&part[0], whole)) }
                    }
                }
            }
        }
    }
}

fn row(line: &RetainedLine, whole: u64) -> Markup {
    let part = if whole == 0 { 0.0 } else { line.retained as f64 / whole as f64 };
    html! {
        span.held {
            (bar(part))
            span.number { (bytes(line.retained)) }
            span.number { (percent(line.retained, whole)) }
            @match &line.object {
                None if line.class.is_empty() => span.what { (number(line.objects)) " " (others(line)) },
                None => span.what { (number(line.objects)) " × " (name(&line.class)) },
                Some(id) => span.what {
                    (name(&line.class)) " "
                    span.muted { "object " code { (id) } }
                    @if let Some(site) = &line.site { span.muted { " made in " (name(site)) } }
                    @if !line.holder.is_empty() { span.muted { " held by " (name(&line.holder)) } }
                },
            }
        }
    }
}
