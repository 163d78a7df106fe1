//! `et-replay simulate`

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use et_names::units::{bytes, counted, number};
use serde::Serialize;

use super::{CliError, FAILED, InputArgs, open, print, print_json, say, too_small};
use crate::events::{Checker, CsvWriter, Event, Violation};
use crate::ops::{OpsReader, Tables};
use crate::output::{Kind, Output};
use crate::simulate::{self, Collector, Config, HeapSize, Observer, Report, SimulateError};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-replay simulate app.ops --heap 1.5x,2x,4x                 every scheme, in three heaps
  et-replay simulate app.ops --collector generational --heap 64m --nursery 8m --json
  et-replay simulate app.ops --collector mark-compact --heap 2x --events - | head
  et-replay simulate app.ops --min-heap                        the smallest heap for each scheme")]
pub(super) struct SimulateArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The schemes: mark-sweep, mark-compact, copying, generational, reference-counting [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    collector: Vec<Collector>,
    /// Bytes for all arenas together: 64m, or a multiple of the most that is alive at a time, 2x [default: 3x]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    heap: Vec<HeapSize>,
    /// Bytes for young objects, of a generational collector [default: a quarter of the heap]
    #[arg(long, value_name = "SIZE")]
    nursery: Option<HeapSize>,
    /// Have a reference-counting collector look for cycles when the heap is full
    #[arg(long)]
    backup_trace: bool,
    /// Write the events of one collector as CSV; - is standard output
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Check the events: nothing is used after its end, every address is free when it is given out
    #[arg(long)]
    check: bool,
    /// Search the smallest heap for each scheme
    #[arg(long, conflicts_with_all = ["heap", "events", "check"])]
    min_heap: bool,
    /// Replace an output file of any kind, not only events
    #[arg(long, requires = "events")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl SimulateArgs {
    fn collectors(&self) -> &[Collector] {
        if self.collector.is_empty() { &Collector::ALL } else { &self.collector }
    }

    fn config(&self, collector: Collector, heap: u64, tables: &Tables) -> Config {
        let nursery = self.nursery.map(|size| size.bytes(&tables.totals.peak));
        Config { collector, heap, nursery, backup_trace: self.backup_trace }
    }
}

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    trace: &'a str,
    run: Option<&'a str>,
    peak_bytes: u64,
    peak_objects: u64,
    alive_at_end: crate::ops::Amount,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    simulations: Vec<Report>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    smallest_heaps: Vec<Smallest>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Smallest {
    collector: &'static str,
    heap: u64,
    of_peak: f64,
}

