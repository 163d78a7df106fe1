//! What may be held only by local variables of methods running at the end (`docs/semantics.md`, "Alive at the end").
//!
//! Local variables leave no records, so an object held by one dies at its last mention. If the method that last used it
//! is still running at the end of the trace, it may still be there. A method that allocates one object after the other
//! in a loop holds the last of them: so for each running method only the last one counts of those that were made in one
//! place for one caller, with all that died with it.
//!
//! The result does not depend on the order in which the deaths of a step are found, nor on when it is known that a
//! frame has ended: both differ between reading in order and by blocks.

use std::hash::Hash;

use et_names::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::HeldByLocal;
use crate::amount::Amount;
use crate::attribution::Origins;
use crate::model::FrameRef;

/// Number of entries at which those are first removed that no longer matter.
const TIDY_AT: usize = 1024;

/// What died with one record of what a frame had in hand, of one kind.
#[derive(Clone, Copy, Debug)]
struct InHand<K> {
    record: u64,
    frame: FrameRef,
    kind: K,
    /// Number of the first of them to be made.
    oldest: u64,
    amount: Amount,
}

/// Objects that died while a frame was running that had had them in hand, and what died with them. `K` tells kinds of
/// objects apart.
#[derive(Debug)]
pub(crate) struct Held<K> {
    entries: Vec<InHand<K>>,
    /// Of each frame and kind the entry with the last record.
    last: FxHashMap<(FrameRef, K), usize>,
    /// What else died with the record of an entry.
    others: Vec<(u64, Amount)>,
    /// Number of the record of the last death, and what died with it that no frame had in hand.
    record: u64,
    other: Amount,
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
    /// The frame that had it in hand, unless it has ended.
    pub holder: Option<FrameRef>,
}

impl<K: Copy + Eq + Hash> Held<K> {
    /// An object died. Those that die with one record come one after the other, in any order.
    pub fn died(&mut self, dead: &Dead<K>) {
        if dead.record != self.record {
            self.end_of_record();
            self.record = dead.record;
        }
        let Some(frame) = dead.holder else { return self.other.add(dead.bytes) };
        let key = (frame, dead.kind);
        let known = self.last.get(&key).map(|&at| (at, self.entries[at].record));
        if let Some((at, _)) = known.filter(|(_, record)| *record == dead.record) {
            let entry = &mut self.entries[at];
            entry.oldest = entry.oldest.min(dead.number);
            return entry.amount.add(dead.bytes);
        }
        if known.is_none_or(|(_, record)| record < dead.record) {
            self.last.insert(key, self.entries.len());
        }
        let amount = Amount { objects: 1, bytes: dead.bytes };
        self.entries.push(InHand { record: dead.record, frame, kind: dead.kind, oldest: dead.number, amount });
    }

    fn end_of_record(&mut self) {
        let other = std::mem::take(&mut self.other);
        if other.objects > 0 && self.entries.last().is_some_and(|last| last.record == self.record) {
            self.others.push((self.record, other));
        }
    }

    /// Removes what no longer matters, if there is much.
    pub fn tidy(&mut self, runs: impl Fn(FrameRef) -> bool) {
        if self.entries.len() < self.tidy_at {
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
        self.tidy_at = (self.entries.len() * 2).max(TIDY_AT);
    }

    /// What methods had in hand that run at the end.
    pub fn at_end(mut self, running: impl Fn(FrameRef) -> Option<MethodId>) -> Vec<Candidate<K>> {
        self.end_of_record();
        let mut others: FxHashMap<u64, Amount> = FxHashMap::default();
        self.others.iter().for_each(|(record, other)| *others.entry(*record).or_default() += *other);
        let mut all: Vec<Candidate<K>> = Vec::new();
        // Containers are older than what they contain: with a record, the oldest object in hand counts as what held the
        // others. What a frame had in hand that has ended is no longer in hand.
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

/// What a method may hold in a local variable that runs at the end, if it had nothing of the kind in hand later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate<K> {
    /// Number of the record after which it died.
    record: u64,
    frame: FrameRef,
    method: MethodId,
    pub kind: K,
    amount: Amount,
}

/// Only the last of those with the same origins counts, in each frame.
pub(crate) fn by_origins<K>(
    candidates: &[Candidate<K>],
    mut origins: impl FnMut(&K) -> Option<Origins>,
) -> Vec<HeldByLocal> {
    let mut last: FxHashMap<(FrameRef, Origins), (u64, MethodId, Amount)> = FxHashMap::default();
    for Candidate { record, frame, method, kind, amount } in candidates {
        let Some(origins) = origins(kind) else { continue };
        let (known, _, sum) = last.entry((*frame, origins)).or_insert((*record, *method, Amount::default()));
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

    fn origins(of: &u32) -> Option<Origins> {
        Some(Origins { made_in: MadeIn::Nowhere(Means::Initial), caller: MethodId(0), ty: TypeId(*of / 2) })
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

    proptest! {
        /// Nor does it matter when it is tidied, and what of frames is known by then.
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
