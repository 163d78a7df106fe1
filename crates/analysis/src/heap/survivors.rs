//! The objects alive at the end that hold the most, each with its allocation and the shortest way to it.

use std::cmp::Reverse;
use std::io;

use et_reader::made_in::Places;
use et_reader::model::Node;
use et_reader::population::{Columns, Population};
use et_reader::record::{AllocKind, ObjectId, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::dominators::NONE;
use super::paths::{Walk, Way};
use super::report::lasting_dominance;
use super::retained::Dominance;
use super::snapshot::{Root, Snapshot};
use crate::fold::fold;
use crate::profile::{self, Origin};

/// An object that is alive at the end.
#[derive(Clone, Debug)]
pub struct Survivor {
    pub node: Node,
    pub origin: Origin,
    /// The thread that made it.
    pub thread: ThreadId,
    /// When it was made, in nanoseconds since the start; `None` if the trace has no times.
    pub birth_nanos: Option<u64>,
    /// Bytes that would be freed with it.
    pub retained: u64,
    /// What holds the first object on the way from outside.
    pub root: Option<Root>,
    /// The objects on the way, each with the slot of the one before that holds it; the last is the object itself.
    pub way: Way,
}

/// The objects of a snapshot of the end, classes excepted, that were allocated while tracing was on and retain the most, `most` of them, the largest first. What an
/// object dominates comes as well only if it retains at most half as much: the array of a list, and the nodes behind the first one, tell nothing that the
/// list does not. `wanted`: only these.
///
/// # Errors
/// The rows cannot be read.
pub fn survivors(
    snapshot: &Snapshot<'_>,
    population: &Population,
    wanted: Option<&FxHashSet<ObjectId>>,
    most: usize,
) -> io::Result<Vec<Survivor>> {
    let is_wanted = |id: ObjectId| wanted.is_none_or(|wanted| wanted.contains(&id));
    let chosen = largest(snapshot, &lasting_dominance(snapshot), is_wanted, most);
    let wanted: FxHashMap<ObjectId, usize> =
        (0..).zip(&chosen).map(|(at, &(node, _))| (snapshot.object(node).id, at)).collect();
    let columns = Columns::OBJECT
        .and(Columns::CLASS)
        .and(Columns::KIND)
        .and(Columns::SITE)
        .and(Columns::CONTEXT)
        .and(Columns::THREAD)
        .and(Columns::BIRTH_NANOS)
        .and(Columns::DEATH_TICK);
    let rows = fold(
        population,
        columns,
        Vec::new,
        |found, rows| {
            for at in (0..rows.len).filter(|&at| rows.death_tick[at].is_none()) {
                if let Some(&index) = wanted.get(&rows.object[at]) {
                    found.push((index, profile::row(rows, at), rows.thread[at], rows.birth_nanos[at]));
                }
            }
        },
        |mut one: Vec<_>, mut other| {
            one.append(&mut other);
            one
        },
    )?;
    let walk = Walk::through(snapshot);
    let mut places = Places::new(snapshot.naming());
    let mut found: Vec<(usize, Survivor)> = rows
        .into_iter()
        .filter_map(|(index, row, thread, birth_nanos)| {
            let (node, retained) = chosen[index];
            let (root, way) = walk.way(node)?;
            let origin = profile::origin(row, &mut places, population);
            Some((index, Survivor { node, origin, thread, birth_nanos, retained, root, way }))
        })
        .collect();
    found.sort_by_key(|(index, _)| *index);
    // An id that two living objects have tells nothing of either.
    found.dedup_by_key(|(index, _)| *index);
    Ok(found.into_iter().map(|(_, survivor)| survivor).collect())
}

/// The objects that retain the most, with how much.
fn largest(
    snapshot: &Snapshot<'_>,
    dominance: &Dominance,
    is_wanted: impl Fn(ObjectId) -> bool,
    most: usize,
) -> Vec<(Node, u64)> {
    let root = snapshot.graph().root();
    let retained = |node: u32| dominance.retained[node as usize];
    // Of each node the least that a chosen one on the way to it retains; dominators come first.
    let mut above = vec![u64::MAX; snapshot.graph().len()];
    let mut chosen: Vec<(Node, u64)> = Vec::new();
    for &node in dominance.tree.order().iter().filter(|&&node| node != root) {
        let dominator = dominance.tree.above(node);
        let least = if dominator == NONE || dominator == root { u64::MAX } else { above[dominator as usize] };
        // Classes hold what their static fields hold, which tells more.
        let is_class = snapshot.mirrored(Node(node)).is_some();
        let object = snapshot.object(Node(node));
        let is_made = object.kind != AllocKind::Initial && !is_class;
        let is_chosen = is_made && retained(node) <= least / 2 && is_wanted(object.id);
        above[node as usize] = if is_chosen { retained(node) } else { least };
        if is_chosen {
            chosen.push((Node(node), retained(node)));
        }
    }
    chosen.sort_unstable_by_key(|&(node, retained)| (Reverse(retained), node));
    chosen.truncate(most);
    chosen
}

#[cfg(test)]
mod tests {
    use et_reader::source::Source;
    use et_reader::{Trace, TraceFile};

    use super::super::tests::list;
    use super::super::{Moment, Request, take};
    use super::*;

    #[test]
    fn a_list_comes_once_and_not_each_of_its_nodes() {
        let mut builder = list();
        let source: Source = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap().into();
        // Before the list is cut.
        let request =
            Request { moment: Moment::Entry { method: "shop.Node.mark".to_owned(), nth: 1 }, ..Request::default() };
        let snapshot = take(&source, &request).unwrap();
        let dominance = lasting_dominance(&snapshot);
        let chosen = largest(&snapshot, &dominance, |_| true, 100);
        assert!(chosen.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{chosen:?}");
        assert_eq!(largest(&snapshot, &dominance, |_| true, 1), chosen[..1]);
        let last = chosen[chosen.len() - 1];
        let is_last = |id| id == snapshot.object(last.0).id;
        assert_eq!(largest(&snapshot, &dominance, is_last, 100), [last]);
        for &(node, retained) in &chosen {
            assert_ne!(snapshot.object(node).kind, AllocKind::Initial);
            let next = |&node: &u32| Some(dominance.tree.above(node)).filter(|&above| above != NONE);
            let above: Vec<u32> = std::iter::successors(next(&node.0), next).collect();
            let above = above.iter().filter_map(|&above| chosen.iter().find(|(chosen, _)| chosen.0 == above));
            for (_, more) in above {
                assert!(retained <= more / 2, "{retained} in {more}");
            }
        }
    }
}
