//! Which objects die together: by pairs of sites, classes or calling contexts (lifetime correlation: Hirzel, Henkel, Diwan, Hind,
//! ISMM 2002). Objects die together if the same record made them unreachable.

use std::cmp::Reverse;
use std::fmt::Write;
use std::io;

use et_names::units::{bytes, counted, number};
use et_reader::made_in::{MadeIn, Means, Places};
use et_reader::population::{Columns, Population, Rows};
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fold::in_order;
use crate::labels::Labels;
use crate::place::Spot;
use crate::table::{more, table};
use et_reader::amount::Amount;

/// How objects are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// By allocation site and class.
    Site,
    /// By class.
    Class,
    /// Calling context of the allocation, with site and class.
    Context,
}

/// Kinds of objects that die together.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Correlation {
    /// How objects were grouped.
    pub by: By,
    /// All objects that died.
    pub died: Amount,
    /// Those of them that did not die alone.
    pub together: Amount,
    /// How often objects died, alone or together.
    pub deaths: u64,
    /// How often more kinds died at a time than are compared with each other: only those with the most bytes were.
    pub cut_groups: u64,
    /// Pairs that were forgotten because there were too many: each had come up least often by then.
    pub forgotten_pairs: u64,
    /// Pairs of different kinds by the bytes that die together.
    pub pairs: Vec<Pair>,
    /// Number of pairs.
    pub pair_count: usize,
}

/// Two groups of objects.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pair {
    /// The first group.
    pub one: Kind,
    /// The second group.
    pub other: Kind,
    /// Bytes of both that died together.
    pub bytes: u64,
}

/// A group in a pair.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    #[serde(rename = "type")]
    pub ty: String,
    /// Its site; none if kinds are classes.
    pub site: Option<String>,
    /// The methods that called the site's, innermost first; none but for contexts.
    pub context: Option<Vec<String>>,
    /// Number of its objects that died.
    pub died: u64,
    /// How many of these died together with one of the other kind at least.
    pub with_other: u64,
}

/// Class, place, context; [`ANYWHERE`] and 0 where they do not count.
type Key = (TypeId, MadeIn, u32);

/// Placeholder for the place if groups do not depend on it.
const ANYWHERE: MadeIn = MadeIn::Nowhere(Means::Native);

/// Kinds that are compared with each other when they die at once.
const KINDS: usize = 32;
/// Pairs that are kept, some 60 bytes each.
const PAIRS: usize = 4_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Together {
    /// Objects of the first kind, and of the second.
    objects: [u64; 2],
    bytes: u64,
}

struct Finder {
    by: By,
    /// The record that makes the current objects unreachable, with its tick.
    at: Option<(u64, Option<u64>, u32)>,
    group: Vec<(Key, Amount)>,
    kinds: FxHashMap<Key, u64>,
    pairs: FxHashMap<(Key, Key), Together>,
    most: usize,
    died: Amount,
    together: Amount,
    deaths: u64,
    cut_groups: u64,
    forgotten_pairs: u64,
}

impl Finder {
    fn new(by: By, most: usize) -> Self {
        Self {
            by,
            at: None,
            group: Vec::new(),
            kinds: FxHashMap::default(),
            pairs: FxHashMap::default(),
            most,
            died: Amount::default(),
            together: Amount::default(),
            deaths: 0,
            cut_groups: 0,
            forgotten_pairs: 0,
        }
    }

    /// `place` says where the object of a row was made; it is asked where that counts.
    fn rows(&mut self, rows: &Rows, mut place: impl FnMut(&Rows, usize) -> MadeIn) {
        for row in 0..rows.len {
            let (Some(tick), Some(thread)) = (rows.death_tick[row], rows.death_thread[row]) else { continue };
            let at = (tick, rows.death_record[row], thread.0);
            if self.at != Some(at) {
                self.close();
                self.at = Some(at);
            }
            let site = if self.by == By::Class { ANYWHERE } else { place(rows, row) };
            let context = if self.by == By::Context { rows.context[row].0 } else { 0 };
            let key = (rows.class[row], site, context);
            self.died.add(rows.size[row]);
            // Kinds are few in most groups, and those of one kind come together.
            match self.group.iter_mut().rev().take(KINDS).find(|(known, _)| *known == key) {
                Some((_, amount)) => amount.add(rows.size[row]),
                None => self.group.push((key, Amount { objects: 1, bytes: rows.size[row] })),
            }
        }
    }

