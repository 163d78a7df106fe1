//! Small operations files for tests, hand-made and random.

mod random;
#[cfg(test)]
mod strategy;

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use et_reader::source::Source;

use crate::mmtk::{CollectReport, Final, Lengths, Plan};
use crate::ops::{Amount, Class, ClassKind, Layout, Op, OpsReader, OpsWriter, Peak, Tables};
use crate::prepare::{Wanted, prepare};
pub use random::random_program;
#[cfg(test)]
pub(crate) use strategy::program;

/// Class 0: `Node`, with one slot; class 1: an array of nodes; class 2: an array of bytes.
pub fn classes() -> Vec<Class> {
    let class = |descriptor: &str, kind, slots| Class { descriptor: descriptor.into(), kind, slots };
    vec![
        class("LNode;", ClassKind::Scalar, 1),
        class("[LNode;", ClassKind::References, 0),
        class("[B", ClassKind::Numbers, 0),
    ]
}

pub fn node(handle: u32) -> Op {
    Op::Birth { handle, class: 0, size: 16, slots: 1, site: 0, initial: false }
}

/// A reference array of that length.
pub fn nodes(handle: u32, slots: u32) -> Op {
    let size = Layout::default().array_bytes(slots);
    Op::Birth { handle, class: 1, size, slots, site: 0, initial: false }
}

pub fn put(origin: u32, slot: u32, target: u32) -> Op {
    Op::Update { origin, slot, target }
}

pub fn put_static(field: u32, target: u32) -> Op {
    Op::UpdateStatic { field, target }
}

pub fn death(handle: u32) -> Op {
    Op::Death { handle }
}

/// An operations file with these operations.
pub fn bytes_of(ops: &[Op]) -> Vec<u8> {
    let classes = classes();
    let mut tables = Tables { classes, threads: vec![1, 7], ..Tables::default() };
    let mut writer = OpsWriter::new(tempfile::tempfile().unwrap(), Layout::default()).unwrap();
    let (mut alive, mut sizes) = (Amount::default(), HashMap::new());
    for (number, op) in (0..).zip(ops) {
        match *op {
            Op::Birth { handle, class, size, .. } => {
                tables.handles = tables.handles.max(handle);
                sizes.insert(handle, size);
                alive.add(size);
                tables.totals.births += 1;
                let peak = &mut tables.totals.peak;
                if alive.bytes > peak.bytes {
                    *peak = Peak { bytes: alive.bytes, objects: alive.objects, operation: number };
                }
                writer.birth(op, &tables.classes[class as usize]).unwrap();
                continue;
            }
            Op::Death { handle } => _ = sizes.remove(&handle).map(|size| alive.sub(size)),
            Op::UpdateStatic { field, .. } => tables.static_fields = tables.static_fields.max(field + 1),
            _ => {}
        }
        writer.push(*op).unwrap();
    }
    tables.totals.operations = ops.len() as u64;
    tables.totals.at_end = alive;
    let mut file = writer.finish(&tables).unwrap();
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    bytes
}

pub fn open(bytes: &[u8]) -> Result<OpsReader, String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    OpsReader::of_file(Path::new("test.ops"), file).map_err(|error| error.to_string())
}

pub fn reader_of(ops: &[Op]) -> OpsReader {
    open(&bytes_of(ops)).unwrap()
}

pub fn all(reader: &mut OpsReader) -> Vec<Op> {
    reader.rewind().unwrap();
    std::iter::from_fn(|| reader.next_op().unwrap()).collect()
}

/// The operations of a text.
pub fn prepared(text: &str) -> OpsReader {
    let source = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
    let prepared = prepare(&source, Wanted::default(), tempfile::tempfile().unwrap()).unwrap();
    OpsReader::of_file(Path::new("test.ops"), prepared.file).unwrap()
}

/// A report of a run on MMTk of that duration, with one pause in nanoseconds.
pub fn mmtk_report(seconds: f64, pause: u64) -> CollectReport {
    CollectReport {
        plan: Plan::GenImmix,
        heap: 1 << 20,
        heap_of_peak: 3.0,
        nursery: None,
        gc_threads: 1,
        mmtk: Vec::new(),
        operations: 10,
        records: 20,
        seconds,
        mutator_seconds: seconds / 2.0,
        own_seconds: 0.0,
        collections: 1,
        pauses: Lengths::of(vec![pause]),
        scanned: Amount::default(),
        copied: Amount::default(),
        peak_used: 1 << 19,
        roots: 1,
        rescued: 0,
        allocated: Amount::default(),
        grown: Amount::default(),
        is_checked: false,
        at_end: Final::default(),
        each: Vec::new(),
    }
}
