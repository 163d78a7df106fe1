//! Results about a snapshot; `--json` prints them.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::dominators::Roots;
use super::matching::Matching;
use super::paths::{self, Path, root_text};
use super::retained::{Dominance, retained_by_group};
use super::snapshot::{Snapshot, Taken};
use et_reader::model::Node;
use et_reader::types::for_people;
use rustc_hash::FxHashSet;

/// Totals of the heap.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeapLine {
    #[serde(flatten)]
    pub taken: Taken,
    pub objects: u64,
    pub bytes: u64,
    /// Slots that hold something, the weak ones included.
    pub references: u64,
}

/// Objects of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassLine {
    pub class: String,
    pub objects: u64,
    pub bytes: u64,
    /// Lower bound of what would be freed with them, in bytes.
    pub retained_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Classes {
    pub heap: HeapLine,
    /// Those that retain the most first.
    pub classes: Vec<ClassLine>,
    pub class_count: usize,
}

/// An object, with the largest of those that it dominates.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DominatorLine {
    #[serde(skip)]
    pub node: Node,
    #[serde(flatten)]
    pub object: ObjectLine,
    /// The root that holds it; `None` if several hold it together, or the one above does.
    pub held_by: Option<String>,
    /// The objects that it dominates immediately.
    pub dominates: u64,
    /// The largest of these, if they are a part of it that counts.
    pub largest: Vec<DominatorLine>,
}

/// The top of the dominator tree: what no other object dominates.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dominators {
    pub heap: HeapLine,
    pub objects: Vec<DominatorLine>,
    pub object_count: usize,
    /// The same objects by class.
    pub classes: Vec<ClassLine>,
    pub class_count: usize,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectLine {
    /// Its id as in texts of the trace.
    pub object: String,
    pub class: String,
    /// Where it was allocated, if that is known.
    pub site: Option<String>,
    pub bytes: u64,
    pub retained_bytes: u64,
}

/// Why an object is alive.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Paths {
    pub heap: HeapLine,
    #[serde(flatten)]
    pub object: ObjectLine,
    pub paths: Vec<Path>,
}

/// Why the objects of a class are alive.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassPaths {
    pub heap: HeapLine,
    #[serde(flatten)]
    pub class: ClassLine,
    /// Those that look alike together, most bytes first.
    pub paths: Vec<Path>,
}

/// What holds an object directly.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holders {
    pub heap: HeapLine,
    #[serde(flatten)]
    pub object: ObjectLine,
    /// What holds it from outside the heap: a static field, a stack, the VM.
    pub roots: Vec<String>,
    /// The slots that hold it, those of objects that retain most first.
    pub holders: Vec<HolderLine>,
    pub holder_count: usize,
}

/// A slot that holds an object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HolderLine {
    /// The field, or the element.
    pub via: String,
    #[serde(flatten)]
    pub holder: ObjectLine,
}

impl HeapLine {
    /// Computes the totals of a snapshot.
    pub fn of(snapshot: &Snapshot<'_>) -> Self {
        Self {
            taken: snapshot.taken().clone(),
            objects: snapshot.len() as u64,
            bytes: snapshot.bytes(),
            references: snapshot.reference_count(),
        }
    }
}

/// Computes what each object of a snapshot dominates and retains.
pub fn dominance(snapshot: &Snapshot<'_>) -> Dominance {
    let graph = snapshot.graph();
    Dominance::of(graph, Roots::of(graph), |node| snapshot.object(Node(node)).size)
}

/// Computes dominators and retained sizes without regard to stacks, but for what nothing else holds: a list that a
/// running method is adding to belongs to its holder as it did a moment before, even if the method has just copied it.
pub fn lasting_dominance(snapshot: &Snapshot<'_>) -> Dominance {
    let graph = snapshot.graph();
    let lasting: FxHashSet<u32> =
        snapshot.roots().iter().filter(|root| !root.kind.is_on_stack()).map(|root| root.node.0).collect();
    let (lasting, passing): (Vec<u32>, Vec<u32>) =
        graph.targets(graph.root()).iter().partition(|&node| lasting.contains(node));
    let roots = Roots { lasting: &lasting, passing: &passing };
    Dominance::of(graph, roots, |node| snapshot.object(Node(node)).size)
}

