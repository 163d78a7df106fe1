//! Chrome's sampling heap profile (`.heapprofile`, the DevTools Protocol's `HeapProfiler.SamplingHeapProfile`): a tree
//! with the bytes that each function allocated itself. It has a single weight, which it calls size.

use std::io::{self, Write};

use serde::Serialize;

use super::tree::{Frame, Tree};
use super::weight::Weight;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame<'a> {
    function_name: &'a str,
    script_id: &'a str,
    url: &'a str,
    line_number: i64,
    column_number: i64,
}

fn call_frame(frame: &Frame) -> CallFrame<'_> {
    let line = if frame.line > 0 { frame.line } else { frame.first_line };
    // Line numbers start at 0; frames without code have none.
    CallFrame {
        function_name: &frame.name,
        script_id: "0",
        url: &frame.file,
        line_number: i64::from(line) - 1,
        column_number: -1,
    }
}

pub fn write(tree: &Tree, weight: Weight, mut out: impl Write) -> io::Result<()> {
    let mut sizes = vec![0u64; tree.nodes.len()];
    for (node, cell) in &tree.leaves {
        sizes[*node as usize] += weight.of(cell);
    }
    // Nodes without weight below them are omitted. Callers precede callees.
    let mut below = sizes.clone();
    for at in (0..tree.nodes.len()).rev() {
        if let Some(parent) = tree.nodes[at].parent {
            below[parent as usize] = below[parent as usize].saturating_add(below[at]);
        }
    }
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); tree.nodes.len()];
    let mut roots = Vec::new();
    for (at, node) in (0..).zip(&tree.nodes) {
        if below[at as usize] > 0 {
            match node.parent {
                Some(parent) => children[parent as usize].push(at),
                None => roots.push(at),
            }
        }
    }
    let root = CallFrame { function_name: "(root)", script_id: "0", url: "", line_number: -1, column_number: -1 };
    out.write_all(b"{\"head\":{\"callFrame\":")?;
    serde_json::to_writer(&mut out, &root)?;
    out.write_all(b",\"selfSize\":0,\"id\":1,\"children\":[")?;
    // Not recursive, since stacks may be deep: for each open node, the children still to be written.
    let mut open: Vec<std::vec::IntoIter<u32>> = vec![roots.into_iter()];
    let mut is_first = true;
    while let Some(siblings) = open.last_mut() {
        let Some(at) = siblings.next() else {
            open.pop();
            out.write_all(if open.is_empty() { b"]" } else { b"]}" })?;
            is_first = false;
            continue;
        };
        if !is_first {
            out.write_all(b",")?;
        }
        out.write_all(b"{\"callFrame\":")?;
        serde_json::to_writer(&mut out, &call_frame(&tree.frames[tree.nodes[at as usize].frame as usize]))?;
        write!(out, ",\"selfSize\":{},\"id\":{},\"children\":[", sizes[at as usize], at + 2)?;
        open.push(std::mem::take(&mut children[at as usize]).into_iter());
        is_first = true;
    }
    out.write_all(b"},\"samples\":[")?;
    let leaves = tree.leaves.iter().filter(|(_, cell)| weight.of(cell) > 0);
    for (index, (node, cell)) in leaves.enumerate() {
        let between = if index == 0 { "" } else { "," };
        write!(out, "{between}{{\"size\":{},\"nodeId\":{},\"ordinal\":{}}}", weight.of(cell), node + 2, index + 1)?;
    }
    out.write_all(b"]}\n")?;
    out.flush()
}
