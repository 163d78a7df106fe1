//! The same by what holds the objects from outside the heap: this takes the heap at both moments.

use et_reader::model::Node;
use et_reader::record::ObjectId;
use rustc_hash::FxHashMap;

use super::{Change, Changes, of_lines};
use crate::heap::paths::{Walk, root_text};
use crate::heap::{Matching, Moment, Snapshot};

/// What was alive at a moment, each object with what it is reached from on the shortest path from outside.
#[derive(Debug)]
pub struct AtRoots {
    /// Descriptions of the roots.
    roots: Vec<String>,
    /// By object its root and its size.
    objects: FxHashMap<ObjectId, (u32, u64)>,
}

impl AtRoots {
    /// Of a heap, `class`: only objects of classes whose names fit, in which `*` is any text.
    pub fn of(snapshot: &Snapshot<'_>, class: Option<&str>) -> Self {
        let matching = Matching::new(snapshot, class);
        let mut numbers: FxHashMap<Option<String>, u32> = FxHashMap::default();
        // Many objects have one root.
        let mut of_nodes: FxHashMap<Option<Node>, u32> = FxHashMap::default();
        let mut roots = Vec::new();
        let mut objects = FxHashMap::default();
        let all = Walk::through(snapshot).roots();
        let nodes = snapshot.nodes().zip(all).filter(|((node, _), _)| matching.has(snapshot, *node));
        for ((_, object), root) in nodes {
            let number = *of_nodes.entry(root.map(|root| root.node)).or_insert_with(|| {
                let text = root.map(|root| root_text(snapshot, root.kind));
                *numbers.entry(text).or_insert_with_key(|text| {
                    roots.push(text.clone().unwrap_or_else(|| "not held".to_owned()));
                    roots.len() as u32 - 1
                })
            });
            objects.insert(object.id, (number, object.size));
        }
        Self { roots, objects }
    }
}

/// Compares what was alive at two moments, of which the first is the earlier one. What stayed counts for what holds it at the second.
pub fn changes_by_root(moments: [&Moment; 2], [first, second]: [AtRoots; 2], top: usize) -> Changes {
    let mut lines: FxHashMap<&str, Change> = FxHashMap::default();
    for (object, &(root, size)) in &second.objects {
        let change = lines.entry(second.roots[root as usize].as_str()).or_default();
        let amount = if first.objects.contains_key(object) { &mut change.stayed } else { &mut change.came };
        amount.add(size);
    }
    for (_, &(root, size)) in first.objects.iter().filter(|(object, _)| !second.objects.contains_key(object)) {
        lines.entry(first.roots[root as usize].as_str()).or_default().went.add(size);
    }
    let lines = lines.into_iter().map(|(name, change)| (name.to_owned(), change)).collect();
    of_lines(moments, lines, top)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::heap::paths::to_one;
    use crate::heap::tests::{at, list, open};

    #[test]
    fn what_came_and_went_is_told_by_root() {
        let source = open(list().finish());
        let moments: [Moment; 3] =
            ["tick:7", "method:shop.Node.mark#1", "method:shop.Node.mark#2"].map(|text| text.parse().unwrap());
        let [early, whole, cut] = moments.each_ref().map(|moment| at(&source, &moment.to_string()).unwrap());
        // As the shortest paths have it.
        for snapshot in [&early, &whole, &cut] {
            let walk = Walk::through(snapshot);
            for ((node, _), root) in snapshot.nodes().zip(walk.roots()) {
                assert_eq!(root, walk.way(node).unwrap().0);
                let paths = to_one(snapshot, node, &Matching::all(), 9);
                assert!(paths.iter().any(|path| path.root == root_text(snapshot, root.unwrap().kind)));
            }
        }
        let by_root = |[one, other]: [&Snapshot<'_>; 2], class: Option<&str>| {
            let sides = [AtRoots::of(one, class), AtRoots::of(other, class)];
            changes_by_root([&moments[0], &moments[1]], sides, 9)
        };
        let lines = |found: &Changes| -> BTreeMap<String, [u64; 3]> {
            let of = |change: Change| [change.came, change.went, change.stayed].map(|amount| amount.objects);
            found.lines.iter().map(|line| (line.name.clone(), of(line.change))).collect()
        };
        let head = "static field shop.Node.head";
        // The array and all nodes but the last are reached from the static field; the second node and the third go.
        let found = by_root([&whole, &cut], None);
        assert_eq!(lines(&found), BTreeMap::from([(head.to_owned(), [0, 2, 2])]));
        assert_eq!(found.lines[0].growth_bytes, -48);
        assert_eq!((found.all.went.bytes, found.all.came.objects), (48, 0));
        let found = by_root([&early, &whole], Some("byte[]"));
        assert_eq!(lines(&found), BTreeMap::from([(head.to_owned(), [1, 0, 0])]));
        assert_eq!(found.all.came.bytes, 1016);
        // Three nodes stayed, whatever held them then: that changes nothing.
        let found = by_root([&early, &whole], Some("shop.*"));
        assert_eq!((found.all.stayed.objects, found.all.came.objects), (3, 3));
        assert!(!lines(&found).contains_key(head), "{found:?}");
    }
}
