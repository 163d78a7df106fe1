//! The command line of `et-trace`.

mod analyses;
mod diff;
mod duckdb;
mod export;
mod heap;
mod kept;
mod life;
mod moments;
mod open;
mod report;
mod select;
mod sources;
mod spill;
mod sql;
mod sql_box;
mod stacks;
mod tables;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use et_cli::code::{self, FAILED, OK};
use et_cli::{Unwritten, print, print_json};
use et_lives::{LifeTable, PopulationError};

use self::kept::{KEPT_LINES, keep_summary, kept_summary, observed};
use self::report::{NoReport, ReportArgs};
use self::select::{SelectArgs, select};
use crate::PROGRAM;
use crate::bar::Bar;
use crate::output::{Kind, Output, OutputError};
use et_analysis::compare::{self, CompareError};
use et_analysis::heap::HeapError;
use et_analysis::summary;
use et_analysis::summary::Summary;
use et_names::units::counted;
use et_reader::file::TraceFile;
use et_reader::lifetimes::Limits;
use et_reader::record::Clock;
use et_reader::resolve::Lost;
use et_reader::source::{Deaths, Ending, Reading, Source, SourceError, deaths_of_heap, deaths_unknown};
use et_reader::text::{self, Dialect, Holders};
use et_reader::text_writer::{self, TextError};
use et_reader::{Trace, recover};
use et_system::files::output::Kind as _;

/// Reads traces of Elephant Tracks.
#[derive(Debug, Parser)]
#[command(
    name = "et-trace",
    version,
    after_help = "\
Examples:
  et-trace summary app.ettrace                 what the program's objects did
  et-trace summary --json app.ettrace          the same, machine-readable
  et-trace report app.ettrace -o report.html   a page with graphs, for a browser
  et-trace text app.ettrace --names app.names  every record, and what its ids mean
  et-trace text app.ettrace --dialect oracle   allocations and frees for an allocator replay
  et-trace text app.ettrace --dialect tptp     XML for the viewers of Eclipse TPTP
  et-trace validate app.ettrace                check the trace's invariants
  zcat app.trace.gz | et-trace summary -       texts are read as well
  et-trace compare-deaths app.ettrace          compare deaths with those reported by the collector
  et-trace export app.ettrace --to pprof -o app.pb.gz   where it allocated, for go tool pprof
  et-trace diff before.ettrace after.ettrace   what a change made better or worse
  et-trace escape app.ettrace                  what could have lived on the stack
  et-trace heap app.ettrace --at 40% --dominators   what held the most memory at that moment
  et-trace objects app.ettrace --class shop.Order   its objects: when they were made, when they died
  et-trace object app.ettrace 1f3a             the life of one of them: what it held, who held it
  et-trace field app.ettrace shop.Order.items  who stored into a field, what, and how long it stayed
  et-trace open app.ettrace                    all of this as a page to walk around in
  et-trace tables app.ettrace -o app.tables    Parquet tables, for DuckDB, Spark and others
  et-trace sql app.tables --query top_sites    query them
  et-trace recover cut.ettrace -o app.ettrace  combine the trace and buffers of a killed run

Computing deaths takes temporary files of a few bytes per record, in the folder TMPDIR. The result is saved
beside the trace, as a life table, for later commands (and for other tools, as Parquet files): see --lives.

