//! What may be held only by local variables of methods running at the end (`docs/semantics.md`, "Alive at the end").
//!
//! Local variables leave no records, so an object held by one dies at its last mention. If the method that last used it
//! is still running at the end of the trace, it may still be there. A method that allocates one object after the other
//! in a loop holds the last of them: so for each running method only the last one counts of those that were made in one
//! place for one caller, with all that died with it.
//!
//! The result depends neither on the order in which the deaths of one record are found, nor on when a frame is found to
//! have returned: both differ between reading by records and by blocks.

use std::hash::Hash;

use et_names::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::HeldByLocal;
use crate::amount::Amount;
use crate::attribution::Origins;
use crate::model::FrameRef;

/// Obsolete entries are first removed when there are this many.
const TIDY_AT: usize = if cfg!(test) { 4 } else { 1024 };

/// Objects of one kind, used by one frame, that died with the same record.
#[derive(Clone, Copy, Debug)]
struct InHand<K> {
    record: u64,
    frame: FrameRef,
    kind: K,
    /// Allocation number of the oldest.
    oldest: u64,
    amount: Amount,
}

/// Objects that died while a frame that had used them was still active, and what died with them. `K` identifies a kind
/// of object.
#[derive(Debug)]
pub(crate) struct Held<K> {
    entries: Vec<InHand<K>>,
    /// For each frame and kind, the index of its latest entry.
    last: FxHashMap<(FrameRef, K), usize>,
    /// What else died with the record of an entry.
    others: Vec<(u64, Amount)>,
    /// Number of the record of the last death, and what died with it that no active frame had used.
    record: u64,
    other: Amount,
    /// The last record of all. Deaths found late have an earlier one.
    newest: u64,
    tidy_at: usize,
}

impl<K> Default for Held<K> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            last: FxHashMap::default(),
            others: Vec::new(),
            record: 0,
            other: Amount::default(),
            newest: 0,
            tidy_at: TIDY_AT,
        }
    }
}

/// An object that has died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dead<K> {
    /// Number of the record after which it died.
    pub record: u64,
    pub kind: K,
    /// Number of its allocation.
    pub number: u64,
    pub bytes: u64,
    /// The frame that had used it, unless that has returned.
    pub holder: Option<FrameRef>,
}

impl<K: Copy + Eq + Hash> Held<K> {
    /// An object died. Those that die with one record come one after the other, in any order.
    pub fn died(&mut self, dead: &Dead<K>) {
        if dead.record != self.record {
            self.end_of_record();
            self.record = dead.record;
            self.newest = self.newest.max(dead.record);
        }
        let Some(frame) = dead.holder else { return self.other.add(dead.bytes) };
        let new = self.entries.len();
        let last = self.last.entry((frame, dead.kind)).or_insert(new);
        match self.entries.get_mut(*last) {
            Some(entry) if entry.record == dead.record => {
                entry.oldest = entry.oldest.min(dead.number);
                return entry.amount.add(dead.bytes);
            }
            // Found late: a later one has its place already.
            Some(entry) if entry.record > dead.record => {}
            _ => *last = new,
        }
        let amount = Amount { objects: 1, bytes: dead.bytes };
        self.entries.push(InHand { record: dead.record, frame, kind: dead.kind, oldest: dead.number, amount });
    }

    fn end_of_record(&mut self) {
        let other = std::mem::take(&mut self.other);
        // Of what is found late, the entry may be anywhere.
        let is_late = self.record < self.newest;
        if other.objects > 0 && (is_late || self.entries.last().is_some_and(|last| last.record == self.record)) {
            self.others.push((self.record, other));
        }
    }

