//! What holds the heap, in few rows: the top of the dominator tree, and what each root holds.
//!
//! As people see it, a static field holds what is in it, and not the mirror of its class, which dominates all that its
//! static fields hold. So the outermost objects are those that no object dominates but such a mirror.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use et_reader::model::Node;
use rustc_hash::{FxHashMap, FxHashSet};

use super::paths::Walk;
use super::retained::Dominance;
use super::snapshot::{ClassNumber, Root, RootKind, Snapshot};

/// What holds an outermost object from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeldFrom {
    /// The root that leads to it, of several the most telling; where all lead to it through other objects, that of the shortest way.
    pub root: RootKind,
    /// Whether other roots, or objects that they lead to, hold it as well.
    pub is_shared: bool,
}

/// A row of the tree, each before those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopLine {
    /// Number of rows above it that dominate it.
    pub level: u32,
    /// The object; `None` for others that the row above dominates, too small to have rows of their own.
    pub node: Option<Node>,
    /// Their class, if others of one class are together.
    pub class: Option<ClassNumber>,
    /// Number of objects: 1, or that of the others.
    pub objects: u64,
    /// Bytes that would be freed with it, or with them.
    pub retained: u64,
}

/// How much of the tree is shown.
#[derive(Clone, Copy, Debug)]
pub struct TreeBounds {
    pub levels: u32,
    pub rows: usize,
    /// What retains less than one in this many of the heap is among the others.
    pub least: u64,
}

/// Of the rows, objects have at most this part; the rest is for what is small, by class.
const OF_OBJECTS: (usize, usize) = (2, 3);

/// The outermost objects of a heap, with what holds them.
#[derive(Debug)]
pub struct HeapTop<'s, 'a> {
    snapshot: &'s Snapshot<'a>,
    dominance: &'s Dominance,
    /// The outermost objects, those that retain the most first.
    outermost: Vec<(Node, HeldFrom)>,
    /// The mirrors of classes that are left out among them: their number, and their own bytes.
    mirrors: (u64, u64),
}

impl<'s, 'a> HeapTop<'s, 'a> {
    /// Looks at a heap. Dominance and walk are [the lasting ones](super::lasting_dominance).
    pub fn of(snapshot: &'s Snapshot<'a>, dominance: &'s Dominance, walk: &Walk<'_, '_>) -> Self {
        let root = snapshot.graph().root();
        let is_mirror = |node: u32| node != root && snapshot.mirrored(Node(node)).is_some();
        let (mirrors, mut nodes): (Vec<u32>, Vec<u32>) = dominance.children.of(root).partition(|&node| is_mirror(node));
        nodes.extend(mirrors.iter().flat_map(|&mirror| dominance.children.of(mirror)));
        nodes.sort_unstable_by_key(|&node| (Reverse(dominance.retained[node as usize]), node));
        let shared = shared(snapshot, dominance, &nodes, &is_mirror);
        let mut roots: FxHashMap<u32, Vec<RootKind>> = FxHashMap::default();
        for &Root { kind, node } in snapshot.roots() {
            roots.entry(node.0).or_default().push(kind);
        }
        let nearest = walk.roots();
        let held = |node: u32| {
            let of_node = roots.get(&node).map_or(&[][..], Vec::as_slice);
            let is_static = |kind: &&RootKind| matches!(kind, RootKind::Static(_));
            let (statics, lasting) =
                (of_node.iter().filter(is_static).count(), of_node.iter().filter(|kind| !kind.is_on_stack()).count());
            // The VM may hold an object for several reasons, which come and go together.
            let is_shared = shared.contains(&node) || statics > 0 && lasting > 1;
            let nearest = || nearest[node as usize].map(|root| root.kind);
            // What belongs to a class otherwise than by its static fields is the class's.
            let is_of_class = is_mirror(dominance.tree.above(node));
            match of_node.first() {
                Some(&root) => HeldFrom { root, is_shared },
                None => match nearest() {
                    Some(root) if !is_of_class || matches!(root, RootKind::Static(_)) => {
                        HeldFrom { root, is_shared: true }
                    }
                    _ => HeldFrom { root: RootKind::Class, is_shared: false },
                },
            }
        };
        let own = mirrors.iter().map(|&mirror| snapshot.object(Node(mirror)).size).sum();
        Self {
            snapshot,
            dominance,
            outermost: nodes.into_iter().map(|node| (Node(node), held(node))).collect(),
            mirrors: (mirrors.len() as u64, own),
        }
    }

    /// The outermost objects with what holds them, those that retain the most first.
    pub fn outermost(&self) -> &[(Node, HeldFrom)] {
        &self.outermost
    }

    /// What each root holds: how many outermost objects, and the bytes that they retain.
    pub fn by_root(&self) -> FxHashMap<HeldFrom, (u64, u64)> {
        let mut sums: FxHashMap<HeldFrom, (u64, u64)> = FxHashMap::default();
        for &(node, held) in &self.outermost {
            let sum = sums.entry(held).or_default();
            *sum = (sum.0 + 1, sum.1 + self.retained(node));
        }
        if self.mirrors.0 > 0 {
            let sum = sums.entry(HeldFrom { root: RootKind::Class, is_shared: false }).or_default();
            *sum = (sum.0 + self.mirrors.0, sum.1 + self.mirrors.1);
        }
        sums
    }

