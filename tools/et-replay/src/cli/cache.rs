//! `et-replay cache`

use std::path::PathBuf;

use clap::Args;
use et_names::units::bytes;

use super::children::{self, HereArgs, Linked, Task};
use super::head::Head;
use super::progress::Progress;
use super::{CliError, InputArgs, open, too_small};
use et_cli::{print, print_json};
use et_simulate::allocate::System;
use et_simulate::cache::{self, CacheReport, CacheSpec, Caches};
use et_simulate::collectors::{self, Collector, Config, HeapSize};
use et_simulate::ops::OpsReader;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-replay cache app.ops                                       under mark-sweep, in three times the memory that is alive
  et-replay cache app.ops --collector copying --heap 4x --cache l1=48k,12,64 --cache l2=2m,16,64 --tlb 64
  et-replay cache app.ops --allocator jemalloc                  where jemalloc puts the objects")]
pub(super) struct CacheArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The collector that places the objects: mark-sweep, mark-compact, copying, generational, reference-counting
    #[arg(long, value_name = "NAME", default_value = "mark-sweep")]
    collector: Collector,
    /// Size of its heap: 64m, or a multiple of the peak of live bytes, as in 2x
    #[arg(long, value_name = "SIZE", default_value = "3x")]
    heap: HeapSize,
    /// Size of the nursery of a generational collector [default: a quarter of the heap]
    #[arg(long, value_name = "SIZE")]
    nursery: Option<HeapSize>,
    /// Let a reference-counting collector search for cycles when the heap is full
    #[arg(long)]
    backup_trace: bool,
    /// Let an allocator place the objects instead, malloc at births and free at deaths: system, jemalloc, mimalloc, snmalloc
    #[arg(long, value_name = "NAME", conflicts_with_all = ["collector", "heap", "nursery", "backup_trace"])]
    allocator: Option<Linked>,
    /// Let a library's malloc place the objects (LD_PRELOAD)
    #[arg(long, value_name = "LIBRARY", conflicts_with_all = ["allocator", "collector", "heap", "nursery", "backup_trace"])]
    preload: Option<PathBuf>,
    /// Let the allocator of this process place the objects
    #[arg(long, conflicts_with_all = ["allocator", "preload", "collector", "heap", "nursery", "backup_trace"])]
    here: bool,
    #[command(flatten)]
    child: HereArgs,
    /// A cache level: name, bytes, ways, bytes per line. The first is accessed first [default: l1=32k,8,64 l2=1m,16,64]
    #[arg(long = "cache", value_name = "NAME=BYTES,WAYS,LINE")]
    caches: Vec<CacheSpec>,
    /// Entries of a fully associative TLB, for pages of 4 KiB
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 16))]
    tlb: Option<u64>,
    /// How many classes and sites to list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl CacheArgs {
    fn specs(&self) -> Vec<CacheSpec> {
        let usual = || ["l1=32k,8,64", "l2=1m,16,64"].iter().filter_map(|spec| spec.parse().ok()).collect();
        if self.caches.is_empty() { usual() } else { self.caches.clone() }
    }

    /// This command with its options, for a child process with the allocator.
    fn task(&self) -> Task {
        let mut args = Vec::new();
        let specs = self.specs();
        specs.iter().for_each(|spec| args.extend(["--cache".to_owned(), spec.to_string()]));
        if let Some(tlb) = self.tlb {
            args.extend(["--tlb".to_owned(), tlb.to_string()]);
        }
        args.extend(["--top".to_owned(), self.top.to_string()]);
        Task { verb: "cache", args }
    }
}

pub(super) fn run(args: &CacheArgs) -> Result<u8, CliError> {
    // Errors of usage before a long replay.
    cache::check(&args.specs())?;
    let progress = Progress::new();
    let (mut ops, code) = open(&args.input, &progress)?;
    progress.begin("simulating caches".to_owned());
    let report = match (args.allocator, &args.preload) {
        (Some(allocator), _) => {
            let report: CacheReport = children::linked(&ops, allocator, &args.task())?;
            CacheReport { under: allocator.to_string(), ..report }
        }
        (None, Some(library)) => {
            let (under, report) = children::preloaded(&ops, library, &args.task())?;
            CacheReport { under, ..report }
        }
        (None, None) if args.here => {
            // The thread that shows progress would allocate too, which would be measured.
            drop(progress);
            here(&mut ops, args)?
        }
        (None, None) => simulated(&mut ops, args)?,
    };
    if args.json {
        print_json(&report)?
    } else {
        print(&(Head::of(ops.tables()).text() + &cache::render(&report)))?
    }
    Ok(code)
}

fn here(ops: &mut OpsReader, args: &CacheArgs) -> Result<CacheReport, CliError> {
    args.child.check()?;
    Ok(cache::under::<System>(ops, "system", &args.specs(), args.tlb, args.top)?)
}

fn simulated(ops: &mut OpsReader, args: &CacheArgs) -> Result<CacheReport, CliError> {
    let tables = ops.tables().clone();
    let mut caches = Caches::new(&args.specs(), args.tlb, &tables);
    let peak = &tables.totals.peak;
    let (heap, nursery) = (args.heap.bytes(peak), args.nursery.map(|size| size.bytes(peak)));
    let config = Config { collector: args.collector, heap, nursery, backup_trace: args.backup_trace };
    if let Err(error) = collectors::simulate(ops, &config, &mut caches) {
        return Err(too_small(error, ops, &config));
    }
    Ok(caches.report(format!("{}, heap {}", args.collector.name(), bytes(heap)), &tables, args.top))
}
