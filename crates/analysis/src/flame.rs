//! Flame graphs: methods on the stack with what was allocated in them, down to what can be seen.

use std::hash::Hash;
use std::ops::AddAssign;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::summary::Origin;
use et_reader::amount::Amount;

/// A node of a flame graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The parent node; the root is its own parent.
    pub parent: u32,
    /// Its name, in the graph's list.
    pub name: u32,
    /// Bytes of the node and its descendants, by part of the graph.
    pub bytes: Vec<u64>,
    /// Objects, likewise.
    pub objects: Vec<u64>,
}

/// A name in a flame graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameName {
    /// The method, the class, or the site.
    pub name: String,
    pub kind: FrameKind,
}

/// What a frame represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FrameKind {
    /// The root, which includes everything.
    Root,
    /// A method of the program.
    Program,
    /// A method of a library.
    Library,
    /// A method of the JDK.
    Jdk,
    /// A class of objects.
    Class,
    /// An allocation site.
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

/// A flame graph: parents precede their children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flame {
    /// Names of frames.
    pub names: Vec<FrameName>,
    /// Frames; the first is the root.
    pub frames: Vec<Frame>,
    /// Number of nodes that were merged into their parents.
    pub folded: u64,
}

/// Nodes with less than one in this many of the total are merged into their parents.
pub(crate) const SEEN: u64 = 1000;
/// Frames of a graph, whatever their shares.
pub(crate) const MOST: usize = 6000;

/// The values of a frame, one for each part.
pub(crate) trait Parts: Copy + Default + AddAssign {
    /// All parts, always in the same order.
    fn all(&self) -> impl Iterator<Item = Amount>;
}

/// A flame graph under construction.
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

    pub fn len(&self) -> usize {
        self.labels.len()
    }

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

pub(crate) fn sum<P: Parts>(parts: impl Iterator<Item = P>) -> P {
    parts.fold(P::default(), |mut sum, parts| {
        sum += parts;
        sum
    })
}

