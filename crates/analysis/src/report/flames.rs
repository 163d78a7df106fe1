//! Flame graphs by place: from callers to classes, and from sites to callers.

use et_reader::model::{ContextId, Contexts};
use rustc_hash::FxHashMap;

use super::told::{Label, Names};
use super::totals::Place;
use crate::flame::{self, Flame, Growing, MOST, Parts, SEEN, is_seen, sum};

/// Maximum number of callers distinguished for a site.
const CALLERS: usize = 48;

/// From the outermost method to the class.
pub(crate) fn by_context<P: Parts>(places: &FxHashMap<Place, P>, contexts: &Contexts, names: &mut Names<'_>) -> Flame {
    let stack = |index: u32| {
        let context = contexts.get(ContextId(index));
        (context.caller.0, Label::Method(context.method, context.at))
    };
    let leaves = places.iter().map(|((context, _, class), weights)| ((context.0, Label::Class(*class)), *weights));
    flame::by_context(Label::Root, contexts.len() as u32, stack, leaves).finish(|label| names.frame(label))
}

/// From the site to its callers, innermost first.
pub(crate) fn by_site<P: Parts>(places: &FxHashMap<Place, P>, contexts: &Contexts, names: &mut Names<'_>) -> Flame {
    let whole = sum(places.values().copied());
    let mut growing = Growing::new(Label::Root, whole);
    // Level by level: each place has a current node and a next caller. Below nodes that are too small it stops, so that
    // the amount of state shrinks from level to level.
    let mut level: Vec<(u32, Label, ContextId, &P)> = places
        .iter()
        .map(|(&(context, site, class), weights)| {
            // The method that a site is in is on top of its context, and the site says it.
            let top = (context != ContextId::EMPTY).then(|| contexts.get(context));
            let is_on_top = top.is_some_and(|top| names.method_of_place(site) == Some(top.method));
            let from = top.filter(|_| is_on_top).map_or(context, |top| top.caller);
            (0, Label::Site(site, class), from, weights)
        })
        .collect();
    for _ in 0..CALLERS {
        if level.is_empty() || growing.len() > MOST {
            break;
        }
        let mut nodes: FxHashMap<(u32, Label), P> = FxHashMap::default();
        for (parent, label, _, weights) in &level {
            *nodes.entry((*parent, *label)).or_default() += **weights;
        }
        let mut numbers: FxHashMap<(u32, Label), u32> = FxHashMap::default();
        let mut sorted: Vec<_> = nodes.into_iter().collect();
        sorted.sort_unstable_by_key(|((parent, label), weights)| {
            let first = weights.all().next().unwrap_or_default();
            (*parent, std::cmp::Reverse((first.bytes, first.objects)), *label)
        });
        for ((parent, label), weights) in sorted {
            if is_seen(&weights, &whole, SEEN) {
                numbers.insert((parent, label), growing.push(parent, label, weights));
            } else {
                growing.fold();
            }
        }
        level = level
            .into_iter()
            .filter_map(|(parent, label, context, weights)| {
                let node = *numbers.get(&(parent, label))?;
                (context != ContextId::EMPTY).then(|| {
                    let context = contexts.get(context);
                    (node, Label::Method(context.method, context.at), context.caller, weights)
                })
            })
            .collect();
    }
    growing.finish(|label| names.frame(label))
}
