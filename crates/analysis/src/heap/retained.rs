//! Retained sizes: what would be freed with an object, which is itself and all that it dominates.

use super::dominators::{Children, DominatorTree, NONE, Roots, dominators};
use super::graph::Graph;

/// The dominator tree with what each object retains.
#[derive(Debug)]
pub struct Dominance {
    pub tree: DominatorTree,
    pub children: Children,
    /// Retained bytes by node.
    pub retained: Vec<u64>,
}

impl Dominance {
    /// Computes retained sizes, given what the root leads to and the size of each object in bytes.
    pub fn of(graph: &Graph, roots: Roots<'_>, bytes: impl Fn(u32) -> u64) -> Self {
        let tree = dominators(graph, roots);
        let retained = retained(&tree, |node| if node == graph.root() { 0 } else { bytes(node) }, graph.len());
        Self { children: tree.children(), tree, retained }
    }
}

/// The bytes that each node retains, and the root all that can be reached.
pub fn retained(tree: &DominatorTree, bytes: impl Fn(u32) -> u64, nodes: usize) -> Vec<u64> {
    let mut retained = vec![0; nodes];
    // Dominated nodes come after their dominators.
    for &node in tree.order().iter().rev() {
        retained[node as usize] += bytes(node);
        let above = tree.above(node);
        if above != NONE {
            retained[above as usize] += retained[node as usize];
        }
    }
    retained
}

/// The bytes that the nodes of each group retain, none counted twice: those that no other of the same group dominates. What only several
/// of a group hold together is not among it, so this is the least that the group retains.
pub fn retained_by_group(
    tree: &DominatorTree,
    children: &Children,
    retained: &[u64],
    groups: usize,
    group: impl Fn(u32) -> Option<usize>,
) -> Vec<u64> {
    let mut bytes = vec![0; groups];
    let Some(&root) = tree.order().first() else { return bytes };
    // How many of each group are above.
    let mut above = vec![0u32; groups];
    let mut enter = |node: u32, above: &mut [u32]| {
        if let Some(group) = group(node) {
            if above[group] == 0 {
                bytes[group] += retained[node as usize];
            }
            above[group] += 1;
        }
    };
    let mut node = root;
    enter(node, &mut above);
    'walk: loop {
        let mut next = children.first(node);
        while next == NONE {
            if let Some(group) = group(node) {
                above[group] -= 1;
            }
            if node == root {
                break 'walk;
            }
            next = children.next(node);
            node = tree.above(node);
        }
        node = next;
        enter(node, &mut above);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::dominators::dominators;
    use super::super::dominators::tests::{any_graph, reached_without};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_cannot_be_reached_without_it(graph in any_graph(), sizes in prop::collection::vec(1..100u64, 26)) {
            let tree = dominators(&graph, Roots::of(&graph));
            let size = |node: u32| if node == graph.root() { 0 } else { sizes[node as usize] };
            let retained = retained(&tree, size, graph.len());
            let all = reached_without(&graph, NONE);
            for node in 0..graph.len() as u32 {
                let left = reached_without(&graph, node);
                let gone = (0..graph.len() as u32).filter(|&at| all[at as usize] && !left[at as usize]);
                let expected: u64 = if all[node as usize] { gone.map(size).sum() } else { 0 };
                prop_assert_eq!(retained[node as usize], expected);
            }
        }

        #[test]
        fn groups_count_nothing_twice(graph in any_graph(), groups in prop::collection::vec(0..4usize, 26)) {
            let tree = dominators(&graph, Roots::of(&graph));
            let size = |node: u32| u64::from(node != graph.root());
            let retained = retained(&tree, size, graph.len());
            let group = |node: u32| (node != graph.root()).then(|| groups[node as usize]);
            let found = retained_by_group(&tree, &tree.children(), &retained, 4, group);
            for (number, &bytes) in found.iter().enumerate() {
                // All that some one of the group dominates, itself included.
                let is_below = |&node: &u32| {
                    let up = |&at: &u32| Some(tree.above(at)).filter(|&above| above != NONE);
                    std::iter::successors(Some(node), up).any(|at| group(at) == Some(number))
                };
                prop_assert_eq!(bytes, tree.order().iter().filter(|node| is_below(node)).count() as u64);
            }
        }
    }
}