Exit codes: 0 success; 1 bad input, `validate` or `compare-deaths` found errors, or a --fail-if holds; 2 wrong usage;
3 the trace is cut off (killed program, full disk): everything up to there was read and printed;
4 events are missing in the middle (damaged blocks, no buffers): the rest was read and printed;
141 standard output was closed before everything was written, as with other Unix tools."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows peak memory, the packages and sites that allocate the most, what grew, and what the trace lacks
    Summary(SummaryArgs),
    /// Writes an HTML report: allocation, lifetimes, live objects over time, and likely leaks
    Report(ReportArgs),
    /// Prints each record as a line of text
    Text(TextArgs),
    /// Checks the invariants of a trace: allocations, nesting, old targets, exceptions, deaths
    Validate(ValidateArgs),
    /// Compares deaths with those reported by the collector, in a trace made with -Det.deaths=gc
    CompareDeaths(CompareArgs),
    /// Shows the heap at a moment of the run: classes, dominators, why an object is alive; or writes a heap dump
    Heap(heap::HeapArgs),
    /// Lists objects by class, site, thread, time and age, with their births and deaths
    Objects(analyses::ObjectsArgs),
    /// Tells the life of one object: who made it, what it held and when, who held it, how it died
    Object(life::ObjectArgs),
    /// Tells the history of a field: who stored into it, what, and how long that stayed
    Field(life::FieldArgs),
    /// Opens traces as pages to walk around in: groups, objects, holders, dominators, flame graphs, at any moment
    Open(open::OpenArgs),
    /// Combines a trace that is cut off and the buffer file (.buf) beside it into a complete trace
    Recover(RecoverArgs),
    /// Shows which objects outlive the methods that allocated them, or are seen by other threads
    Escape(analyses::EscapeArgs),
    /// Shows which objects die together
    Correlate(analyses::CorrelateArgs),
    /// Shows which objects die because an object that refers to them dies
    Connectivity(analyses::ConnectivityArgs),
    /// Shows the depth of the heap over time, and how many references point to its objects
    Shape(analyses::ShapeArgs),
    /// Shows which sites allocate objects that survive the nursery of a generational collector
    Pretenure(analyses::PretenureArgs),
    /// Compares allocations between runs: what changed by class, site and calling context
    Diff(diff::DiffArgs),
    /// Writes an allocation profile for pprof, the Firefox Profiler, speedscope, flame graphs or Chrome
    Export(export::ExportArgs),
    /// Writes a trace as Parquet tables: objects, calls, updates, exceptions, and the names of their ids
    Tables(tables::TablesArgs),
    /// Queries tables in SQL, with DuckDB
    Sql(sql::SqlArgs),
    /// Shows the structure of the trace file: blocks, sizes, artifacts, options
    Info {
        /// The trace, or - for standard input
        trace: PathBuf,
        /// Print sizes as JSON
        #[arg(long)]
        json: bool,
    },
}

/// What to read, and how.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// The trace: a file written by the runtime, a text of dialect et or replayer, or - for standard input
    pub(crate) trace: PathBuf,
    /// Names file with the names behind the ids of a text (written by `text --names`)
    #[arg(long, value_name = "FILE")]
    with_names: Option<PathBuf>,
    /// How deaths are determined
    #[arg(long, value_enum, default_value = "trace")]
    pub(crate) deaths: DeathsArg,
    /// Folder of the life table, which saves computed deaths for later commands [default: TRACE.lives]
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_lives")]
    lives: Option<PathBuf>,
    /// Neither use nor make a life table: compute deaths for this command only
    #[arg(long)]
    no_lives: bool,
}

impl InputArgs {
    /// A trace, read as by default.
    pub(crate) fn of(trace: PathBuf, deaths: DeathsArg, no_lives: bool) -> Self {
        Self { trace, with_names: None, deaths, lives: None, no_lives }
    }

    pub(crate) fn open(&self, bar: &Bar) -> Result<(Source, Option<Arc<LifeTable>>), CliError> {
        let mut source = open(&self.trace, self.with_names.as_deref(), bar)?;
        let wanted: Deaths = self.deaths.into();
        let lives = match &mut source {
            // Of a trace that does not tell when objects die, their births are kept.
            Source::Trace(trace) if wanted != Deaths::None && !trace.only_counts() && !self.no_lives => {
                et_lives::attach(trace, self.lives.as_deref())
            }
            _ => None,
        };
        Ok((source, lives))
    }

    /// As [`open`](Self::open), for a command that needs the rows of all objects: without a life table that is kept they
    /// are made for this command, and a second reading has the deaths from the first.
    pub(crate) fn open_for_rows(
        &self,
        clock: ClockArg,
        bar: &Bar,
    ) -> Result<(Source, Option<Arc<LifeTable>>), CliError> {
        let (mut source, mut lives) = self.open(bar)?;
        if lives.is_none()
            && source.deaths(self.deaths.into()) != Deaths::None
            && let Source::Trace(trace) = &mut source
        {
            lives = Some(et_lives::attach_passing(trace, clock.into()));
        }
        Ok((source, lives))
    }

    pub(crate) fn reading(&self, clock: ClockArg) -> Reading {
        Reading { deaths: self.deaths.into(), clock: clock.into(), ..Reading::default() }
    }
}

