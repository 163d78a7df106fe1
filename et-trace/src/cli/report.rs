//! `et-trace report`: a page that shows what a trace tells, or one of its tables as text.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use et_analysis::report::{self, Report, ReportError};
use et_lives::LifeTable;
use et_report::{Table, page, tables};
use et_trace::resolve::Lost;
use et_trace::source::{Deaths, Source};

use super::{CliError, ClockArg, InputArgs, completeness, print, print_json, say, warn, warn_of_lives};
use crate::bar::Bar;
use crate::output::{Kind, Output};

/// Options of `et-trace report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The page to write
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["show", "json"])]
    output: Option<PathBuf>,
    /// Print a table of the report as text: a page (lifetimes), or one of its tables (lifetimes/classes)
    #[arg(long, value_name = "TABLE")]
    show: Option<String>,
    /// Print only the rows in which TEXT stands
    #[arg(long = "match", value_name = "TEXT", requires = "show")]
    matching: Option<String>,
    /// Print all that the report shows as JSON
    #[arg(long, conflicts_with = "show")]
    json: bool,
    /// Replace an output file of any kind, not only a report
    #[arg(long)]
    force: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum NoReport {
    #[error("the report of {path} has no {wanted}; there are: {there}", path = path.display())]
    NoTable { path: PathBuf, wanted: String, there: String },
    #[error(transparent)]
    Population(#[from] et_lives::PopulationError),
    #[error("{path}: {source}", path = path.display())]
    Rows { path: PathBuf, source: ReportError },
}

/// Runs it; says the exit code.
pub fn run(args: &ReportArgs) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let (source, lives) = args.input.open(&bar)?;
    // Begun before the long work: a wrong path shows at once.
    let create = |path: &PathBuf| Output::create(path, Kind::Report, args.force, &[source.path()]);
    let output = args.output.as_ref().map(create).transpose()?;
    let (report, lost) = report_of(&source, lives.as_deref(), args)?;
    drop(bar);
    if args.json {
        print_json(&report)?;
    } else if let Some(wanted) = &args.show {
        print(&shown(&report, source.path(), wanted, args.matching.as_deref())?)?;
    }
    if let Some(mut output) = output {
        let mut writer = BufWriter::new(&mut output);
        let written = writer.write_all(page(&report).as_bytes()).and_then(|()| writer.flush());
        drop(writer);
        written.map_err(|source| output.error(source))?;
        output.finish()?;
    }
    warn_of_lives(lives.as_deref());
    warn(&source, &report.summary.warnings);
    Ok(completeness(&source, lost))
}

/// The tables that were asked for, as text.
fn shown(report: &Report, path: &Path, wanted: &str, matching: Option<&str>) -> Result<String, CliError> {
    let all = tables(report);
    let is_wanted = |table: &&Table| table.id() == wanted || table.page.id() == wanted;
    let chosen: Vec<Table> = all.iter().filter(is_wanted).cloned().collect();
    if chosen.is_empty() {
        let there = all.iter().map(Table::id).collect::<Vec<_>>().join(", ");
        return Err(NoReport::NoTable { path: path.to_owned(), wanted: wanted.to_owned(), there }.into());
    }
    let texts = chosen.into_iter().map(|table| matching.map_or(table.clone(), |text| table.matching(text)).render());
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// What is kept with the life table; the number is that of the report's form.
const KEPT: &str = "report-1.json";

/// The report that was kept with the life table, or a new one.
fn report_of(source: &Source, lives: Option<&LifeTable>, args: &ReportArgs) -> Result<(Report, Lost), CliError> {
    let kept = lives.and_then(|lives| lives.kept(KEPT));
    if let Some(mut report) = kept.and_then(|kept| serde_json::from_slice::<Report>(&kept).ok()) {
        report.summary.trace = source.path().display().to_string();
        let lost = report.summary.lost_details;
        return Ok((report, lost));
    }
    let reading = args.input.reading(ClockArg::Et);
    if source.deaths(reading.deaths) == Deaths::None {
        say(format_args!(
            "{}: note: without deaths the report says nothing of lifetimes, leaks and what was alive",
            source.path().display()
        ));
    }
    let population = et_lives::population(source, lives, reading).map_err(NoReport::from)?;
    let report = report::report(source, &population, reading).map_err(|error| match error {
        ReportError::Read(error) => CliError::from(error),
        source_error => NoReport::Rows { path: source.path().to_owned(), source: source_error }.into(),
    })?;
    let lost = report.summary.lost_details;
    if let Some(lives) = lives
        && report.summary.lost == 0
        && let Ok(kept) = serde_json::to_vec(&report)
    {
        lives.keep(KEPT, &kept);
    }
    Ok((report, lost))
}
