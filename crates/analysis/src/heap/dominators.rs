//! Dominators: an object dominates another if every path from the roots to the other leads through it.
//!
//! Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (TOPLAS 1979), the simple version,
//! whose time is O(m log n) for any graph: heaps contain lists of millions of objects, for which the iterative
//! algorithm of Cooper, Harvey and Kennedy (also used by the crate `petgraph`) walks up the whole list for each edge.

use super::graph::Graph;

/// Nothing: the dominator of the root, and of what cannot be reached.
pub const NONE: u32 = u32::MAX;

/// The dominator tree of the reachable nodes of a graph.
#[derive(Debug)]
pub struct DominatorTree {
    /// The immediate dominator of each node.
    above: Vec<u32>,
    /// All reachable nodes, each after its dominator; the root first.
    order: Vec<u32>,
}

impl DominatorTree {
    /// The immediate dominator of a node; [`NONE`] of the root and of what cannot be reached.
    pub fn above(&self, node: u32) -> u32 {
        self.above[node as usize]
    }

    /// All reachable nodes, each after its dominator; the root first.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The nodes that each dominates immediately.
    pub fn children(&self) -> Children {
        let mut children = Children { first: vec![NONE; self.above.len()], next: vec![NONE; self.above.len()] };
        // Backward, so that each list is in order.
        for &node in self.order.iter().rev() {
            let above = self.above(node);
            if above != NONE {
                children.next[node as usize] = children.first[above as usize];
                children.first[above as usize] = node;
            }
        }
        children
    }
}

/// The nodes that each node immediately dominates.
#[derive(Debug)]
pub struct Children {
    first: Vec<u32>,
    next: Vec<u32>,
}

impl Children {
    /// The nodes that a node immediately dominates.
    pub fn of(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.first[node as usize];
        std::iter::from_fn(move || {
            let child = (at != NONE).then_some(at)?;
            at = self.next[child as usize];
            Some(child)
        })
    }

    /// First child of a node; [`NONE`] if there is none.
    pub fn first(&self, node: u32) -> u32 {
        self.first[node as usize]
    }

    /// Next sibling of a node; [`NONE`] if there is none.
    pub fn next(&self, node: u32) -> u32 {
        self.next[node as usize]
    }
}

/// What the root of a graph leads to.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'g> {
    pub lasting: &'g [u32],
    /// Roots that dominate only what no lasting root leads to: elsewhere they, and what they lead to, do not count.
    pub passing: &'g [u32],
}

impl<'g> Roots<'g> {
    /// All that the root of a graph has edges to.
    pub fn of(graph: &'g Graph) -> Self {
        Self { lasting: graph.targets(graph.root()), passing: &[] }
    }
}

/// A depth-first numbering from the root, which is 0. Everything below uses these numbers, for locality: neighbours in
/// the graph are close together in memory.
struct Walk {
    vertex: Vec<u32>,
    parent: Vec<u32>,
    /// Number of each node.
    number: Vec<u32>,
    /// Numbers below it are those of nodes that lasting roots lead to.
    lasting: usize,
}

impl Walk {
    fn new(graph: &Graph, roots: Roots<'_>) -> Self {
        let mut walk = Self { vertex: Vec::new(), parent: Vec::new(), number: vec![NONE; graph.len()], lasting: 0 };
        walk.meet(graph.root(), 0);
        walk.go(graph, roots.lasting);
        walk.lasting = walk.vertex.len();
        walk.go(graph, roots.passing);
        walk
    }

    fn go(&mut self, graph: &Graph, roots: &[u32]) {
        // Of each node on the way, how many of its edges were followed.
        let mut stack: Vec<(u32, usize)> = Vec::new();
        for &first in roots {
            if self.number[first as usize] == NONE {
                self.meet(first, 0);
                stack.push((first, 0));
            }
            while let Some((node, followed)) = stack.last_mut() {
                let Some(&target) = graph.targets(*node).get(*followed) else {
                    stack.pop();
                    continue;
                };
                *followed += 1;
                if self.number[target as usize] == NONE {
                    self.meet(target, self.number[*node as usize]);
                    stack.push((target, 0));
                }
            }
        }
    }

    fn meet(&mut self, node: u32, parent: u32) {
        self.number[node as usize] = self.vertex.len() as u32;
        self.vertex.push(node);
        self.parent.push(parent);
    }

    /// Calls `visit` with the numbers of both ends of each edge that counts.
    fn edges(&self, graph: &Graph, roots: Roots<'_>, mut visit: impl FnMut(usize, usize)) {
        let number = |node: &u32| self.number[*node as usize] as usize;
        roots.lasting.iter().for_each(|root| visit(0, number(root)));
        roots.passing.iter().map(number).filter(|&root| root >= self.lasting).for_each(|root| visit(0, root));
        for (at, &node) in self.vertex.iter().enumerate().skip(1) {
            let targets = graph.targets(node).iter().map(number);
            targets.filter(|&target| at < self.lasting || target >= self.lasting).for_each(|target| visit(at, target));
        }
    }

