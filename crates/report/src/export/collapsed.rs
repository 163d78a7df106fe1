//! Collapsed stacks: `main;run;allocate;java.lang.String 4711`, outermost first.

use std::io::{self, Write};

use super::tree::{Frame, Tree};
use super::weight::Weight;

/// Name of a frame with its line. Semicolons separate frames and line breaks separate stacks, but class names may
/// contain both.
fn label(frame: &Frame) -> String {
    let mut label: String = frame
        .name
        .chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() => '?',
            c => c,
        })
        .collect();
    if frame.line > 0 {
        label += &format!(":{}", frame.line);
    }
    label
}

pub fn write(tree: &Tree, weight: Weight, mut out: impl Write) -> io::Result<()> {
    let labels: Vec<String> = tree.frames.iter().map(label).collect();
    let mut stack = Vec::new();
    for (node, cell) in &tree.leaves {
        let weight = weight.of(cell);
        if weight == 0 {
            continue;
        }
        stack.clear();
        stack.extend(tree.stack(*node));
        for (index, frame) in stack.iter().rev().enumerate() {
            let between = if index == 0 { "" } else { ";" };
            write!(out, "{between}{}", labels[*frame as usize])?;
        }
        writeln!(out, " {weight}")?;
    }
    out.flush()
}
