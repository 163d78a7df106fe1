//! `et-replay collect`

use std::path::{Path, PathBuf};

use clap::Args;
use et_names::shell::quoted;
use et_names::units::{bytes, counted};
use serde::Serialize;

use super::head::Head;
use super::progress::Progress;
use super::{CliError, InputArgs, PROGRAM, open};
use crate::collect::{self, ChildError, Curve, Point, Replay, Request};
use crate::output::{Kind, Output};
use et_cli::code::{FAILED, OK};
use et_cli::{print, print_json};
use et_simulate::collectors::HeapSize;
use et_simulate::mmtk::{CollectReport, MmtkOption, Plan};
use et_simulate::ops::{OpsReader, Tables};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-replay collect app.ops                                        all plans that collect, in three times the memory that is alive
  et-replay collect app.ops --plan GenImmix,SemiSpace --heap 2x,3x,64m
  et-replay collect app.ops --min-heap                             the smallest heap of each plan
  et-replay collect app.ops --curve curves.html                    time and pauses against the size of the heap
  et-replay collect app.ops --plan GenImmix --repeat 5             how far runs differ: pauses of one run say little

NoGC never collects: --heap does not apply to it, its heap takes everything the program allocates.")]
pub(super) struct CollectArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The plans: NoGC, SemiSpace, GenCopy, MarkSweep, MarkCompact, Compressor, Immix, StickyImmix, GenImmix, ConcurrentImmix [default: all but
    /// NoGC]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    plan: Vec<Plan>,
    /// Size of the heap: 64m, or a multiple of the peak of live bytes, as in 2x [default: 3x]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    heap: Vec<HeapSize>,
    /// Size of the nursery of generational plans [default: chosen by MMTk]
    #[arg(long, value_name = "SIZE")]
    nursery: Option<HeapSize>,
    /// Number of collector threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..256))]
    gc_threads: u16,
    /// Collect after about this many bytes of allocation, which MMTk counts in whole pages and blocks
    #[arg(long, value_name = "SIZE")]
    stress: Option<HeapSize>,
    /// After each collection, check that every object is present and that its references are as the program stored them
    #[arg(long)]
    check: bool,
    /// An MMTk option that controls collectors, as in immix_defrag_headroom_percent=10; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    mmtk: Vec<MmtkOption>,
    /// Find the smallest heap of each plan
    #[arg(long, conflicts_with_all = ["heap", "curve"])]
    min_heap: bool,
    /// Write time and pauses in 1.25 to 6 times the smallest heap of each plan: a page (.html) or a drawing (.svg)
    #[arg(long, value_name = "FILE", conflicts_with = "heap")]
    curve: Option<PathBuf>,
    /// Number of replays: the median run is shown, with the spread of the others
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000), conflicts_with = "min_heap")]
    repeat: u16,
    /// Replace an output file of any kind, not only a curve
    #[arg(long, requires = "curve")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The output of the command.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replays: Vec<Replay>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    smallest_heaps: Vec<Smallest>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    curves: Vec<Curve>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Smallest {
    plan: Plan,
    heap: u64,
    of_peak: f64,
}

impl CollectArgs {
    fn plans(&self) -> Vec<Plan> {
        let collects = |plan: &Plan| *plan != Plan::NoGC;
        if self.plan.is_empty() { Plan::ALL.into_iter().filter(collects).collect() } else { self.plan.clone() }
    }

    fn request(&self, plan: Plan, heap: u64, tables: &Tables) -> Request {
        let bytes = |size: HeapSize| size.bytes(&tables.totals.peak);
        Request {
            plan,
            heap: if plan == Plan::NoGC { all_of_it(tables) } else { heap },
            nursery: self.nursery.filter(|_| plan.is_generational()).map(bytes),
            gc_threads: self.gc_threads.into(),
            stress: self.stress.map(bytes),
            check: self.check,
            mmtk: self.mmtk.clone(),
        }
    }
}

/// Size in bytes of a heap in which no collection is needed. Each thread reserves a block.
fn all_of_it(tables: &Tables) -> u64 {
    tables.totals.allocated.bytes / 8 * 9 + (16 << 20) + ((tables.threads.len() as u64) << 16)
}

