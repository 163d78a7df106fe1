//! Which sites' objects survive nursery collections: what a generational collector could allocate directly in the old
//! generation (pretenuring: Cheng, Harper, Lee, PLDI 1998; Blackburn et al., TOPLAS 2007).
//!
//! A nursery of N bytes is collected whenever N bytes have been allocated since the last collection. An object survives
//! if it is alive at the first collection after its birth.

use std::cmp::Reverse;
use std::fmt::Write;
use std::io;

use et_names::units::{bytes, counted, number, percent};
use et_reader::made_in::MadeIn;
use et_reader::population::{Columns, Population, Rows};
use et_reader::record::AllocKind;
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fold::fold;
use crate::labels::{Labels, Place};
use crate::place::{Spot, by_place};
use crate::table::{more, table};
use et_reader::amount::Amount;

/// Result: how much survives.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pretenuring {
    /// Sizes of the nursery in bytes, smallest first.
    pub nurseries: Vec<u64>,
    /// Everything that was allocated.
    pub allocated: Amount,
    /// How much of it survives, for each nursery size.
    pub survived: Vec<Amount>,
    /// Collections of each nursery.
    pub collections: Vec<u64>,
    /// Sites by bytes that survive the smallest nursery.
    pub sites: Vec<SiteLine>,
    /// Number of sites.
    pub site_count: usize,
}

/// The result for a site.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteLine {
    #[serde(flatten)]
    pub place: Place,
    /// Everything that it allocated.
    pub allocated: Amount,
    /// How much of it survives, for each nursery size.
    pub survived: Vec<Amount>,
    /// Nurseries at which four of five bytes survive: allocating these objects in the old generation saves copying them.
    pub pretenure_at: Vec<u64>,
}

/// Four fifths: below that, pretenuring fills the old generation with what would have died in the nursery.
const WORTH: (u64, u64) = (4, 5);

#[derive(Clone, Default)]
struct Tally {
    allocated: Amount,
    survived: Vec<Amount>,
}

type Sites = FxHashMap<Spot, Tally>;

impl Tally {
    fn merge(&mut self, other: Self) {
        self.allocated += other.allocated;
        self.survived.resize(other.survived.len(), Amount::default());
        self.survived.iter_mut().zip(other.survived).for_each(|(sum, more)| *sum += more);
    }
}

/// Whether an object survives, given what was allocated when it was born (itself included) and when it died, and in all.
fn survives(nursery: u64, born: u64, died: Option<u64>, end: u64) -> bool {
    // An object that fills the nursery up is found by the collection that makes room for the next.
    let collection = born.div_ceil(nursery).saturating_mul(nursery);
    collection <= end && died.is_none_or(|died| died > collection)
}

/// Counts survivors of these nurseries; `top` sites are listed.
pub fn pretenuring(
    population: &Population,
    labels: Labels<'_>,
    mut nurseries: Vec<u64>,
    top: usize,
) -> io::Result<Pretenuring> {
    nurseries.sort_unstable();
    nurseries.dedup();
    nurseries.retain(|&nursery| nursery > 0);
    let columns = Spot::columns() | Columns::SIZE | Columns::BIRTH_BYTES | Columns::DEATH_BYTES;
    let end = population.end.bytes;
    let each = |sites: &mut Sites, rows: &Rows| {
        for row in 0..rows.len {
            if rows.kind[row] == AllocKind::Initial {
                continue;
            }
            let tally = sites.entry(Spot::of(rows, row)).or_default();
            tally.survived.resize(nurseries.len(), Amount::default());
            tally.allocated.add(rows.size[row]);
            for (&nursery, survived) in nurseries.iter().zip(&mut tally.survived) {
                if survives(nursery, rows.birth_bytes[row], rows.death_bytes[row], end) {
                    survived.add(rows.size[row]);
                }
            }
        }
    };
    let merge = |mut one: Sites, other: Sites| {
        other.into_iter().for_each(|(key, tally)| one.entry(key).or_default().merge(tally));
        one
    };
    let sites = fold(population, columns, Sites::default, each, merge)?;
    let sites = by_place(sites, population, labels.naming(), Tally::merge);
    let mut allocated = Amount::default();
    let mut survived = vec![Amount::default(); nurseries.len()];
    for tally in sites.values() {
        allocated += tally.allocated;
        survived.iter_mut().zip(&tally.survived).for_each(|(sum, more)| *sum += *more);
    }
    let site_count = sites.len();
    let mut sites: Vec<_> = sites.into_iter().collect();
    sites.sort_unstable_by_key(|(key, tally)| {
        let survived = tally.survived.first().copied().unwrap_or_default();
        (Reverse((survived.bytes, survived.objects, tally.allocated.bytes)), *key)
    });
    sites.truncate(top);
    let line = |(place, tally): ((MadeIn, TypeId), Tally)| {
        let is_worth = |survived: &Amount| {
            survived.objects > 0
                && u128::from(survived.bytes) * u128::from(WORTH.1)
                    >= u128::from(tally.allocated.bytes) * u128::from(WORTH.0)
        };
        let worth = nurseries.iter().zip(&tally.survived).filter(|(_, survived)| is_worth(survived));
        SiteLine {
            place: labels.place(place),
            allocated: tally.allocated,
            pretenure_at: worth.map(|(&nursery, _)| nursery).collect(),
            survived: tally.survived,
        }
    };
    let sites = sites.into_iter().map(line).collect();
    let collections = nurseries.iter().map(|nursery| end / nursery).collect();
    Ok(Pretenuring { nurseries, allocated, survived, collections, sites, site_count })
}

