//! Which objects outlive the method that allocated them, which are seen by other threads, and where they die (escape analysis as it
//! really went: Choi et al., OOPSLA 1999). What does neither could live on the stack.

use std::cmp::Reverse;
use std::fmt::Write;
use std::io;

use et_names::MethodId;
use et_names::units::{bytes, counted, number, percent};
use et_reader::made_in::MadeIn;
use et_reader::model::{ContextId, Contexts};
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

/// Result: how far objects escape.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Escape {
    /// Objects by how far they get.
    #[serde(flatten)]
    pub reach: Reach,
    /// Sites by bytes that escape neither.
    pub sites: Vec<SiteLine>,
    /// Number of sites.
    pub site_count: usize,
}

/// Objects by how far they get.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    /// All that were allocated while tracing was on.
    pub allocated: Amount,
    /// Those that die no later than the method returns that allocated them, and that no other thread mentions.
    pub captured: Amount,
    /// Those that outlive that method, in their thread.
    pub escaped_frame: Amount,
    /// Those that another thread mentions.
    pub escaped_thread: Amount,
    /// Objects allocated while no method with hooks was running, or by an unknown thread; and those alive at the end in
    /// a method that is still running.
    pub unknown: Amount,
}

/// The objects of a site.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteLine {
    #[serde(flatten)]
    pub place: Place,
    /// How far they escape.
    #[serde(flatten)]
    pub reach: Reach,
    /// In which method they die: the innermost of those that were running when they were allocated and still are.
    pub dies_in: Option<DiesIn>,
}

/// The method in which most of a site's objects die.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiesIn {
    pub method: String,
    /// How many calls above the one that allocated them; the least of these objects.
    pub levels_up: u32,
    /// Number of objects that die there.
    pub objects: u64,
}

#[derive(Default)]
struct Tally {
    reach: Reach,
    /// Objects that die in a method, and the fewest calls between.
    dies_in: FxHashMap<MethodId, (u64, u32)>,
}

type Sites = FxHashMap<Spot, Tally>;

impl Tally {
    fn merge(&mut self, other: Self) {
        self.reach.merge(&other.reach);
        for (method, (objects, above)) in other.dies_in {
            let entry = self.dies_in.entry(method).or_insert((0, u32::MAX));
            *entry = (entry.0 + objects, entry.1.min(above));
        }
    }
}

/// The innermost context that both are in or below.
fn common(contexts: &Contexts, mut one: ContextId, mut other: ContextId) -> ContextId {
    // Callers have lower numbers than those they call.
    while one != other {
        if one > other {
            one = contexts.get(one).caller;
        } else {
            other = contexts.get(other).caller;
        }
    }
    one
}