    /// All that died there is known.
    fn close(&mut self) {
        if self.group.is_empty() {
            return;
        }
        self.deaths += 1;
        let mut group = std::mem::take(&mut self.group);
        group.sort_unstable_by_key(|(key, _)| *key);
        group.dedup_by(|(key, more), (known, amount)| {
            let is_same = key == known;
            if is_same {
                *amount += *more;
            }
            is_same
        });
        let mut all = Amount::default();
        for (key, amount) in &group {
            *self.kinds.entry(*key).or_default() += amount.objects;
            all += *amount;
        }
        if all.objects > 1 {
            self.together += all;
        }
        if group.len() > KINDS {
            self.cut_groups += 1;
            group.sort_unstable_by_key(|(key, amount)| (Reverse(amount.bytes), *key));
            group.truncate(KINDS);
            group.sort_unstable_by_key(|(key, _)| *key);
        }
        for (index, (one, of_one)) in group.iter().enumerate() {
            for (other, of_other) in &group[index + 1..] {
                let pair = self.pairs.entry((*one, *other)).or_default();
                pair.objects[0] += of_one.objects;
                pair.objects[1] += of_other.objects;
                pair.bytes += of_one.bytes + of_other.bytes;
            }
        }
        if self.pairs.len() > self.most {
            self.forget();
        }
        group.clear();
        self.group = group;
    }

    /// Makes room: the half that came up least goes.
    fn forget(&mut self) {
        let mut sizes: Vec<u64> = self.pairs.values().map(|pair| pair.bytes).collect();
        let middle = sizes.len() / 2;
        let least = *sizes.select_nth_unstable(middle).1;
        let before = self.pairs.len();
        self.pairs.retain(|_, pair| pair.bytes > least);
        self.forgotten_pairs += (before - self.pairs.len()) as u64;
    }
}

/// Finds out; `top` pairs are listed.
pub fn correlation(population: &Population, labels: Labels<'_>, by: By, top: usize) -> io::Result<Correlation> {
    let mut columns =
        Columns::CLASS | Columns::SIZE | Columns::DEATH_TICK | Columns::DEATH_THREAD | Columns::DEATH_RECORD;
    if by != By::Class {
        columns = columns | Spot::columns();
    }
    let mut finder = Finder::new(by, PAIRS);
    let mut places = Places::new(labels.naming());
    let mut place = |rows: &Rows, row: usize| Spot::of(rows, row).place(&mut places, population).0;
    in_order(population, columns, |rows| finder.rows(rows, &mut place))?;
    finder.close();
    let pair_count = finder.pairs.len();
    let mut pairs: Vec<_> = finder.pairs.iter().map(|(keys, pair)| (*keys, *pair)).collect();
    let key = |((one, other), pair): &((Key, Key), Together)| (Reverse(pair.bytes), *one, *other);
    if pairs.len() > top {
        pairs.select_nth_unstable_by_key(top, key);
        pairs.truncate(top);
    }
    pairs.sort_unstable_by_key(key);
    let kind = |key: Key, with_other: u64| {
        let (class, site, context) = key;
        let callers = || {
            let methods = population.contexts.methods(et_reader::model::ContextId(context));
            methods.skip(1).map(|method| labels.method(method)).collect()
        };
        Kind {
            ty: labels.class(class),
            site: (by != By::Class).then(|| labels.made_in(site)),
            context: (by == By::Context).then(callers),
            died: finder.kinds.get(&key).copied().unwrap_or(0),
            with_other,
        }
    };
    let pair = |((one, other), together): ((Key, Key), Together)| Pair {
        one: kind(one, together.objects[0]),
        other: kind(other, together.objects[1]),
        bytes: together.bytes,
    };
    let pairs = pairs.into_iter().map(pair).collect();
    let Finder { died, together, deaths, cut_groups, forgotten_pairs, .. } = finder;
    Ok(Correlation { by, died, together, deaths, cut_groups, forgotten_pairs, pairs, pair_count })
}

