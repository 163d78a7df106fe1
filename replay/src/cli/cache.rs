//! `et-replay cache`

use clap::Args;
use et_names::units::bytes;

use super::{CliError, InputArgs, open, print, print_json, too_small};
use crate::cache::{self, CacheSpec, Caches};
use crate::simulate::{self, Collector, Config, HeapSize};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-replay cache app.ops                                       under mark-sweep, in three times the memory that is alive
  et-replay cache app.ops --collector copying --heap 4x --cache l1=48k,12,64 --cache l2=2m,16,64 --tlb 64")]
pub(super) struct CacheArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The collector that places the objects: mark-sweep, mark-compact, copying, generational, reference-counting
    #[arg(long, value_name = "NAME", default_value = "mark-sweep")]
    collector: Collector,
    /// Its heap: 64m, or a multiple of the most that is alive at a time, 2x
    #[arg(long, value_name = "SIZE", default_value = "3x")]
    heap: HeapSize,
    /// Bytes for young objects, of a generational collector [default: a quarter of the heap]
    #[arg(long, value_name = "SIZE")]
    nursery: Option<HeapSize>,
    /// Have a reference-counting collector look for cycles when the heap is full
    #[arg(long)]
    backup_trace: bool,
    /// A level: its name, bytes, lines of a set, bytes of a line. The first is asked first [default: l1=32k,8,64 l2=1m,16,64]
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

pub(super) fn run(args: &CacheArgs) -> Result<u8, CliError> {
    let (mut ops, code) = open(&args.input)?;
    let tables = ops.tables().clone();
    let usual = || ["l1=32k,8,64", "l2=1m,16,64"].iter().filter_map(|spec| spec.parse().ok()).collect();
    let specs: Vec<CacheSpec> = if args.caches.is_empty() { usual() } else { args.caches.clone() };
    let mut caches = Caches::new(&specs, args.tlb, &tables);
    let peak = &tables.totals.peak;
    let (heap, nursery) = (args.heap.bytes(peak), args.nursery.map(|size| size.bytes(peak)));
    let config = Config { collector: args.collector, heap, nursery, backup_trace: args.backup_trace };
    if let Err(error) = simulate::simulate(&mut ops, &config, &mut caches) {
        return Err(too_small(error, &mut ops, &config));
    }
    let report = caches.report(format!("{}, heap {}", args.collector.name(), bytes(heap)), &tables, args.top);
    if args.json {
        print_json(&report)?
    } else {
        print(&cache::render(&report))?
    }
    Ok(code)
}
