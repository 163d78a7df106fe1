//! Traces: a trace file, optionally with a buffer file.

mod mutation;

use std::io::{self, Write};
use std::ops::ControlFlow;

use et_analysis::heap::{self, Graph, Moment, Request};
use et_analysis::{compare, summary};
use et_format::buffers;
use et_reader::file::ReadError;
use et_reader::lifetimes::{Known, Limits};
use et_reader::population::{Columns, Population};
use et_reader::record::Record;
use et_reader::source::{Deaths, Reading, Source};
use et_reader::text::{Dialect, TextNames, TextTrace};
use et_reader::{Trace, TraceFile, births, blocks, counted, recover, text, text_writer};

use crate::{Target, summarize};

const MEMORY_RATIO: usize = 1 << 17;

/// Trace files, followed by a buffer file: read, checked, summarized.
pub const TARGET: Target = Target {
    name: "trace",
    inputs: "trace",
    longest: 12_288,
    compares: false,
    memory_ratio: MEMORY_RATIO,
    run: read,
    mutate: Some(mutation::mutate),
    mend: Some(mutation::mend),
};

/// The same, written as text in each dialect, with its names, and read back.
pub const TEXT: Target = Target { name: "trace_text", run: write, ..TARGET };

/// The same, comparing deaths with those reported by the collector.
pub const COMPARE: Target = Target { name: "compare", run: compare, ..TARGET };

/// The same, recovering the trace: the new trace has the same content.
pub const RECOVER: Target = Target { name: "recover", run: recover, ..TARGET };

/// The same, with what is in its heap at the end and in the middle: dominators, paths, a heap dump.
pub const HEAP: Target = Target { name: "heap", run: heap, ..TARGET };

/// Whatever events say, records made of them are nothing like this. An exception may not be in flight, though: a damaged trace can
/// give its id to a new object while it is.
const UNSOUND: [&str; 11] = [
    " has no allocation record before this",
    " is dead",
    " was allocated or mentioned before",
    " held it",
    " was still held",
    "the old target is ",
    "the top frame of thread ",
    "the stack of thread ",
    "the exception is null",
    "object 0 is null",
    "is not said to be cut off",
];
const MOST_VIOLATIONS: usize = 100;

/// The trace and the buffer file after it.
fn split(data: &[u8]) -> (&[u8], Option<&[u8]>) {
    let magic = buffers::MAGIC;
    match data.windows(magic.len()).position(|window| window == magic) {
        Some(at) => (&data[..at], Some(&data[at..])),
        None => (data, None),
    }
}

fn file(data: &[u8]) -> Result<TraceFile, ReadError> {
    let (trace, buffers) = split(data);
    TraceFile::from_bytes(trace.to_vec(), buffers.map(<[u8]>::to_vec))
}

fn open(data: &[u8]) -> Option<Trace> {
    Trace::from_file(file(data).ok()?).ok()
}

/// Rows of objects, which nobody needs.
struct Nowhere;

impl blocks::Rows for Nowhere {
    fn row(&mut self, _row: &blocks::LifeRow) {}
    fn clearing(&mut self, _clearing: &Known) {}
}

fn read(data: &[u8]) {
    let Some(trace) = open(data) else { return };
    let _ = summary::info(&trace);
    let _ = summary::sizes(&trace);
    let _ = blocks::read(&trace, true, || Ok(Nowhere));
    if let Ok(Some((population, _))) = births::read(&trace) {
        read_rows(&population);
    }
    read_rows(&counted::counted(&trace).0);
    let source = Source::from(trace);
    if let Ok(report) = et_validate::validate(&source, Deaths::Trace, MOST_VIOLATIONS) {
        let unsound = report.violations.iter().find(|violation| UNSOUND.iter().any(|what| violation.contains(what)));
        assert_eq!(unsound, None, "records of any trace");
    }
    if let Some(summary) = summarize(&source) {
        let _ = summary::render_long(&summary);
    }
}

/// Reads all rows, of which there are as many as the population says.
fn read_rows(population: &Population) {
    let of_group = |group| {
        let rows = population.groups.read(group, Columns::ALL).expect("rows of a trace that does not change");
        (0..rows.len).map(|row| rows.objects(row)).sum::<u64>()
    };
    assert_eq!((0..population.groups.len()).map(of_group).sum::<u64>(), population.objects, "objects in rows");
}

