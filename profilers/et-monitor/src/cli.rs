//! The command line of `et-monitor`.

mod attach;
mod backend;
mod place;
mod serve;
mod show;

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use et_cli::code::OK;
use et_cli::{Program, Unwritten};
use serde_json::Value;
use thiserror::Error;

use crate::attach::AttachError;
use crate::discovery::Discovery;

/// Prefix of messages.
const PROGRAM: Program = Program("et-monitor");

/// Shows what running JVMs do: threads, heap, monitors, allocations; on a page, and in the shell.
#[derive(Debug, Parser)]
#[command(
    name = "et-monitor",
    version,
    after_help = "\
Examples:
  et-monitor                          the page: prints its URL, and runs until Ctrl-C
  et-monitor attach 4711              loads the agent into a JVM that runs
  et-monitor ls                       the VMs of this machine
  et-monitor threads 4711             their states
  et-monitor heap 4711 --map          size, kinds of objects, gaps
  et-monitor dump 4711 heap.hprof     a heap dump
  jdb -attach 8700                    a debugger on the selected VM, while all that goes on

VM is a process number, or part of a program name. If et-monitor is already running, the other commands ask it; otherwise they ask the VM.

Exit codes: 0 success; 1 failure; 2 wrong usage; 141 standard output was closed."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    scan: ScanArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The page, and ports for debuggers; the default
    Serve(serve::ServeArgs),
    /// Lists VMs
    Ls(show::LsArgs),
    /// Threads with their states, or one with its stack
    Threads(show::ThreadsArgs),
    /// The size of the heap; what is in it, by kind or by class
    Heap(show::HeapArgs),
    /// What a VM knows about an object, a class, a monitor or a thread
    Ask(show::AskArgs),
    /// Collects garbage
    Gc(show::GcArgs),
    /// Writes a heap dump
    Dump(show::DumpArgs),
    /// Ends a program
    Exit(show::ExitArgs),
    /// Loads the agent into a JVM that runs
    Attach(attach::AttachArgs),
}

/// Where VMs are.
#[derive(Clone, Debug, Default, Args)]
struct ScanArgs {
    /// Ports to search for VMs, in addition to those that agents announce: PORT or FIRST-LAST, separated by commas [default: 8000-8040,8600-8699]
    #[arg(long, global = true, value_name = "PORTS", value_delimiter = ',', value_parser = ports)]
    scan: Vec<RangeInclusive<u16>>,
}

impl ScanArgs {
    fn discovery(&self) -> Discovery {
        Discovery::new(&self.scan)
    }
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first > 0 && first <= last => Ok(first..=last),
        _ => Err("expected PORT or FIRST-LAST".into()),
    }
}

/// What is asked for by id.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// An object
    Object,
    /// A class
    Class,
    /// Objects of a class
    Instances,
    /// The monitor of an object
    Monitor,
    /// A thread
    Thread,
}

/// Why a command failed: one line.
#[derive(Debug, Error)]
enum CliError {
    #[error("et-monitor already runs (process {pid}): open {url}")]
    AlreadyRuns { pid: u32, url: String },
    #[error("cannot listen on port {port}: {source}: choose another with --port")]
    Port { port: u16, source: io::Error },
    #[error("cannot start: {0}")]
    Start(io::Error),
    #[error("no VM found: start one with -agentpath:…/libet_monitor.so, or attach to it with et-monitor attach PID")]
    NoVms,
    #[error("{0}")]
    SilentVm(String),
    #[error("no VM has {vm} as its process number or in its name; et-monitor ls lists them")]
    NoSuchVm { vm: String },
    #[error("{vm} matches processes {pids}: choose one of them")]
    Ambiguous { vm: String, pids: String },
    #[error("{0}")]
    Refused(String),
    #[error("the running et-monitor does not answer: {0}")]
    Silent(String),
    #[error("no agent at {path}: build it with cargo xtask build, or pass its path with --library", path = path.display())]
    NoLibrary { path: PathBuf },
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("{0}")]
    Stdout(#[from] Unwritten),
}

/// Agents that say where they listen, and do not answer there.
fn silent(list: &Value) -> impl Iterator<Item = String> {
    let one = |it: &Value| {
        let (port, why) = (it["port"].as_u64()?, it["why"].as_str()?);
        Some(format!("the VM that listens on port {port} rejects et-monitor: {why}"))
    };
    list["silent"].as_array().into_iter().flatten().filter_map(one)
}

impl CliError {
    /// There is no VM, or none answers.
    fn none(list: &Value) -> Self {
        silent(list).next().map_or(Self::NoVms, Self::SilentVm)
    }
}

/// The definition of the command line, for the manual.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => PROGRAM.end(run(cli).map(|()| OK)),
        Err(error) => et_cli::refuse::<Cli>(error),
    }
}

fn run(cli: Cli) -> Result<(), CliError> {
    let command = cli.command.unwrap_or_else(|| Command::Serve(serve::ServeArgs::default()));
    if let Command::Attach(args) = &command {
        return attach::run(args, &cli.scan);
    }
    // VMs and browsers wait for each other, not for processors: one thread does, as long as nothing takes it for itself.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Start)?;
    let done = runtime.block_on(async {
        match &command {
            Command::Serve(args) => serve::run(args, &cli.scan).await,
            Command::Ls(args) => show::ls(args, &cli.scan).await,
            Command::Threads(args) => show::threads(args, &cli.scan).await,
            Command::Heap(args) => show::heap(args, &cli.scan).await,
            Command::Ask(args) => show::ask(args, &cli.scan).await,
            Command::Gc(args) => show::collect_garbage(args, &cli.scan).await,
            Command::Dump(args) => show::dump(args, &cli.scan).await,
            Command::Exit(args) => show::exit(args, &cli.scan).await,
            Command::Attach(_) => Ok(()),
        }
    });
    // Results of tasks that still wait for VMs are no longer needed.
    runtime.shutdown_background();
    done
}
