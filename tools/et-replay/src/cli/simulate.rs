//! `et-replay simulate`

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use clap::Args;
use et_names::units::{bytes, counted, number};
use serde::Serialize;

use super::head::Head;
use super::progress::Progress;
use super::{CliError, InputArgs, PROGRAM, open, too_small};
use crate::output::{Kind, Output};
use et_cli::code::FAILED;
use et_cli::{Unwritten, print, print_json};
use et_simulate::collectors::{self, Collector, Config, HeapSize, Observer, Report, SimulateError};
use et_simulate::events::{Checker, CsvWriter, Event, ParquetWriter, Sink, Violation};
use et_simulate::ops::{OpsReader, Tables};

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
    /// Size of the heap, all arenas together: 64m, or a multiple of the peak of live bytes, as in 2x [default: 3x]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    heap: Vec<HeapSize>,
    /// Size of the nursery of a generational collector [default: a quarter of the heap]
    #[arg(long, value_name = "SIZE")]
    nursery: Option<HeapSize>,
    /// Let a reference-counting collector search for cycles when the heap is full
    #[arg(long)]
    backup_trace: bool,
    /// Write the events of one collector: as Parquet if the file ends with .parquet, else as CSV; - is CSV on standard output
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Check the events: nothing is used after it is freed, every address is free when it is allocated
    #[arg(long)]
    check: bool,
    /// Find the smallest heap for each scheme
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

/// The output of the command.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    simulations: Vec<Report>,
    /// Schemes not selected by name for which the heap is too small.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    too_small: Vec<TooSmall>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    smallest_heaps: Vec<Smallest>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TooSmall {
    collector: &'static str,
    heap: u64,
    smallest_heap: u64,
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
    let progress = Progress::new();
    let (mut ops, mut code) = open(&args.input, &progress)?;
    let tables = ops.tables().clone();
    let mut shown =
        Shown { head: Head::of(&tables), simulations: Vec::new(), too_small: Vec::new(), smallest_heaps: Vec::new() };
    if args.min_heap {
        for &collector in args.collectors() {
            progress.begin(format!("finding the smallest heap for {}", collector.name()));
            let heap = collectors::smallest_heap(&mut ops, &args.config(collector, 0, &tables))?;
            let of_peak = heap as f64 / tables.totals.peak.bytes.max(1) as f64;
            shown.smallest_heaps.push(Smallest { collector: collector.name(), heap, of_peak });
        }
    } else {
        let mut configs = Vec::new();
        for &collector in args.collectors() {
            configs.extend(heaps.iter().map(|heap| args.config(collector, heap.bytes(&tables.totals.peak), &tables)));
        }
        // Errors of usage before a long simulation.
        configs.iter().try_for_each(Config::check)?;
        for config in &configs {
            progress.begin(format!("simulating {} in a heap of {}", config.collector.name(), bytes(config.heap)));
            match one(&mut ops, config, &tables, args) {
                Ok(report) => shown.simulations.push(report),
                // Reference counting needs a larger heap where there is cyclic garbage: a result, not an error.
                Err(CliError::TooSmall { smallest, .. }) if args.collector.is_empty() => {
                    let (collector, heap) = (config.collector.name(), config.heap);
                    shown.too_small.push(TooSmall { collector, heap, smallest_heap: smallest });
                }
                // Continues with the other schemes.
                Err(error @ CliError::TooSmall { .. }) if configs.len() > 1 => {
                    PROGRAM.say(format_args!("{error}"));
                    code = FAILED;
                }
                Err(error) => return Err(error),
            }
        }
    }
    if shown.simulations.is_empty() && !shown.too_small.is_empty() {
        code = FAILED;
    }
    let on_stdout = args.events.as_deref() == Some(Path::new("-"));
    if args.json && !on_stdout {
        print_json(&shown)?;
    } else if !on_stdout {
        print(&text(&shown, args.backup_trace))?;
    }
    Ok(code)
}

