//! What is kept with a life table, so that it need not be worked out again: summaries, reports, and what rows do not tell.

use et_analysis::report::Report;
use et_analysis::summary::Summary;
use et_lives::LifeTable;
use et_reader::observed::Observed;
use et_reader::population::Population;
use et_reader::source::{Deaths, Reading, Source};

use super::{CliError, ClockArg};

/// Entries of lists that are kept with a life table.
pub(super) const KEPT_LINES: usize = 1000;

/// The form of what is kept: a hash of the types that a report and its summary consist of. It is part of the names of the files, so
/// that a version of the program never reads what another wrote in another form. A test computes it from the source.
const FORM: &str = "411c5420";

/// The form of what the rows of a life table do not tell: a hash of its types, as [`FORM`].
const OBSERVED_FORM: &str = "deb72ec6";

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
    format!("summary-{FORM}-{}.json", clock.name())
}

fn observed_file() -> String {
    format!("observed-{OBSERVED_FORM}.json")
}

fn report_file() -> String {
    format!("report-{FORM}.json")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::{Path, PathBuf};

    use et_analysis::summary::{render_long, summarize};
    use et_reader::source::{Reading, Source, TraceSource};
    use et_reader::watch::Watcher;

    use super::{FORM, OBSERVED_FORM, observed};

    /// A run of a real program, without the names of the JDK.
    const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/reader/tests/traces/version-1.trace");

    /// The form of the heap at some moments, which et-lives keeps.
    const GLIMPSES_FORM: &str = "bfe379f1";

    /// Crates that define types of a report.
    const CRATES: [&str; 4] = ["analysis", "format", "names", "reader"];

    /// All types by name, each with its attributes, fields and variants. Types of one name in different modules are one entry:
    /// the form then changes more often than it would have to, which costs nothing but a second computation.
    #[derive(Default)]
    struct Types(BTreeMap<String, String>);

    impl Types {
        fn of_workspace() -> Self {
            let mut types = Self::default();
            for name in CRATES {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates").join(name).join("src");
                let mut files = sources(&folder);
                files.sort();
                for file in files {
                    types.add(&fs::read_to_string(file).unwrap());
                }
            }
            types
        }

        /// The source is formatted by rustfmt: an item that starts at the left margin ends with a line that is a brace there.
        fn add(&mut self, source: &str) {
            let mut attributes = String::new();
            let mut lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
            while let Some(line) = lines.next() {
                let item = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
                let name = item.strip_prefix("struct ").or(item.strip_prefix("enum "));
                if let Some(name) = name {
                    let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
                    let mut text = format!("{attributes}{item}\n");
                    if line.ends_with('{') {
                        lines.by_ref().take_while(|line| *line != "}").for_each(|line| text += &format!("{line}\n"));
                    }
                    *self.0.entry(name[..end].to_owned()).or_default() += &text;
                }
                match line.starts_with("#[serde") {
                    true => attributes += &format!("{line}\n"),
                    false if line.starts_with("#[") => {}
                    false => attributes.clear(),
                }
            }
        }

        /// A type and all types that its fields have.
        fn closure(&self, root: &str) -> String {
            let mut known = BTreeSet::new();
            let mut pending = vec![root];
            while let Some(name) = pending.pop() {
                if let Some((name, text)) = self.0.get_key_value(name)
                    && known.insert(name.as_str())
                {
                    pending.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_'));
                }
            }
            known.iter().map(|name| self.0[*name].as_str()).collect()
        }
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
        files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
    }

    /// FNV-1a, of which the value does not depend on the version of the standard library.
    fn hash(text: &str) -> String {
        let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        format!("{:08x}", text.bytes().fold(0x811c_9dc5, step))
    }

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

    #[test]
    fn the_form_of_what_is_kept_is_that_of_the_types() {
        let types = Types::of_workspace();
        let form = hash(&types.closure("Report"));
        assert_eq!(FORM, form, "the types of reports or summaries have changed: FORM in {} is {form} now", file!());
        let form = hash(&types.closure("Observed"));
        assert_eq!(
            OBSERVED_FORM,
            form,
            "the types of Observed have changed: OBSERVED_FORM in {} is {form} now",
            file!()
        );
        let form = hash(&types.closure("Glimpses"));
        let what =
            "the types of Glimpses have changed: give GLIMPSES in crates/lives another number, and GLIMPSES_FORM here";
        assert_eq!(GLIMPSES_FORM, form, "{what}");
    }

    #[test]
    fn the_types_of_a_report_are_found_with_their_fields() {
        let types = Types::of_workspace();
        let closure = types.closure("Report");
        for part in ["pub retained: Option<Retained>", "pub undecodable_pieces", "struct Amount", "enum Origin", "Jdk,"]
        {
            assert!(closure.contains(part), "{part}");
        }
        assert!(closure.contains("#[serde(rename_all = \"camelCase\")]\nstruct Summary {"));
        assert!(!closure.contains("///") && !closure.contains("struct SummaryArgs"));
    }

    #[test]
    fn each_change_of_a_field_changes_the_form() {
        let form = |source: &str| {
            let mut types = Types::default();
            types.add(source);
            hash(&types.closure("Report"))
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
