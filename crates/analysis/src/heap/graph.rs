//! References that keep objects alive, in few bytes each.

/// A graph whose nodes are numbers. The last node is the root: its edges lead to all that is held from outside.
///
/// An edge takes 8 bytes and a node as many, so that tens of millions of objects fit.
#[derive(Debug, Default)]
pub struct Graph {
    /// Where the edges of each node begin; those of the last end at the end.
    starts: Vec<usize>,
    targets: Vec<u32>,
    /// What the number of the slot is that each edge stands for.
    slots: Vec<u32>,
}

impl Graph {
    /// One without nodes, with room for so many.
    pub fn with_capacity(nodes: usize, edges: usize) -> Self {
        let mut starts = Vec::with_capacity(nodes + 2);
        starts.push(0);
        Self { starts, targets: Vec::with_capacity(edges), slots: Vec::with_capacity(edges) }
    }

    /// An edge of the next node.
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

    /// How many edges there are.
    pub fn edges(&self) -> usize {
        self.targets.len()
    }

    /// What a node leads to, as often as it does.
    #[inline]
    pub fn targets(&self, node: u32) -> &[u32] {
        &self.targets[self.starts[node as usize]..self.starts[node as usize + 1]]
    }

    /// What a node leads to, with the slots.
    #[inline]
    pub fn slots(&self, node: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.starts[node as usize]..self.starts[node as usize + 1];
        self.slots[range.clone()].iter().copied().zip(self.targets[range].iter().copied())
    }

    /// Who leads to each node: the same edges turned round, without slots.
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

/// Who leads to each node of a [`Graph`].
#[derive(Debug)]
pub struct Incoming {
    starts: Vec<usize>,
    sources: Vec<u32>,
}

impl Incoming {
    /// Who leads to a node, as often as they do, in order of their numbers.
    pub fn of(&self, node: u32) -> &[u32] {
        &self.sources[self.starts[node as usize]..self.starts[node as usize + 1]]
    }
}
