//! pprof's `profile.proto`, compressed with gzip. It includes all weights; the first four have the same names as in
//! Go's heap profiles, so tools for these work.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;

use super::About;
use super::tree::{Frame, Tree};
use super::weight::{Unit, Weight};

// The part of https://github.com/google/pprof/blob/main/proto/profile.proto that is needed, with its names and numbers.

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// Innermost frame first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
    #[prost(int64, tag = "5")]
    start_line: i64,
}

struct Strings {
    all: Vec<String>,
    index: FxHashMap<String, i64>,
}

impl Strings {
    fn of(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.index.get(text) {
            return known;
        }
        self.all.push(text.to_owned());
        let index = self.all.len() as i64 - 1;
        self.index.insert(text.to_owned(), index);
        index
    }
}

fn unit(weight: Weight) -> &'static str {
    match weight.unit() {
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Drag => "byte_kiloticks",
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub fn write(tree: &Tree, weight: Weight, about: &About, out: impl Write) -> io::Result<()> {
    // The first string must be empty.
    let mut strings = Strings { all: vec![String::new()], index: FxHashMap::from_iter([(String::new(), 0)]) };
    let sample_type =
        Weight::ALL.map(|weight| ValueType { kind: strings.of(weight.pprof()), unit: strings.of(unit(weight)) }).into();
    let (mut function, mut location) = (Vec::new(), Vec::new());
    let mut functions: FxHashMap<(&str, &str, u32), u64> = FxHashMap::default();
    for (at, frame) in (1..).zip(&tree.frames) {
        let Frame { name, file, line, first_line, .. } = frame;
        let function_id = *functions.entry((name, file, *first_line)).or_insert_with(|| {
            let id = function.len() as u64 + 1;
            let (name, filename) = (strings.of(name), strings.of(file));
            function.push(Function { id, name, system_name: name, filename, start_line: (*first_line).into() });
            id
        });
        location.push(Location { id: at, line: vec![Line { function_id, line: (*line).into() }] });
    }
    let sample = tree
        .leaves
        .iter()
        .map(|(node, cell)| Sample {
            location_id: tree.stack(*node).map(|frame| u64::from(frame) + 1).collect(),
            value: Weight::ALL.iter().map(|weight| signed(weight.of(cell))).collect(),
        })
        .collect();
    let comment = std::iter::once(&about.program).chain(&about.comments).map(|text| strings.of(text)).collect();
    let default_sample_type = strings.of(weight.pprof());
    let profile = Profile {
        sample_type,
        sample,
        location,
        function,
        string_table: strings.all,
        duration_nanos: about.nanos.map_or(0, signed),
        comment,
        default_sample_type,
    };
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(&profile.encode_to_vec())?;
    out.finish()?.flush()
}
