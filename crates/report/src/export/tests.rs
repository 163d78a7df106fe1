//! Small profiles in all formats, some of them decoded the way other tools do.

use et_analysis::Amount;
use et_analysis::profile::Cell;

use super::*;

fn frame(name: &str, line: u32) -> Frame {
    let file = if name.contains('.') { "shop/Main.java".to_owned() } else { String::new() };
    Frame { name: name.to_owned(), file, line, first_line: line.min(1) * 3, is_class: false }
}

fn cell(objects: u64, bytes: u64, alive: u64) -> Cell {
    let (allocated, alive) = (Amount { objects, bytes }, Amount { objects: alive, bytes: alive * 16 });
    Cell { allocated, alive, young: Amount::default(), survived: Amount::default(), drag: 7 }
}

/// `main` calls `run`, and both allocate; names of classes contain special characters.
fn tree() -> Tree {
    let class = |name: &str| Frame { is_class: true, ..frame(name, 0) };
    let node = |parent, frame| Node { parent, frame };
    Tree {
        frames: vec![
            frame("shop.Main.main", 0),
            frame("shop.Main.run", 12),
            class("byte[]"),
            class("odd;na\nme"),
            frame("shop.Main.main", 5),
        ],
        nodes: vec![
            node(None, 0),
            node(Some(0), 1),
            node(Some(1), 2),
            node(Some(1), 3),
            node(None, 4),
            node(Some(4), 2),
        ],
        leaves: vec![(2, cell(3, 300, 0)), (3, cell(1, 16, 1)), (5, cell(2, 40, 2))],
    }
}

fn written(format: Format, weight: Weight) -> Vec<u8> {
    let about = About { program: "a.ettrace".into(), nanos: Some(5), comments: vec!["cut".into()] };
    let mut out = Vec::new();
    write(&tree(), format, weight, &about, &mut out).unwrap();
    out
}

fn text(format: Format, weight: Weight) -> String {
    String::from_utf8(written(format, weight)).unwrap()
}

#[test]
fn collapsed_stacks_are_read_by_inferno() {
    let stacks = text(Format::Collapsed, Weight::Bytes);
    insta::assert_snapshot!(stacks, @r"
    shop.Main.main;shop.Main.run:12;byte[] 300
    shop.Main.main;shop.Main.run:12;odd:na?me 16
    shop.Main.main:5;byte[] 40
    ");
    let mut svg = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_lines(&mut options, stacks.lines(), &mut svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.contains("shop.Main.run:12 (316 samples, 88.76%)"), "{svg}");
    insta::assert_snapshot!(text(Format::Collapsed, Weight::AliveObjects), @r"
    shop.Main.main;shop.Main.run:12;odd:na?me 1
    shop.Main.main:5;byte[] 2
    ");
}

#[test]
fn speedscope_has_stacks_outermost_first() {
    let profile: serde_json::Value = serde_json::from_str(&text(Format::Speedscope, Weight::Bytes)).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&profile).unwrap());
}

#[test]
fn chrome_has_a_tree_without_what_has_no_weight() {
    let profile: serde_json::Value = serde_json::from_str(&text(Format::Chrome, Weight::AliveBytes)).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&profile).unwrap());
}

/// The values that `go tool pprof -raw` lists, decoded by field numbers alone without using the writer's code.
#[test]
fn pprof_has_all_weights() {
    let mut raw = Vec::new();
    let written = written(Format::Pprof, Weight::AliveBytes);
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(written.as_slice()), &mut raw).unwrap();
    let fields = fields(&raw);
    let of = |number: u64| fields.iter().filter(move |(field, _)| *field == number).map(|(_, value)| value);
    let strings: Vec<String> = of(6).map(|text| String::from_utf8(text.bytes().to_vec()).unwrap()).collect();
    assert_eq!(strings[0], "");
    let name = |value: &Value| strings[value.number() as usize].as_str();
    let types: Vec<&str> = of(1).map(|value| name(&fields_of(value, 1)[0])).collect();
    assert_eq!(
        types,
        [
            "alloc_objects",
            "alloc_space",
            "inuse_objects",
            "inuse_space",
            "young_objects",
            "young_space",
            "survived_objects",
            "survived_space",
            "drag"
        ]
    );
    assert_eq!(of(14).map(name).collect::<Vec<_>>(), ["inuse_space"]);
    let comments = of(13).flat_map(|packed| varints(packed.bytes())).map(|at| strings[at as usize].as_str());
    assert_eq!(comments.collect::<Vec<_>>(), ["a.ettrace", "cut"]);
    let functions: Vec<&str> = of(5).map(|value| name(&fields_of(value, 2)[0])).collect();
    let locations: Vec<(u64, u64)> = of(4)
        .map(|value| {
            let line = &fields_of(value, 4)[0];
            let number = |field| fields_of(line, field).first().map_or(0, Value::number);
            (number(1), number(2))
        })
        .collect();
    let samples: Vec<(Vec<String>, Vec<u64>)> = of(2)
        .map(|sample| {
            let stack = varints(fields_of(sample, 1)[0].bytes()).into_iter().map(|location| {
                let (function, line) = locations[location as usize - 1];
                format!("{}:{line}", functions[function as usize - 1])
            });
            (stack.collect(), varints(fields_of(sample, 2)[0].bytes()))
        })
        .collect();
    assert_eq!(samples[0].0, ["byte[]:0", "shop.Main.run:12", "shop.Main.main:0"]);
    assert_eq!(samples[0].1, [3, 300, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(samples[2].0, ["byte[]:0", "shop.Main.main:5"]);
    assert_eq!(samples[2].1, [2, 40, 2, 32, 0, 0, 0, 0, 7]);
}

#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Value {
    fn number(&self) -> u64 {
        let Self::Number(number) = self else { panic!("bytes, no number") };
        *number
    }

    fn bytes(&self) -> &[u8] {
        let Self::Bytes(bytes) = self else { panic!("a number, no bytes") };
        bytes
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

fn varints(mut bytes: &[u8]) -> Vec<u64> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        all.push(varint(&mut bytes));
    }
    all
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, value));
    }
    all
}

fn fields_of(message: &Value, number: u64) -> Vec<Value> {
    fields(message.bytes()).into_iter().filter(|(field, _)| *field == number).map(|(_, value)| value).collect()
}

#[test]
fn firefox_has_a_sample_for_each_stack() {
    let profile: serde_json::Value = serde_json::from_str(&text(Format::Firefox, Weight::Bytes)).unwrap();
    let thread = &profile["threads"][0];
    assert_eq!(thread["name"], "a.ettrace: bytes allocated");
    assert_eq!(thread["samples"]["weight"], serde_json::json!([300, 16, 40]));
    assert_eq!(thread["samples"]["weightType"], "bytes");
    let strings = profile["shared"]["stringArray"].as_array().or(thread["stringArray"].as_array()).unwrap();
    assert!(strings.iter().any(|text| text == "shop.Main.run (Main.java:12)"), "{strings:?}");
}