pub(super) fn run(args: &CollectArgs) -> Result<u8, CliError> {
    let drawing = args.curve.as_deref().map(Drawing::of).transpose()?;
    check(args)?;
    // Errors of usage before a long replay.
    collect::find()?;
    let output = match (&args.curve, drawing) {
        (Some(path), Some(drawing)) => Some(Output::create(path, drawing.kind(), args.force, &[&args.input.input])?),
        _ => None,
    };
    let progress = Progress::new();
    let (ops, mut code) = open(&args.input, &progress)?;
    let tables = ops.tables().clone();
    let mut shown =
        Shown { head: Head::of(&tables), replays: Vec::new(), smallest_heaps: Vec::new(), curves: Vec::new() };
    if args.min_heap || args.curve.is_some() {
        for plan in args.plans() {
            if plan == Plan::NoGC {
                PROGRAM.say(format_args!("NoGC never collects: it has no smallest heap, and is left out"));
                continue;
            }
            progress.begin(format!("finding the smallest heap for {}", plan.name()));
            let heap = match smallest(args, &ops, plan, &tables) {
                Ok(Some(heap)) => heap,
                Ok(None) => {
                    PROGRAM.say(format_args!("{}: no heap that this machine can provide is large enough", plan.name()));
                    code = FAILED;
                    continue;
                }
                Err(error) => {
                    code = without(error.into(), args.plans().len())?;
                    continue;
                }
            };
            let of_peak = heap as f64 / tables.totals.peak.bytes.max(1) as f64;
            shown.smallest_heaps.push(Smallest { plan, heap, of_peak });
            if args.curve.is_some() {
                let (curve, of_curve) = curve(args, &ops, plan, heap, &tables, &progress)?;
                if !curve.points.is_empty() {
                    shown.curves.push(curve);
                }
                code = code.max(of_curve);
            }
        }
    } else {
        code = code.max(replays(args, &ops, &tables, &mut shown, &progress)?);
    }
    let no_curves = args.curve.as_ref().filter(|_| shown.curves.is_empty());
    if let (Some(output), Some(drawing), None) = (output, drawing, no_curves) {
        let text = match drawing {
            Drawing::Page => collect::page(&tables, &shown.curves, &command_line()),
            Drawing::Svg => collect::draw(tables.trace_name(), &shown.curves),
        };
        output.write_whole(text.as_bytes())?;
    }
    if args.json {
        print_json(&shown)?
    } else {
        print(&text(args, &shown))?
    }
    // Results are shown even if there is no curve, since they took long.
    match no_curves {
        Some(path) => Err(CliError::NoCurves { path: path.clone() }),
        None => Ok(code),
    }
}

/// Checks the options before a long replay.
fn check(args: &CollectArgs) -> Result<(), CliError> {
    let plans = args.plans();
    if (args.min_heap || args.curve.is_some()) && plans.iter().all(|&plan| plan == Plan::NoGC) {
        return Err(CliError::NeverCollects);
    }
    let is_known = |(at, option): &(usize, &MmtkOption)| args.mmtk[..*at].iter().any(|one| one.name == option.name);
    if let Some((_, option)) = args.mmtk.iter().enumerate().find(is_known) {
        return Err(CliError::Twice { name: option.name.clone() });
    }
    if args.nursery.is_some() && !plans.iter().any(|plan| plan.is_generational()) {
        PROGRAM.say(format_args!("warning: --nursery has no effect: none of the plans has a nursery"));
    }
    Ok(())
}

fn replays(
    args: &CollectArgs,
    ops: &OpsReader,
    tables: &Tables,
    shown: &mut Shown<'_>,
    progress: &Progress,
) -> Result<u8, CliError> {
    let heaps = if args.heap.is_empty() { vec![HeapSize::Times(3.0)] } else { args.heap.clone() };
    let (plans, mut code) = (args.plans(), OK);
    // Errors of usage before a long replay.
    for &plan in &plans {
        for heap in &heaps {
            args.request(plan, heap.bytes(&tables.totals.peak), tables).check()?;
        }
    }
    for &plan in &plans {
        // NoGC gets one heap, which is large enough for everything.
        let heaps = if plan == Plan::NoGC { &heaps[..1] } else { &heaps[..] };
        for heap in heaps {
            let request = args.request(plan, heap.bytes(&tables.totals.peak), tables);
            match repeat(args, ops, &request, progress) {
                Ok(replay) => {
                    note(&replay.report);
                    shown.replays.push(replay);
                }
                Err(error) => {
                    let smallest = match &error {
                        ChildError::TooSmall { .. } => smallest(args, ops, plan, tables).ok().flatten(),
                        _ => None,
                    };
                    let error = match smallest {
                        Some(smallest) => CliError::HeapTooSmall { error, smallest },
                        None => error.into(),
                    };
                    code = without(error, plans.len() * heaps.len())?;
                }
            }
        }
    }
    Ok(code)
}