/// The wanted classes that retain the most.
pub fn classes(snapshot: &Snapshot<'_>, dominance: &Dominance, matching: &Matching, top: usize) -> Classes {
    let count = snapshot.classes().count();
    let group = |node| (node != snapshot.graph().root()).then(|| snapshot.object(Node(node)).class.0 as usize);
    let retained = retained_by_group(&dominance.tree, &dominance.children, &dominance.retained, count, group);
    let mut lines: Vec<ClassLine> = snapshot
        .classes()
        .zip(retained)
        .map(|((_, class), retained_bytes)| ClassLine {
            class: for_people(&class.descriptor),
            objects: 0,
            bytes: 0,
            retained_bytes,
        })
        .collect();
    for (_, object) in snapshot.nodes().filter(|&(node, _)| matching.has(snapshot, node)) {
        let line = &mut lines[object.class.0 as usize];
        line.objects += 1;
        line.bytes += object.size;
    }
    lines.retain(|line| line.objects > 0);
    sort(&mut lines);
    let class_count = lines.len();
    lines.truncate(top);
    Classes { heap: HeapLine::of(snapshot), classes: lines, class_count }
}

fn sort(lines: &mut [ClassLine]) {
    lines.sort_by(|a, b| {
        (b.retained_bytes, b.bytes, b.objects).cmp(&(a.retained_bytes, a.bytes, a.objects)).then(a.class.cmp(&b.class))
    });
}

/// Depth of the tree that is displayed, and the minimum share of an object's retained size for a child to be displayed.
const LEVELS: usize = 4;
const LARGEST: usize = 3;
const PART: u64 = 10;

/// The top of the dominator tree, `top` lines of each part: the wanted objects that no other wanted one dominates.
pub fn dominators_of(snapshot: &Snapshot<'_>, dominance: &Dominance, matching: &Matching, top: usize) -> Dominators {
    let mut nodes = outermost(snapshot, dominance, matching);
    let retained = |node: u32| dominance.retained[node as usize];
    let mut lines: Vec<ClassLine> = snapshot
        .classes()
        .map(|(_, class)| ClassLine { class: for_people(&class.descriptor), objects: 0, bytes: 0, retained_bytes: 0 })
        .collect();
    for &node in &nodes {
        let object = snapshot.object(Node(node));
        let line = &mut lines[object.class.0 as usize];
        line.objects += 1;
        line.bytes += object.size;
        line.retained_bytes += retained(node);
    }
    lines.retain(|line| line.objects > 0);
    sort(&mut lines);
    let (object_count, class_count) = (nodes.len(), lines.len());
    nodes.sort_unstable_by_key(|&node| (Reverse(retained(node)), node));
    nodes.truncate(top);
    lines.truncate(top);
    let objects = nodes.into_iter().map(|node| line(snapshot, dominance, node, LEVELS)).collect();
    Dominators { heap: HeapLine::of(snapshot), objects, object_count, classes: lines, class_count }
}

/// The wanted objects that no other wanted one dominates.
fn outermost(snapshot: &Snapshot<'_>, dominance: &Dominance, matching: &Matching) -> Vec<u32> {
    let root = snapshot.graph().root();
    if matching.is_all() {
        return dominance.children.of(root).collect();
    }
    // Of each node, whether it is wanted or dominated by one that is; dominators come first.
    let mut is_within = vec![false; snapshot.graph().len()];
    let mut outermost = Vec::new();
    for &node in dominance.tree.order().iter().filter(|&&node| node != root) {
        let is_wanted = matching.has(snapshot, Node(node));
        let is_dominated = is_within[dominance.tree.above(node) as usize];
        is_within[node as usize] = is_wanted || is_dominated;
        if is_wanted && !is_dominated {
            outermost.push(node);
        }
    }
    outermost
}

/// An object of the dominator tree.
pub fn dominator_line(snapshot: &Snapshot<'_>, dominance: &Dominance, node: Node) -> DominatorLine {
    line(snapshot, dominance, node.0, 1)
}

