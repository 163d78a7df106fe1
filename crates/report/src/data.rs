//! What the page's script draws, as JSON in the page.

use et_analysis::report::{Alive, Axis, Flames, Histogram, LifeLine, Report};
use et_names::shell::quoted;
use serde::Serialize;

/// All of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    /// The trace, as a shell takes it.
    trace: String,
    axes: &'a [Axis],
    initial_objects: u64,
    initial_bytes: u64,
    has_deaths: bool,
    flames: &'a Flames,
    alive: Option<&'a Alive>,
    lifetimes: Lifetimes<'a>,
    gcs: Vec<Gc>,
}

#[derive(Serialize)]
struct Lifetimes<'a> {
    all: Ages<'a>,
    classes: Vec<Ages<'a>>,
    sites: Vec<Ages<'a>>,
}

/// How old the objects of a row became.
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

/// Collections that are drawn.
const GCS: usize = 2000;

/// What the report's script draws.
pub(crate) fn json(report: &Report) -> String {
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
        flames: &report.flames,
        alive: report.alive.as_ref(),
        lifetimes: Lifetimes {
            all: ages(&lifetimes.all),
            classes: lifetimes.classes.iter().map(ages).collect(),
            sites: lifetimes.sites.iter().map(ages).collect(),
        },
        gcs: gcs.collect(),
    };
    safe_json(&data)
}

/// As JSON that can stand in a page. Strings, numbers and lists: to make JSON of them cannot fail.
pub(crate) fn safe_json(data: &impl Serialize) -> String {
    safe(&serde_json::to_string(data).unwrap_or_default())
}

/// Nothing in it ends the element that it is in: `<`, `>` and `&` stand in strings only, where they can be written in another way; so can the line ends that only JSON allows.
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
