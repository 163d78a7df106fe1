//! Joins partial tables of an artifact, which are written as the program loads its classes.

use rustc_hash::FxHashMap;

use crate::gaps::{Counts, Gaps, Kind};
use crate::table::NamesTable;

impl NamesTable {
    /// Merges tables that are parts of the same artifact; all others stay as they are and in their order.
    pub fn join(tables: Vec<NamesTable>) -> Vec<NamesTable> {
        let mut groups: FxHashMap<(u64, u32), usize> = FxHashMap::default();
        let mut joined: Vec<Vec<NamesTable>> = Vec::new();
        for table in tables {
            let group = *groups.entry((table.artifact.hash, table.artifact.base)).or_insert(joined.len());
            match joined.get_mut(group) {
                None => joined.push(vec![table]),
                // A complete table makes the others redundant.
                Some(parts) if parts[0].gaps.is_none() => {}
                Some(parts) if table.gaps.is_none() => *parts = vec![table],
                Some(parts) => parts.push(table),
            }
        }
        joined.into_iter().map(of_parts).collect()
    }
}

fn of_parts(mut parts: Vec<NamesTable>) -> NamesTable {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return only;
    }
    // The classes in the order of their ids, without duplicates.
    let mut classes: Vec<(Counts, usize, u32)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        classes.extend((0..part.classes.len() as u32).map(|index| (part.first_offsets(index), at, index)));
    }
    classes.sort_by_key(|(first, ..)| first[Kind::Class]);
    classes.dedup_by_key(|(first, ..)| first[Kind::Class]);
    let sizes = parts[0].sizes();
    let mut table = NamesTable::new(parts[0].artifact.clone());
    let mut gaps = Gaps::new(sizes);
    let mut next = Counts::default();
    let mut known = vec![FxHashMap::default(); parts.len()];
    for (first, part, index) in classes {
        // Parts in a damaged trace may contradict each other.
        if !first.reaches(&next) {
            continue;
        }
        let before = table.counts();
        gaps.push(first, before);
        table.push_of(&parts[part], index, &mut known[part]);
        let after = table.counts();
        (0..5).for_each(|kind| next.0[kind] = first.0[kind] + (after.0[kind] - before.0[kind]));
    }
    table.gaps = Some(gaps).filter(|_| table.counts() != sizes);
    table
}
