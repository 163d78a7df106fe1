//! The data of the page's script, as JSON in the page.

use std::collections::BTreeMap;

use et_analysis::Excerpt;
use et_analysis::report::{Alive, Axis, Flames, Histogram, LifeLine, Report};
use et_names::shell::quoted;
use serde::Serialize;

use crate::source::Excerpts;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    /// The path of the trace, quoted for a shell.
    trace: String,
    axes: &'a [Axis],
    initial_objects: u64,
    initial_bytes: u64,
    has_deaths: bool,
    /// What the clock counts.
    ticks_of: &'static str,
    flames: &'a Flames,
    alive: Option<&'a Alive>,
    lifetimes: Lifetimes<'a>,
    gcs: Vec<Gc>,
    /// Lines of source, by site.
    sources: BTreeMap<&'a str, &'a Excerpt>,
}

#[derive(Serialize)]
struct Lifetimes<'a> {
    all: Ages<'a>,
    classes: Vec<Ages<'a>>,
    sites: Vec<Ages<'a>>,
}

/// Lifetimes of the objects in a row.
#[derive(Serialize)]
struct Ages<'a> {
    name: &'a str,
    detail: &'a str,
    alive: (u64, u64),
    died: &'a Histogram,
}

#[derive(Serialize)]
struct Gc {
    at: f64,
    pause: f64,
    used: u64,
    committed: u64,
}

fn ages(line: &LifeLine) -> Ages<'_> {
    Ages { name: &line.name, detail: &line.detail, alive: (line.alive.objects, line.alive.bytes), died: &line.died }
}

/// Maximum number of garbage collections that are drawn.
const GCS: usize = 2000;

/// The data of the report's script.
pub(crate) fn json(report: &Report, excerpts: &Excerpts) -> String {
    let step = report.summary.gcs.len().div_ceil(GCS).max(1);
    let gcs = report.summary.gcs.iter().step_by(step).map(|gc| Gc {
        at: gc.start_seconds,
        pause: gc.pause_seconds,
        used: gc.heap_used_bytes,
        committed: gc.heap_committed_bytes,
    });
    let lifetimes = &report.lifetimes;
    let data = Data {
        trace: quoted(&report.summary.trace),
        axes: &report.axes,
        initial_objects: report.initial.objects,
        initial_bytes: report.initial.bytes,
        has_deaths: report.has_deaths,
        ticks_of: report.summary.ticks_of(),
        flames: &report.flames,
        alive: report.alive.as_ref(),
        lifetimes: Lifetimes {
            all: ages(&lifetimes.all),
            classes: lifetimes.classes.iter().map(ages).collect(),
            sites: lifetimes.sites.iter().map(ages).collect(),
        },
        gcs: gcs.collect(),
        sources: excerpts.iter().map(|(site, excerpt)| (site.as_str(), excerpt)).collect(),
    };
    safe_json(&data)
}

/// Serializes to JSON that can be embedded in a page. Cannot fail, since there are only strings, numbers and lists.
pub(crate) fn safe_json(data: &impl Serialize) -> String {
    safe(&serde_json::to_string(data).unwrap_or_default())
}

/// Escapes everything that could end the surrounding element: `<`, `>` and `&` occur in strings only, where JSON allows
/// escapes; likewise the line separators that only JSON allows.
fn safe(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe.push_str(&format!("\\u{:04x}", character as u32)),
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_the_element() {
        let hostile = "</script><script>alert(1)</script><!--&\u{2028}";
        let json = safe(&serde_json::to_string(hostile).unwrap());
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
