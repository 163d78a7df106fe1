//! Flame graphs: methods on the stack with what was allocated in them, down to what can be seen.

use std::hash::Hash;
use std::ops::AddAssign;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::summary::Origin;

/// A node of a flame graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The node that it stands on; its own number for the root.
    pub parent: u32,
    /// Its name, in the graph's list.
    pub name: u32,
    /// Bytes of it and all above it, by each part that the graph tells apart.
    pub bytes: Vec<u64>,
    /// Objects, likewise.
    pub objects: Vec<u64>,
}

/// A name in a flame graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameName {
    /// The method, the class, or the site.
    pub name: String,
    /// What it is.
    pub kind: FrameKind,
}

/// What a frame stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FrameKind {
    /// All of it.
    Root,
    /// A method of the program's.
    Program,
    /// Of a library's.
    Library,
    /// Of the JDK's.
    Jdk,
    /// A class of objects.
    Class,
    /// A site.
    Site,
}

impl From<Origin> for FrameKind {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Program => Self::Program,
            Origin::Library => Self::Library,
            Origin::Jdk => Self::Jdk,
        }
    }
}

/// A flame graph: parents stand before their children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flame {
    /// Names of frames.
    pub names: Vec<FrameName>,
    /// Frames; the first is the root.
    pub frames: Vec<Frame>,
    /// Nodes that were folded into the one that they stand on.
    pub folded: u64,
}

/// Shares below which nodes are folded into the one below: one in so many.
pub(crate) const SEEN: u64 = 1000;
/// Frames of a graph, whatever their shares.
pub(crate) const MOST: usize = 6000;

/// What is told of a frame, by part.
pub(crate) trait Parts: Copy + Default + AddAssign {
    /// All parts, always in the same order.
    fn all(&self) -> impl Iterator<Item = Amount>;
}

/// A graph that is being made.
#[derive(Debug)]
pub(crate) struct Growing<L, P> {
    labels: Vec<L>,
    parents: Vec<u32>,
    parts: Vec<P>,
    folded: u64,
}

impl<L: Copy + Eq + Hash, P: Parts> Growing<L, P> {
    /// With a root that has all of it.
    pub fn new(root: L, whole: P) -> Self {
        Self { labels: vec![root], parents: vec![0], parts: vec![whole], folded: 0 }
    }

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// A frame more.
    pub fn push(&mut self, parent: u32, label: L, parts: P) -> u32 {
        self.labels.push(label);
        self.parents.push(parent);
        self.parts.push(parts);
        self.labels.len() as u32 - 1
    }

    /// A frame that cannot be seen.
    pub fn fold(&mut self) {
        self.folded += 1;
    }

    /// The graph, its labels by name.
    pub fn finish(self, mut name: impl FnMut(L) -> FrameName) -> Flame {
        let mut names = Vec::new();
        let mut numbers: FxHashMap<L, u32> = FxHashMap::default();
        let frames = self.labels.iter().zip(&self.parents).zip(&self.parts).map(|((&label, &parent), parts)| Frame {
            parent,
            name: *numbers.entry(label).or_insert_with(|| {
                names.push(name(label));
                names.len() as u32 - 1
            }),
            bytes: parts.all().map(|amount| amount.bytes).collect(),
            objects: parts.all().map(|amount| amount.objects).collect(),
        });
        let frames = frames.collect();
        Flame { names, frames, folded: self.folded }
    }
}

/// Whether it can be seen in any part.
pub(crate) fn is_seen<P: Parts>(parts: &P, whole: &P, one_in: u64) -> bool {
    parts.all().zip(whole.all()).any(|(part, whole)| {
        (part.bytes > 0 && part.bytes.saturating_mul(one_in) >= whole.bytes)
            || (part.objects > 0 && part.objects.saturating_mul(one_in) >= whole.objects)
    })
}

pub(crate) fn sum<'a, P: Parts + 'a>(parts: impl Iterator<Item = &'a P>) -> P {
    parts.fold(P::default(), |mut sum, parts| {
        sum += *parts;
        sum
    })
}

/// From the outermost method to the class. `contexts` has the caller and the label of each context but the first, which is the
/// empty stack; callers are before those that they call. `leaves`: what was allocated in a context, by class.
pub(crate) fn by_context<L: Copy + Eq + Ord + Hash, P: Parts>(
    root: L,
    contexts: &[(u32, L)],
    leaves: impl Iterator<Item = ((u32, L), P)> + Clone,
) -> Growing<L, P> {
    // What is above a context counts for it as well.
    let mut inclusive = vec![P::default(); contexts.len() + 1];
    let mut whole = P::default();
    for ((context, _), parts) in leaves.clone() {
        inclusive[context as usize] += parts;
        whole += parts;
    }
    for index in (1..inclusive.len()).rev() {
        let above = inclusive[index];
        inclusive[contexts[index - 1].0 as usize] += above;
    }
    let one_in = threshold(&inclusive, &whole);
    let mut growing = Growing::new(root, whole);
    // The node that each context is told by.
    let mut nodes = vec![0u32; inclusive.len()];
    for (index, &(caller, label)) in (1..).zip(contexts) {
        let parts = inclusive[index];
        if parts.all().all(|amount| amount.objects == 0) {
            continue;
        }
        let below = nodes[caller as usize];
        // What is called by what is folded is not seen either: it has no more.
        nodes[index] = if is_seen(&parts, &whole, one_in) {
            growing.push(below, label, parts)
        } else {
            growing.fold();
            below
        };
    }
    let mut classes: FxHashMap<(u32, L), P> = FxHashMap::default();
    for ((context, class), parts) in leaves {
        *classes.entry((nodes[context as usize], class)).or_default() += parts;
    }
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_unstable_by_key(|(key, _)| *key);
    for ((node, class), parts) in classes {
        if is_seen(&parts, &whole, one_in) {
            growing.push(node, class, parts);
        } else {
            growing.fold();
        }
    }
    growing
}

/// The share that makes no more nodes than a page can show.
fn threshold<P: Parts>(inclusive: &[P], whole: &P) -> u64 {
    let mut one_in = SEEN;
    while one_in > 20 {
        let seen = inclusive.iter().filter(|parts| is_seen(*parts, whole, one_in)).count();
        if seen <= MOST {
            break;
        }
        one_in /= 2;
    }
    one_in
}

/// What is not told by a name.
pub(crate) fn root() -> FrameName {
    FrameName { name: "all".into(), kind: FrameKind::Root }
}
