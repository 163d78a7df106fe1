//! The page. It is the same for all; what it shows comes by the API.

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::App;

/// Scripts and styles by name. Reports draw with the same libraries; `cargo xtask assets` makes them.
const FILES: [(&str, &str, &str); 7] = [
    ("libraries.js", JAVASCRIPT, include_str!("../../../../crates/report/assets/vendor/libraries.js")),
    ("libraries.css", CSS, include_str!("../../../../crates/report/assets/vendor/libraries.css")),
    ("words.js", JAVASCRIPT, include_str!("../../../../crates/report/assets/words.js")),
    ("common.js", JAVASCRIPT, include_str!("../../../../crates/report/assets/common.js")),
    (
        "common.css",
        CSS,
        concat!(
            include_str!("../../../../crates/report/assets/colours.css"),
            include_str!("../../../../crates/report/assets/report.css")
        ),
    ),
    ("monitor.js", JAVASCRIPT, include_str!("../../assets/monitor.js")),
    ("monitor.css", CSS, include_str!("../../assets/monitor.css")),
];
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// The page itself and its files.
pub fn routes() -> Router<std::sync::Arc<App>> {
    // With the trailing slash, so that relative URLs are below the token.
    Router::new().route("/{token}/", get(|| async { Html(page().into_string()) })).route("/{token}/{file}", get(file))
}

async fn file(Path(name): Path<FileName>) -> Response {
    match FILES.iter().find(|(its, ..)| *its == name.file) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, *kind)], *text).into_response(),
        None => (StatusCode::NOT_FOUND, "no such file\n").into_response(),
    }
}

#[derive(serde::Deserialize)]
struct FileName {
    file: String,
}

const TABS: [(&str, &str); 7] = [
    ("vms", "VMs"),
    ("threads", "Threads"),
    ("heap", "Heap"),
    ("map", "Heap map"),
    ("monitors", "Monitors"),
    ("allocations", "Allocations"),
    ("ask", "Look up"),
];

fn page() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "et-monitor " (env!("CARGO_PKG_VERSION")) };
                title { "Elephant Tracks monitor" }
                @for style in ["libraries.css", "common.css", "monitor.css"] { link rel="stylesheet" href=(style); }
                link rel="icon" href="data:,";
            }
            body {
                header {
                    div.top-line {
                        h1 { "Elephant Tracks monitor" }
                        label id="vm-choice-label" hidden { "VM " select id="vm-choice" {} }
                    }
                    nav aria-label="Pages" {
                        div role="tablist" aria-label="Pages" {
                            @for (index, (id, title)) in TABS.iter().enumerate() {
                                a role="tab" id={ "tab-" (id) } href={ "#" (id) } aria-controls=(id)
                                    aria-selected=(if index == 0 { "true" } else { "false" }) { (title) }
                            }
                        }
                    }
                }
                main {
                    noscript { p.alarm { "This page needs JavaScript: allow it, or use et-monitor ls, threads and heap in a shell." } }
                    p id="notice" role="status" {}
                    @for (id, title) in TABS {
                        section role="tabpanel" id=(id) aria-labelledby={ "tab-" (id) } tabindex="-1" {
                            h2 { (title) }
                            (tab(id))
                        }
                    }
                }
                footer { "et-monitor " (env!("CARGO_PKG_VERSION")) ". Drawn with uPlot, whose licence is in libraries.js. This page talks only to et-monitor on this machine." }
                script type="application/json" id="data" { (PreEscaped("{}")) }
                @for script in ["libraries.js", "words.js", "common.js", "monitor.js"] { script src=(script) {} }
            }
        }
    }
}

fn vms() -> Markup {
    html! {
        p.hint id="vms-none" { "No VM yet. Start one with " code { "-agentpath:…/libet_monitor.so" } ", or call " code { "et-monitor attach PID" } ". They are looked for every two seconds." }
        div.scroll tabindex="0" role="group" aria-label="VMs of this machine" { table id="vm-table" {
            caption.hidden { "VMs of this machine" }
            thead { tr {
                @for title in ["Program", "Process", "VM", "Runs"] { th scope="col" { (title) } }
                @for title in ["Threads", "Heap in use", "Heap"] { th.number scope="col" { (title) } }
                @for title in ["Debugger", "State"] { th scope="col" { (title) } }
            } }
            tbody {}
        } }
        div.controls id="actions" {
            button type="button" id="select" { "Debug at port " span id="selected-port" { "8700" } }
            label { "Exit code " input type="number" id="exit-status" value="0" min="0" max="255"; }
            button type="button" id="exit" { "Exit" }
        }
    }
}