    /// Removes obsolete entries once enough have accumulated. What stays are the records with the latest entry of some
    /// active frame and kind, with all that died with them.
    pub fn tidy(&mut self, runs: impl Fn(FrameRef) -> bool) {
        if self.entries.len() + self.others.len() < self.tidy_at {
            return;
        }
        let last = self.last.iter().filter(|((frame, _), _)| runs(*frame)).map(|(_, at)| self.entries[*at].record);
        // More may die with the last record.
        let matters: FxHashSet<u64> = last.chain([self.record]).collect();
        self.entries.retain(|entry| matters.contains(&entry.record));
        self.others.retain(|(record, _)| matters.contains(record));
        self.last.clear();
        for (at, entry) in self.entries.iter().enumerate() {
            let last = self.last.entry((entry.frame, entry.kind)).or_insert(at);
            if self.entries[*last].record < entry.record {
                *last = at;
            }
        }
        self.tidy_at = ((self.entries.len() + self.others.len()) * 2).max(TIDY_AT);
    }

    /// What methods that are still active at the end had used.
    pub fn at_end(mut self, running: impl Fn(FrameRef) -> Option<MethodId>) -> Vec<Candidate<K>> {
        self.end_of_record();
        let mut others: FxHashMap<u64, Amount> = FxHashMap::default();
        self.others.iter().for_each(|(record, other)| *others.entry(*record).or_default() += *other);
        let mut all: Vec<Candidate<K>> = Vec::new();
        // Containers are older than what they contain: of the objects that died with a record, the oldest one in use is
        // taken to have held the others. Objects used only by frames that have returned count among the others.
        let mut oldest: FxHashMap<u64, (u64, usize)> = FxHashMap::default();
        for &InHand { record, frame, kind, oldest: number, amount } in &self.entries {
            let Some(method) = running(frame) else {
                *others.entry(record).or_default() += amount;
                continue;
            };
            let known = oldest.entry(record).or_insert((number, all.len()));
            *known = (*known).min((number, all.len()));
            all.push(Candidate { record, frame, method, kind, amount });
        }
        for (record, (_, at)) in oldest {
            all[at].amount += others.remove(&record).unwrap_or_default();
        }
        all
    }
}

/// What a method active at the end may hold in a local variable, unless it later used another object of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate<K> {
    /// Number of the record after which it died.
    record: u64,
    frame: FrameRef,
    method: MethodId,
    kind: K,
    amount: Amount,
}