    /// Predecessors of each node.
    fn incoming(&self, graph: &Graph, roots: Roots<'_>) -> (Vec<usize>, Vec<u32>) {
        let count = self.vertex.len();
        let mut starts = vec![0; count + 1];
        self.edges(graph, roots, |_, target| starts[target + 1] += 1);
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut sources = vec![0; starts[count]];
        let mut next = starts.clone();
        self.edges(graph, roots, |source, target| {
            sources[next[target]] = source as u32;
            next[target] += 1;
        });
        (starts, sources)
    }
}

/// The forest of those that are done, with the best semidominator on each way up.
struct Forest {
    ancestor: Vec<u32>,
    best: Vec<u32>,
    way: Vec<u32>,
}

impl Forest {
    fn new(nodes: usize) -> Self {
        Self { ancestor: vec![NONE; nodes], best: (0..nodes as u32).collect(), way: Vec::new() }
    }

    fn link(&mut self, parent: u32, node: u32) {
        self.ancestor[node as usize] = parent;
    }

    /// Of those from `node` up to below the top of its tree the one with the least semidominator.
    #[inline]
    fn eval(&mut self, node: u32, semi: &[u32]) -> u32 {
        if self.ancestor[node as usize] == NONE {
            return node;
        }
        self.compress(node, semi);
        self.best[node as usize]
    }

    /// Without recursion: ways are as long as lists of the program.
    fn compress(&mut self, node: u32, semi: &[u32]) {
        let Self { ancestor, best, way } = self;
        let mut at = node;
        while ancestor[ancestor[at as usize] as usize] != NONE {
            way.push(at);
            at = ancestor[at as usize];
        }
        while let Some(at) = way.pop() {
            let above = ancestor[at as usize];
            if semi[best[above as usize] as usize] < semi[best[at as usize] as usize] {
                best[at as usize] = best[above as usize];
            }
            ancestor[at as usize] = ancestor[above as usize];
        }
    }
}

