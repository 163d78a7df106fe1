//! Building blocks of pages.

use et_analysis::report::{Glance, Piece, Words};
use et_names::shell::quoted;
use et_names::units::number;
use maud::{Markup, html};

use crate::source::{self, Excerpts, source};
use crate::table::{Cell, Table};

pub(crate) fn words(words: &Words) -> Markup {
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

pub(crate) fn fact(name: &str, value: &str, more: &str) -> Markup {
    html! { div.fact { div.name { (name) } div.value { (value) } div.more { (more) } } }
}

/// A part of a whole, from 0 to 1, as a bar. The figure beside it says the same.
pub(crate) fn bar(part: f64) -> Markup {
    html! {
        svg.bar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.whole width="100" height="10" {}
            rect.part width=(format!("{:.1}", part.clamp(0.0, 1.0) * 100.0)) height="10" {}
        }
    }
}

/// What is seen of an entry: a course if there is one, else a bar.
pub(crate) fn glance(glance: &Glance) -> Markup {
    html! {
        span.shape { @if glance.course.len() > 1 { (course(&glance.course)) } @else { (bar(glance.part)) } }
        span.figure { (glance.figure) }
    }
}

pub(crate) fn chart(id: &str, label: &str) -> Markup {
    html! { figure.chart { figcaption { (label) } div id=(id) {} } }
}

/// The command that prints the same as text.
pub(crate) fn command_line(command: &str) -> Markup {
    html! { p.command { "As text: " code { (command) } } }
}

/// A flame graph with its options.
pub(crate) struct Flame<'a> {
    /// Name in the data and display name of each graph.
    pub graphs: &'a [(&'a str, &'a str)],
    /// Display names of its parts, in the order of the data.
    pub parts: &'a [String],
}

pub(crate) fn flame(flame: &Flame<'_>) -> Markup {
    html! {
        div.controls {
            fieldset {
                legend { "Graph" }
                @for (index, (name, label)) in flame.graphs.iter().enumerate() {
                    label { input type="radio" name="flame" value=(name) checked[index == 0]; (label) }
                }
            }
            fieldset {
                legend { "Weight" }
                label { input type="radio" name="flame-measure" value="bytes" checked; "bytes" }
                label { input type="radio" name="flame-measure" value="objects"; "objects" }
            }
            label { "Of " select id="flame-part" {
                @for (index, part) in flame.parts.iter().enumerate() {
                    option value=(index) { (part) }
                }
            } }
            label { "Search " input type="search" id="flame-search" placeholder="part of a name"; }
            button type="button" id="flame-reset" { "Zoom out" }
        }
        p id="flame-details" role="status" aria-live="polite" {}
        div id="flame-class" {}
        div.flame id="flame-graph" {}
    }
}

/// A table; `command` prints it, or with `--match` the matching rows. Sites with a line of source have it below their names.
pub(crate) fn rows(table: &Table, command: &str, excerpts: &Excerpts) -> Markup {
    let id = table.id();
    let caption = format!("caption-{}-{}", table.page, table.name);
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
                        th.command-cell scope="col" { "Command" }
                    } }
                    tbody {
                        @for row in &table.rows {
                            // One line for a site is enough.
                            @let has_line = row.iter().any(|cell| matches!(cell, Cell::Source(_)));
                            @let excerpts = if has_line { &*source::NONE } else { excerpts };
                            tr data-key=(Table::key(row)) {
                                @for (index, cell) in row.iter().enumerate() {
                                    @let is_number = table.columns.get(index).is_some_and(|column| column.is_number);
                                    (self::cell(cell, is_number, index == 0, excerpts))
                                }
                                td.command-cell {
                                    details.command { summary aria-label={ "Show the command that prints " (Table::key(row)) } { "Show" }
                                        code { (command) " --match " (quoted(&Table::key(row))) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if table.rows.len() > PRINTED {
            p.cut { "The first " (PRINTED) " rows; the page has " (number(table.rows.len() as u64)) "." }
        }
        (command_line(command))
    }
}

/// Number of rows that are printed on paper, the same as in the style sheet.
const PRINTED: usize = 20;

/// Whether the column is a list of methods, which would be broken every few letters in a narrow column.
fn is_stack(name: &str) -> bool {
    name.contains(" ← ") || name.contains(" < ")
}

/// A name with line break opportunities after dots, so that it is not broken in the middle of a word.
pub(crate) fn name(name: &str) -> Markup {
    html! {
        code {
            @for (index, part) in name.split('.').enumerate() {
                @if index > 0 { "." wbr; }
                (part)
            }
        }
    }
}

fn cell(cell: &Cell, is_number: bool, is_first: bool, excerpts: &Excerpts) -> Markup {
    let value = cell.value().filter(|_| is_number);
    let class = match cell {
        _ if is_number => Some("number"),
        Cell::Name(name) if is_stack(name) => Some("name long"),
        Cell::Name(_) => Some("name"),
        _ => None,
    };
    let content = match cell {
        Cell::Name(text) => html! { (name(text)) @if let Some(excerpt) = excerpts.get(text) { (source(excerpt)) } },
        Cell::Source(excerpt) => source(excerpt),
        Cell::Course(values) => course(values),
        cell => html! { (cell.text()) },
    };
    match is_first {
        true => html! { th scope="row" { (content) } },
        false => html! { td class=[class] data-value=[value] { (content) } },
    }
}

/// A small line chart.
fn course(values: &[u64]) -> Markup {
    const WIDTH: f64 = 72.0;
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
