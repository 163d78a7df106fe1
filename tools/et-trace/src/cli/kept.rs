//! What is kept with a life table, so that it need not be worked out again: summaries, reports, and what rows do not tell.

use et_analysis::report::Report;
use et_analysis::summary::Summary;
use et_lives::LifeTable;
use et_reader::observed::Observed;
use et_reader::population::Population;
use et_reader::source::{Deaths, Reading, Source};

use super::{CliError, ClockArg};

// The build script has it, too.
#[cfg(test)]
mod forms;

/// Entries of lists that are kept with a life table.
pub(super) const KEPT_LINES: usize = 1000;

/// The form of what is kept: a hash of the types that a report and its summary consist of. It is part of the names of the files, so
/// that a version of the program never reads what another wrote in another form. The build script computes it from the source.
const FORM: &str = env!("ET_FORM_OF_REPORT");

/// The form of what the rows of a life table do not tell: a hash of its types, as [`FORM`].
const OBSERVED_FORM: &str = env!("ET_FORM_OF_OBSERVED");

/// Increased when what is kept means something else though its types are the same.
const MEANING: u32 = 2;

/// All objects of a trace, and what their rows do not tell: kept with the life table, or from one reading of the trace.
/// Without deaths the rows only say how objects were made.
pub(super) fn observed(
    source: &Source,
    lives: Option<&LifeTable>,
    reading: Reading,
) -> Result<(Population, Observed), CliError> {
    let lives = lives.filter(|lives| lives.is_for(source, reading));
    if source.deaths(reading.deaths) == Deaths::None && lives.is_none() {
        return Ok(et_lives::births(source, reading)?);
    }
    match kept_observed(lives) {
        Some(observed) => Ok((et_lives::population(source, lives, reading)?, observed)),
        None => {
            let (population, observed) = et_lives::observe_rows(source, lives, reading)?;
            keep_observed(lives, &observed);
            Ok((population, observed))
        }
    }
}

/// What rows do not tell, if it was kept with the life table.
pub(super) fn kept_observed(lives: Option<&LifeTable>) -> Option<Observed> {
    serde_json::from_slice(&lives?.kept(&observed_file())?).ok()
}

/// Keeps it with the life table, which a trace that lost events does not have.
pub(super) fn keep_observed(lives: Option<&LifeTable>, observed: &Observed) {
    if let Some(lives) = lives
        && let Ok(kept) = serde_json::to_vec(observed)
    {
        lives.keep(&observed_file(), &kept);
    }
}

/// The summary that was kept with the life table, if there is one.
pub(super) fn kept_summary(source: &Source, lives: Option<&LifeTable>, clock: ClockArg) -> Option<Summary> {
    let mut summary: Summary = serde_json::from_slice(&lives?.kept(&summary_file(clock))?).ok()?;
    summary.trace = source.path().display().to_string();
    Some(summary)
}

/// Keeps a summary with the life table, unless events were lost.
pub(super) fn keep_summary(lives: &LifeTable, clock: ClockArg, summary: &Summary) {
    if summary.lost == 0
        && let Ok(kept) = serde_json::to_vec(&summary.clone().cut(KEPT_LINES))
    {
        lives.keep(&summary_file(clock), &kept);
    }
}

/// The report that was kept with the life table, if there is one.
pub(super) fn kept_report(source: &Source, lives: Option<&LifeTable>) -> Option<Report> {
    let mut report: Report = serde_json::from_slice(&lives?.kept(&report_file())?).ok()?;
    report.summary.trace = source.path().display().to_string();
    Some(report)
}

/// Keeps a report with the life table, unless events were lost.
pub(super) fn keep_report(lives: &LifeTable, report: &Report) {
    if report.summary.lost == 0
        && let Ok(kept) = serde_json::to_vec(report)
    {
        lives.keep(&report_file(), &kept);
    }
}