fn text(shown: &Shown<'_>, backup_trace: bool) -> String {
    let mut text = shown.head.text();
    if shown.smallest_heaps.is_empty() {
        text += &collectors::render(&shown.simulations);
        for row in &shown.too_small {
            let (heap, smallest) = (bytes(row.heap), HeapSize::Bytes(row.smallest_heap).typed());
            let is_counting = row.collector == Collector::ReferenceCounting.name();
            let hint = if is_counting && !backup_trace { " or --backup-trace, which frees cycles" } else { "" };
            text += &format!("{:<18} {heap:>10}  too small: needs --heap {smallest}{hint}\n", row.collector);
        }
        return text;
    }
    text += &format!("{:<18} {:>14} {:>6}\n", "collector", "smallest heap", "times");
    for smallest in &shown.smallest_heaps {
        text += &format!("{:<18} {:>14} {:>6.2}\n", smallest.collector, bytes(smallest.heap), smallest.of_peak);
    }
    text
}

/// Writes and checks events as requested.
struct Watch<'a> {
    sink: Option<Box<dyn Sink + 'a>>,
    checker: Option<Checker>,
    wrong: Option<Violation>,
}

impl Observer for Watch<'_> {
    fn event(&mut self, operation: u64, event: &Event) {
        if let Some(sink) = &mut self.sink {
            sink.push(operation, event);
        }
        if let Some(checker) = &mut self.checker
            && self.wrong.is_none()
        {
            self.wrong = checker.push(operation, event).err();
        }
    }

    fn goes_on(&self) -> bool {
        self.wrong.is_none() && self.sink.as_ref().is_none_or(|sink| sink.is_well())
    }
}

/// Format of events.
#[derive(Clone, Copy, Debug)]
enum Format {
    Csv,
    Parquet,
}

impl Format {
    fn of(path: &Path) -> Self {
        match path.extension().and_then(|end| end.to_str()) {
            Some("parquet") => Self::Parquet,
            _ => Self::Csv,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Csv => Kind::Events,
            Self::Parquet => Kind::EventsTable,
        }
    }

    fn sink(self, file: File, tables: &Tables) -> Box<dyn Sink + '_> {
        match self {
            Self::Csv => Box::new(CsvWriter::new(BufWriter::with_capacity(1 << 18, file), tables)),
            Self::Parquet => Box::new(ParquetWriter::new(file, tables)),
        }
    }
}