/// Only the last of those with the same origins counts, in each frame.
pub(crate) fn by_origins<K>(candidates: &[Candidate<K>], mut origins: impl FnMut(&K) -> Origins) -> Vec<HeldByLocal> {
    let mut last: FxHashMap<(FrameRef, Origins), (u64, MethodId, Amount)> = FxHashMap::default();
    for Candidate { record, frame, method, kind, amount } in candidates {
        let (known, _, sum) = last.entry((*frame, origins(kind))).or_insert((*record, *method, Amount::default()));
        if *known < *record {
            (*known, *sum) = (*record, Amount::default());
        }
        // Two of a kind that die at once may both be held.
        if *known == *record {
            *sum += *amount;
        }
    }
    let mut sums: FxHashMap<_, Amount> = FxHashMap::default();
    for ((_, Origins { made_in, ty, .. }), (_, method, amount)) in last {
        // Threads that do the same are one.
        *sums.entry((method, made_in, ty)).or_default() += amount;
    }
    let line = |((method, made_in, ty), Amount { objects, bytes })| HeldByLocal { method, made_in, ty, objects, bytes };
    let mut all: Vec<HeldByLocal> = sums.into_iter().map(line).collect();
    all.sort_unstable_by_key(|held| (held.method, held.made_in, held.ty));
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::made_in::{MadeIn, Means};
    use crate::record::ThreadId;
    use crate::types::TypeId;

    /// Frame 1 is that of method 1, and so on.
    fn frame(of: u32) -> FrameRef {
        FrameRef { thread: ThreadId(1), depth: of, serial: of.into() }
    }

    fn running(frame: FrameRef) -> Option<MethodId> {
        (frame.depth < 3).then_some(MethodId(frame.depth))
    }

    fn origins(of: &u32) -> Origins {
        Origins { made_in: MadeIn::Nowhere(Means::Initial), caller: MethodId(0), ty: TypeId(*of / 2) }
    }

    fn dead(record: u64, kind: u32, number: u64, bytes: u64, holder: Option<u32>) -> Dead<u32> {
        Dead { record, kind, number, bytes, holder: holder.map(frame) }
    }

    /// Method, type, objects, bytes.
    fn lines(held: Held<u32>) -> Vec<(u32, u32, u64, u64)> {
        let lines = by_origins(&held.at_end(running), origins);
        lines.iter().map(|held| (held.method.0, held.ty.0, held.objects, held.bytes)).collect()
    }

    #[test]
    fn the_last_of_a_kind_counts_with_what_it_held() {
        let mut held = Held::default();
        // A request, and another: the first is gone from the variable.
        held.died(&dead(1, 0, 0, 16, Some(1)));
        held.died(&dead(2, 1, 1, 24, Some(1)));
        // The cache with two pages, which no method had used, and a third that was made by one that has ended.
        held.died(&dead(3, 4, 4, 100, None));
        held.died(&dead(3, 2, 3, 32, Some(1)));
        held.died(&dead(3, 4, 5, 100, None));
        held.died(&dead(3, 4, 6, 100, Some(3)));
        // Used by no method and held by nothing.
        held.died(&dead(4, 6, 7, 1000, None));
        held.died(&dead(5, 6, 8, 8, Some(3)));
        assert_eq!(lines(held), [(1, 0, 1, 24), (1, 1, 4, 332)]);
    }

    #[test]
    fn the_oldest_in_hand_held_the_others_even_if_it_is_there_no_more() {
        let mut held = Held::default();
        held.died(&dead(1, 2, 8, 16, Some(2)));
        held.died(&dead(1, 0, 7, 8, Some(1)));
        held.died(&dead(1, 4, 9, 100, None));
        held.died(&dead(2, 0, 10, 4, Some(1)));
        assert_eq!(lines(held), [(1, 0, 1, 4), (2, 1, 1, 16)]);
    }

    #[test]
    fn what_died_with_it_may_be_found_late() {
        let mut held = Held::default();
        held.died(&dead(1, 0, 0, 16, Some(1)));
        held.died(&dead(2, 2, 1, 24, Some(1)));
        held.died(&dead(1, 4, 2, 100, None));
        // Nothing of interest died with it.
        held.died(&dead(0, 4, 3, 1000, None));
        assert_eq!(lines(held), [(1, 0, 2, 116), (1, 1, 1, 24)]);
    }

    proptest! {
        /// Nor does it matter when `tidy` runs, or which frames are known to have returned by then.
        #[test]
        fn order_within_a_record_does_not_matter(
            deaths in prop::collection::vec((0..6u64, 0..6u32, prop::option::of(0..5u32)), 0..40)
                .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
            tidy_every in 1..10usize,
        ) {
            let in_order = |mut all: Vec<(u64, u32, Option<u32>)>| {
                all.sort_by_key(|(record, ..)| *record);
                all
            };
            // Numbers follow from what they are, so that both have the same objects.
            let number = |record: u64, kind: u32, holder: Option<u32>| {
                record * 100 + u64::from(kind) * 10 + holder.map_or(9, u64::from)
            };
            let (mut once, mut tidied) = (Held::default(), Held::default());
            for (record, kind, holder) in in_order(deaths.0) {
                once.died(&dead(record, kind, number(record, kind, holder), 1, holder));
            }
            tidied.tidy_at = 0;
            for (at, (record, kind, holder)) in in_order(deaths.1).into_iter().enumerate() {
                // It may be known already that a frame has ended.
                let known = holder.filter(|&of| of < 3 || at % 2 == 0);
                tidied.died(&dead(record, kind, number(record, kind, holder), 1, known));
                if at % tidy_every == 0 {
                    tidied.tidy_at = 0;
                    tidied.tidy(|frame| frame.depth < 4);
                }
            }
            prop_assert_eq!(lines(once), lines(tidied));
        }
    }
}
