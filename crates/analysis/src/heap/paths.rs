//! Why an object is alive: the shortest ways to it from outside.

use std::collections::VecDeque;

use et_names::FieldId;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::matching::Matching;
use super::snapshot::{Root, RootKind, Snapshot, Via};
use et_reader::model::Node;

/// A way from outside to an object, or to several of the same class by slots of the same names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Path {
    /// Description of the root that holds the first object.
    pub root: String,
    /// The same for programs: `static`, `receiver`, `exception`, `thread`, `loader`, `constant`, `vm`, `class`, `local` or `unrecorded`.
    pub root_kind: &'static str,
    /// The static field, if it is one.
    #[serde(skip)]
    pub root_field: Option<FieldId>,
    /// The objects on the way, that which is held from outside first, the one that was asked for last.
    pub steps: Vec<PathStep>,
    /// How many that were asked for are reached this way.
    pub objects: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

/// An object on a path, with the slot that leads to the next one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathStep {
    /// The slot of the object before that holds it: a field's name, or an element. None of the first.
    pub via: Option<String>,
    /// The field; `None` for an array element.
    #[serde(skip)]
    pub field: Option<FieldId>,
    /// Object id as in texts of the trace. For several paths that are merged, that of the first one.
    pub object: String,
    pub class: String,
}

/// Origin of a step in the search.
#[derive(Clone, Copy)]
struct From {
    node: u32,
    slot: u32,
}

const NONE: u32 = u32::MAX;

/// The ways from outside: those of static fields as such, not through the mirrors of their classes.
fn ways_in<'s>(snapshot: &'s Snapshot<'_>) -> impl Iterator<Item = &'s Root> {
    let is_local = |root: &&Root| matches!(root.kind, RootKind::Local(_) | RootKind::Unrecorded(_));
    // Objects held only by locals come last: all other roots are certain.
    snapshot.roots().iter().filter(move |root| !is_local(root)).chain(snapshot.roots().iter().filter(is_local))
}

/// The objects on the way to one, that which is held from outside first; each with the slot of the one before that holds it.
pub type Way = Vec<(Node, Option<Via>)>;

/// The shortest ways from outside to all objects: one walk through the heap, however many are asked about.
#[allow(missing_debug_implementations)]
pub struct Walk<'s, 'a> {
    snapshot: &'s Snapshot<'a>,
    came: Vec<From>,
    reached: Vec<bool>,
    /// The roots of the objects that are held from outside.
    begun: FxHashMap<u32, Root>,
}

impl<'s, 'a> Walk<'s, 'a> {
    /// Searches the whole heap.
    pub fn through(snapshot: &'s Snapshot<'a>) -> Self {
        Self::until(snapshot, &[ways_in(snapshot).collect()], None)
    }

    /// Searches the whole heap; the way from a stack counts only where there is no other, however short it is: as
    /// [`lasting_dominance`](super::lasting_dominance) has it.
    pub fn lasting(snapshot: &'s Snapshot<'a>) -> Self {
        let (passing, lasting) = ways_in(snapshot).partition(|root| root.kind.is_on_stack());
        Self::until(snapshot, &[lasting, passing], None)
    }

    /// From one set of roots after the other, until all that are `wanted` are reached.
    fn until(snapshot: &'s Snapshot<'a>, roots: &[Vec<&Root>], mut wanted: Option<FxHashSet<u32>>) -> Self {
        let mut came = vec![From { node: NONE, slot: NONE }; snapshot.len()];
        let mut begun: FxHashMap<u32, Root> = FxHashMap::default();
        let mut reached = vec![false; snapshot.len()];
        let mut queue = VecDeque::new();
        let mut is_done = |node: u32| {
            wanted.as_mut().is_some_and(|wanted| {
                wanted.remove(&node);
                wanted.is_empty()
            })
        };
        let mut done = false;
        for roots in roots {
            for &&root in roots {
                if !std::mem::replace(&mut reached[root.node.0 as usize], true) {
                    begun.insert(root.node.0, root);
                    queue.push_back(root.node.0);
                    done |= is_done(root.node.0);
                }
            }
            while let Some(node) = queue.pop_front().filter(|_| !done) {
                for (slot, target) in snapshot.graph().slots(node) {
                    if !std::mem::replace(&mut reached[target as usize], true) {
                        came[target as usize] = From { node, slot };
                        queue.push_back(target);
                        done |= is_done(target);
                    }
                }
            }
        }
        Self { snapshot, came, reached, begun }
    }

    /// The shortest way to an object; `None`: nothing leads there.
    pub fn to(&self, object: Node) -> Option<Path> {
        self.reached[object.0 as usize].then(|| self.path(object, (1, self.snapshot.object(object).size)))
    }

    /// The same as objects: what holds the first of them from outside, and each with the slot of the one before that holds it.
    pub fn way(&self, object: Node) -> Option<(Option<Root>, Way)> {
        self.reached[object.0 as usize].then(|| {
            let way = way(&self.came, object);
            (self.begun.get(&way[0].0).copied(), steps(self.snapshot, &way).collect())
        })
    }