    fn retained(&self, node: Node) -> u64 {
        self.dominance.retained[node.0 as usize]
    }

    /// The rows of the tree: the largest objects of all levels, as far as the bounds allow, and what is smaller by class, if together it is large enough.
    /// On each level they retain, with the others and with what the row above is itself, as much as the row above.
    pub fn lines(&self, bounds: TreeBounds) -> Vec<TopLine> {
        let whole = self.outermost.iter().map(|&(node, _)| self.retained(node)).sum::<u64>() + self.mirrors.1;
        let is_seen = |node: u32| self.dominance.retained[node as usize].saturating_mul(bounds.least) >= whole;
        // The largest next, whatever its level: what an object dominates is no larger than itself.
        let mut next: BinaryHeap<(u64, Reverse<u32>, u32, Option<u32>)> = BinaryHeap::new();
        let outermost = self.outermost.iter().map(|&(node, _)| node.0).take_while(|&node| is_seen(node));
        next.extend(outermost.map(|node| (self.retained(Node(node)), Reverse(node), 0, None)));
        let mut below: FxHashMap<Option<u32>, Vec<u32>> = FxHashMap::default();
        let mut rows = 0;
        while let Some((_, Reverse(node), level, above)) = next.pop() {
            // The others need a row as well.
            rows += if below.contains_key(&above) { 1 } else { 2 };
            if rows > bounds.rows * OF_OBJECTS.0 / OF_OBJECTS.1 {
                break;
            }
            below.entry(above).or_default().push(node);
            if level + 1 < bounds.levels {
                let children = self.dominance.children.of(node).filter(|&child| is_seen(child));
                next.extend(children.map(|child| (self.retained(Node(child)), Reverse(child), level + 1, Some(node))));
            }
        }
        let shown: usize = below.values().map(|nodes| nodes.len() + 1).sum();
        let mut rest =
            TreeRest { below, bounds, least: whole / bounds.least.max(1), left: bounds.rows.saturating_sub(shown) };
        let mut lines = Vec::new();
        self.push(None, 0, &mut rest, &mut lines);
        lines
    }

    /// Appends the rows below one; of none, the outermost.
    fn push(&self, above: Option<u32>, level: u32, rest: &mut TreeRest, lines: &mut Vec<TopLine>) {
        let nodes: Vec<u32> = match above {
            None => self.outermost.iter().map(|&(node, _)| node.0).collect(),
            Some(above) => self.dominance.children.of(above).collect(),
        };
        let shown = rest.below.remove(&above).unwrap_or_default();
        let is_shown: FxHashSet<u32> = shown.iter().copied().collect();
        // Small ones by class: many of them may be much.
        let mut small: FxHashMap<ClassNumber, (u64, u64)> = FxHashMap::default();
        for &node in nodes.iter().filter(|&node| !is_shown.contains(node)) {
            let (objects, retained) = small.entry(self.snapshot.object(Node(node)).class).or_default();
            (*objects, *retained) = (*objects + 1, *retained + self.retained(Node(node)));
        }
        let mut small: Vec<(ClassNumber, (u64, u64))> = small.into_iter().collect();
        small.sort_unstable_by_key(|&(class, (_, retained))| (Reverse(retained), class));
        let most = match (level < rest.bounds.levels, shown.is_empty()) {
            (false, _) => 0,
            (true, false) => rest.left,
            // The others need a row as well.
            (true, true) => rest.left.saturating_sub(1),
        };
        let least = rest.least;
        let is_seen = |(objects, retained): (u64, u64)| objects > 1 && retained > least;
        let of_classes = small.iter().filter(|(_, of_class)| is_seen(*of_class)).count().min(most);
        if shown.is_empty() && of_classes == 0 {
            return;
        }
        rest.left -= of_classes + usize::from(shown.is_empty());
        for node in shown {
            let retained = self.retained(Node(node));
            lines.push(TopLine { level, node: Some(Node(node)), class: None, objects: 1, retained });
            self.push(Some(node), level + 1, rest, lines);
        }
        let (mut objects, mut retained) = if above.is_none() { self.mirrors } else { (0, 0) };
        let mut left = of_classes;
        for (class, of_class) in small {
            if left > 0 && is_seen(of_class) {
                left -= 1;
                let (objects, retained) = of_class;
                lines.push(TopLine { level, node: None, class: Some(class), objects, retained });
            } else {
                (objects, retained) = (objects + of_class.0, retained + of_class.1);
            }
        }
        if objects > 0 {
            lines.push(TopLine { level, node: None, class: None, objects, retained });
        }
    }
}

/// What is still to be shown.
struct TreeRest {
    /// The objects that have rows, by the one above.
    below: FxHashMap<Option<u32>, Vec<u32>>,
    bounds: TreeBounds,
    /// What retains no more has no row.
    least: u64,
    /// Rows that are left.
    left: usize,
}

