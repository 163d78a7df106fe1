//! The report as a page.

use et_analysis::report::{AxisUnit, Finding, Glance, Lack, LackKind, Page, Report, Top, Weight};
use et_analysis::survival::SurvivalPart;
use et_names::shell::quoted;
use et_names::units::{bytes, counted, counted_as, number, percent, seconds};
use maud::{Markup, html};

use crate::data;
use crate::document::{Document, Tab};
use crate::holders::{TREES, trees};
use crate::parts::{Flame, chart, command_line, fact, flame, glance, name, rows, words};
use crate::source::{self, Excerpts, source};
use crate::table::Table;
use crate::tables::tables;

/// Renders the report as one self-contained page.
pub fn page(report: &Report) -> String {
    page_with(report, Vec::new(), &source::NONE)
}

/// The same with further tables, each at the end of its page, and with lines of source at sites.
pub fn page_with(report: &Report, more: Vec<Table>, excerpts: &Excerpts) -> String {
    let mut tables = tables(report);
    tables.extend(more);
    let trace = quoted(&report.summary.trace);
    let is_tree = |table: &Table| table.page == Page::Holders.id() && TREES.contains(&table.name);
    let tab = |page: Page| {
        let content = match page {
            Page::Overview => overview(report, excerpts),
            Page::Allocation => allocation(report),
            Page::Alive => alive(report),
            Page::Lifetimes => lifetimes(report),
            Page::Holders => holders(report),
            Page::Suspects => suspects(report),
            Page::Threads => threads(report),
        };
        let content = html! {
            (content)
            @for table in tables.iter().filter(|table| table.page == page.id() && !is_tree(table)) {
                (rows(table, &format!("et-trace report {trace} --show {}", table.id()), excerpts))
            }
        };
        Tab { id: page.id(), title: page.title(), content }
    };
    let document = Document {
        name: &program(report),
        tabs: Page::ALL.into_iter().map(tab).collect(),
        from: html! { code { (report.summary.trace) } },
        json: data::json(report, excerpts),
        script: include_str!("../assets/report.js"),
    };
    document.render()
}

