//! `et-trace report`: a page about a trace, or one of its tables as text.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use et_analysis::heap::Moment;
use et_analysis::report::{self, Lack, LackKind, Report, ReportError};
use et_analysis::summary::{summarize, summarize_selected};
use et_analysis::{Selection, ShownStacks};
use et_format::BlockKind;
use et_lives::LifeTable;
use et_names::units::counted;
use et_reader::resolve::Lost;
use et_reader::source::{Deaths, Reading, Source};
use et_report::{Excerpts, Part, Table, alive_at, page_with, tables, together};
use serde::Serialize;

use super::kept::{KEPT_LINES, keep_report, keep_summary, kept_report, kept_summary, observed};
use super::select::{SelectArgs, select};
use super::sources::{SiteLine, SourceArgs, SourcesError, site_lines, table};
use super::stacks::{StacksArgs, show};
use super::{CliError, ClockArg, InputArgs, PROGRAM, completeness, warn, warn_of_lives};
use crate::bar::Bar;
use crate::output::{Kind, Output};
use et_cli::code::OK;
use et_cli::{print, print_json};

/// Options of `et-trace report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    stacks: StacksArgs,
    /// Further traces, of other JVMs of the same run: FILE is then a folder, which gets a page for each and one that joins them
    #[arg(value_name = "TRACE", conflicts_with_all = ["show", "json", "with_names", "lives", "threads", "from", "to", "fold", "hide"])]
    others: Vec<PathBuf>,
    /// HTML file to write
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["show", "json"])]
    output: Option<PathBuf>,
    /// Print a table of the report as text: a page (lifetimes), or one of its tables (lifetimes/classes)
    #[arg(long, value_name = "TABLE")]
    show: Option<String>,
    /// Print only the rows that contain TEXT
    #[arg(long = "match", value_name = "TEXT", requires = "show")]
    matching: Option<String>,
    /// For the tables of what was alive at a moment (alive/classes, alive/sites, alive/contexts): 40% (of calls and returns),
    /// 12.5s, tick:N, bytes:N (allocated) or end. The report has 64 moments; the last one not after this moment is shown
    #[arg(long, value_name = "MOMENT", requires = "show", default_value_t = Moment::End)]
    at: Moment,
    /// Print everything that the report shows as JSON
    #[arg(long, conflicts_with = "show")]
    json: bool,
    #[command(flatten)]
    sources: SourceArgs,
    /// Replace an output file of any kind, not only a report
    #[arg(long)]
    force: bool,
}

/// The page that joins several reports.
const INDEX: &str = "index.html";

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum NoReport {
    #[error("the report of {path} has no page or table {wanted}; it has: {there}", path = path.display())]
    NoTable { path: PathBuf, wanted: String, there: String },
    #[error("the report of {path} does not record when methods are entered: use et-trace heap --at", path = path.display())]
    Entry { path: PathBuf },
    #[error("cannot make the folder {path} for several reports: {source}", path = path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("{path}: {source}", path = path.display())]
    Rows { path: PathBuf, source: ReportError },
    #[error(transparent)]
    Sources(#[from] SourcesError),
}

/// Runs it; says the exit code.
pub fn run(args: &ReportArgs) -> Result<u8, CliError> {
    if !args.others.is_empty()
        && let Some(folder) = &args.output
    {
        return several(args, folder);
    }
    let bar = Bar::new(true);
    let (source, lives) = args.input.open_for_rows(ClockArg::Et, &bar)?;
    // Begun before the long work: a wrong path shows at once.
    let create = |path: &PathBuf| Output::create(path, Kind::Report, args.force, &[source.path()]);
    let output = args.output.as_ref().map(create).transpose()?;
    let mut sources = args.sources.open().map_err(NoReport::from)?;
    let reading = args.input.reading(ClockArg::Et);
    let (selection, stacks) = (args.select.selection(), args.stacks.shown());
    let (report, lost) = match selection.is_all() && stacks.is_whole() {
        true => report_of(&source, lives.as_deref(), reading)?,
        false => other_report(&source, lives.as_deref(), reading, &selection, &stacks)?,
    };
    drop(bar);
    let excerpts = sources.of_report(&report, &source);
    let lines = (!sources.is_empty()).then(|| lines_of(&report, &excerpts));
    let more: Vec<Table> = lines.iter().map(|lines| table(lines)).collect();
    if args.json {
        print_json(&WithLines { report: &report, source: lines.as_deref() })?;
    } else if let Some(wanted) = &args.show {
        print(&shown(&report, &more, source.path(), wanted, args)?)?;
    }
    if let Some(output) = output {
        output.write_whole(page_with(&report, more, &excerpts).as_bytes())?;
    }
    warn_of_lives(lives.as_deref());
    warn(&source, &report.summary.warnings);
    Ok(completeness(&source, lost))
}

/// A report as JSON.
#[derive(Serialize)]
struct WithLines<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a [SiteLine<'a>]>,
}

/// The lines of sites; says once how many have none.
fn lines_of<'r>(report: &'r Report, excerpts: &Excerpts) -> Vec<SiteLine<'r>> {
    let (lines, missing) = site_lines(report, excerpts);
    if missing > 0 {
        let of = counted((lines.len() + missing) as u64, "site");
        let path = report.summary.trace.as_str();
        PROGRAM.say(format_args!("{path}: note: --source: no line of source for {missing} of {of}"));
    }
    lines
}