/// Runs a simulation, and writes its events if requested.
fn one(ops: &mut OpsReader, config: &Config, tables: &Tables, args: &SimulateArgs) -> Result<Report, CliError> {
    match args.events.as_deref() {
        None => watched(ops, config, None, |error| Unwritten(error).into(), args.check),
        Some(path) if path == Path::new("-") => {
            let csv = CsvWriter::new(BufWriter::new(io::stdout().lock()), tables);
            watched(ops, config, Some(Box::new(csv)), |error| Unwritten(error).into(), args.check)
        }
        Some(path) => {
            let format = Format::of(path);
            let mut place = Output::create(path, format.kind(), args.force, &[&args.input.input])?;
            let file = place.file().try_clone().map_err(|source| place.error(source))?;
            let sink = format.sink(file, tables);
            let report = watched(ops, config, Some(sink), |source| place.error(source).into(), args.check)?;
            place.finish()?;
            if args.json {
                PROGRAM.say(format_args!("{}: {}", path.display(), said(&report)));
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

/// Runs a simulation with a sink for events. `failed` adds the destination to a write error.
fn watched<'a>(
    ops: &mut OpsReader,
    config: &Config,
    sink: Option<Box<dyn Sink + 'a>>,
    failed: impl Fn(io::Error) -> CliError,
    is_checked: bool,
) -> Result<Report, CliError> {
    let mut watch = Watch { sink, checker: is_checked.then(Checker::default), wrong: None };
    let simulated = collectors::simulate(ops, config, &mut watch);
    if let Some(wrong) = watch.wrong {
        return Err(CliError::Events { path: ops.path().to_owned(), wrong });
    }
    if matches!(simulated, Ok(_) | Err(SimulateError::Stopped)) {
        // A stopped simulation means a failed write, whose error `finish` returns.
        watch.sink.map_or(Ok(()), |sink| sink.finish()).map_err(failed)?;
    }
    simulated.map_err(|error| too_small(error, ops, config))
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;
    use et_simulate::testing::{bytes_of, death, node, put};

    fn simulate(path: &Path, more: &[&str]) -> Result<u8, String> {
        let words = ["et-replay", "simulate", path.to_str().unwrap(), "--collector", "copying", "--heap", "64k"];
        let cli = Cli::parse_from([&words[..], more].concat());
        let Command::Simulate(args) = &cli.command else { panic!("{cli:?}") };
        run(args).map_err(|error| error.to_string())
    }

    #[test]
    fn a_scheme_that_nobody_asked_for_and_has_no_room_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cycles.ops");
        // Cyclic garbage: no reference count drops to zero.
        let cycles = (0..1000).flat_map(|_| [node(1), node(2), put(1, 0, 1), death(1), death(2)]);
        std::fs::write(&path, bytes_of(&cycles.collect::<Vec<_>>())).unwrap();
        let run_with = |more: &[&str]| {
            let cli = Cli::parse_from([&["et-replay", "simulate", path.to_str().unwrap()], more].concat());
            let Command::Simulate(args) = &cli.command else { panic!("{cli:?}") };
            run(args).map_err(|error| error.to_string())
        };
        assert_eq!(run_with(&[]), Ok(0));
        assert_eq!(run_with(&["--json"]), Ok(0));
        assert_eq!(run_with(&["--heap", "3x,4x"]), Ok(0));
        let named = run_with(&["--collector", "reference-counting"]).unwrap_err();
        assert!(named.contains("the smallest that works is --heap"), "{named}");
        assert_eq!(run_with(&["--heap", "16"]), Ok(1), "none has room");
        assert_eq!(run_with(&["--collector", "reference-counting", "--backup-trace"]), Ok(0));
    }

    /// Both for an error during the simulation and for one at the final flush.
    #[test]
    fn a_disk_that_takes_no_more_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for births in [100, 200_000] {
            let ops: Vec<_> = (0..births).flat_map(|_| [node(1), death(1)]).collect();
            let path = folder.path().join("a.ops");
            std::fs::write(&path, bytes_of(&ops)).unwrap();
            let parquet = folder.path().join("full.parquet");
            if !parquet.exists() {
                std::os::unix::fs::symlink("/dev/full", &parquet).unwrap();
            }
            for to in [Path::new("/dev/full"), &parquet] {
                let to = to.to_str().unwrap();
                let said = simulate(&path, &["--events", to]).unwrap_err();
                assert_eq!(said, format!("cannot write {to}: No space left on device (os error 28)"), "{births}");
            }
        }
    }

    #[test]
    fn events_are_replaced_by_events_only() {
        let folder = tempfile::tempdir().unwrap();
        let (path, table) = (folder.path().join("a.ops"), folder.path().join("e.parquet"));
        std::fs::write(&path, bytes_of(&[node(1), node(2), death(1)])).unwrap();
        let to = table.to_str().unwrap();
        assert_eq!(simulate(&path, &["--events", to, "--check"]), Ok(0));
        let first = std::fs::read(&table).unwrap();
        assert!(first.starts_with(b"PAR1"));
        assert_eq!(simulate(&path, &["--events", to]), Ok(0));
        assert_eq!(std::fs::read(&table).unwrap(), first);
        std::fs::write(&table, "PAR1 of mine").unwrap();
        let said = simulate(&path, &["--events", to]).unwrap_err();
        assert!(said.contains("exists and is not a table of a simulation's events"), "{said}");
        assert_eq!(simulate(&path, &["--events", to, "--force"]), Ok(0));
    }
}