/// The answer first, then a table.
pub fn render(found: &Pretenuring) -> String {
    let mut out = String::new();
    for ((&nursery, survived), &collections) in found.nurseries.iter().zip(&found.survived).zip(&found.collections) {
        let _ = writeln!(
            out,
            "A nursery of {} would be collected {} and copy {} ({} of what was allocated).",
            bytes(nursery),
            if collections == 1 { "once".to_owned() } else { format!("{} times", number(collections)) },
            bytes(survived.bytes),
            percent(survived.bytes, found.allocated.bytes)
        );
    }
    let worth = found.sites.iter().filter(|line| !line.pretenure_at.is_empty()).count();
    if found.sites.is_empty() {
        return out + "No object was allocated.\n";
    }
    let _ = writeln!(
        out,
        "Of the {} below, {} worth allocating in the old generation (*): four of five bytes survive there.\n",
        counted(found.sites.len() as u64, "site"),
        if worth == 1 { "1 is".to_owned() } else { format!("{worth} are") }
    );
    let mut head = vec!["allocated".to_owned(), "objects".to_owned()];
    head.extend(found.nurseries.iter().map(|&nursery| format!("survives {}", bytes(nursery))));
    head.extend(["class".to_owned(), "site".to_owned()]);
    let rows: Vec<Vec<String>> = found
        .sites
        .iter()
        .map(|line| {
            let mut row = vec![bytes(line.allocated.bytes), number(line.allocated.objects)];
            row.extend(found.nurseries.iter().zip(&line.survived).map(|(nursery, survived)| {
                let mark = if line.pretenure_at.contains(nursery) { "*" } else { " " };
                format!("{}{mark}", percent(survived.bytes, line.allocated.bytes))
            }));
            row.extend([line.place.ty.clone(), line.place.site.clone()]);
            row
        })
        .collect();
    let heads: Vec<&str> = head.iter().map(String::as_str).collect();
    table(&mut out, heads.len() - 2, &heads, &rows);
    more(&mut out, found.site_count, found.sites.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A nursery that is filled byte by byte.
        #[test]
        fn an_object_survives_if_it_is_alive_when_the_nursery_is_full(
            nursery in 1..50u64, sizes in prop::collection::vec(1..20u64, 1..30), lives in prop::collection::vec(0..200u64, 30),
        ) {
            let end: u64 = sizes.iter().sum();
            let mut born = 0;
            for (&size, &life) in sizes.iter().zip(&lives) {
                born += size;
                let died = (life < 150).then_some(born + life).filter(|&died| died <= end);
                // Collected when the byte with that number was allocated.
                let collections = (1..).map(|n| n * nursery).take_while(|&at| at <= end);
                let first = collections.into_iter().find(|&at| at >= born);
                let expected = first.is_some_and(|at| died.is_none_or(|died| died > at));
                prop_assert_eq!(survives(nursery, born, died, end), expected);
            }
        }
    }
}