/// Reports of several traces in a folder, and `index.html`, which joins them.
fn several(args: &ReportArgs, folder: &Path) -> Result<u8, CliError> {
    fs::create_dir_all(folder).map_err(|source| NoReport::Folder { path: folder.to_owned(), source })?;
    let mut sources = args.sources.open().map_err(NoReport::from)?;
    let mut names = HashSet::from([INDEX.to_owned()]);
    let (mut code, mut parts) = (OK, Vec::new());
    for trace in std::iter::once(&args.input.trace).chain(&args.others) {
        let bar = Bar::new(true);
        let input = InputArgs::of(trace.clone(), args.input.deaths, args.input.no_lives);
        let (source, lives) = input.open_for_rows(ClockArg::Et, &bar)?;
        let name = page_name(trace, &mut names);
        let output = Output::create(&folder.join(&name), Kind::Report, args.force, &[source.path()])?;
        let (report, lost) = report_of(&source, lives.as_deref(), input.reading(ClockArg::Et))?;
        drop(bar);
        let excerpts = sources.of_report(&report, &source);
        let more = (!sources.is_empty()).then(|| table(&lines_of(&report, &excerpts)));
        output.write_whole(page_with(&report, more.into_iter().collect(), &excerpts).as_bytes())?;
        warn_of_lives(lives.as_deref());
        warn(&source, &report.summary.warnings);
        code = code.max(completeness(&source, lost));
        parts.push(Part::new(&report, &name));
    }
    Output::create(&folder.join(INDEX), Kind::Report, args.force, &[])?.write_whole(together(parts).as_bytes())?;
    Ok(code)
}

/// A name for the page of a trace that no other page has.
fn page_name(trace: &Path, taken: &mut HashSet<String>) -> String {
    let stem = trace.file_stem().map_or_else(|| "trace".into(), |stem| stem.to_string_lossy());
    // It becomes a link.
    let stem: String = stem.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    let numbered = (2..).map(|number| format!("{stem}-{number}.html"));
    let name = std::iter::once(format!("{stem}.html")).chain(numbered).find(|name| !taken.contains(name));
    let name = name.unwrap_or_default();
    taken.insert(name.clone());
    name
}

/// The tables that were asked for, as text.
fn shown(report: &Report, more: &[Table], path: &Path, wanted: &str, args: &ReportArgs) -> Result<String, CliError> {
    let mut all = tables(report);
    all.extend_from_slice(more);
    if let Some(alive) = &report.alive {
        let number = alive.number_of(&args.at).ok_or_else(|| NoReport::Entry { path: path.to_owned() })?;
        all.extend(alive_at(report, number));
    }
    let is_wanted = |table: &&Table| table.id() == wanted || table.page == wanted;
    let chosen: Vec<Table> = all.iter().filter(is_wanted).cloned().collect();
    if chosen.is_empty() {
        let there = all.iter().map(Table::id).collect::<Vec<_>>().join(", ");
        return Err(NoReport::NoTable { path: path.to_owned(), wanted: wanted.to_owned(), there }.into());
    }
    let chosen: Vec<Table> = match args.matching.as_deref() {
        None => chosen,
        Some(text) => {
            let matching: Vec<Table> = chosen.into_iter().map(|table| table.matching(text)).collect();
            if matching.iter().all(|table| table.rows.is_empty()) {
                PROGRAM.say(format_args!("note: --match '{text}': no row of {wanted} contains it"));
            }
            matching
        }
    };
    Ok(chosen.iter().map(Table::render).collect::<Vec<_>>().join("\n"))
}