/// The answer first, then a table.
pub fn render(found: &Correlation) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} died, {} of them together with others; {} died at a time on average.",
        counted(found.died.objects, "object"),
        number(found.together.objects),
        match found.deaths {
            0 => "none".to_owned(),
            deaths => format!("{:.1}", found.died.objects as f64 / deaths as f64),
        }
    );
    if found.cut_groups > 0 {
        let _ = writeln!(
            out,
            "{} more than {KINDS} kinds died at once: of those only the {KINDS} with the most bytes were compared.",
            if found.cut_groups == 1 { "Once".to_owned() } else { format!("{} times", number(found.cut_groups)) }
        );
    }
    if found.forgotten_pairs > 0 {
        let _ = writeln!(
            out,
            "There were too many pairs to keep: {} with few bytes were forgotten.",
            counted(found.forgotten_pairs, "pair")
        );
    }
    if found.pairs.is_empty() {
        return out + "No objects of different kinds died together.\n";
    }
    out.push('\n');
    let share = |kind: &Kind| format!("{:.0} %", kind.with_other as f64 * 100.0 / kind.died.max(1) as f64);
    let name = |kind: &Kind| {
        let mut text = kind.ty.clone();
        if let Some(site) = &kind.site {
            let _ = write!(text, " at {site}");
        }
        for caller in kind.context.iter().flatten().take(3) {
            let _ = write!(text, " < {caller}");
        }
        text
    };
    let rows: Vec<Vec<String>> = found
        .pairs
        .iter()
        .map(|Pair { one, other, bytes: together }| {
            vec![bytes(*together), share(one), share(other), name(one), name(other)]
        })
        .collect();
    table(&mut out, 3, &["together", "of one", "of other", "one", "other"], &rows);
    more(&mut out, found.pair_count, found.pairs.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_reader::record::ThreadId;
    use proptest::prelude::*;

    fn rows(deaths: &[(u64, u32)]) -> Rows {
        Rows {
            len: deaths.len(),
            class: deaths.iter().map(|(_, class)| TypeId(*class)).collect(),
            size: vec![8; deaths.len()],
            death_tick: deaths.iter().map(|(at, _)| Some(*at)).collect(),
            death_thread: vec![Some(ThreadId(1)); deaths.len()],
            death_record: deaths.iter().map(|(at, _)| Some(*at)).collect(),
            ..Rows::default()
        }
    }

    proptest! {
        /// For each pair of classes: objects for which there is one of the other class with the same death.
        #[test]
        fn pairs_are_those_of_each_death(mut deaths in prop::collection::vec((0..6u64, 1..5u32), 0..60), cut in 0..60usize) {
            deaths.sort_by_key(|(at, _)| *at);
            let mut finder = Finder::new(By::Class, PAIRS);
            // A death may go over the end of a group of rows.
            let (before, after) = deaths.split_at(cut.min(deaths.len()));
            finder.rows(&rows(before), |_, _| ANYWHERE);
            finder.rows(&rows(after), |_, _| ANYWHERE);
            finder.close();
            for one in 1..5u32 {
                for other in one + 1..5 {
                    let with = |mine: u32, others: u32| {
                        deaths.iter().filter(|(at, class)| *class == mine && deaths.contains(&(*at, others))).count() as u64
                    };
                    let expected = [with(one, other), with(other, one)];
                    let key = |class| (TypeId(class), ANYWHERE, 0);
                    let found = finder.pairs.get(&(key(one), key(other))).copied().unwrap_or_default();
                    prop_assert_eq!(found.objects, expected);
                    prop_assert_eq!(found.bytes, 8 * (expected[0] + expected[1]));
                }
            }
            let alone = deaths.iter().filter(|(at, _)| deaths.iter().filter(|(other, _)| other == at).count() == 1).count();
            prop_assert_eq!(finder.together.objects, (deaths.len() - alone) as u64);
        }
    }

    #[test]
    fn what_comes_up_least_is_forgotten_and_counted() {
        let mut finder = Finder::new(By::Class, 10);
        let mut deaths = Vec::new();
        for at in 0..30u64 {
            deaths.extend([(at, 1), (at, 2), (at, 100 + at as u32)]);
        }
        finder.rows(&rows(&deaths), |_, _| ANYWHERE);
        finder.close();
        assert!(finder.pairs.len() <= 11 && finder.forgotten_pairs > 0);
        let key = |class| (TypeId(class), ANYWHERE, 0);
        assert_eq!(finder.pairs[&(key(1), key(2))].objects, [30, 30]);
    }
}