pub(super) fn run(args: &SimulateArgs) -> Result<u8, CliError> {
    let heaps = if args.heap.is_empty() { vec![HeapSize::Times(3.0)] } else { args.heap.clone() };
    if args.events.is_some() && (args.collectors().len() != 1 || heaps.len() != 1) {
        return Err(CliError::OneOnly);
    }
    let (mut ops, mut code) = open(&args.input)?;
    let tables = ops.tables().clone();
    let mut shown = Shown {
        trace: &tables.trace,
        run: tables.run.as_deref(),
        peak_bytes: tables.totals.peak.bytes,
        peak_objects: tables.totals.peak.objects,
        alive_at_end: tables.totals.at_end,
        simulations: Vec::new(),
        smallest_heaps: Vec::new(),
    };
    if args.min_heap {
        for &collector in args.collectors() {
            let heap = simulate::smallest_heap(&mut ops, &args.config(collector, 0, &tables))?;
            let of_peak = heap as f64 / tables.totals.peak.bytes.max(1) as f64;
            shown.smallest_heaps.push(Smallest { collector: collector.name(), heap, of_peak });
        }
    } else {
        for &collector in args.collectors() {
            for heap in &heaps {
                let config = args.config(collector, heap.bytes(&tables.totals.peak), &tables);
                match one(&mut ops, &config, &tables, args) {
                    Ok(report) => shown.simulations.push(report),
                    // The others are no worse for it.
                    Err(error @ CliError::TooSmall { .. }) if args.collectors().len() * heaps.len() > 1 => {
                        say(format_args!("{error}"));
                        code = FAILED;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    let on_stdout = args.events.as_deref() == Some(Path::new("-"));
    if args.json && !on_stdout {
        print_json(&shown)?;
    } else if !on_stdout {
        print(&text(&shown))?;
    }
    Ok(code)
}

fn text(shown: &Shown<'_>) -> String {
    let mut text = format!(
        "{}: at most {} in {} alive at a time\n\n",
        shown.trace,
        bytes(shown.peak_bytes),
        counted(shown.peak_objects, "object")
    );
    if shown.smallest_heaps.is_empty() {
        return text + &simulate::render(&shown.simulations);
    }
    text += &format!("{:<18} {:>14} {:>6}\n", "collector", "smallest heap", "times");
    for smallest in &shown.smallest_heaps {
        text += &format!("{:<18} {:>14} {:>6.2}\n", smallest.collector, bytes(smallest.heap), smallest.of_peak);
    }
    text
}

/// Looks on as it was asked for.
struct Watch<'a, W: Write> {
    csv: Option<CsvWriter<'a, W>>,
    checker: Option<Checker>,
    wrong: Option<Violation>,
}

impl<W: Write> Observer for Watch<'_, W> {
    fn event(&mut self, operation: u64, event: &Event) {
        if let Some(csv) = &mut self.csv {
            csv.push(operation, event);
        }
        if let Some(checker) = &mut self.checker
            && self.wrong.is_none()
        {
            self.wrong = checker.push(operation, event).err();
        }
    }

    fn goes_on(&self) -> bool {
        self.csv.as_ref().is_none_or(CsvWriter::is_well)
    }
}

/// A simulation, with its events where they were asked for.
fn one(ops: &mut OpsReader, config: &Config, tables: &Tables, args: &SimulateArgs) -> Result<Report, CliError> {
    match args.events.as_deref() {
        None => watched(ops, config, None::<CsvWriter<'_, io::Sink>>, args).map(|(report, _)| report),
        Some(path) if path == Path::new("-") => {
            let csv = CsvWriter::new(BufWriter::new(io::stdout().lock()), tables);
            let (report, csv) = watched(ops, config, Some(csv), args)?;
            csv.map_or(Ok(()), |csv| csv.finish().map(drop)).map_err(CliError::Stdout)?;
            Ok(report)
        }
        Some(path) => {
            let mut place = Output::create(path, Kind::Events, args.force, &[&args.input.input])?;
            let csv = CsvWriter::new(BufWriter::with_capacity(1 << 18, place.file()), tables);
            let (report, csv) = watched(ops, config, Some(csv), args)?;
            let done = csv.map_or(Ok(()), |csv| csv.finish().map(drop));
            done.map_err(|source| place.error(source))?;
            place.finish()?;
            if args.json {
                say(format_args!("{}: {}", path.display(), said(&report)));
            } else {
                print(&format!("{}: {}\n", path.display(), said(&report)))?;
            }
            Ok(report)
        }
    }
}

fn said(report: &Report) -> String {
    let events = &report.events;
    format!(
        "{} new, {} deleted, {} moved; arenas: {} new, {} deleted",
        counted(events.new_object, "object"),
        number(events.delete_object),
        number(events.move_object),
        number(events.new_arena),
        number(events.delete_arena)
    )
}

fn watched<'a, W: Write>(
    ops: &mut OpsReader,
    config: &Config,
    csv: Option<CsvWriter<'a, W>>,
    args: &SimulateArgs,
) -> Result<(Report, Option<CsvWriter<'a, W>>), CliError> {
    let mut watch = Watch { csv, checker: args.check.then(Checker::default), wrong: None };
    let simulated = simulate::simulate(ops, config, &mut watch);
    if let Some(wrong) = watch.wrong {
        return Err(CliError::Events { path: ops.path().to_owned(), wrong });
    }
    match simulated {
        Ok(report) => Ok((report, watch.csv)),
        // What the writer could not write says it better.
        Err(SimulateError::Stopped) => match watch.csv.map(CsvWriter::finish) {
            Some(Err(error)) => Err(CliError::Stdout(error)),
            _ => Err(SimulateError::Stopped.into()),
        },
        Err(error) => Err(too_small(error, ops, config)),
    }
}