/// The report that was kept with the life table, or a new one.
pub(super) fn report_of(
    source: &Source,
    lives: Option<&LifeTable>,
    reading: Reading,
) -> Result<(Report, Lost), CliError> {
    if let Some(report) = kept_report(source, lives) {
        let lost = report.summary.lost_details;
        return Ok((report, lost));
    }
    say_without_deaths(source, reading);
    let fail = |source_error| NoReport::Rows { path: source.path().to_owned(), source: source_error }.into();
    let (population, observed) = observed(source, lives, reading)?;
    let summary = match kept_summary(source, lives, ClockArg::Et) {
        Some(summary) => summary,
        None => {
            let summary = summarize(source, &population, &observed, KEPT_LINES).map_err(|error| fail(error.into()))?;
            if let Some(lives) = lives {
                keep_summary(lives, ClockArg::Et, &summary);
            }
            summary
        }
    };
    let glimpses = lives.and_then(LifeTable::glimpses);
    let report = report::report(source, summary, &population, &observed, glimpses.as_deref(), true, reading);
    let report = report.map_err(|error| match error {
        ReportError::Read(error) => CliError::from(error),
        error => fail(error),
    })?;
    let lost = report.summary.lost_details;
    if let Some(lives) = lives {
        keep_report(lives, &report);
    }
    Ok((report, lost))
}

/// A report of some allocations, or with other stacks, which is not kept.
fn other_report(
    source: &Source,
    lives: Option<&LifeTable>,
    reading: Reading,
    selection: &Selection,
    stacks: &ShownStacks,
) -> Result<(Report, Lost), CliError> {
    say_without_deaths(source, reading);
    let fail = |error| CliError::from(NoReport::Rows { path: source.path().to_owned(), source: error });
    let (population, observed) = observed(source, lives, reading)?;
    let (population, selected) = select(selection, source, population)?;
    let population = show(stacks, source, population);
    let has_all = selected.is_none();
    let glimpses = lives.and_then(LifeTable::glimpses);
    let summary = match selected {
        Some(selected) => summarize_selected(source, &population, &observed, selected, KEPT_LINES),
        None => summarize(source, &population, &observed, KEPT_LINES),
    };
    let summary = summary.map_err(|error| fail(error.into()))?;
    let mut report =
        report::report(source, summary, &population, &observed, glimpses.as_deref(), has_all, reading).map_err(fail)?;
    if !stacks.is_whole() {
        report.lacks.push(Lack { kind: LackKind::Frames, why: stacks.text() });
    }
    let lost = report.summary.lost_details;
    Ok((report, lost))
}

fn say_without_deaths(source: &Source, reading: Reading) {
    // The page says it where walks through the heap tell something instead.
    let has_walks = source.trace().is_some_and(|trace| trace.file.of_kind(BlockKind::Survivors).next().is_some());
    if source.deaths(reading.deaths) == Deaths::None && !has_walks {
        PROGRAM.say(format_args!(
            "{}: note: without deaths the report has nothing on lifetimes, leaks and live objects",
            source.path().display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_names_of_their_own() {
        let mut taken = HashSet::from([INDEX.to_owned()]);
        let names = ["a/x.ettrace", "b/x.ettrace", "c/x.ettrace", "a/index.ettrace", "my trace.gz", "-"];
        let names = names.map(|name| page_name(Path::new(name), &mut taken));
        assert_eq!(names, ["x.html", "x-2.html", "x-3.html", "index-2.html", "my_trace.html", "-.html"]);
    }
}
