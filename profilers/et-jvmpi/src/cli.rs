//! The command line of `et-jvmpi`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{Args, Parser, Subcommand};
use et_cli::{Heartbeat, Program, code};
use et_jvmpi_interface::library;
use et_reader::source::Source;
use et_reader::watch::Watcher;
use et_simulate::collectors::{Collector, HeapSize};

use crate::catalogue::Catalogue;
use crate::collected::{self, Wish};
use crate::error::ReplayError;
use crate::functions;
use crate::heap::Heap;
use crate::host::{self, Host};
use crate::plain;
use crate::vm;

/// Prefix of messages.
const PROGRAM: Program = Program("et-jvmpi");

/// Drives agents of JVMPI, the profiler interface of Java 1.2 to 5, without a VM.
#[derive(Debug, Parser)]
#[command(
    name = "et-jvmpi",
    version,
    after_help = "\
Examples:
  et-jvmpi replay app.ettrace --agent ./libmyprofiler.so:file=log.txt
  et-jvmpi replay app.ettrace --agent ./libmyprofiler.so --collector copying --heap 64m

To run an agent in a JVM, load libet_jvmpi.so with -agentpath.

Exit codes: 0 success; 1 bad input, a heap that is too small, or an agent that cannot be loaded; 2 wrong usage; 3 the trace is cut off,
and everything up to there was told; 4 events are missing in the middle. An agent that ends the program chooses its own."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replays a trace to an agent: classes, threads, calls, allocations, deaths
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
struct ReplayArgs {
    /// A trace, written by the runtime
    trace: PathBuf,
    /// The library of the agent, then a colon and its options
    #[arg(long, value_name = "LIBRARY[:OPTIONS]")]
    agent: String,
    /// Have a simulated collector move and free objects: mark-sweep, mark-compact, copying, generational, reference-counting [default: none; objects are freed when they die]
    #[arg(long, value_name = "NAME")]
    collector: Option<Collector>,
    /// Size of the collector's heap, all arenas together: 64m, or a multiple of the peak of live bytes, as in 2x [default: 3x]
    #[arg(long, value_name = "SIZE", requires = "collector")]
    heap: Option<HeapSize>,
    /// Size of the nursery of a generational collector [default: a quarter of the heap]
    #[arg(long, value_name = "SIZE", requires = "collector")]
    nursery: Option<HeapSize>,
    /// Let a reference-counting collector search for cycles when the heap is full
    #[arg(long, requires = "collector")]
    backup_trace: bool,
    /// Neither use nor make a life table beside the trace: compute deaths for this command only
    #[arg(long)]
    no_lives: bool,
}

/// The definition of the command line, for the manual.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(Cli { command: Command::Replay(args) }) => PROGRAM.end(replay(&args)),
        Err(error) => et_cli::refuse::<Cli>(error),
    }
}

fn replay(args: &ReplayArgs) -> Result<u8, ReplayError> {
    let watcher = Watcher::watched();
    let watched = watcher.clone();
    let heartbeat = Heartbeat::new(PROGRAM, move || watched.line());
    let source = open(args, &watcher)?;
    let wish = args.collector.map(|collector| Wish {
        collector,
        heap: args.heap.unwrap_or(HeapSize::Times(3.0)),
        nursery: args.nursery,
        backup_trace: args.backup_trace,
    });
    let ready = wish.map(|wish| collected::ready(&source, &wish)).transpose()?;
    let warn = |note: &dyn std::fmt::Display| PROGRAM.say(format_args!("{}: warning: {note}", args.trace.display()));
    if let Some(ready) = &ready {
        ready.notes().iter().for_each(|note| warn(note));
    }
    let catalogue =
        Catalogue::new(Arc::clone(&source)).ok_or_else(|| ReplayError::Text { path: args.trace.clone() })?;
    let host = host::set(Host::new(functions::table(), catalogue, Heap::new(ready.is_some()), ready.is_some()));
    vm::offer(host.session.interface());
    load(&args.agent)?;
    let is_warned = ready.is_some();
    let ending = match ready {
        Some(ready) => ready.replay(host, &source)?,
        None => plain::replay(host, &source)?,
    };
    drop(heartbeat);
    if !is_warned {
        ending.warnings.iter().for_each(|note| warn(note));
        source.cut_off().iter().for_each(|cut| warn(cut));
        if ending.outcome.lost.total() > 0 {
            warn(&format_args!("events are missing: {}", ending.outcome.lost));
        }
    }
    host.left_out.jni.fetch_add(vm::calls(), Ordering::Relaxed);
    if let Some(line) = host.left_out.line(&host.session) {
        PROGRAM.say(format_args!("{line}"));
    }
    Ok(code::of_trace(source.cut_off().is_some(), ending.outcome.lost.total()))
}

fn open(args: &ReplayArgs, watcher: &Watcher) -> Result<Arc<Source>, ReplayError> {
    let mut source = Source::open(&args.trace, None)?;
    source.watch(watcher);
    match &mut source {
        Source::Text(_) => return Err(ReplayError::Text { path: args.trace.clone() }),
        Source::Trace(trace) if !args.no_lives => _ = et_lives::attach(trace, None),
        Source::Trace(_) => {}
    }
    Ok(Arc::new(source))
}

#[allow(unsafe_code, reason = "loads a library and calls it")]
fn load(agent: &str) -> Result<(), ReplayError> {
    // Without a slash the linker would look in its own folders only.
    let (path, options) = agent.split_once(':').unwrap_or((agent, ""));
    let is_here = !path.contains('/') && Path::new(path).is_file();
    let text = if is_here { format!("./{path}:{options}") } else { agent.to_owned() };
    functions::this_thread_plays();
    // SAFETY: the table of functions lives as long as the process.
    unsafe { library::load(vm::java_vm(), &text) }.map_err(ReplayError::Agent)?;
    if vm::is_asked() { Ok(()) } else { Err(ReplayError::NotAsked { agent: path.to_owned() }) }
}
