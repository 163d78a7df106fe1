//! The dominator tree of a moment: level by level, and as a map.

use std::cmp::Reverse;

use et_analysis::heap::{self, DominatorLine, HeapLine, ObjectLine};
use et_names::shell::quoted;
use et_names::units::number as separated;
use et_reader::model::Node;
use et_reader::record::ObjectId;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::{named, to_value, with_command};
use crate::opened::{Moment, Opened};
use crate::params::{Params, Refused};

/// Parts of the map that are smaller than one in this many of the heap are one.
const SEEN: u64 = 200;
/// Levels of the map.
const LEVELS: usize = 8;
/// Boxes of the map.
const BOXES: usize = 1500;

/// A box of the map.
#[derive(Debug, Serialize)]
struct Rectangle {
    /// `None`: it stands for several.
    id: Option<String>,
    name: String,
    /// What it retains.
    bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Rectangle>,
}

/// An id as it is printed.
pub(crate) fn object_id(text: &str) -> Result<ObjectId, Refused> {
    text.parse().map_err(|_| Refused::Wrong(format!("{text}: ids are hexadecimal, as they are shown")))
}

/// The node of an object that was alive.
pub(crate) fn node(moment: &Moment, id: ObjectId) -> Option<Node> {
    moment.resident.snapshot.find(id)
}

/// An object of the tree.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: String,
    class: String,
    site: Option<String>,
    bytes: u64,
    retained_bytes: u64,
    /// The root that holds it; `None` if several hold it together, or the one above does.
    held_by: Option<String>,
    /// Objects that it dominates immediately.
    dominates: u64,
}

fn line(moment: &Moment, node: u32) -> Line {
    let line = heap::dominator_line(&moment.resident.snapshot, &moment.dominance, Node(node));
    let DominatorLine { object, held_by, dominates, .. } = line;
    let ObjectLine { object: id, class, site, bytes, retained_bytes } = object;
    Line { id, class, site, bytes, retained_bytes, held_by, dominates }
}

/// The objects that one dominates immediately; without `of`, those that none dominates.
pub(crate) fn dominators(trace: &'static Opened, params: &Params) -> Result<Value, Refused> {
    let tick = params.tick("at")?;
    let moment = trace.moment(tick)?;
    let snapshot = &moment.resident.snapshot;
    let of = match params.get("of") {
        None => None,
        Some(text) => {
            let none = || Refused::None(format!("object {text} is not alive at {}", named(trace, tick)));
            Some(node(&moment, object_id(text)?).ok_or_else(none)?)
        }
    };
    let (offset, limit) = (params.count("offset", 0, usize::MAX)?, params.count("limit", 100, 10_000)?);
    let above = of.map_or(snapshot.graph().root(), |node| node.0);
    let retained = |node: &u32| moment.dominance.retained[*node as usize];
    let mut below: Vec<u32> = moment.dominance.children.of(above).collect();
    let all = below.len();
    below.sort_unstable_by_key(|node| (Reverse(retained(node)), *node));
    let lines: Vec<Line> = below.into_iter().skip(offset).take(limit).map(|node| line(&moment, node)).collect();
    Ok(json!({
        "heap": to_value(&HeapLine::of(snapshot))?,
        "of": to_value(&of.map(|node| line(&moment, node.0)))?,
        "lines": to_value(&lines)?,
        "all": all,
        "command": command(trace, tick),
    }))
}

/// The command line that shows the top of the tree.
fn command(trace: &Opened, tick: u64) -> String {
    format!("et-trace heap {} --at {} --dominators", quoted(trace.path()), named(trace, tick))
}

/// The dominator tree as boxes in boxes.
pub(crate) fn treemap(trace: &'static Opened, params: &Params) -> Result<Value, Refused> {
    let tick = params.tick("at")?;
    let moment = trace.moment(tick)?;
    let root = moment.resident.snapshot.graph().root();
    let whole = moment.dominance.retained[root as usize];
    let mut left = BOXES;
    let children = boxes(&moment, root, whole, LEVELS, &mut left);
    let map = Rectangle { id: None, name: "the heap".to_owned(), bytes: whole, children };
    with_command(&map, Some(command(trace, tick)))
}

fn boxes(moment: &Moment, above: u32, whole: u64, levels: usize, left: &mut usize) -> Vec<Rectangle> {
    let snapshot = &moment.resident.snapshot;
    let retained = |node: u32| moment.dominance.retained[node as usize];
    let is_seen = |bytes: u64| bytes.saturating_mul(SEEN) >= whole;
    let mut below: Vec<u32> = moment.dominance.children.of(above).collect();
    below.sort_unstable_by_key(|&node| (Reverse(retained(node)), node));
    let mut all = Vec::new();
    // Small ones by class: many of them may be much.
    let mut small: FxHashMap<String, (u64, u64)> = FxHashMap::default();
    for node in below {
        if levels == 0 || *left == 0 || !is_seen(retained(node)) {
            let of_class = small.entry(snapshot.class_text(Node(node))).or_default();
            *of_class = (of_class.0 + 1, of_class.1 + retained(node));
            continue;
        }
        *left -= 1;
        all.push(Rectangle {
            id: Some(format!("{:x}", snapshot.object(Node(node)).id.0)),
            name: snapshot.class_text(Node(node)),
            bytes: retained(node),
            children: boxes(moment, node, whole, levels - 1, left),
        });
    }
    let several = |name: String, bytes| Rectangle { id: None, name, bytes, children: Vec::new() };
    let (mut others, mut count) = (0, 0);
    let mut small: Vec<(String, (u64, u64))> = small.into_iter().collect();
    small.sort_unstable_by(|(a, (_, one)), (b, (_, other))| other.cmp(one).then_with(|| a.cmp(b)));
    for (class, (number, bytes)) in small {
        if is_seen(bytes) && *left > 0 {
            *left -= 1;
            all.push(several(format!("{} × {class}", separated(number)), bytes));
        } else {
            (others, count) = (others + bytes, count + number);
        }
    }
    // One box alone in another would say nothing.
    if count > 0 && !all.is_empty() {
        let name = if count == 1 { "one other".to_owned() } else { format!("{} others", separated(count)) };
        all.push(several(name, others));
    }
    all
}
