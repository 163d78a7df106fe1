//! Traces: a trace file and perhaps the buffer file that lay beside it.

use std::ops::ControlFlow;

use et_analysis::heap::{self, Moment, Request};
use et_analysis::{compare, summary, validate};
use et_format::{BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, BlockKind, BlockPacker, NewBlock, buffers};
use et_trace::file::ReadError;
use et_trace::lifetimes::Limits;
use et_trace::record::Record;
use et_trace::source::{Deaths, Reading, Source};
use et_trace::text::{Dialect, TextNames, TextTrace};
use et_trace::{Trace, TraceFile, recover, text, text_writer};

use crate::{Plain, Random, Target};

const MEMORY_RATIO: usize = 1 << 17;

/// Trace files, a buffer file behind them: read, checked, summed up.
pub const TARGET: Target =
    Target { name: "trace", inputs: "trace", memory_ratio: MEMORY_RATIO, run: read, mutate: Some(mutate) };

/// The same, written as text in each dialect, with its names, and read back.
pub const TEXT: Target = Target { name: "trace_text", run: write, ..TARGET };

/// The same, its deaths held against those that the collector told of.
pub const COMPARE: Target = Target { name: "compare", run: compare, ..TARGET };

/// The same, made whole: the new trace tells what the old one did.
pub const RECOVER: Target = Target { name: "recover", run: recover, ..TARGET };

/// The same, with what is in its heap at the end and in the middle: dominators, paths, a heap dump.
pub const HEAP: Target = Target { name: "heap", run: heap, ..TARGET };

/// The trace and the buffer file behind it.
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

fn read(data: &[u8]) {
    let Some(trace) = open(data) else { return };
    let _ = summary::info(&trace);
    let _ = summary::sizes(&trace);
    let source = Source::from(trace);
    let _ = validate::validate(&source, Deaths::Trace, 3);
    if let Ok(summary) = summary::summarize(&source, Reading::default(), 5) {
        let _ = summary::render_long(&summary);
    }
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
            if dialect != Dialect::Oracle {
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
        let classes = heap::classes(&snapshot, &dominance, 5);
        let _ = heap::render_classes(&classes);
        let _ = heap::render_dominators(&heap::dominators_of(&snapshot, &dominance, 5));
        // What a root holds alone is part of what there is.
        let bytes: u64 = snapshot.nodes().map(|(_, object)| object.size).sum();
        for (node, object) in snapshot.nodes().take(20) {
            let paths = heap::paths_to(&snapshot, &dominance, node, 3);
            let _ = heap::render_paths(&paths);
            let retained = dominance.retained[node.0 as usize];
            assert!(object.size <= retained && retained <= bytes, "{retained} of {bytes} bytes: {object:?}");
        }
        let mut dump = Vec::new();
        let dumped = heap::hprof::write(&source, &snapshot, &mut dump).expect("a vector takes everything");
        assert!(dumped.objects <= snapshot.len() as u64, "{dumped:?}");
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

/// Changes the content of one block and packs it again.
fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let (trace, buffers) = split(data);
    let file = TraceFile::from_bytes(trace.to_vec(), None).ok()?;
    let chosen = random.below(file.blocks().len());
    let mut out = trace.get(..file.blocks().first()?.at - BLOCK_HEADER)?.to_vec();
    for (index, block) in file.blocks().iter().enumerate() {
        let header = block.header;
        let end = block.at + header.stored_len as usize;
        if index != chosen {
            out.extend_from_slice(&trace[block.at - BLOCK_HEADER..end]);
            continue;
        }
        let mut raw = file.unpack(block).ok()?.into_owned();
        if header.kind == BlockKind::Names {
            raw = crate::names::mutate(&raw, random, plain)?;
        } else if header.kind == BlockKind::Events && random.one_in(2) && raw.len() >= 4 {
            // Another value in a word: few of them make sense.
            let at = 4 * random.below(raw.len() / 4);
            let value = if random.one_in(2) { random.below(16) } else { random.number() as usize };
            raw[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        } else {
            plain(&mut raw);
        }
        for _ in 0..=usize::from(random.one_in(8)) {
            let BlockHeader { kind, codec, thread, sequence, first_ticket, .. } = header;
            let wall = header.wall(trace.get(block.at..end)?);
            let block = NewBlock { kind, codec, thread, sequence, first_ticket, wall };
            BlockPacker::default().write(&mut out, block, &raw).ok()?;
        }
    }
    debug_assert!(out.windows(4).any(|window| window == BLOCK_MAGIC));
    out.extend_from_slice(buffers.unwrap_or_default());
    Some(out)
}
