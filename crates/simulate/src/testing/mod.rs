//! Small operations files for tests, hand-made and random.

mod random;

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use et_reader::source::Source;
use proptest::prelude::*;

use crate::mmtk::{CollectReport, Final, Lengths, Plan};
use crate::ops::{Amount, Class, ClassKind, Layout, Op, OpsReader, OpsWriter, Peak, Tables};
use crate::prepare::{Wanted, prepare};
pub use random::random_program;

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

/// Random programs, as texts without deaths: nodes with two fields, arrays, cycles, static fields, three threads.
pub fn program() -> impl Strategy<Value = String> {
    prop::collection::vec((0..20u8, any::<u16>(), any::<u16>(), 1..4u8), 1..160).prop_map(|acts| {
        let mut maker = Maker::default();
        acts.into_iter().for_each(|act| maker.act(act));
        format!("# Elephant Tracks, dialect et\n{}# lost 0\n", maker.text)
    })
}

#[derive(Default)]
struct Maker {
    text: String,
    /// Length of each object if it is an array.
    objects: Vec<Option<u32>>,
    slots: HashMap<(usize, u32), usize>,
}

impl Maker {
    /// Mostly one of the youngest, from 1; 0 if there is none.
    fn object(&self, draw: u16) -> usize {
        let count = self.objects.len();
        let back = if draw.is_multiple_of(5) { draw as usize } else { draw as usize % 6 };
        if count == 0 { 0 } else { count - back % count }
    }

    fn act(&mut self, (kind, one, other, thread): (u8, u16, u16, u8)) {
        let (origin, target) = (self.object(one), if other.is_multiple_of(4) { 0 } else { self.object(other) });
        let id = self.objects.len() + 1;
        match kind {
            0..=5 => {
                self.objects.push(None);
                self.text += &format!("N {id:x} {:x} LNode; 0 0 {thread}\n", 16 + 8 * (one % 3));
            }
            6 => {
                let length = one % 5;
                self.objects.push(Some(length.into()));
                self.text +=
                    &format!("A {id:x} {:x} [LNode; 0 {length:x} {thread}\n", (16 + 4 * length).next_multiple_of(8));
            }
            7 => {
                self.objects.push(Some(0));
                self.text += &format!("A {id:x} {:x} [B 0 {:x} {thread}\n", 16 + 8 * (one % 9), 8 * (one % 9));
            }
            8..=15 if origin > 0 => {
                let slot = match self.objects[origin - 1] {
                    None => u32::from(one % 2) + 5,
                    Some(0) => return,
                    Some(length) => u32::from(one) % length,
                };
                self.put(origin, slot, target, thread);
            }
            16 => self.put(0, u32::from(one % 3) + 9, target, thread),
            17 | 18 if origin > 0 => {
                self.text += &format!("M 7 {origin:x} {thread}\nE 7 {origin:x} {thread}\n");
            }
            _ => {}
        }
    }

    fn put(&mut self, origin: usize, slot: u32, target: usize, thread: u8) {
        let old = self.slots.insert((origin, slot), target).unwrap_or(0);
        self.text += &format!("U {old:x} {origin:x} {target:x} {slot:x} {thread}\n");
    }
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
