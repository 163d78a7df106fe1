//! The command line of `et-replay`.

mod allocate;
mod cache;
mod children;
mod collect;
mod head;
mod prepare;
mod progress;
mod simulate;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use et_cli::code::{self, OK};
use et_cli::{Program, Unwritten};
use et_reader::source::Source;

use crate::collect::ChildError;
use crate::output::OutputError;
use et_simulate::collectors::{self as simulator, Config, HeapSize, SimulateError};
use et_simulate::ops::{OpsError, OpsReader};
use et_simulate::prepare::{Input, PrepareError, Prepared, Wanted};
use progress::Progress;

/// Prefix of messages.
const PROGRAM: Program = Program("et-replay");

/// Replays a trace on simulated collectors, real collectors, allocators or caches.
#[derive(Debug, Parser)]
#[command(
    name = "et-replay",
    version,
    after_help = "\
Examples:
  et-replay prepare app.ettrace -o app.ops             once for each trace: its operations, for quick replays
  et-replay simulate app.ops --heap 2x                 the five classic schemes of collection, side by side
  et-replay simulate app.ops --collector copying --heap 64m --events events.csv   all that a collector tells a profiler
  et-replay simulate app.ops --min-heap                the smallest heap for each scheme
  et-replay collect app.ops --heap 2x,3x               real collectors: time and pauses under each of MMTk's
  et-replay allocate app.ops                           malloc at births, free at deaths: time and footprint
  et-replay cache app.ops --collector copying          what is not in the cache, by class and site
  et-replay cache app.ops --allocator jemalloc         the same where jemalloc puts the objects

A command that is given a trace prepares it first, in a temporary file in the folder TMPDIR.

Exit codes: 0 success; 1 bad input, or a heap that is too small; 2 wrong usage; 3 the trace is cut off: everything up to there was
replayed; 4 events are missing in the middle; 141 standard output was closed."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes the operations of a trace: births, stores, uses, deaths, in a few bytes each
    Prepare(prepare::PrepareArgs),
    /// Replays the program on simulated collectors, which report what they do to each object
    Simulate(simulate::SimulateArgs),
    /// Replays the program on the real collectors of MMTk, and measures time, pauses and memory
    Collect(collect::CollectArgs),
    /// Allocates and frees as the program did, and measures time and memory of the allocator
    Allocate(allocate::AllocateArgs),
    /// Simulates caches for a replay on a simulated collector or an allocator: misses by level, class and site
    Cache(cache::CacheArgs),
}

/// What is replayed.
#[derive(Debug, Args)]
struct InputArgs {
    /// An operations file, or a trace: a file written by the runtime, or a text of dialect et, replayer or oracle
    input: PathBuf,
    /// Names file with the names behind the ids of a text (written by `et-trace text --names`)
    #[arg(long, value_name = "FILE")]
    with_names: Option<PathBuf>,
    /// Leave out uses of objects: receivers of methods, and witnesses
    #[arg(long)]
    no_touches: bool,
    /// Neither use nor make a life table beside the trace: compute deaths for this command only
    #[arg(long)]
    no_lives: bool,
}