fn summary_file(clock: ClockArg) -> String {
    format!("summary-{FORM}-{MEANING}-{}.json", clock.name())
}

fn observed_file() -> String {
    format!("observed-{OBSERVED_FORM}-{MEANING}.json")
}

fn report_file() -> String {
    format!("report-{FORM}-{MEANING}.json")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use et_analysis::summary::{render_long, summarize};
    use et_reader::source::{Reading, Source, TraceSource};
    use et_reader::watch::Watcher;

    use super::forms::Types;
    use super::observed;

    /// A run of a real program, without the names of the JDK.
    const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/reader/tests/traces/version-1.trace");

    /// The form of the heap at some moments, which et-lives keeps.
    const GLIMPSES_FORM: &str = "8335e403";

    /// Once the rows and what they do not tell are kept, the trace is only opened.
    #[test]
    fn a_summary_of_what_is_kept_reads_no_events() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ettrace");
        fs::copy(REAL, &path).unwrap();
        let summarized = || {
            let mut trace = TraceSource::open(&path).unwrap();
            let watcher = Watcher::watched();
            trace.file.watch(&watcher);
            let lives = et_lives::attach(&mut trace, None);
            let source = Source::from(trace);
            let (population, observed) = observed(&source, lives.as_deref(), Reading::default()).unwrap();
            let summary = summarize(&source, &population, &observed, 5).unwrap();
            (render_long(&summary), watcher.stage().map(|(stage, _)| stage.what))
        };
        let (first, stage) = summarized();
        assert!(stage.is_some());
        assert_eq!(summarized(), (first, None));
    }

    /// The bytes of glimpses are written by et-lives, which gives their file a number.
    #[test]
    fn glimpses_have_the_form_that_their_number_stands_for() {
        let form = Types::of_workspace().unwrap().form("Glimpses").unwrap();
        let what =
            "the types of Glimpses have changed: give GLIMPSES in crates/lives another number, and GLIMPSES_FORM here";
        assert_eq!(GLIMPSES_FORM, form, "{what}");
    }

    #[test]
    fn the_types_of_a_report_are_found_with_their_fields() {
        let types = Types::of_workspace().unwrap();
        let closure = types.closure("Report");
        for part in ["pub retained: Option<Retained>", "pub undecodable_pieces", "struct Amount", "enum Origin", "Jdk,"]
        {
            assert!(closure.contains(part), "{part}");
        }
        assert!(closure.contains("#[serde(rename_all = \"camelCase\")]\nstruct Summary {"));
        assert!(!closure.contains("///") && !closure.contains("struct SummaryArgs"));
    }

    #[test]
    fn names_of_variants_are_no_types() {
        let mut types = Types::default();
        types.add("pub enum When {\n    Share(u64),\n    At(Moment),\n}\n\nstruct Share(u8);\n\nstruct Moment(u8);\n");
        let closure = types.closure("When");
        assert!(closure.contains("struct Moment") && !closure.contains("struct Share"), "{closure}");
        assert!(types.form("Other").is_none());
    }

    #[test]
    fn each_change_of_a_field_changes_the_form() {
        let form = |source: &str| {
            let mut types = Types::default();
            types.add(source);
            types.form("Report").unwrap()
        };
        let base = "/// One.\n#[serde(x)]\npub struct Report {\n    /// Two.\n    pub a: Vec<Line>,\n}\n\npub struct Line {\n    pub b: u8,\n}\n";
        assert_eq!(form(base), form(&base.replace("One", "Three").replace("Two", "Four")));
        assert_eq!(form(base), form(&format!("{base}\npub struct Other {{\n    pub c: u8,\n}}\n")));
        for (from, to) in
            [("pub a", "pub z"), ("b: u8", "b: u16"), ("(x)", "(y)"), ("b: u8,", "b: u8,\n    pub c: u8,")]
        {
            assert_ne!(form(base), form(&base.replace(from, to)), "{from}");
        }
    }
}