pub(crate) fn open(trace: &Path, names: Option<&Path>, bar: &Bar) -> Result<Source, CliError> {
    let mut source = Source::open(trace, names)?;
    source.watch(bar.watcher());
    Ok(source)
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DeathsArg {
    /// From the records: an object dies when it becomes unreachable
    Trace,
    /// Do not compute deaths: no D records
    None,
}

impl From<DeathsArg> for Deaths {
    fn from(arg: DeathsArg) -> Self {
        match arg {
            DeathsArg::Trace => Self::Trace,
            DeathsArg::None => Self::None,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ClockArg {
    /// M, E and X records
    Et,
    /// T and H records as well
    Et1,
}

impl ClockArg {
    fn name(self) -> &'static str {
        match self {
            Self::Et => "et",
            Self::Et1 => "et1",
        }
    }
}

impl From<ClockArg> for Clock {
    fn from(arg: ClockArg) -> Self {
        match arg {
            ClockArg::Et => Self::Methods,
            ClockArg::Et1 => Self::MethodsAndExceptions,
        }
    }
}

#[derive(Debug, Args)]
struct SummaryArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    select: SelectArgs,
    /// How many sites, classes and packages to list
    #[arg(long, default_value_t = 5, value_name = "N")]
    top: usize,
    /// Also print classes, lifetimes, threads, collections, what is missing, and records by letter
    #[arg(long)]
    long: bool,
    /// What the clock counts; lifetimes are measured in its ticks
    #[arg(long, value_enum, default_value = "et")]
    clock: ClockArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DialectArg {
    /// Elephant Tracks: hexadecimal
    Et,
    /// Elephant Tracks 3 and its TraceReplayer: decimal
    Replayer,
    /// CSV of allocations and frees
    Oracle,
    /// XML for the viewers of Eclipse TPTP
    Tptp,
}

impl From<DialectArg> for Dialect {
    fn from(arg: DialectArg) -> Self {
        match arg {
            DialectArg::Et => Self::Et,
            DialectArg::Replayer => Self::Replayer,
            DialectArg::Oracle => Self::Oracle,
            DialectArg::Tptp => Self::Tptp,
        }
    }
}

#[derive(Debug, Args)]
struct TextArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Format of the text
    #[arg(long, value_enum, default_value = "et")]
    dialect: DialectArg,
    /// What the clock counts; dialect replayer writes it in D records
    #[arg(long, value_enum, default_value = "et")]
    clock: ClockArg,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the names behind the ids to this file
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Write all names, not only those that the trace uses
    #[arg(long, requires = "names")]
    all_names: bool,
    /// In a text with deaths, also write what holds objects without a record, as comments
    #[arg(long)]
    holders: bool,
    /// Replace output files of any kind, not only texts and names files
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct ValidateArgs {
    #[command(flatten)]
    input: InputArgs,
    /// How many violations to describe; all are counted
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
}

#[derive(Debug, Args)]
struct CompareArgs {
    /// The trace, or - for standard input
    trace: PathBuf,
    /// How many objects to describe that the collector freed but the trace holds; all are counted
    #[arg(long, default_value_t = 10, value_name = "N")]
    limit: usize,
    /// Compare with the deaths that the heap alone tells instead: those of a trace without calls (--events alloc,update)
    #[arg(long, conflicts_with = "limit")]
    by_heap: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RecoverArgs {
    /// The trace that is cut off
    trace: PathBuf,
    /// The complete trace to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace an output of any kind, not only a recovered trace
    #[arg(long)]
    force: bool,
}

/// Why a command failed: one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Read(#[from] SourceError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("{path} is a text: it has no names to write", path = path.display())]
    NoNames { path: PathBuf },
    #[error("{path} is a text: dialect tptp needs the times and names of a trace written by the runtime", path = path.display())]
    NoTimes { path: PathBuf },
    #[error("{path} is a text: --json is for traces written by the runtime", path = path.display())]
    NoSizes { path: PathBuf },
    #[error("{path} is a text: only a trace written by the runtime has collector records", path = path.display())]
    NoCollector { path: PathBuf },
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Report(#[from] NoReport),
    #[error(transparent)]
    Heap(#[from] HeapError),
    #[error("{path} is complete: there is nothing to recover", path = path.display())]
    Whole { path: PathBuf },
    #[error(transparent)]
    Population(#[from] PopulationError),
    #[error("cannot read the object rows: {0} (--no-lives avoids the life table)")]
    Rows(io::Error),
    #[error("{path}: {what}", path = path.display())]
    Lacks { path: PathBuf, what: String },
    #[error("a profile in a binary format cannot be written to a terminal: pass -o FILE")]
    Binary,
    #[error("no runs to compare: give et-trace diff BEFORE AFTER, or several of each with --before and --after")]
    NoSides,
    #[error("--run and --lives apply to a single run: give one trace, or leave them out")]
    OneRun,
    #[error(transparent)]
    Convert(#[from] et_tables::ConvertError),
    #[error(transparent)]
    Folder(#[from] et_tables::FolderError),
    #[error(transparent)]
    Sql(#[from] sql::SqlError),
    #[error(transparent)]
    Engine(#[from] duckdb::EngineError),
    #[error(transparent)]
    OtherTables(#[from] sql_box::OtherTables),
    #[error("cannot listen on port {port} of 127.0.0.1: {source} (--port 0 takes any that is free)")]
    Port { port: u16, source: io::Error },
    #[error("the page cannot be served: {0}")]
    Serve(io::Error),
    #[error("{0}")]
    Stdout(#[from] Unwritten),
}

/// The definition of the command line, for the manual.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(error),
    };
    let done = match &cli.command {
        Command::Summary(args) => run_summary(args),
        Command::Report(args) => report::run(args),
        Command::Text(args) => run_text(args),
        Command::Validate(args) => run_validate(args),
        Command::CompareDeaths(args) => run_compare_deaths(args),
        Command::Heap(args) => heap::run(args),
        Command::Objects(args) => analyses::objects(args),
        Command::Object(args) => life::object(args),
        Command::Field(args) => life::field(args),
        Command::Open(args) => open::run(args),
        Command::Recover(args) => run_recover(args),
        Command::Escape(args) => analyses::escape(args),
        Command::Correlate(args) => analyses::correlate(args),
        Command::Connectivity(args) => analyses::connectivity(args),
        Command::Shape(args) => analyses::shape(args),
        Command::Pretenure(args) => analyses::pretenure(args),
        Command::Diff(args) => diff::run(args),
        Command::Export(args) => export::run(args),
        Command::Tables(args) => tables::run(args),
        Command::Sql(args) => sql::run(args),
        Command::Info { trace, json } => run_info(trace, *json),
    };
    PROGRAM.end(done)
}

/// Says what is wrong with a command line, or helps.
fn refuse(error: clap::Error) -> ExitCode {
    if let Some(line) = without_command(&error, std::env::args_os().nth(1)) {
        PROGRAM.say(format_args!("{line}"));
        return ExitCode::from(code::USAGE);
    }
    et_cli::refuse::<Cli>(error)
}

/// Says that a trace is cut off or damaged, on one line; the exit code that goes with it.
pub(crate) fn completeness(source: &Source, lost: Lost) -> u8 {
    let code = code::of_trace(source.cut_off().is_some(), lost.total());
    if code == OK {
        return OK;
    }
    let cut = source.cut_off().map(ToString::to_string);
    let lost = (lost.total() > 0).then(|| format!("events are missing: {lost}"));
    let said: Vec<String> = [lost, cut].into_iter().flatten().collect();
    PROGRAM.say(format_args!("{}: {}", source.path().display(), said.join("; ")));
    code
}

/// What is known to be missing without reading the events.
fn known_lost(source: &Source) -> Lost {
    match source {
        Source::Trace(trace) => Lost::known(&trace.file),
        Source::Text(_) => Lost::default(),
    }
}

/// Prints why there is no life table. The command was not affected.
pub(crate) fn warn_of_lives(lives: Option<&LifeTable>) {
    if let Some(trouble) = lives.and_then(LifeTable::trouble) {
        PROGRAM.say(format_args!("note: {trouble}"));
    }
}

/// Prints warnings about a text, and about names that may be ambiguous in a trace.
pub(crate) fn warn(source: &Source, warnings: &[String]) {
    let overlaps = match source {
        Source::Trace(trace) => trace.names.overlaps(),
        Source::Text(_) => &[],
    };
    let overlaps = overlaps.iter().map(ToString::to_string);
    for warning in warnings.iter().cloned().chain(overlaps) {
        PROGRAM.say(format_args!("{}: warning: {warning}", source.path().display()));
    }
}

/// The command line that was probably meant if a file is in the place of a subcommand.
fn without_command(error: &clap::Error, first: Option<OsString>) -> Option<String> {
    let first = first.filter(|_| error.kind() == clap::error::ErrorKind::InvalidSubcommand)?;
    let is_trace = Path::new(&first).extension().is_some_and(|end| end == "ettrace") || Path::new(&first).is_file();
    // As a debugging string it can be typed as it is shown, whatever it holds.
    let plain =
        first.to_str().filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./+,:@%".contains(c)));
    let shown = plain.map_or_else(|| format!("{first:?}"), str::to_owned);
    is_trace.then(|| format!("no command given for {shown}: try et-trace summary {shown}"))
}

fn run_summary(args: &SummaryArgs) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let (source, lives) = args.input.open_for_rows(args.clock, &bar)?;
    let summary = summary_of(&source, lives.as_deref(), args)?;
    drop(bar);
    warn_of_lives(lives.as_deref());
    if args.json {
        print_json(&summary)?;
    } else if args.long {
        print(&summary::render_long(&summary))?;
    } else {
        print(&summary::render(&summary))?;
    }
    warn(&source, &summary.warnings);
    Ok(completeness(&source, summary.lost_details))
}

/// The summary that was kept with the life table, or a new one.
fn summary_of(source: &Source, lives: Option<&LifeTable>, args: &SummaryArgs) -> Result<Summary, CliError> {
    if !args.select.selection().is_all() {
        return selected_summary(source, lives, args);
    }
    let is_kept = |_: &&LifeTable| args.top <= KEPT_LINES;
    if let Some(summary) = kept_summary(source, lives.filter(is_kept), args.clock) {
        return Ok(summary.cut(args.top));
    }
    let (population, observed) = observed(source, lives, args.input.reading(args.clock))?;
    let summary =
        summary::summarize(source, &population, &observed, args.top.max(KEPT_LINES)).map_err(CliError::Rows)?;
    if let Some(lives) = lives {
        keep_summary(lives, args.clock, &summary);
    }
    Ok(summary.cut(args.top))
}

/// The summary of some allocations, which is not kept.
fn selected_summary(source: &Source, lives: Option<&LifeTable>, args: &SummaryArgs) -> Result<Summary, CliError> {
    let (population, observed) = observed(source, lives, args.input.reading(args.clock))?;
    let (population, selected) = select(&args.select.selection(), source, population)?;
    let selected = selected.unwrap_or_default();
    summary::summarize_selected(source, &population, &observed, selected, args.top).map_err(CliError::Rows)
}

fn run_text(args: &TextArgs) -> Result<u8, CliError> {
    let input = &args.input.trace;
    // A terminal that shows the records shows how far they are.
    let bar = Bar::new(args.output.is_some() || !io::stdout().is_terminal());
    let (source, lives) = args.input.open(&bar)?;
    if args.names.is_some() && matches!(source, Source::Text(_)) {
        return Err(CliError::NoNames { path: input.clone() });
    }
    let (dialect, reading) = (args.dialect.into(), args.input.reading(args.clock));
    if dialect == Dialect::Tptp && matches!(source, Source::Text(_)) {
        return Err(CliError::NoTimes { path: input.clone() });
    }
    if let (Some(names), Some(output)) = (&args.names, &args.output)
        && std::path::absolute(names).ok() == std::path::absolute(output).ok()
    {
        return Err(OutputError::SameFile { path: output.clone(), input: Kind::INPUT }.into());
    }
    // Both files are begun before the long work: a wrong path shows at once.
    let create = |path: &Path, kind, taken: &[&Path]| Output::create(path, kind, args.force, taken);
    let names = args.names.as_deref().map(|path| create(path, Kind::Names, &[input])).transpose()?;
    let taken: Vec<&Path> = std::iter::once(input).chain(&args.names).map(PathBuf::as_path).collect();
    let mut output = args.output.as_deref().map(|path| create(path, Kind::Text, &taken)).transpose()?;
    let holders = if args.holders { Holders::Always } else { Holders::default() };
    let written = match &mut output {
        Some(file) => text_writer::write_with(&source, dialect, reading, holders, file),
        None => text_writer::write_with(&source, dialect, reading, holders, io::stdout().lock()),
    };
    let (ending, used) = match written {
        Ok(done) => done,
        Err(TextError::Read(error)) => return Err(error.into()),
        Err(TextError::NoTrace) => return Err(CliError::NoTimes { path: input.clone() }),
        Err(TextError::Write(source)) => {
            return Err(match &output {
                Some(file) => file.error(source).into(),
                None => Unwritten(source).into(),
            });
        }
    };
    if let (Some(mut file), Source::Trace(trace)) = (names, &source) {
        let Ending { outcome, .. } = &ending;
        let used = used.as_ref().filter(|_| !args.all_names);
        let wrote = text::write_names(trace, dialect, used, &outcome.extra_fields, &mut file);
        wrote.map_err(|source| file.error(source))?;
        file.finish()?;
    }
    output.map_or(Ok(()), Output::finish)?;
    drop(bar);
    warn_of_lives(lives.as_deref());
    warn(&source, &ending.warnings);
    Ok(completeness(&source, ending.outcome.lost))
}

fn run_validate(args: &ValidateArgs) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let (source, lives) = args.input.open(&bar)?;
    let report = et_validate::validate(&source, args.input.deaths.into(), args.limit)?;
    drop(bar);
    warn_of_lives(lives.as_deref());
    // Losses are among the violations.
    let cut_off = completeness(&source, Lost::default());
    let mut out = String::new();
    for violation in &report.violations {
        out += &format!("{violation}\n");
    }
    let shown = report.violations.len() as u64;
    if report.violation_count > shown {
        out += &format!("… and {} more\n", report.violation_count - shown);
    }
    for note in &report.notes {
        out += &format!("note: {note}\n");
    }
    let records = counted(report.totals.sum(), "record");
    out += &match report.violation_count {
        0 => format!("{}: {records}, no violations, lost {}\n", source.path().display(), report.lost),
        count => {
            format!("{}: {records}, {}, lost {}\n", source.path().display(), counted(count, "violation"), report.lost)
        }
    };
    print(&out)?;
    if !report.is_clean() && cut_off == OK {
        PROGRAM.say(format_args!("{}: {}", source.path().display(), counted(report.violation_count, "violation")));
    }
    Ok(if report.is_clean() { cut_off } else { FAILED })
}

fn run_compare_deaths(args: &CompareArgs) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let source = open(&args.trace, None, &bar)?;
    let Source::Trace(trace) = &source else {
        return Err(CliError::NoCollector { path: args.trace.clone() });
    };
    if args.by_heap {
        return compare_by_heap(args, &source, trace, bar);
    }
    let (report, outcome) = compare::compare(trace, Limits::default(), args.limit)?;
    drop(bar);
    if args.json {
        print_json(&report)?;
    } else {
        print(&compare::render(&report))?;
    }
    let complete = completeness(&source, outcome.lost);
    Ok(if report.is_clean() { complete } else { FAILED })
}

fn compare_by_heap(args: &CompareArgs, source: &Source, trace: &Trace, bar: Bar) -> Result<u8, CliError> {
    source.tells_objects()?;
    let lacks = |what| CliError::Lacks { path: args.trace.clone(), what };
    if let Some(why) = deaths_unknown(trace.events) {
        return Err(lacks(why));
    }
    if deaths_of_heap(trace.events).is_some() {
        return Err(lacks(
            "its deaths are those of the heap; compare them in a trace with calls (--events all)".to_owned(),
        ));
    }
    let (found, outcome) = compare::by_heap(trace, Limits::default()).map_err(SourceError::from)?;
    drop(bar);
    if args.json {
        print_json(&found)?;
    } else {
        print(&found.render())?;
    }
    let complete = completeness(source, outcome.lost);
    Ok(if found.is_clean() { complete } else { FAILED })
}

fn run_recover(args: &RecoverArgs) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let mut file = TraceFile::open(&args.trace).map_err(SourceError::from)?;
    file.watch(bar.watcher());
    let Some(cut) = file.cut_off().filter(|_| file.end().is_none()) else {
        return Err(CliError::Whole { path: args.trace.clone() });
    };
    let [first, second] = et_format::buffers::beside(&args.trace, file.run());
    let taken = [args.trace.as_path(), &first, &second];
    let mut out = Output::create(&args.output, Kind::Recovered, args.force, &taken)?;
    let done = recover::recover(&file, BufWriter::new(&mut out)).map_err(|source| out.error(source))?;
    out.finish()?;
    drop(bar);
    let (blocks, chunks) = (counted(done.blocks, "block"), counted(done.chunks, "chunk"));
    print(&format!("{}: {blocks} and {chunks} of the buffer file; {cut}\n", args.output.display()))?;
    Ok(OK)
}

fn run_info(path: &Path, json: bool) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let source = open(path, None, &bar)?;
    drop(bar);
    match &source {
        Source::Trace(trace) if json => print_json(&summary::sizes(trace))?,
        Source::Text(_) if json => return Err(CliError::NoSizes { path: path.to_owned() }),
        Source::Trace(trace) => print(&summary::info(trace))?,
        Source::Text(text) => print(&summary::text_info(text))?,
    }
    // The events themselves are not looked at.
    Ok(completeness(&source, known_lost(&source)))
}