    /// Of each object what holds the first on the shortest way to it from outside; `None` where nothing leads there.
    pub fn roots(&self) -> Vec<Option<Root>> {
        let mut roots: Vec<Option<Root>> = vec![None; self.came.len()];
        let mut passed: Vec<u32> = Vec::new();
        for node in (0..self.came.len() as u32).filter(|&node| self.reached[node as usize]) {
            let mut at = node;
            let root = loop {
                if let Some(root) = roots[at as usize] {
                    break Some(root);
                }
                passed.push(at);
                match self.begun.get(&at) {
                    Some(root) => break Some(*root),
                    None => at = self.came[at as usize].node,
                }
            };
            passed.drain(..).for_each(|node| roots[node as usize] = root);
        }
        roots
    }

    fn path(&self, object: Node, counts: (u64, u64)) -> Path {
        let way = way(&self.came, object);
        path(self.snapshot, self.begun.get(&way[0].0).copied(), &way, counts)
    }
}

/// The shortest way to each of the objects, those of the same classes and fields together: most bytes first, `most` of those on which a wanted
/// object is. One walk through the heap, however many objects there are.
pub fn to(snapshot: &Snapshot<'_>, objects: &[Node], matching: &Matching, most: usize) -> Vec<Path> {
    let wanted = objects.iter().map(|node| node.0).collect();
    let walk = Walk::until(snapshot, &[ways_in(snapshot).collect()], Some(wanted));
    // By what a way looks like, with the first that looks so.
    let mut shapes: FxHashMap<Shape, (usize, u64, u64)> = FxHashMap::default();
    for (index, &object) in objects.iter().enumerate().filter(|(_, object)| walk.reached[object.0 as usize]) {
        let way = way(&walk.came, object);
        if !leads_over(snapshot, &way, matching) {
            continue;
        }
        let kind = walk.begun.get(&way[0].0).map(|root| root.kind);
        let found = shapes.entry(Shape::of(snapshot, kind, &way)).or_insert((index, 0, 0));
        found.1 += 1;
        found.2 += snapshot.object(object).size;
    }
    let mut found: Vec<(usize, u64, u64)> = shapes.into_values().collect();
    found.sort_unstable_by_key(|&(index, _, bytes)| (std::cmp::Reverse(bytes), index));
    found.truncate(most);
    found.into_iter().map(|(index, count, bytes)| walk.path(objects[index], (count, bytes))).collect()
}

/// Whether a wanted object is on a way, the one that it leads to included.
fn leads_over(snapshot: &Snapshot<'_>, way: &[(u32, u32)], matching: &Matching) -> bool {
    matching.is_all() || way.iter().any(|&(node, _)| matching.has(snapshot, Node(node)))
}

/// The objects on the way to one, with the slots that lead to them, from outside in.
fn way(came: &[From], to: Node) -> Vec<(u32, u32)> {
    let mut way = Vec::new();
    let mut at = to.0;
    while at != NONE {
        let From { node, slot } = came[at as usize];
        way.push((at, slot));
        at = node;
    }
    way.reverse();
    way
}

/// The same with what the slots are; none leads to the first.
fn steps(snapshot: &Snapshot<'_>, way: &[(u32, u32)]) -> impl Iterator<Item = (Node, Option<Via>)> {
    let before = [None].into_iter().chain(way.iter().map(|&(node, _)| Some(Node(node))));
    way.iter().zip(before).map(|(&(node, slot), before)| (Node(node), before.map(|before| snapshot.via(before, slot))))
}

/// The field that leads to an object; `None` if it is an element, or nothing leads there.
fn field_of(via: Option<Via>) -> Option<FieldId> {
    match via? {
        Via::Field(field) | Via::Static(field) => Some(field),
        Via::Element(_) => None,
    }
}

/// The shape of a path: classes and fields, ignoring element indexes.
#[derive(PartialEq, Eq, Hash)]
struct Shape {
    root: Option<RootKind>,
    steps: Vec<(Option<u32>, u32)>,
}

impl Shape {
    fn of(snapshot: &Snapshot<'_>, root: Option<RootKind>, way: &[(u32, u32)]) -> Self {
        let step = |(node, via)| (field_of(via).map(|field| field.0), snapshot.object(node).class.0);
        // Recursive structures are of one shape however deep: nodes of a list are held by nodes of a list.
        let mut steps: Vec<(Option<u32>, u32)> = steps(snapshot, way).map(step).collect();
        steps.dedup();
        Self { root, steps }
    }
}