fn write(data: &[u8]) {
    let Some(trace) = open(data) else { return };
    let source = Source::from(trace);
    for dialect in [Dialect::Et, Dialect::Replayer, Dialect::Oracle] {
        for deaths in [Deaths::Trace, Deaths::None] {
            let reading = Reading { deaths, ..Reading::default() };
            let mut written = Vec::new();
            let Ok((ending, used)) = text_writer::write(&source, dialect, reading, &mut written) else { continue };
            let Source::Trace(trace) = &source else { continue };
            let mut names = Vec::new();
            for used in [None, used.as_ref()] {
                names.clear();
                let wrote = text::write_names(trace, dialect, used, &ending.outcome.extra_fields, &mut names);
                wrote.expect("a vector takes everything");
                let line = TextNames::read(names.as_slice()).expect("a slice can be read").err();
                assert_eq!(line, None, "a line of the names file: {}", String::from_utf8_lossy(&names));
            }
            // If two artifacts share ids, their names are ambiguous, about which users are warned.
            let is_ambiguous = !trace.names.overlaps().is_empty();
            if dialect != Dialect::Oracle && !is_ambiguous {
                let names = TextNames::read(names.as_slice()).ok().and_then(Result::ok);
                let back = TextTrace::from_text(written.as_slice(), names).into();
                let mut again = Vec::new();
                text_writer::write(&back, dialect, reading, &mut again).expect("what was written can be read");
                crate::text::assert_same(&written, &again);
            }
        }
    }
}

fn compare(data: &[u8]) {
    let Some(trace) = open(data) else { return };
    if let Ok((report, _)) = compare::compare(&trace, Limits::default(), 3) {
        let _ = compare::render(&report);
    }
}

fn heap(data: &[u8]) {
    let Some(trace) = open(data) else { return };
    let source = Source::from(trace);
    for moment in [Moment::End, Moment::Percent(50.0)] {
        let request = Request { moment, ..Request::default() };
        let Ok(snapshot) = heap::take(&source, &request) else { continue };
        let dominance = heap::dominance(&snapshot);
        let classes = heap::classes(&snapshot, &dominance, &heap::Matching::all(), 5);
        let _ = heap::render_classes(&classes);
        let _ = heap::render_dominators(&heap::dominators_of(&snapshot, &dominance, &heap::Matching::all(), 5));
        // What a single root holds is a part of the heap.
        let sizes: Vec<u64> = snapshot.nodes().map(|(_, object)| object.size).collect();
        let bytes: u64 = sizes.iter().sum();
        let graph = snapshot.graph();
        let all = reached_without(graph, u32::MAX);
        for (node, object) in snapshot.nodes().take(20) {
            // What would be freed with it, determined by removing it.
            let left = reached_without(graph, node.0);
            let expected: u64 = (0..sizes.len()).filter(|&at| all[at] && !left[at]).map(|at| sizes[at]).sum();
            assert!(dominance.retained[node.0 as usize] == expected, "{expected} bytes go with {object:?}");
            let paths = heap::paths_to(&snapshot, &dominance, node, &heap::Matching::all(), 3);
            let _ = heap::render_paths(&paths);
            let retained = dominance.retained[node.0 as usize];
            assert!(object.size <= retained && retained <= bytes, "{retained} of {bytes} bytes: {object:?}");
        }
        // Arrays are as long in it as the trace says, and a few bytes may say gigabytes.
        if let Ok(dumped) = heap::hprof::write(&source, &snapshot, Room(16 << 20)) {
            assert!(dumped.objects <= snapshot.len() as u64, "{dumped:?}");
        }
    }
}

/// By node, whether the roots lead there, other than through `without`.
fn reached_without(graph: &Graph, without: u32) -> Vec<bool> {
    let mut reached = vec![false; graph.len()];
    let mut stack = vec![graph.root()];
    while let Some(node) = stack.pop() {
        if node != without && !std::mem::replace(&mut reached[node as usize], true) {
            stack.extend(graph.targets(node));
        }
    }
    reached
}

/// A writer that accepts this many bytes and discards them.
struct Room(usize);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("no more room"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn recover(data: &[u8]) {
    let Ok(file) = file(data) else { return };
    if file.cut_off().is_none() || file.end().is_some() {
        return;
    }
    let mut whole = Vec::new();
    recover::recover(&file, &mut whole).expect("a vector takes everything");
    let Ok(cut) = Trace::from_file(file) else { return };
    let whole = TraceFile::from_bytes(whole, None).and_then(Trace::from_file);
    let whole = whole.unwrap_or_else(|error| panic!("what was recovered: {error}"));
    assert!(whole.file.cut_off().is_none(), "what was recovered is whole");
    assert!(records(&cut) == records(&whole), "recovery changes no record");
}

fn records(trace: &Trace) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    let told = trace.for_each(|record, _| {
        records.push(*record);
        ControlFlow::Continue(())
    });
    told.ok().map(|_| records)
}
