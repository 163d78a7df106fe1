//! References that keep objects alive, in few bytes each.

/// A graph with numbered nodes. The last node is the root: its edges lead to everything held from outside.
///
/// An edge takes 8 bytes and a node as well, so that tens of millions of objects fit in memory.
#[derive(Debug, Default)]
pub struct Graph {
    /// Where the edges of each node begin; those of the last end at the end.
    starts: Vec<usize>,
    targets: Vec<u32>,
    /// Slot number of each edge.
    slots: Vec<u32>,
}

impl Graph {
    /// Creates an empty graph with room for this many nodes and edges.
    pub fn with_capacity(nodes: usize, edges: usize) -> Self {
        let mut starts = Vec::with_capacity(nodes + 2);
        starts.push(0);
        Self { starts, targets: Vec::with_capacity(edges), slots: Vec::with_capacity(edges) }
    }

    /// Adds an edge to the node under construction.
    pub fn edge(&mut self, slot: u32, target: u32) {
        self.slots.push(slot);
        self.targets.push(target);
    }

    /// The next node has no more edges.
    pub fn end_node(&mut self) {
        self.starts.push(self.targets.len());
    }

    /// The root; there are as many objects.
    pub fn root(&self) -> u32 {
        (self.starts.len().saturating_sub(2)) as u32
    }

    /// All nodes, the root included.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether not even a root is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn edges(&self) -> usize {
        self.targets.len()
    }

    /// Targets of a node's edges; may contain duplicates.
    #[inline]
    pub fn targets(&self, node: u32) -> &[u32] {
        &self.targets[self.starts[node as usize]..self.starts[node as usize + 1]]
    }

    /// Slots and targets of a node's edges.
    #[inline]
    pub fn slots(&self, node: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.starts[node as usize]..self.starts[node as usize + 1];
        self.slots[range.clone()].iter().copied().zip(self.targets[range].iter().copied())
    }

    /// The reversed edges, without slots.
    pub fn reversed(&self) -> Incoming {
        let mut starts = vec![0; self.len() + 1];
        self.targets.iter().for_each(|&target| starts[target as usize + 1] += 1);
        for at in 0..self.len() {
            starts[at + 1] += starts[at];
        }
        let mut sources = vec![0; self.targets.len()];
        let mut next = starts.clone();
        for node in 0..self.len() as u32 {
            for &target in self.targets(node) {
                let next = &mut next[target as usize];
                sources[*next] = node;
                *next += 1;
            }
        }
        Incoming { starts, sources }
    }
}

/// The predecessors of each node of a [`Graph`].
#[derive(Debug)]
pub struct Incoming {
    starts: Vec<usize>,
    sources: Vec<u32>,
}

impl Incoming {
    /// Predecessors of a node in ascending order; may contain duplicates.
    pub fn of(&self, node: u32) -> &[u32] {
        &self.sources[self.starts[node as usize]..self.starts[node as usize + 1]]
    }
}