impl Reach {
    fn add(&mut self, size: u64, frame: Option<bool>, thread: Option<bool>) {
        self.allocated.add(size);
        match (frame, thread) {
            (_, Some(true)) => self.escaped_thread.add(size),
            (Some(true), _) => self.escaped_frame.add(size),
            (Some(false), Some(false)) => self.captured.add(size),
            _ => self.unknown.add(size),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.captured += other.captured;
        self.escaped_frame += other.escaped_frame;
        self.escaped_thread += other.escaped_thread;
        self.unknown += other.unknown;
    }
}

/// Counts; `top` sites are listed.
pub fn escape(population: &Population, labels: Labels<'_>, top: usize) -> io::Result<Escape> {
    let columns = Spot::columns()
        | Columns::SIZE
        | Columns::THREAD
        | Columns::DEATH_THREAD
        | Columns::DEATH_CONTEXT
        | Columns::ESCAPED_FRAME
        | Columns::ESCAPED_THREAD;
    let contexts = &population.contexts;
    let each = |sites: &mut Sites, rows: &Rows| {
        // Objects that die together were often allocated together.
        let mut last = None;
        for row in 0..rows.len {
            if rows.kind[row] == AllocKind::Initial {
                continue;
            }
            let tally = sites.entry(Spot::of(rows, row)).or_default();
            // An object that is alive in a method that is still running may yet outlive it.
            let frame = rows.escaped_frame[row].filter(|escaped| *escaped || rows.death_thread[row].is_some());
            tally.reach.add(rows.size[row], frame, rows.escaped_thread[row]);
            let Some(died) = rows.death_context[row].filter(|_| rows.death_thread[row] == Some(rows.thread[row]))
            else {
                continue;
            };
            let born = rows.context[row];
            let at = match last {
                Some((pair, at)) if pair == (born, died) => at,
                _ => common(contexts, born, died),
            };
            last = Some(((born, died), at));
            if at != ContextId::EMPTY {
                let above = contexts.get(born).depth - contexts.get(at).depth;
                let entry = tally.dies_in.entry(contexts.get(at).method).or_insert((0, u32::MAX));
                *entry = (entry.0 + 1, entry.1.min(above));
            }
        }
    };
    let merge = |mut one: Sites, other: Sites| {
        other.into_iter().for_each(|(key, tally)| one.entry(key).or_default().merge(tally));
        one
    };
    let sites = fold(population, columns, Sites::default, each, merge)?;
    let sites = by_place(sites, population, labels.naming(), Tally::merge);
    let mut reach = Reach::default();
    sites.values().for_each(|tally| reach.merge(&tally.reach));
    let site_count = sites.len();
    let mut sites: Vec<_> = sites.into_iter().collect();
    sites.sort_unstable_by_key(|(key, Tally { reach, .. })| {
        (Reverse((reach.captured.bytes, reach.allocated.bytes)), *key)
    });
    sites.truncate(top);
    let line = |(place, tally): ((MadeIn, TypeId), Tally)| {
        let most = tally.dies_in.iter().max_by_key(|&(method, (objects, _))| (*objects, Reverse(*method)));
        let dies_in =
            most.map(|(&method, &(objects, levels_up))| DiesIn { method: labels.method(method), levels_up, objects });
        SiteLine { place: labels.place(place), reach: tally.reach, dies_in }
    };
    Ok(Escape { reach, sites: sites.into_iter().map(line).collect(), site_count })
}

/// The answer first, then a table.
pub fn render(found: &Escape) -> String {
    let mut out = String::new();
    let Reach { allocated, captured, escaped_frame, escaped_thread, unknown } = found.reach;
    let share = |amount: Amount| format!("{} ({})", bytes(amount.bytes), percent(amount.bytes, allocated.bytes));
    let _ = writeln!(out, "{} allocated {}:", counted(allocated.objects, "object"), bytes(allocated.bytes));
    let mut line = |amount: Amount, what: &str| {
        let _ = writeln!(out, "  {:>22}  {what}", share(amount));
    };
    line(captured, "died with the method that allocated them: they could have lived on the stack");
    line(escaped_frame, "outlived that method, in their thread");
    line(escaped_thread, "were seen by another thread");
    if unknown.objects > 0 {
        line(unknown, "were allocated while no method with hooks ran, or are alive in one that still runs");
    }
    out.push('\n');
    let rows: Vec<Vec<String>> = found
        .sites
        .iter()
        .map(|line| {
            let Reach { allocated, captured, escaped_frame, escaped_thread, .. } = line.reach;
            let part = |amount: Amount| percent(amount.bytes, allocated.bytes);
            let dies_in = line.dies_in.as_ref().map_or_else(String::new, |at| match at.levels_up {
                0 => at.method.clone(),
                1 => format!("{}, 1 call up", at.method),
                levels => format!("{}, {levels} calls up", at.method),
            });
            vec![
                bytes(captured.bytes),
                number(allocated.objects),
                part(captured),
                part(escaped_frame),
                part(escaped_thread),
                line.place.ty.clone(),
                line.place.site.clone(),
                dies_in,
            ]
        })
        .collect();
    let head = ["could be on stack", "objects", "captured", "frame", "thread", "class", "site", "most die in"];
    table(&mut out, 5, &head, &rows);
    more(&mut out, found.site_count, found.sites.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_common_context_is_the_longest_common_prefix(
            one in prop::collection::vec(1..3u32, 0..8), other in prop::collection::vec(1..3u32, 0..8),
        ) {
            let mut contexts = Contexts::default();
            let mut call = |chain: &[u32]| chain.iter().fold(ContextId::EMPTY, |at, &method| contexts.call(at, MethodId(method)));
            let (a, b) = (call(&one), call(&other));
            let length = one.iter().zip(&other).take_while(|(x, y)| x == y).count();
            let prefix = call(&one[..length]);
            prop_assert_eq!(common(&contexts, a, b), prefix);
        }
    }
}