/// Replays as often as requested.
fn repeat(args: &CollectArgs, ops: &OpsReader, request: &Request, progress: &Progress) -> Result<Replay, ChildError> {
    let mut run = 0;
    Replay::repeat(args.repeat, || {
        run += 1;
        let of = if args.repeat > 1 { format!(", run {run} of {}", args.repeat) } else { String::new() };
        progress.begin(format!("{} collects in a heap of {}{of}", request.plan.name(), bytes(request.heap)));
        collect::run(ops, request)
    })
}

/// One of several replays failed: reports the error and continues with the others.
fn without(error: CliError, replays: usize) -> Result<u8, CliError> {
    if replays == 1 || matches!(error, CliError::Collect(ChildError::Missing { .. })) {
        return Err(error);
    }
    PROGRAM.say(format_args!("{error}"));
    Ok(FAILED)
}

/// Prints warnings about a replay.
fn note(report: &CollectReport) {
    if report.at_end.reached.is_none() {
        PROGRAM
            .say(format_args!("{}: it never collects, so there is no last collection to compare", report.plan.name()));
    }
    if report.grown.objects > 0 {
        PROGRAM.say(format_args!(
            "{}: {} had to be larger than in the trace, by {} in all",
            report.plan.name(),
            counted(report.grown.objects, "object"),
            bytes(report.grown.bytes)
        ));
    }
}

fn smallest(args: &CollectArgs, ops: &OpsReader, plan: Plan, tables: &Tables) -> Result<Option<u64>, ChildError> {
    let request = |heap| Request { check: false, ..args.request(plan, heap, tables) };
    let found = collect::smallest_heap(tables.totals.peak.bytes, |heap| collect::run(ops, &request(heap)))?;
    Ok(found.map(|(heap, _)| heap))
}

/// The curve of a plan, with the exit code.
fn curve(
    args: &CollectArgs,
    ops: &OpsReader,
    plan: Plan,
    smallest: u64,
    tables: &Tables,
    progress: &Progress,
) -> Result<(Curve, u8), CliError> {
    let (mut points, mut code) = (Vec::new(), OK);
    for times in collect::TIMES {
        let heap = (smallest as f64 * times) as u64 / 4096 * 4096;
        match repeat(args, ops, &args.request(plan, heap, tables), progress) {
            Ok(Replay { report, spread }) => points.push(Point { times, report, spread }),
            // A larger heap can be too small even where a smaller one suffices.
            Err(error @ ChildError::TooSmall { .. }) => PROGRAM.say(format_args!("{error}: left out of the curve")),
            Err(error) => code = without(error.into(), collect::TIMES.len())?,
        }
    }
    Ok((Curve { plan, smallest, points }, code))
}

#[derive(Clone, Copy, Debug)]
enum Drawing {
    Page,
    Svg,
}

impl Drawing {
    fn of(path: &Path) -> Result<Self, CliError> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("html" | "htm") => Ok(Self::Page),
            Some("svg") => Ok(Self::Svg),
            _ => Err(CliError::Drawing { path: path.to_owned() }),
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Page => Kind::Page,
            Self::Svg => Kind::Svg,
        }
    }
}

/// The command line, quoted, for the page.
fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("et-replay".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn text(args: &CollectArgs, shown: &Shown<'_>) -> String {
    let mut text = shown.head.text();
    if !args.mmtk.is_empty() {
        let told: Vec<String> = args.mmtk.iter().map(ToString::to_string).collect();
        text += &format!("MMTk options: {}\n\n", told.join(", "));
    }
    if !shown.smallest_heaps.is_empty() {
        text += &format!("{:<16} {:>14} {:>6}\n", "plan", "smallest heap", "times");
        for smallest in &shown.smallest_heaps {
            text += &format!("{:<16} {:>14} {:>6.2}\n", smallest.plan.name(), bytes(smallest.heap), smallest.of_peak);
        }
        if !shown.curves.is_empty() {
            text += "\n";
        }
    }
    let points = shown.curves.iter().flat_map(|curve| curve.points.iter().cloned());
    let points = points.map(|Point { report, spread, .. }| Replay { report, spread });
    let replays: Vec<Replay> = shown.replays.iter().cloned().chain(points).collect();
    if replays.is_empty() { text } else { text + &collect::render(&replays) }
}