/// Those of the outermost objects that are held by objects that they do not dominate. What only stacks lead to does not count for what something else
/// leads to.
fn shared(
    snapshot: &Snapshot<'_>,
    dominance: &Dominance,
    outermost: &[u32],
    is_mirror: &dyn Fn(u32) -> bool,
) -> FxHashSet<u32> {
    let graph = snapshot.graph();
    let mut is_lasting = vec![false; graph.len()];
    let mut stack: Vec<u32> = Vec::new();
    for root in snapshot.roots().iter().filter(|root| !root.kind.is_on_stack()) {
        stack.push(root.node.0);
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut is_lasting[node as usize], true) {
                stack.extend(graph.targets(node).iter().filter(|&&target| !is_lasting[target as usize]));
            }
        }
    }
    let mut is_outermost = vec![false; graph.len()];
    outermost.iter().for_each(|&node| is_outermost[node as usize] = true);
    // Of each node the outermost object that dominates it; of mirrors themselves.
    let mut outer: Vec<u32> = (0..graph.len() as u32).collect();
    let mut found = FxHashSet::default();
    for &node in dominance.tree.order().iter().skip(1) {
        let above = dominance.tree.above(node);
        if !is_outermost[node as usize] && above != graph.root() {
            outer[node as usize] = outer[above as usize];
        }
    }
    for &node in dominance.tree.order().iter().skip(1).filter(|&&node| !is_mirror(node)) {
        for &target in graph.targets(node) {
            let counts = is_lasting[node as usize] || !is_lasting[target as usize];
            if is_outermost[target as usize] && outer[node as usize] != target && counts {
                found.insert(target);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, list, open};
    use super::super::{lasting_dominance, paths};
    use super::*;

    const ALL: TreeBounds = TreeBounds { levels: 9, rows: 1000, least: u64::MAX };

    #[test]
    fn static_fields_hold_what_is_in_them() {
        let source = open(list().finish());
        let snapshot = at(&source, "method:shop.Node.mark#1").unwrap();
        let dominance = lasting_dominance(&snapshot);
        let top = HeapTop::of(&snapshot, &dominance, &Walk::lasting(&snapshot));
        let held: Vec<(u64, String, bool)> = top
            .outermost()
            .iter()
            .map(|&(node, held)| {
                let root = paths::root_text(&snapshot, held.root);
                (snapshot.object(node).id.0, root, held.is_shared)
            })
            .collect();
        let of =
            |id: u64| held.iter().find(|(known, ..)| *known == id).map(|(_, root, shared)| (root.as_str(), *shared));
        assert_eq!(of(0xa), Some(("static field shop.Node.head", false)), "{held:?}");
        assert_eq!(of(0x20), Some(("static field shop.Node.weak", false)), "{held:?}");
        assert!(of(0xd).unwrap().0.starts_with("no recorded holder"), "{held:?}");
        assert_eq!(of(0x21).unwrap().0, "receiver of shop.Node.run, running in thread main");
        // The nodes and the array are those of the list.
        assert!(of(0xb).is_none() && of(0xf).is_none(), "{held:?}");
        let bytes = top.by_root().values().map(|(_, bytes)| bytes).sum::<u64>();
        assert_eq!(bytes, snapshot.bytes());
    }

    /// The sums of each level, whatever is left out.
    #[test]
    fn rows_and_others_are_all_of_it() {
        let source = open(list().finish());
        let snapshot = at(&source, "method:shop.Node.mark#1").unwrap();
        let dominance = lasting_dominance(&snapshot);
        let top = HeapTop::of(&snapshot, &dominance, &Walk::lasting(&snapshot));
        let rows = top.lines(ALL);
        let objects = rows.iter().filter(|line| line.node.is_some()).count() as u64;
        assert_eq!(objects + top.mirrors.0, snapshot.len() as u64, "all objects have rows, if there is room: {rows:?}");
        for bounds in [
            ALL,
            TreeBounds { levels: 1, ..ALL },
            TreeBounds { rows: 4, ..ALL },
            TreeBounds { least: 2, ..ALL },
            TreeBounds { rows: 2, ..ALL },
        ] {
            let rows = top.lines(bounds);
            assert!(rows.len() <= bounds.rows && rows.iter().all(|line| line.level < bounds.levels), "{bounds:?}");
            let of_level = |level: u32, rows: &[TopLine]| -> u64 {
                let of_this = rows.iter().take_while(|line| line.level >= level).filter(|line| line.level == level);
                of_this.map(|line| line.retained).sum()
            };
            assert_eq!(of_level(0, &rows), snapshot.bytes(), "{bounds:?} {rows:?}");
            for (index, line) in rows.iter().enumerate() {
                let below = of_level(line.level + 1, &rows[index + 1..]);
                let Some(node) = line.node.filter(|_| below > 0) else { continue };
                assert_eq!(below + snapshot.object(node).size, line.retained, "{bounds:?} {line:?}");
            }
        }
    }
}