/// Why a command failed: a one-line message.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    #[error("{error}; the smallest that works is --heap {smallest}", smallest = HeapSize::Bytes(*smallest).typed())]
    TooSmall { error: SimulateError, smallest: u64 },
    #[error("{path} is already an operations file", path = path.display())]
    Prepared { path: PathBuf },
    #[error("--events needs one collector and one heap: choose them with --collector and --heap")]
    OneOnly,
    #[error(transparent)]
    Collect(#[from] ChildError),
    #[error("{error}; the smallest that works is --heap {smallest}", smallest = HeapSize::Bytes(*smallest).typed())]
    HeapTooSmall { error: ChildError, smallest: u64 },
    #[error("NoGC never collects: it has neither a smallest heap nor a curve")]
    NeverCollects,
    #[error("no collector has a curve: {path} is not written", path = path.display())]
    NoCurves { path: PathBuf },
    #[error("{name} is given twice")]
    Twice { name: String },
    #[error("{path}: the curve must be a page (.html) or a drawing (.svg)", path = path.display())]
    Drawing { path: PathBuf },
    #[error("the replay under {allocator} failed: {why}")]
    Child { allocator: String, why: String },
    #[error("{library} was not loaded, although LD_PRELOAD names it: it is not a library, or one for another machine")]
    NotPreloaded { library: String },
    #[error("{library} has no effect: malloc is still that of the C library", library = library.display())]
    NoMalloc { library: PathBuf },
    #[error(transparent)]
    Allocate(#[from] et_simulate::allocate::AllocateError),
    #[error(transparent)]
    Cache(#[from] et_simulate::cache::CacheError),
    #[error("no space for the operations in a temporary file in {folder} (set TMPDIR to use another folder): {0}", folder = std::env::temp_dir().display())]
    Temporary(io::Error),
    #[error("{0}")]
    Stdout(#[from] Unwritten),
    #[error("{path}: the events are inconsistent: {wrong}", path = path.display())]
    Events { path: PathBuf, wrong: et_simulate::events::Violation },
}

impl CliError {
    /// Turns a write error into one with the destination.
    fn writing(self, place: impl FnOnce(io::Error) -> Self) -> Self {
        match self {
            Self::Prepare(PrepareError::Ops(OpsError::Write(error))) => place(error),
            other => other,
        }
    }

    /// Whether the error is one of usage.
    fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::OneOnly
                | Self::Drawing { .. }
                | Self::Cache(_)
                | Self::NeverCollects
                | Self::Twice { .. }
                | Self::Simulate(SimulateError::Nursery(_))
                | Self::Collect(ChildError::Nursery(_))
        )
    }
}

/// The definition of the command line, for the manual.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return et_cli::refuse::<Cli>(error),
    };
    let done = match &cli.command {
        Command::Prepare(args) => prepare::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Collect(args) => collect::run(args),
        Command::Allocate(args) => allocate::run(args),
        Command::Cache(args) => cache::run(args),
    };
    if let Err(error) = &done
        && error.is_usage()
    {
        PROGRAM.say(format_args!("{error}"));
        return code::USAGE.into();
    }
    PROGRAM.end(done)
}

/// Prepares operations from an input that is not an operations file.
fn take(input: Input, args: &InputArgs, progress: &Progress, file: std::fs::File) -> Result<(Prepared, u8), CliError> {
    let wanted = Wanted { touches: !args.no_touches, ..Wanted::default() };
    let (prepared, code) = match input {
        Input::Trace(mut source) => {
            source.watch(&progress.watcher());
            if let Source::Trace(trace) = &mut *source
                && !args.no_lives
            {
                _ = et_lives::attach(trace, None);
            }
            let prepared = et_simulate::prepare::prepare(&source, wanted, file)?;
            // Losses are among the notes already.
            let code = code::of_trace(source.cut_off().is_some(), prepared.ending.outcome.lost.total());
            (prepared, code)
        }
        Input::Oracle(path, text) => (et_simulate::prepare::prepare_oracle(&path, text, file)?, OK),
        Input::Ops(ops) => return Err(CliError::Prepared { path: ops.path().to_owned() }),
    };
    for note in &prepared.tables.notes {
        PROGRAM.say(format_args!("{}: warning: {note}", args.input.display()));
    }
    Ok((prepared, code))
}

/// Opens the operations of an input; a trace or text is prepared into a temporary file.
fn open(args: &InputArgs, progress: &Progress) -> Result<(OpsReader, u8), CliError> {
    match Input::open(&args.input, args.with_names.as_deref())? {
        Input::Ops(ops) => Ok((*ops, OK)),
        input => {
            let file = tempfile::tempfile().map_err(CliError::Temporary)?;
            let (prepared, code) =
                take(input, args, progress, file).map_err(|error| error.writing(CliError::Temporary))?;
            Ok((OpsReader::of_file(&args.input, prepared.file)?, code))
        }
    }
}

/// Adds the smallest sufficient heap to the error for a heap that is too small.
fn too_small(error: SimulateError, ops: &mut OpsReader, config: &Config) -> CliError {
    if !matches!(error, SimulateError::TooSmall { .. }) {
        return error.into();
    }
    match simulator::smallest_heap(ops, config) {
        Ok(smallest) => CliError::TooSmall { error, smallest },
        Err(error) => error.into(),
    }
}