fn rows(id: &str, caption: &str, columns: &[(&str, bool)]) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label=(caption) { table id=(id) {
            caption.hidden { (caption) }
            thead { tr { @for (title, number) in columns { th scope="col" class=[number.then_some("number")] { (title) } } } }
            tbody {}
        } }
    }
}

fn tab(id: &str) -> Markup {
    match id {
        "vms" => vms(),
        "threads" => html! {
            p { span id="thread-count" {} " States twice a second, the latest at the right. Choose a thread to see its stack." }
            div.controls {
                label { "Search " input type="search" id="thread-search" placeholder="part of a name"; }
                ul.legend id="thread-legend" aria-label="Colours of states" {}
            }
            (rows("thread-table", "Threads", &[("Id", true), ("Name", false), ("State", false), ("The last minute", false)]))
            div id="thread-details" aria-live="polite" {}
        },
        "heap" => html! {
            div.controls {
                button type="button" id="gc" { "Collect garbage" }
                label { "File " input type="text" id="dump-path" placeholder="heap-PID-TIME.hprof, here" size="32"; }
                button type="button" id="dump" { "Dump heap" }
                button type="button" id="log-heap" hidden { "Dump heap into the log" }
            }
            div.facts id="heap-facts" {}
            figure.chart { figcaption { "Heap in use, and heap that the VM has committed" } div id="chart-heap" {} }
            p.hint id="heap-hint" {}
            (rows("heap-parts", "Parts of the heap", &[("Part", false), ("In use", true), ("Committed", true), ("At most", true)]))
        },
        "map" => html! {
            p { "The heap from its lowest address to its highest, line by line. An object needs a gap of its size." }
            div.controls {
                button type="button" id="walk-now" { "Now" }
                button type="button" id="walk-gc" { "After a collection" }
                label { input type="checkbox" id="walk-objects"; "count objects" }
                label { input type="checkbox" id="walk-native"; "native heap" }
            }
            p id="map-says" {}
            div.map {
                canvas id="map-canvas" tabindex="0" role="img" aria-label="The heap has not been walked yet" aria-describedby="map-cell" {}
                div {
                    output id="map-cell" aria-live="polite" { "The arrow keys or the mouse go from cell to cell." }
                    (rows("map-totals", "What is in the heap", &[("Colour", false), ("What", false), ("Held by", false), ("Bytes", true), ("Share", true)]))
                    (rows("map-gaps", "Gaps by size", &[("Gaps of at least", true), ("Number", true), ("Bytes", true)]))
                }
            }
        },
        "monitors" => html! {
            p id="monitors-says" {}
            h3 { "Where monitors were waited for" }
            (rows("monitor-places", "Where monitors were waited for", &[
                ("Class of the monitor", false), ("Where", false), ("Contended", true), ("Waited to enter", true), ("Longest", true),
                ("Owner", false), ("wait() calls", true), ("In wait()", true),
            ]))
            h3 { "The latest events" }
            (rows("monitor-events", "The latest events", &[
                ("Time", false), ("Thread", false), ("What", false), ("Where", false), ("Class of the monitor", false), ("Object", false),
                ("Owner", false), ("How long", true),
            ]))
        },
        "allocations" => html! {
            p id="allocations-says" {}
            figure.chart { figcaption { "Bytes allocated per second" } div id="chart-allocations" {} }
            div.controls {
                fieldset { legend { "By" }
                    label { input type="radio" name="allocated-by" value="site" checked; "site" }
                    label { input type="radio" name="allocated-by" value="class"; "class" }
                    label { input type="radio" name="allocated-by" value="context"; "context" }
                }
            }
            (rows("allocation-rows", "What is allocated", &[("Class", false), ("Site", false), ("Objects per second", true), ("Bytes per second", true)]))
        },
        _ => html! {
            p { "What the VM knows about an object, a class, a monitor or a thread. Ids of objects are in the events of monitors and in answers to other questions." }
            form.controls id="ask-form" {
                label { "What " select id="ask-what" {
                    @for (value, title) in [
                        ("histogram", "classes by bytes"), ("instances", "objects of the class"), ("object", "the object"),
                        ("class", "the class"), ("monitor", "the monitor of the object"), ("thread", "the thread"),
                    ] { option value=(value) { (title) } }
                } }
                label { "Id " input type="text" id="ask-id" inputmode="numeric" pattern="[0-9]*" size="12"; }
                button type="submit" { "Look up" }
            }
            div id="ask-answer" aria-live="polite" {}
        },
    }
}
