//! `et-replay allocate`

use std::path::PathBuf;

use clap::Args;

use super::children::{self, HereArgs, Linked, Task};
use super::head::Head;
use super::progress::Progress;
use super::{CliError, InputArgs, open};
use crate::memory_curve;
use crate::output::{Kind, Output};
use et_cli::{print, print_json};
use et_simulate::allocate::{self, AllocateReport, System};

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
    /// A library whose malloc replaces the system's (LD_PRELOAD); can be repeated
    #[arg(long, value_name = "LIBRARY")]
    preload: Vec<PathBuf>,
    /// Replay in this process, with its own allocator, and print nothing until the end
    #[arg(long, conflicts_with_all = ["preload", "allocator"])]
    here: bool,
    #[command(flatten)]
    child: HereArgs,
    /// Draw live memory and resident memory over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Replace an output file of any kind, not only a drawing
    #[arg(long, requires = "svg")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &AllocateArgs) -> Result<u8, CliError> {
    let output = match &args.svg {
        Some(path) => Some(Output::create(path, Kind::Svg, args.force, &[&args.input.input])?),
        None => None,
    };
    let progress = Progress::new();
    let (mut ops, code) = open(&args.input, &progress)?;
    let mut reports = Vec::new();
    if args.here {
        args.child.check()?;
        // The thread that shows progress would allocate too, which would be measured.
        drop(progress);
        reports.push(allocate::allocate::<System>(&mut ops, "system")?);
    } else {
        let usual = [Linked::System];
        let names = if args.allocator.is_empty() && args.preload.is_empty() { &usual[..] } else { &args.allocator[..] };
        let task = Task { verb: "allocate", args: Vec::new() };
        for &allocator in names {
            progress.begin(format!("allocating with {allocator}"));
            let [report]: [AllocateReport; 1] = children::linked(&ops, allocator, &task)?;
            reports.push(AllocateReport { allocator: allocator.to_string(), ..report });
        }
        for library in &args.preload {
            progress.begin(format!("allocating with {}", library.display()));
            let (allocator, [report]): (String, [AllocateReport; 1]) = children::preloaded(&ops, library, &task)?;
            reports.push(AllocateReport { allocator, ..report });
        }
    }
    if let Some(output) = output {
        output.write_whole(memory_curve::draw(ops.tables().trace_name(), &reports).as_bytes())?;
    }
    if args.json {
        print_json(&reports)?
    } else {
        print(&(Head::of(ops.tables()).text() + &allocate::render(&reports)))?
    }
    Ok(code)
}