/// The shortest ways to an object, each from an object that is held from outside, `most` of those on which a wanted object is: the shortest first. A walk backward from the
/// object that goes through each other object once and ends at those that are held from outside.
pub fn to_one(snapshot: &Snapshot<'_>, object: Node, matching: &Matching, most: usize) -> Vec<Path> {
    let incoming = snapshot.graph().reversed();
    let mut by_node: FxHashMap<u32, usize> = FxHashMap::default();
    let roots: Vec<&Root> = ways_in(snapshot).collect();
    for (at, root) in roots.iter().enumerate() {
        by_node.entry(root.node.0).or_insert(at);
    }
    // The next on the way to the object.
    let mut next = vec![NONE; snapshot.len()];
    let mut queue = VecDeque::from([object.0]);
    let mut paths = Vec::new();
    while let Some(node) = queue.pop_front().filter(|_| paths.len() < most) {
        if let Some(&root) = by_node.get(&node) {
            let forward = |&at: &u32| Some(next[at as usize]).filter(|_| at != object.0);
            let nodes: Vec<u32> = std::iter::successors(Some(node), forward).collect();
            let mut way = vec![(node, NONE)];
            for pair in nodes.windows(2) {
                let slot = snapshot.graph().slots(pair[0]).find(|&(_, target)| target == pair[1]);
                way.push((pair[1], slot.map_or(NONE, |(slot, _)| slot)));
            }
            if leads_over(snapshot, &way, matching) {
                let size = snapshot.object(object).size;
                paths.push(path(snapshot, Some(*roots[root]), &way, (1, size)));
            }
            // A reference to a root does not explain why the root is alive, except for the object itself.
            if node != object.0 {
                continue;
            }
        }
        for &source in incoming.of(node) {
            let is_new = source != object.0 && source != snapshot.graph().root() && next[source as usize] == NONE;
            if is_new && !is_only_static(snapshot, source, node) {
                next[source as usize] = node;
                queue.push_back(source);
            }
        }
    }
    paths
}

/// Whether a mirror holds an object by static fields alone: these are roots themselves.
fn is_only_static(snapshot: &Snapshot<'_>, source: u32, target: u32) -> bool {
    snapshot.mirrored(Node(source)).is_some()
        && snapshot
            .graph()
            .slots(source)
            .filter(|&(_, held)| held == target)
            .all(|(slot, _)| matches!(snapshot.via(Node(source), slot), Via::Static(_)))
}

fn path(snapshot: &Snapshot<'_>, root: Option<Root>, way: &[(u32, u32)], (objects, bytes): (u64, u64)) -> Path {
    let step = |(node, via): (Node, Option<Via>)| PathStep {
        via: via.map(|via| via_text(snapshot, via)),
        field: field_of(via),
        object: format!("{:x}", snapshot.object(node).id.0),
        class: snapshot.class_text(node),
    };
    let steps = steps(snapshot, way).map(step).collect();
    let kind = root.map(|root| root.kind);
    let root_field = match kind {
        Some(RootKind::Static(field)) => Some(field),
        _ => None,
    };
    let root = root.map_or_else(String::new, |root| root_text(snapshot, root.kind));
    Path { root, root_field, root_kind: kind.map_or("local", root_word), steps, objects, bytes }
}

pub(super) fn via_text(snapshot: &Snapshot<'_>, via: Via) -> String {
    match via {
        Via::Element(index) => format!("[{index}]"),
        Via::Field(field) => {
            // The class is that of the object before, or one above it.
            let text = snapshot.field_text(field);
            let name = text.rsplit_once('.').map_or(text.as_str(), |(_, name)| name);
            format!(".{name}")
        }
        Via::Static(field) => format!("static {}", snapshot.field_text(field)),
    }
}

/// The kind of a root, in a word.
pub fn root_word(kind: RootKind) -> &'static str {
    match kind {
        RootKind::Static(_) => "static",
        RootKind::Receiver { .. } => "receiver",
        RootKind::Exception { .. } => "exception",
        RootKind::Thread(_) => "thread",
        RootKind::Loader => "loader",
        RootKind::Constant => "constant",
        RootKind::Vm => "vm",
        RootKind::Class => "class",
        RootKind::Local(_) => "local",
        RootKind::Unrecorded(_) => "unrecorded",
    }
}

/// Describes a root.
pub fn root_text(snapshot: &Snapshot<'_>, root: RootKind) -> String {
    let thread = |thread| snapshot.thread_text(thread);
    match root {
        RootKind::Static(field) => format!("static field {}", snapshot.field_text(field)),
        RootKind::Receiver { thread: of, method, .. } => {
            format!("receiver of {}, running in {}", snapshot.naming().method(method), thread(of))
        }
        RootKind::Exception { thread: of, method, .. } => {
            format!("exception in flight in {}, in {}", snapshot.naming().method(method), thread(of))
        }
        RootKind::Thread(of) => format!("running {}", thread(of)),
        RootKind::Loader => "class loader, held by the VM".to_owned(),
        RootKind::Constant => "constant of a class, held by the VM".to_owned(),
        RootKind::Vm => "held by the VM since before tracing began".to_owned(),
        RootKind::Class => "class, held by the VM".to_owned(),
        RootKind::Local(of) => {
            format!("no recorded holder (a local variable, a handle): used later; last used by {}", thread(of))
        }
        RootKind::Unrecorded(of) => {
            format!("held by a stack, a local variable or the VM; made by {}", thread(of))
        }
    }
}