/// Builds a graph from the outermost method to the class. `context` returns the caller and the label of each of the
/// `contexts` contexts except 0, the empty stack; callers precede callees. `leaves`: what was allocated in each
/// context, by class.
///
/// A program with deep recursion has millions of contexts but a page has room for thousands, so a first pass computes a
/// single number for each, and only those that may be visible get all parts.
pub(crate) fn by_context<L: Copy + Eq + Ord + Hash, P: Parts>(
    root: L,
    contexts: u32,
    context: impl Fn(u32) -> (u32, L),
    leaves: impl Iterator<Item = ((u32, L), P)> + Clone,
) -> Growing<L, P> {
    let whole = sum(leaves.clone().map(|(_, parts)| parts));
    let candidates = Candidates::of(contexts, |index| context(index).0, leaves.clone(), &whole);
    // A context includes its callees.
    let mut inclusive = vec![P::default(); candidates.contexts.len()];
    for ((context, _), parts) in leaves.clone() {
        inclusive[candidates.of[context as usize] as usize] += parts;
    }
    for index in (1..inclusive.len()).rev() {
        let above = inclusive[index];
        inclusive[candidates.below(index, &context) as usize] += above;
    }
    let one_in = threshold(&inclusive, &whole);
    let mut growing = Growing::new(root, whole);
    (0..candidates.folded).for_each(|_| growing.fold());
    // The node that represents each candidate.
    let mut nodes = vec![0u32; inclusive.len()];
    for (index, parts) in inclusive.iter().enumerate().skip(1) {
        let below = nodes[candidates.below(index, &context) as usize];
        // The callees of a merged context are not visible either, since they are no larger.
        nodes[index] = if is_seen(parts, &whole, one_in) {
            growing.push(below, context(candidates.contexts[index]).1, *parts)
        } else {
            growing.fold();
            below
        };
    }
    let mut classes: FxHashMap<(u32, L), P> = FxHashMap::default();
    for ((context, class), parts) in leaves {
        let node = nodes[candidates.of[context as usize] as usize];
        *classes.entry((node, class)).or_default() += parts;
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

/// Contexts that can be seen at all, with all that can be seen.
struct Candidates {
    /// They in order of their numbers; the first is the empty one.
    contexts: Vec<u32>,
    /// For each context the candidate that is it or is next below it, by its place in `contexts`.
    of: Vec<u32>,
    /// Contexts in which something was allocated, directly or in callees, and that are not candidates.
    folded: u64,
}

impl Candidates {
    fn of<L, P: Parts>(
        contexts: u32,
        caller: impl Fn(u32) -> u32,
        leaves: impl Iterator<Item = ((u32, L), P)>,
        whole: &P,
    ) -> Self {
        let mut shares = vec![0f64; (contexts as usize).max(1)];
        for ((context, _), parts) in leaves {
            shares[context as usize] += shares_of(&parts, whole);
        }
        for index in (1..contexts).rev() {
            let above = shares[index as usize];
            shares[caller(index) as usize] += above;
        }
        // No part has a larger share than all have together. A little less, for sums of floating-point numbers are not exact.
        let least = 0.999 / SEEN as f64;
        let mut all = Self { contexts: vec![0], of: vec![0; shares.len()], folded: 0 };
        for index in 1..contexts {
            let share = shares[index as usize];
            all.of[index as usize] = if share >= least {
                all.contexts.push(index);
                all.contexts.len() as u32 - 1
            } else {
                all.folded += u64::from(share > 0.0);
                all.of[caller(index) as usize]
            };
        }
        all
    }

    /// The parent of a candidate.
    fn below<L>(&self, candidate: usize, context: impl Fn(u32) -> (u32, L)) -> u32 {
        self.of[context(self.contexts[candidate]).0 as usize]
    }
}

/// The sum of its parts' shares in all.
fn shares_of<P: Parts>(parts: &P, whole: &P) -> f64 {
    let share = |part: u64, whole: u64| if part == 0 { 0.0 } else { part as f64 / whole as f64 };
    let of = |(part, whole): (Amount, Amount)| share(part.bytes, whole.bytes) + share(part.objects, whole.objects);
    parts.all().zip(whole.all()).map(of).sum()
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

pub(crate) fn root() -> FrameName {
    FrameName { name: "all".into(), kind: FrameKind::Root }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What was allocated, and what is alive.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Two([Amount; 2]);

    impl AddAssign for Two {
        fn add_assign(&mut self, other: Self) {
            self.0.iter_mut().zip(other.0).for_each(|(sum, other)| *sum += other);
        }
    }

    impl Parts for Two {
        fn all(&self) -> impl Iterator<Item = Amount> {
            self.0.into_iter()
        }
    }

    fn amount() -> impl Strategy<Value = Amount> {
        let some = prop_oneof![Just(0u64), 1..10u64, 1000..100_000u64];
        some.prop_map(|objects| Amount { objects, bytes: objects * 16 })
    }

    type Leaf = ((u32, u32), Two);

    /// The tree as callers of contexts 1, 2, …, and what was allocated, by context and class.
    fn tree() -> impl Strategy<Value = (Vec<u32>, Vec<Leaf>)> {
        (1..60usize).prop_flat_map(|contexts| {
            let callers: Vec<_> = (0..contexts).map(|before| 0..=before as u32).collect();
            let leaf = ((0..=contexts as u32, 1000..1003u32), [amount(), amount()].prop_map(Two));
            (callers, prop::collection::vec(leaf, 0..80))
        })
    }

    proptest! {
        /// All contexts that can be seen are there with all that is above them, and nothing else but classes.
        #[test]
        fn all_that_can_be_seen_is_there((callers, leaves) in tree()) {
            let context = |index: u32| (callers[index as usize - 1], index);
            let flame = by_context(0, callers.len() as u32 + 1, context, leaves.iter().copied());
            let whole = sum(leaves.iter().map(|(_, parts)| *parts));
            let is_above = |mut context: u32, below: u32| {
                while context > below {
                    context = callers[context as usize - 1];
                }
                context == below
            };
            let mut expected: Vec<(u32, u32, Two)> = Vec::new();
            let (mut folded, mut place_of) = (0, vec![0u32]);
            for index in 1..=callers.len() as u32 {
                let of_it = leaves.iter().filter(|((context, _), _)| is_above(*context, index));
                let inclusive = sum(of_it.map(|(_, parts)| *parts));
                let below = place_of[callers[index as usize - 1] as usize];
                let is_there = is_seen(&inclusive, &whole, SEEN);
                folded += u64::from(!is_there && inclusive != Two::default());
                if is_there {
                    expected.push((below, index, inclusive));
                }
                place_of.push(if is_there { expected.len() as u32 } else { below });
            }
            for node in 0..=expected.len() as u32 {
                for class in 1000..1003 {
                    let of_it = leaves.iter().filter(|((context, of), _)| place_of[*context as usize] == node && *of == class);
                    let parts = sum(of_it.map(|(_, parts)| *parts));
                    if is_seen(&parts, &whole, SEEN) {
                        expected.push((node, class, parts));
                    } else {
                        folded += u64::from(leaves.iter().any(|((context, of), _)| place_of[*context as usize] == node && *of == class));
                    }
                }
            }
            let found: Vec<_> = (1..flame.len()).map(|at| (flame.parents[at], flame.labels[at], flame.parts[at])).collect();
            prop_assert_eq!(found.len(), expected.len());
            for frame in expected {
                prop_assert!(found.contains(&frame), "{:?} is not in {:?}", frame, found);
            }
            prop_assert_eq!((flame.parts[0], flame.folded), (whole, folded));
        }
    }
}
