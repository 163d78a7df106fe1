//! `et-replay allocate`

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use clap::Args;

use super::{CliError, InputArgs, open, print, print_json};
use crate::allocate::{self, AllocateReport, System};
use crate::ops::OpsReader;
use crate::output::{Kind, Output};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-replay allocate app.ops
  et-replay allocate app.ops --allocator system,jemalloc,mimalloc,snmalloc --svg memory.svg
  et-replay allocate app.ops --preload /usr/lib/x86_64-linux-gnu/libtcmalloc.so.4 --json
  valgrind --tool=cachegrind et-replay allocate app.ops --here")]
pub(super) struct AllocateArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The allocators: system (malloc of the C library), jemalloc, mimalloc, snmalloc [default: system]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    allocator: Vec<Linked>,
    /// A library whose malloc takes the place of the system's (LD_PRELOAD); can be given several times
    #[arg(long, value_name = "LIBRARY")]
    preload: Vec<PathBuf>,
    /// Replay in this process, with the allocator that it has, and print nothing until the end
    #[arg(long, conflicts_with_all = ["preload", "allocator"])]
    here: bool,
    /// Draw what is alive and what is in memory over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Replace an output file of any kind, not only a drawing
    #[arg(long, requires = "svg")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An allocator that one of our programs has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linked {
    System,
    Jemalloc,
    Mimalloc,
    Snmalloc,
}

impl Linked {
    const ALL: [Self; 4] = [Self::System, Self::Jemalloc, Self::Mimalloc, Self::Snmalloc];
}

impl fmt::Display for Linked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::Jemalloc => "jemalloc",
            Self::Mimalloc => "mimalloc",
            Self::Snmalloc => "snmalloc",
        })
    }
}

impl FromStr for Linked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|allocator| allocator.to_string() == text);
        found.ok_or_else(|| format!("there are {}", Self::ALL.map(|one| one.to_string()).join(", ")))
    }
}

pub(super) fn run(args: &AllocateArgs) -> Result<u8, CliError> {
    let output = match &args.svg {
        Some(path) => Some(Output::create(path, Kind::Svg, args.force, &[&args.input.input])?),
        None => None,
    };
    let (mut ops, code) = open(&args.input)?;
    let mut reports = Vec::new();
    if args.here {
        if let Some(library) = allocate::not_preloaded() {
            return Err(CliError::NotPreloaded { library });
        }
        reports.push(allocate::allocate::<System>(&mut ops, "system")?);
    } else {
        let usual = [Linked::System];
        let names = if args.allocator.is_empty() && args.preload.is_empty() { &usual[..] } else { &args.allocator[..] };
        for &allocator in names {
            reports.push(linked(&ops, allocator)?);
        }
        for library in &args.preload {
            reports.push(preloaded(&ops, library)?);
        }
    }
    if let Some(output) = output {
        output.write_whole(allocate::draw(&ops.tables().trace, &reports).as_bytes())?;
    }
    if args.json {
        print_json(&reports)?
    } else {
        print(&allocate::render(&reports))?
    }
    Ok(code)
}

/// The program that has allocators linked into it.
const PROGRAM: &str = "et-allocate";

fn linked(ops: &OpsReader, allocator: Linked) -> Result<AllocateReport, CliError> {
    let name = allocator.to_string();
    let failed = |error: std::io::Error| CliError::Child { allocator: name.clone(), why: error.to_string() };
    let own = std::env::current_exe().map_err(failed)?;
    if allocator == Linked::System {
        return in_child(ops, &name, &mut here(&own));
    }
    let program = own.with_file_name(PROGRAM);
    if !program.is_file() {
        let why =
            format!("there is no {PROGRAM} beside et-replay: cargo xtask build makes it where there is a C++ compiler");
        return Err(CliError::Child { allocator: name, why });
    }
    in_child(ops, &name, Command::new(program).args(["--allocator", &name]))
}

fn preloaded(ops: &OpsReader, library: &Path) -> Result<AllocateReport, CliError> {
    let name = library.file_name().map_or("system".into(), |name| name.to_string_lossy());
    let failed = |why: String| CliError::Child { allocator: name.to_string(), why };
    // The loader looks for what has no folder where libraries are, and takes these signs to part two.
    let Ok(library) = library.canonicalize() else {
        return Err(failed(format!("there is no library {}", library.display())));
    };
    if library.to_string_lossy().contains([':', ' ']) {
        return Err(failed(format!("{}: LD_PRELOAD takes no names with spaces or colons", library.display())));
    }
    let own = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    in_child(ops, &name, here(&own).env("LD_PRELOAD", library))
}

fn here(own: &Path) -> Command {
    let mut child = Command::new(own);
    child.args(["allocate", "--here", "--json", "/dev/stdin"]);
    child
}

/// In a process of its own: what an allocator keeps must not be another's.
fn in_child(ops: &OpsReader, name: &str, child: &mut Command) -> Result<AllocateReport, CliError> {
    let failed = |why: String| CliError::Child { allocator: name.to_owned(), why };
    let file = ops.file().try_clone().map_err(|error| failed(error.to_string()))?;
    let output = child.stdin(Stdio::from(file)).output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().next_back().unwrap_or_default();
        let last = last.trim_start_matches("et-replay: ").trim_start_matches("et-allocate: ").to_owned();
        return Err(failed(if last.is_empty() { output.status.to_string() } else { last }));
    }
    let reports: Vec<AllocateReport> =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    let mut report = reports.into_iter().next().ok_or_else(|| failed("it said nothing".to_owned()))?;
    report.allocator = name.to_owned();
    Ok(report)
}
