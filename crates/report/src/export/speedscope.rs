//! speedscope's own format (<https://www.speedscope.app/file-format-schema.json>): a `sampled` profile, outermost frame first.

use std::io::{self, Write};

use serde::Serialize;

use super::About;
use super::tree::Tree;
use super::weight::{Unit, Weight};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    line: u32,
}

fn is_zero(line: &u32) -> bool {
    *line == 0
}

pub fn write(tree: &Tree, weight: Weight, about: &About, mut out: impl Write) -> io::Result<()> {
    let leaves: Vec<(u32, u64)> =
        tree.leaves.iter().map(|(node, cell)| (*node, weight.of(cell))).filter(|(_, weight)| *weight > 0).collect();
    let total = leaves.iter().fold(0u64, |sum, (_, weight)| sum.saturating_add(*weight));
    let unit = if weight.unit() == Unit::Bytes { "bytes" } else { "none" };
    let name = serde_json::to_string(&format!("{}: {}", about.program, weight.name()))?;
    let exporter = concat!("et-trace ", env!("CARGO_PKG_VERSION"));
    write!(out, "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"{exporter}\",\"name\":{name},\"activeProfileIndex\":0,")?;
    out.write_all(b"\"shared\":{\"frames\":[")?;
    for (index, frame) in tree.frames.iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut out, &Frame { name: &frame.name, file: &frame.file, line: frame.line })?;
    }
    write!(out, "]}},\"profiles\":[{{\"type\":\"sampled\",\"name\":{name},\"unit\":\"{unit}\",")?;
    write!(out, "\"startValue\":0,\"endValue\":{total},\"samples\":[")?;
    // There may be many long stacks, so they are written one at a time.
    let mut stack = Vec::new();
    for (index, (node, _)) in leaves.iter().enumerate() {
        stack.clear();
        stack.extend(tree.stack(*node));
        stack.reverse();
        if index > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut out, &stack)?;
    }
    out.write_all(b"],\"weights\":")?;
    serde_json::to_writer(&mut out, &leaves.iter().map(|(_, weight)| weight).collect::<Vec<_>>())?;
    out.write_all(b"}]}\n")?;
    out.flush()
}