fn line(snapshot: &Snapshot<'_>, dominance: &Dominance, node: u32, levels: usize) -> DominatorLine {
    let retained = |node: u32| dominance.retained[node as usize];
    let mut children: Vec<u32> = dominance.children.of(node).collect();
    let dominates = children.len() as u64;
    children.retain(|&child| levels > 1 && retained(child) >= retained(node) / PART);
    children.sort_unstable_by_key(|&child| (Reverse(retained(child)), child));
    children.truncate(LARGEST);
    let is_top = dominance.tree.above(node) == snapshot.graph().root();
    let root = snapshot.roots().iter().find(|root| is_top && root.node.0 == node);
    DominatorLine {
        node: Node(node),
        object: object_line(snapshot, dominance, Node(node)),
        held_by: root.map(|root| root_text(snapshot, root.kind)),
        dominates,
        largest: children.into_iter().map(|child| line(snapshot, dominance, child, levels - 1)).collect(),
    }
}

fn object_line(snapshot: &Snapshot<'_>, dominance: &Dominance, node: Node) -> ObjectLine {
    let object = snapshot.object(node);
    ObjectLine {
        object: format!("{:x}", object.id.0),
        class: snapshot.class_text(node),
        site: (object.site.0 != 0).then(|| snapshot.naming().site(object.site)),
        bytes: object.size,
        retained_bytes: dominance.retained[node.0 as usize],
    }
}

/// Why an object is alive, in `most` ways: those on which a wanted object is.
pub fn paths_to(snapshot: &Snapshot<'_>, dominance: &Dominance, node: Node, matching: &Matching, most: usize) -> Paths {
    let object = object_line(snapshot, dominance, node);
    Paths { heap: HeapLine::of(snapshot), object, paths: paths::to_one(snapshot, node, matching, most) }
}

/// Why the objects of a class, or of all classes whose names fit, are alive, in `most` ways: those on which a wanted object is. `None` if
/// there are no such objects.
pub fn paths_to_class(
    snapshot: &Snapshot<'_>,
    dominance: &Dominance,
    class: &str,
    matching: &Matching,
    most: usize,
) -> Option<ClassPaths> {
    // Loaders may have classes of one name.
    let named = Matching::new(snapshot, Some(class));
    let is_wanted = |node: u32| named.has(snapshot, Node(node));
    let nodes: Vec<Node> = snapshot.nodes().map(|(node, _)| node).filter(|node| is_wanted(node.0)).collect();
    if nodes.is_empty() {
        return None;
    }
    let group = |node| (node != snapshot.graph().root() && is_wanted(node)).then_some(0);
    let Dominance { tree, children, retained } = dominance;
    let line = ClassLine {
        class: class.to_owned(),
        objects: nodes.len() as u64,
        bytes: nodes.iter().map(|&node| snapshot.object(node).size).sum(),
        retained_bytes: retained_by_group(tree, children, retained, 1, group)[0],
    };
    Some(ClassPaths { heap: HeapLine::of(snapshot), class: line, paths: paths::to(snapshot, &nodes, matching, most) })
}

/// What holds an object, the `most` slots of wanted objects that retain most.
pub fn holders(
    snapshot: &Snapshot<'_>,
    dominance: &Dominance,
    node: Node,
    matching: &Matching,
    most: usize,
) -> Holders {
    let graph = snapshot.graph();
    let is_wanted = |&at: &u32| at != graph.root() && matching.has(snapshot, Node(at));
    // A holder is there once for each of its slots.
    let mut sources: Vec<u32> = graph.reversed().of(node.0).iter().copied().filter(is_wanted).collect();
    sources.sort_unstable_by_key(|&source| (Reverse(dominance.retained[source as usize]), source));
    sources.dedup();
    let holding = |&source: &u32| {
        let slots = graph.slots(source).filter(|&(_, target)| target == node.0);
        slots.map(move |(slot, _)| (source, slot))
    };
    let mut slots: Vec<(u32, u32)> = sources.iter().flat_map(holding).collect();
    let holder_count = slots.len();
    slots.truncate(most);
    let holders = slots.into_iter().map(|(source, slot)| HolderLine {
        via: paths::via_text(snapshot, snapshot.via(Node(source), slot)),
        holder: object_line(snapshot, dominance, Node(source)),
    });
    let roots = snapshot.roots().iter().filter(|root| root.node == node);
    Holders {
        heap: HeapLine::of(snapshot),
        object: object_line(snapshot, dominance, node),
        roots: roots.map(|root| root_text(snapshot, root.kind)).collect(),
        holders: holders.collect(),
        holder_count,
    }
}
