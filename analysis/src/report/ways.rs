//! What holds at the end what only grew: the shortest ways to it from static fields and threads.

use et_names::SiteId;
use et_trace::model::Node;
use et_trace::population::Population;
use et_trace::source::{Reading, Source};
use et_trace::types::TypeId;
use rustc_hash::FxHashMap;

use super::data::{Growth, Way};
use crate::heap::{self, HeapError, paths};

/// Sites that are asked about: each takes a walk through the heap.
const SITES: usize = 8;
/// Ways of each.
const WAYS: usize = 3;
/// Objects of a site that are asked about.
const OBJECTS: usize = 10_000;

/// Says it of those that only grew and are no trifle. Where there are none the heap is not rebuilt: that takes another reading.
pub(super) fn add(
    source: &Source,
    population: &Population,
    reading: Reading,
    growing: &mut [Growth],
    keys: &[(SiteId, TypeId)],
    live: u64,
) -> Result<(), HeapError> {
    let asked: Vec<usize> = (0..growing.len())
        .filter(|&at| growing[at].only_grew && growing[at].end.bytes.saturating_mul(100) >= live)
        .take(SITES)
        .collect();
    if asked.is_empty() {
        return Ok(());
    }
    let snapshot = heap::at_end(source, reading)?;
    let wanted: FxHashMap<SiteId, ()> = asked.iter().map(|&at| (keys[at].0, ())).collect();
    let mut nodes: FxHashMap<SiteId, Vec<Node>> = FxHashMap::default();
    for (node, object) in snapshot.nodes().filter(|(_, object)| wanted.contains_key(&object.site)) {
        nodes.entry(object.site).or_default().push(node);
    }
    for at in asked {
        let (site, class) = keys[at];
        let descriptor = population.types.descriptor(class);
        let is_of_class = |node: &&Node| snapshot.class(snapshot.object(**node).class).descriptor == descriptor;
        let of_site = nodes.get(&site).map_or(&[][..], Vec::as_slice);
        let objects: Vec<Node> = of_site.iter().filter(is_of_class).take(OBJECTS).copied().collect();
        growing[at].ways = paths::to(&snapshot, &objects, WAYS).into_iter().map(way).collect();
    }
    Ok(())
}

fn way(path: paths::Path) -> Way {
    let mut steps: Vec<String> = path
        .steps
        .into_iter()
        .map(|step| match step.via {
            // Which element it is says nothing of the others.
            Some(via) if via.starts_with('[') => format!("[] {}", step.class),
            Some(via) => format!(".{} {}", via.rsplit('.').next().unwrap_or(&via), step.class),
            None => step.class,
        })
        .collect();
    // Lists are held node by node.
    steps.dedup();
    Way { root: path.root, steps, objects: path.objects }
}
