//! Flame graphs: contexts and sites with what was allocated there, down to what can be seen.

use et_names::{MethodId, SiteId};
use et_trace::model::{ContextId, Contexts};
use et_trace::types::TypeId;
use rustc_hash::FxHashMap;

use super::data::{Flame, Frame, FrameKind, FrameName};
use super::totals::{Place, Weights};

/// What a frame is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Label {
    Root,
    Method(MethodId),
    Class(TypeId),
    Site(SiteId, TypeId),
}

/// Shares below which nodes are folded into the one below: one in so many.
pub(super) const SEEN: u64 = 1000;
/// Callers of a site that are told apart.
const CALLERS: usize = 48;
/// Frames of a graph, whatever their shares.
const MOST: usize = 6000;

/// A graph that is being made.
#[derive(Debug, Default)]
struct Growing {
    labels: Vec<Label>,
    parents: Vec<u32>,
    weights: Vec<Weights>,
    folded: u64,
}

impl Growing {
    fn push(&mut self, parent: u32, label: Label, weights: Weights) -> u32 {
        self.labels.push(label);
        self.parents.push(parent);
        self.weights.push(weights);
        self.labels.len() as u32 - 1
    }

    fn finish(self, name: &mut impl FnMut(Label) -> FrameName) -> Flame {
        let mut names = Vec::new();
        let mut numbers: FxHashMap<Label, u32> = FxHashMap::default();
        let frames =
            self.labels.iter().zip(&self.parents).zip(&self.weights).map(|((&label, &parent), weights)| Frame {
                parent,
                name: *numbers.entry(label).or_insert_with(|| {
                    names.push(name(label));
                    names.len() as u32 - 1
                }),
                bytes: weights.all().map(|amount| amount.bytes).collect(),
                objects: weights.all().map(|amount| amount.objects).collect(),
            });
        let frames = frames.collect();
        Flame { names, frames, folded: self.folded }
    }
}

/// Whether it can be seen in any measure.
fn is_seen(weights: &Weights, whole: &Weights, one_in: u64) -> bool {
    weights.all().zip(whole.all()).any(|(part, whole)| {
        (part.bytes > 0 && part.bytes.saturating_mul(one_in) >= whole.bytes)
            || (part.objects > 0 && part.objects.saturating_mul(one_in) >= whole.objects)
    })
}

fn sum<'a>(weights: impl Iterator<Item = &'a Weights>) -> Weights {
    weights.fold(Weights::default(), |mut sum, weights| {
        sum += *weights;
        sum
    })
}

/// From the outermost method to the class. Says also which context stands for which node.
pub(super) fn by_context(
    places: &FxHashMap<Place, Weights>,
    contexts: &Contexts,
    mut name: impl FnMut(Label) -> FrameName,
) -> Flame {
    let whole = sum(places.values());
    // What is above a context counts for it as well: callers have smaller numbers than those they call.
    let mut inclusive = vec![Weights::default(); contexts.len()];
    for ((context, ..), weights) in places {
        inclusive[context.0 as usize] += *weights;
    }
    for index in (1..inclusive.len()).rev() {
        let caller = contexts.get(ContextId(index as u32)).caller.0 as usize;
        let above = inclusive[index];
        inclusive[caller] += above;
    }
    let one_in = threshold(&inclusive, &whole);
    let mut growing = Growing::default();
    growing.push(0, Label::Root, whole);
    // The node that each context is told by.
    let mut nodes = vec![0u32; contexts.len()];
    for (id, context) in contexts.iter().skip(1) {
        let (index, caller) = (id.0 as usize, context.caller.0 as usize);
        let weights = inclusive[index];
        if weights.made.objects == 0 {
            continue;
        }
        // What is called by what is folded is not seen either: it has no more.
        nodes[index] = if is_seen(&weights, &whole, one_in) {
            growing.push(nodes[caller], Label::Method(context.method), weights)
        } else {
            growing.folded += 1;
            nodes[caller]
        };
    }
    let mut classes: FxHashMap<(u32, TypeId), Weights> = FxHashMap::default();
    for ((context, _, class), weights) in places {
        *classes.entry((nodes[context.0 as usize], *class)).or_default() += *weights;
    }
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_unstable_by_key(|((node, class), _)| (*node, class.0));
    for ((node, class), weights) in classes {
        if is_seen(&weights, &whole, one_in) {
            growing.push(node, Label::Class(class), weights);
        } else {
            growing.folded += 1;
        }
    }
    growing.finish(&mut name)
}

/// The share that makes no more nodes than a page can show.
fn threshold(inclusive: &[Weights], whole: &Weights) -> u64 {
    let mut one_in = SEEN;
    while one_in > 20 {
        let seen = inclusive.iter().filter(|weights| is_seen(weights, whole, one_in)).count();
        if seen <= MOST {
            break;
        }
        one_in /= 2;
    }
    one_in
}

/// From the site to its callers, innermost first.
pub(super) fn by_site(
    places: &FxHashMap<Place, Weights>,
    contexts: &Contexts,
    method_of: impl Fn(SiteId) -> Option<MethodId>,
    mut name: impl FnMut(Label) -> FrameName,
) -> Flame {
    let whole = sum(places.values());
    let mut growing = Growing::default();
    growing.push(0, Label::Root, whole);
    // Level by level: each place stands on a node, and has a caller to go on with. Where a node is too small, what stands on
    // it goes no further, so that what is kept shrinks from level to level.
    let mut level: Vec<(u32, Label, ContextId, Weights)> = places
        .iter()
        .map(|(&(context, site, class), weights)| {
            // The method that a site is in is on top of its context, and the site says it.
            let top = (context != ContextId::EMPTY).then(|| contexts.get(context));
            let is_on_top = top.is_some_and(|top| method_of(site) == Some(top.method));
            let from = top.filter(|_| is_on_top).map_or(context, |top| top.caller);
            (0, Label::Site(site, class), from, *weights)
        })
        .collect();
    for _ in 0..CALLERS {
        if level.is_empty() || growing.labels.len() > MOST {
            break;
        }
        let mut nodes: FxHashMap<(u32, Label), Weights> = FxHashMap::default();
        for (parent, label, _, weights) in &level {
            *nodes.entry((*parent, *label)).or_default() += *weights;
        }
        let mut numbers: FxHashMap<(u32, Label), u32> = FxHashMap::default();
        let mut sorted: Vec<_> = nodes.into_iter().collect();
        sorted.sort_unstable_by_key(|((parent, label), weights)| {
            (*parent, std::cmp::Reverse((weights.made.bytes, weights.made.objects)), rank(*label))
        });
        for ((parent, label), weights) in sorted {
            if is_seen(&weights, &whole, SEEN) {
                numbers.insert((parent, label), growing.push(parent, label, weights));
            } else {
                growing.folded += 1;
            }
        }
        level = level
            .into_iter()
            .filter_map(|(parent, label, context, weights)| {
                let node = *numbers.get(&(parent, label))?;
                (context != ContextId::EMPTY).then(|| {
                    let context = contexts.get(context);
                    (node, Label::Method(context.method), context.caller, weights)
                })
            })
            .collect();
    }
    growing.finish(&mut name)
}

/// Some order, the same every time.
fn rank(label: Label) -> (u32, u32) {
    match label {
        Label::Root => (0, 0),
        Label::Method(method) => (method.0, 0),
        Label::Class(class) => (class.0, 0),
        Label::Site(site, class) => (site.0, class.0),
    }
}

/// What is not told by a name.
pub(super) fn root() -> FrameName {
    FrameName { name: "all".into(), kind: FrameKind::Root }
}
