//! The command line of `et-trace`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::file::ReadError;
use crate::file::format::FILE_MAGIC;
use crate::summary::counted;
use crate::text::TextError;
use crate::trace::Trace;
use crate::{summary, text, validate};

/// All went well.
const OK: u8 = 0;
/// Bad input, or promises not kept.
const FAILED: u8 = 1;
/// The trace is cut off; what there is was read.
const CUT_OFF: u8 = 3;

/// Reads traces of Elephant Tracks.
#[derive(Debug, Parser)]
#[command(
    name = "et-trace",
    version,
    about,
    after_help = "\
Examples:
  et-trace summary app.ettrace                 what the program's objects did
  et-trace summary --json app.ettrace          the same for a program
  et-trace text app.ettrace --names app.names  every record, and what its ids mean
  et-trace validate app.ettrace                does the trace keep its promises?

Exit codes: 0 all went well; 1 bad input, or `validate` found something; 2 wrong usage;
3 the trace is cut off (killed program, full disk): what there is was read and printed."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows objects and bytes by class and by site, threads, collections, and what is missing
    Summary(SummaryArgs),
    /// Prints every record as a line of text
    Text(TextArgs),
    /// Checks the promises that every trace keeps: allocations, nesting, old targets, exceptions
    Validate(ValidateArgs),
    /// Shows how the trace file is made up
    Info {
        /// The trace, or - for standard input
        trace: PathBuf,
    },
}

#[derive(Debug, Args)]
struct SummaryArgs {
    /// The trace, or - for standard input
    trace: PathBuf,
    /// How many classes and sites to list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dialect {
    /// Elephant Tracks
    Et,
}

#[derive(Debug, Args)]
struct TextArgs {
    /// The trace, or - for standard input
    trace: PathBuf,
    /// Which text
    #[arg(long, value_enum, default_value = "et")]
    dialect: Dialect,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write what the ids mean to this file
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Write all names, not only those that the trace uses
    #[arg(long, requires = "names")]
    all_names: bool,
}

#[derive(Debug, Args)]
struct ValidateArgs {
    /// A trace, or the text that `et-trace text` made of it
    trace: PathBuf,
    /// How many breaches to describe; all are counted
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
}

/// Why a command failed: one line.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{path}: {source}", path = path.display())]
    Output { path: PathBuf, source: io::Error },
    #[error("{path} is the trace itself (or the other output): write to another file", path = path.display())]
    SameFile { path: PathBuf },
    #[error(transparent)]
    Validate(#[from] validate::ValidateError),
    #[error("cannot write to standard output: {0}")]
    Stdout(io::Error),
}

impl CliError {
    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::Summary(args) => run_summary(args),
        Command::Text(args) => run_text(args),
        Command::Validate(args) => run_validate(args),
        Command::Info { trace } => run_info(trace),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        // Whoever reads us has seen enough.
        Err(error) if error.is_broken_pipe() => ExitCode::from(OK),
        Err(error) => {
            eprintln!("et-trace: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Stdout)
}

/// Says that a trace is cut off, on one line; the exit code that goes with it.
fn completeness(trace: &Trace) -> u8 {
    match trace.file.cut_off() {
        None => OK,
        Some(cut) => {
            eprintln!("et-trace: {}: {cut}", trace.file.path().display());
            CUT_OFF
        }
    }
}

fn run_summary(args: &SummaryArgs) -> Result<u8, CliError> {
    let trace = Trace::open(&args.trace)?;
    let summary = summary::summarize(&trace, args.top)?;
    if args.json {
        // Strings, numbers and lists: it cannot fail.
        print(&(serde_json::to_string_pretty(&summary).unwrap_or_default() + "\n"))?;
    } else {
        print(&summary::render(&summary))?;
    }
    Ok(completeness(&trace))
}

/// Creates an output file that is none of `taken`, under whatever name: the trace is still mapped while it is read.
fn create(path: &Path, taken: &[&Path]) -> Result<File, CliError> {
    let identity = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let mine = identity(path);
    if mine.is_some() && taken.iter().any(|other| identity(other) == mine) {
        return Err(CliError::SameFile { path: path.to_owned() });
    }
    File::create(path).map_err(|source| CliError::Output { path: path.to_owned(), source })
}

fn run_text(args: &TextArgs) -> Result<u8, CliError> {
    let Dialect::Et = args.dialect;
    let trace = Trace::open(&args.trace)?;
    // Both files are opened before the long work: a wrong path shows at once.
    let names = args.names.as_deref().map(|path| create(path, &[&args.trace])).transpose()?;
    let written = match &args.output {
        Some(path) => {
            let taken: Vec<&Path> = std::iter::once(&args.trace).chain(&args.names).map(PathBuf::as_path).collect();
            text::write_trace(&trace, create(path, &taken)?)
        }
        None => text::write_trace(&trace, io::stdout().lock()),
    };
    let (outcome, used) = match written {
        Ok(done) => done,
        Err(TextError::Read(error)) => return Err(error.into()),
        Err(TextError::Write(source)) => {
            return Err(match &args.output {
                Some(path) => CliError::Output { path: path.clone(), source },
                None => CliError::Stdout(source),
            });
        }
    };
    if let (Some(file), Some(path)) = (names, &args.names) {
        let used = (!args.all_names).then_some(&used);
        text::write_names(&trace, used, &outcome.extra_fields, file)
            .map_err(|source| CliError::Output { path: path.clone(), source })?;
    }
    Ok(completeness(&trace))
}

/// Whether this is a text rather than a trace; anything unclear is left to the trace reader's messages.
fn is_text(path: &Path) -> bool {
    let mut start = Vec::new();
    let regular = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let read = regular && File::open(path).is_ok_and(|file| file.take(64).read_to_end(&mut start).is_ok());
    read && !start.is_empty()
        && !start.starts_with(&FILE_MAGIC)
        && start.iter().all(|byte| matches!(byte, b'\n' | b'\r' | b'\t' | b' '..=b'~') || *byte >= 0x80)
        && std::str::from_utf8(&start).map_or_else(|error| error.valid_up_to() + 4 > start.len(), |_| true)
}

fn run_validate(args: &ValidateArgs) -> Result<u8, CliError> {
    let (report, cut_off) = if is_text(&args.trace) {
        (validate::text(&args.trace, args.limit)?, OK)
    } else {
        let trace = Trace::open(&args.trace)?;
        let report = validate::trace(&trace, args.limit)?;
        (report, completeness(&trace))
    };
    let mut out = String::new();
    for breach in &report.breaches {
        out += &format!("{breach}\n");
    }
    let shown = report.breaches.len() as u64;
    if report.breach_count > shown {
        out += &format!("… and {} more\n", report.breach_count - shown);
    }
    for note in &report.notes {
        out += &format!("note: {note}\n");
    }
    let records = counted(report.totals.sum(), "record");
    out += &match report.breach_count {
        0 => format!("{}: {records}, all promises kept, lost {}\n", args.trace.display(), report.lost),
        count => format!("{}: {records}, {}, lost {}\n", args.trace.display(), counted(count, "breach"), report.lost),
    };
    print(&out)?;
    if !report.is_clean() && cut_off == OK {
        let kept = counted(report.breach_count, "promise");
        eprintln!("et-trace: {}: not kept: {kept}", args.trace.display());
    }
    Ok(if report.is_clean() { cut_off } else { FAILED })
}

fn run_info(path: &Path) -> Result<u8, CliError> {
    let trace = Trace::open(path)?;
    print(&summary::info(&trace))?;
    Ok(completeness(&trace))
}