/// The dominator tree of a graph whose root leads to these nodes; its own edges do not count.
pub fn dominators(graph: &Graph, roots: Roots<'_>) -> DominatorTree {
    if graph.is_empty() {
        return DominatorTree { above: Vec::new(), order: Vec::new() };
    }
    let walk = Walk::new(graph, roots);
    let count = walk.vertex.len();
    let (starts, sources) = walk.incoming(graph, roots);
    let mut semi: Vec<u32> = (0..count as u32).collect();
    let mut above = vec![NONE; count];
    let mut forest = Forest::new(count);
    // Lists of nodes by their semidominators.
    let (mut first, mut next) = (vec![NONE; count], vec![NONE; count]);
    for node in (1..count as u32).rev() {
        let mut least = node;
        for &source in &sources[starts[node as usize]..starts[node as usize + 1]] {
            let best = forest.eval(source, &semi);
            least = least.min(semi[best as usize]);
        }
        semi[node as usize] = least;
        next[node as usize] = std::mem::replace(&mut first[least as usize], node);
        let parent = walk.parent[node as usize];
        forest.link(parent, node);
        let mut waiting = std::mem::replace(&mut first[parent as usize], NONE);
        while waiting != NONE {
            let best = forest.eval(waiting, &semi);
            let is_less = semi[best as usize] < semi[waiting as usize];
            above[waiting as usize] = if is_less { best } else { parent };
            waiting = next[waiting as usize];
        }
    }
    drop((sources, starts, first, next, forest));
    for node in 1..count {
        if above[node] != semi[node] {
            above[node] = above[above[node] as usize];
        }
    }
    let mut by_node = vec![NONE; graph.len()];
    for (at, &node) in walk.vertex.iter().enumerate().skip(1) {
        by_node[node as usize] = walk.vertex[above[at] as usize];
    }
    DominatorTree { above: by_node, order: walk.vertex }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A graph with this number of objects, whose root is the node after the last.
    pub fn graph(nodes: u32, edges: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::with_capacity(nodes as usize, edges.len());
        for node in 0..=nodes {
            edges.iter().filter(|(from, _)| *from == node).for_each(|&(_, to)| graph.edge(0, to));
            graph.end_node();
        }
        graph
    }

    /// The nodes that are reachable without going through `without`.
    pub fn reached_without(graph: &Graph, without: u32) -> Vec<bool> {
        let mut reached = vec![false; graph.len()];
        let mut stack: Vec<u32> = Some(graph.root()).filter(|&root| root != without).into_iter().collect();
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut reached[node as usize], true) {
                stack.extend(graph.targets(node).iter().filter(|&&target| target != without));
            }
        }
        reached
    }

    pub fn any_graph() -> impl Strategy<Value = Graph> {
        (1..25u32).prop_flat_map(|nodes| {
            let from_objects = prop::collection::vec((0..nodes, 0..nodes), 0..60);
            let from_root = prop::collection::vec((Just(nodes), 0..nodes), 0..6);
            (from_objects, from_root).prop_map(move |(mut edges, more)| {
                edges.extend(more);
                graph(nodes, &edges)
            })
        })
    }

    proptest! {
        /// By definition: as if passing roots, and what only they lead to, had no edges to what lasting roots lead to.
        #[test]
        fn passing_roots_count_only_where_no_lasting_one_leads(
            graph in any_graph(),
            is_passing in prop::collection::vec(any::<bool>(), 0..8),
        ) {
            let root = graph.root();
            let roots = graph.targets(root).iter().copied().zip(is_passing.iter().copied().chain(std::iter::repeat(false)));
            let (passing, lasting): (Vec<_>, Vec<_>) = roots.partition(|(_, is_passing)| *is_passing);
            let [passing, lasting] = [passing, lasting].map(|of| of.into_iter().map(|(node, _)| node).collect::<Vec<u32>>());
            let copy = |root_edges: &[u32], is_left_out: &dyn Fn(u32, u32) -> bool| {
                let mut copy = Graph::with_capacity(graph.len(), graph.edges());
                for node in 0..root {
                    let targets = graph.slots(node).filter(|&(_, target)| !is_left_out(node, target));
                    targets.for_each(|(slot, target)| copy.edge(slot, target));
                    copy.end_node();
                }
                root_edges.iter().for_each(|&target| copy.edge(0, target));
                copy.end_node();
                copy
            };
            let held = reached_without(&copy(&lasting, &|_, _| false), NONE);
            let edges: Vec<u32> =
                lasting.iter().chain(passing.iter().filter(|&&node| !held[node as usize])).copied().collect();
            let expected = copy(&edges, &|node, target| !held[node as usize] && held[target as usize]);
            let expected = dominators(&expected, Roots::of(&expected));
            let tree = dominators(&graph, Roots { lasting: &lasting, passing: &passing });
            for node in 0..graph.len() as u32 {
                prop_assert_eq!(tree.above(node), expected.above(node), "of {}", node);
            }
        }

        /// By definition: without its dominators a node is not reached, without any other it is.
        #[test]
        fn without_a_dominator_there_is_no_way(graph in any_graph()) {
            let tree = dominators(&graph, Roots::of(&graph));
            let reached = reached_without(&graph, NONE);
            let dominators_of = |node: u32| {
                let next = |&at: &u32| Some(tree.above(at)).filter(|&above| above != NONE);
                std::iter::successors(next(&node), next).collect::<Vec<u32>>()
            };
            for node in 0..graph.len() as u32 {
                prop_assert_eq!(tree.order().contains(&node), reached[node as usize]);
                if !reached[node as usize] || node == graph.root() {
                    prop_assert_eq!(tree.above(node), NONE);
                    continue;
                }
                let above = dominators_of(node);
                for other in (0..graph.len() as u32).filter(|&other| other != node) {
                    let is_cut = !reached_without(&graph, other)[node as usize];
                    prop_assert_eq!(above.contains(&other), is_cut && reached[other as usize], "{} of {}", other, node);
                }
                let place = |node| tree.order().iter().position(|&at| at == node);
                prop_assert!(place(tree.above(node)) < place(node));
            }
            let children = tree.children();
            for node in 0..graph.len() as u32 {
                let expected: Vec<u32> = tree.order().iter().copied().filter(|&child| tree.above(child) == node).collect();
                prop_assert_eq!(children.of(node).collect::<Vec<u32>>(), expected);
            }
        }
    }

    /// Each element of a list leads back to all that was before: what makes iterative algorithms slow, and recursion overflow.
    #[test]
    fn long_lists_take_no_longer_than_others() {
        const LENGTH: u32 = 300_000;
        let mut graph = Graph::with_capacity(LENGTH as usize, 3 * LENGTH as usize);
        for node in 0..LENGTH {
            if node + 1 < LENGTH {
                graph.edge(0, node + 1);
            }
            graph.edge(1, node.saturating_sub(1));
            graph.edge(2, 0);
            graph.end_node();
        }
        graph.edge(0, 0);
        graph.edge(0, LENGTH - 1);
        graph.end_node();
        let tree = dominators(&graph, Roots::of(&graph));
        // Two ways lead to each: from the front and from the back.
        assert!((0..LENGTH).all(|node| tree.above(node) == graph.root()));
    }
}