/// Short name of the program: its main class or jar.
pub(crate) fn program(report: &Report) -> String {
    let command = &report.summary.program.command;
    // The command of a JVM that another has started begins with the main class.
    let is_launcher = |word: &&str| *word == "java" || word.ends_with("/java");
    let skipped = usize::from(command.split_whitespace().next().as_ref().is_some_and(is_launcher));
    let mut words = command.split_whitespace().skip(skipped);
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
    // Tests and texts have no launcher's command line.
    let name = main.or(command.split_whitespace().next()).unwrap_or("a trace");
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

fn overview(report: &Report, excerpts: &Excerpts) -> Markup {
    let summary = &report.summary;
    let program = &summary.program;
    let records = summary.records.get("total").copied().unwrap_or(0);
    let complete = match &summary.cut_off {
        None if summary.recovered => "recovered",
        None => "complete",
        Some(_) => "cut off",
    };
    let damage: Vec<&Lack> = report.lacks.iter().filter(|lack| lack.kind.is_damage()).collect();
    html! {
        @if !damage.is_empty() {
            div.alarm role="note" {
                @for lack in damage {
                    p { strong { (lack.kind.what()) ". " } (lack.why) "; " (lack.kind.remedy()) "." }
                }
            }
        }
        @if let Some(lack) = report.lack(LackKind::Others) {
            div.alarm role="note" { p { strong { "This report is of " (lack.why) ". " } (lack.kind.remedy()) "." } }
        }
        div.facts {
            (fact("Allocated", &bytes(summary.allocated.bytes), &counted(summary.allocated.objects, "object")))
            @if let Some(peak) = &summary.peak {
                (fact("Most alive at once", &bytes(peak.live.bytes), &format!(
                    "after {} of all {}{}",
                    percent(peak.tick, summary.ticks),
                    summary.ticks_of(),
                    peak.method.as_ref().map_or_else(String::new, |method| format!(", in {method}"))
                )))
                (fact("Alive at the end", &bytes(peak.at_the_end.bytes), &counted(peak.at_the_end.objects, "object")))
            }
            @if report.lack(LackKind::Others).is_some() && report.has_deaths {
                @let alive = report.lifetimes.all.alive;
                (fact("Alive at the end", &bytes(alive.bytes), &counted(alive.objects, "object")))
            }
            @if let Some(survival) = &summary.survival {
                @let last = survival.walks.last().map(|walk| walk.alive).unwrap_or_default();
                (fact("Still there", &bytes(last.bytes), &format!("{}, {}", counted(last.objects, "object"), survival.when_last())))
            }
            @if let Some(run) = summary.seconds {
                @let calls = summary.has_calls().then(|| counted_as(summary.ticks, "call or return", "calls and returns") + ", ");
                (fact("Ran", &seconds(run), &format!("{}with tracing on", calls.unwrap_or_default())))
            }
            (fact("Collections", &number(summary.gcs.len() as u64), &format!(
                "{} of pauses",
                seconds(summary.gcs.iter().map(|gc| gc.pause_seconds).fold(0.0, |a, b| a + b))
            )))
        }
        @if !report.findings.is_empty() {
            h3 { "What stands out" }
            @let (first, more) = report.findings.split_at(report.findings.len().min(FINDINGS));
            div.standouts { @for finding in first { (self::finding(finding, excerpts)) } }
            @if !more.is_empty() {
                details.unfold.more {
                    summary { (number(more.len() as u64)) " more" }
                    div.standouts { @for finding in more { (self::finding(finding, excerpts)) } }
                }
            }
        }
        h3 { "Over time" }
        div.controls {
            (axes(report, "axis"))
            fieldset {
                legend { "Show" }
                label { input type="radio" name="axis-measure" value="bytes" checked; "bytes" }
                label { input type="radio" name="axis-measure" value="objects"; "objects" }
            }
        }
        (chart("chart-live", "What is alive over time, with the collections of the JVM"))
        details.unfold.more id="rates" {
            summary { "Allocation and deaths over time" }
            (chart("chart-rate", "Allocation and deaths over time"))
            p.hint { "Both graphs move together." }
        }
        p.hint { "Drag over a graph to zoom in, double-click to zoom out." }
        h3 { "Top entries" }
        div.tops {
            @for top in &report.tops { (self::top(top)) }
        }
        details.unfold.more {
            summary { h3 { "The run" } }
            dl.run {
                dt { "Program" } dd { code { (program.command) } }
                @if !program.jvm.is_empty() { dt { "JVM" } dd { (program.jvm) ", " code { (program.java_home) } } }
                dt { "Trace" } dd { code { (summary.trace) } ", " (bytes(summary.trace_bytes)) ", " (counted(records, "record")) ", " (complete) }
                dt { "Events" } dd { (summary.events.join(", ")) }
                @for (name, value) in program.options.iter().filter(|(name, _)| *name != "program") {
                    dt { "Option " code { (name) } } dd { code { (value) } }
                }
            }
        }
        details.unfold.more {
            summary { h3 { "What this report does not show" } }
            ul.lacks {
                @for lack in &report.lacks { (self::lack(lack)) }
            }
        }
        (command_line(&format!("et-trace summary {} --long", quoted(&summary.trace))))
    }
}

/// Findings that are seen at once.
const FINDINGS: usize = 5;

/// A choice of the axes that the trace has; the script chooses the first.
fn axes(report: &Report, name: &str) -> Markup {
    let text = |unit| match unit {
        AxisUnit::Nanos => ("nanos", "wall time"),
        AxisUnit::Ticks => ("ticks", "calls and returns"),
        AxisUnit::Bytes => ("bytes", "bytes allocated"),
    };
    html! {
        fieldset {
            legend { "Axis" }
            @for (value, label) in report.axes.iter().filter(|axis| axis.unit != AxisUnit::Ticks || report.summary.has_calls()).map(|axis| text(axis.unit)) {
                label { input type="radio" name=(name) value=(value); (label) }
            }
        }
    }
}

fn finding(finding: &Finding, excerpts: &Excerpts) -> Markup {
    let class = match finding.weight {
        Weight::High => "high",
        Weight::Medium => "medium",
        Weight::Low => "low",
    };
    html! {
        article.finding.(class) {
            details.unfold {
                summary {
                    h4 { (finding.title) }
                    span.about { (name(&finding.glance.name)) }
                    (glance(&finding.glance))
                }
                p { (words(&finding.says)) }
                @for excerpt in finding.says.codes().filter_map(|site| excerpts.get(site)) { (source(excerpt)) }
                p { a href={ "#" (finding.page.id()) } { "More under " (finding.page.title()) } }
            }
        }
    }
}

fn top(top: &Top) -> Markup {
    let to = format!("#{}", top.page.id());
    html! {
        article.top {
            h4 { (top.title) }
            p.means { (top.means) }
            ol.bars {
                @for entry in &top.glances {
                    li { a href=(to) { span.about { (name(&entry.name)) } (glance(entry)) } }
                }
            }
            details.unfold {
                summary aria-label={ (top.title) " in words" } { "In words" }
                ol { @for says in &top.says { li { (words(says)) } } }
                p { a href=(to) aria-label={ "More about " (top.title) } { "More" } }
            }
        }
    }
}

fn lack(lack: &Lack) -> Markup {
    html! {
        li {
            (lack.kind.what()) ": " (lack.why)
            @if !lack.kind.remedy().is_empty() { "; " (lack.kind.remedy()) }
            "."
        }
    }
}

/// A note about what is missing from the page without deaths, and how to get it; `None` if there are deaths.
fn without_deaths(report: &Report, what: &str) -> Option<Markup> {
    let lack = report.lack(LackKind::Deaths)?;
    Some(html! {
        div.alarm role="note" { p {
            strong { (what) " cannot be computed without deaths. " }
            (lack.why) "; " (lack.kind.remedy()) "."
        } }
    })
}

fn allocation(report: &Report) -> Markup {
    let mut parts = vec!["all that was allocated".to_owned()];
    if report.has_deaths {
        parts.push("what is alive at the end".to_owned());
        parts.extend(report.flames.limits.iter().map(|limit| format!("what died within {}", bytes(*limit))));
    } else if let Some(survival) = &report.summary.survival {
        parts.extend([survival.last_walk().to_owned(), "what survived a collection".to_owned()]);
    }
    html! {
        @if !report.has_contexts {
            div.alarm role="note" { p {
                strong { "Calling contexts are unknown. " }
                "The graph shows classes and sites without callers: the trace has no records of calls. Instrument with --events that include method, or without --events."
            } }
        }
        p { "Each box is a method, a site or a class, as wide as what was allocated there. Choose one to zoom in; the arrow keys go from box to box, Enter zooms, Escape zooms out." }
        (flame(&Flame { graphs: &[("byContext", "from callers to classes"), ("bySite", "from sites to callers")], parts: &parts }))
        p.hint {
            "Boxes below " (format!("{:.1}", report.flames.folded_below / 10.0)) " % of everything, by every weight, are folded into the box below them: "
            (number(report.flames.by_context.folded)) " contexts and classes here, " (number(report.flames.by_site.folded)) " callers of sites in the other graph."
        }
        (command_line(&format!("et-trace report {} --show allocation", quoted(&report.summary.trace))))
    }
}

fn alive(report: &Report) -> Markup {
    let Some(alive) = &report.alive else {
        return without_deaths(report, "Live objects").unwrap_or_default();
    };
    let last = alive.moments.len().saturating_sub(1);
    html! {
        p { "Choose a moment: what was alive then, by class, by site, and by the context that allocated it." }
        div.controls {
            label.wide { "Moment "
                input type="range" id="moment" min="0" max=(last) value=(last) step="1"; }
            output id="moment-says" for="moment" {}
            label { "Search " input type="search" id="alive-search" placeholder="part of a name"; }
            (axes(report, "alive-axis"))
        }
        (chart("chart-moment", "Live bytes; choose a moment in the graph or with the slider"))
        p.command { "As text: " code id="moment-command" {} }
        p.command { "With what they retain: " code id="heap-command" {} }
        h3 { "Classes alive at that moment" } div id="alive-classes" {}
        h3 { "Sites whose objects were alive" } div id="alive-sites" {}
        h3 { "Contexts that allocated them" } div id="alive-contexts" {}
    }
}

/// Which collections objects survived, where deaths are not known.
fn survival(report: &Report, survival: &SurvivalPart) -> Markup {
    let last = survival.walks.last().map_or(0, |walk| walk.alive.bytes);
    let found = Glance {
        figure: format!("{} {}", bytes(last), survival.when_last()),
        course: survival.walks.iter().map(|walk| walk.alive.bytes).collect(),
        ..Glance::default()
    };
    html! {
        p {
            "When exactly objects die is not known. After collections the runtime looked which of them were still there: "
            "an object has survived the collections between its birth and the last walk through the heap that found it."
        }
        h3 { "What walks through the heap found" }
        p { (glance(&found)) }
        ul { @for note in survival.notes() { li { (note) } } }
        p.hint { "Stacks that made what survived are under " a href={ "#" (Page::Allocation.id()) } { (Page::Allocation.title()) } ", by the weight of the graph." }
        p.hint { "Exact deaths need references and calls: run with --mode everything." }
        (command_line(&format!("et-trace objects {} --sort survived", quoted(&report.summary.trace))))
    }
}

fn lifetimes(report: &Report) -> Markup {
    if let Some(part) = report.summary.survival.as_ref().filter(|_| !report.has_deaths) {
        return survival(report, part);
    }
    if let Some(lack) = without_deaths(report, "Lifetimes") {
        return lack;
    }
    html! {
        p {
            "The age of objects at death, in bytes that the program allocates between their birth and their death: the clock of a collector, "
            "which does not depend on the speed of the machine."
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

fn holders(report: &Report) -> Markup {
    if let Some(lack) = without_deaths(report, "What holds the heap") {
        return lack;
    }
    match report.lack(LackKind::Others) {
        Some(lack) => html! { p { (lack.kind.what()) "." } },
        None => trees(report),
    }
}

fn suspects(report: &Report) -> Markup {
    if let Some(lack) = without_deaths(report, "Suspects") {
        return lack;
    }
    html! {
        p {
            "These are heuristics: each says what it looks at. Contents of strings and primitive arrays are not in the trace, "
            "so equal strings are not found here."
        }
        @if let Some(lack) = report.lack(LackKind::Others) {
            p { (lack.kind.what()) "." }
        } @else if report.suspects.holdings.is_empty() {
            p { "Nothing keeps growing notably to the end of the run." }
        }
    }
}

fn threads(report: &Report) -> Markup {
    html! {
        @if report.summary.gcs.is_empty() {
            p { "The JVM did not collect garbage while the program was traced." }
        } @else {
            (chart("chart-gcs", "Heap in use after collections, and what was actually alive"))
        }
    }
}
