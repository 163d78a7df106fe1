//! Which ids have been given more than once, and which pieces give certain ids.
//!
//! The runtime takes ids from a generator, mostly one after the other, so those of a piece are a few stretches of its sequence. If two stretches
//! have an id in common, one of them has the first id of the other. So it is enough to look for these first ids, which takes neither unpacked events
//! nor memory for each object.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use et_names::hashes;
use et_system::threads::on_all_cores;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::survival::Special;

/// Ids that follow each other in the sequence of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    first: u32,
    count: u32,
}

impl Stretch {
    #[inline]
    fn ids(self) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(self.first), |id| Some(hashes::next(*id))).take(self.count as usize)
    }
}

/// The ids of a piece, in the order in which they are given.
#[derive(Debug, Default)]
pub struct Stretches {
    all: Vec<Stretch>,
    /// What would continue the last one; 0, which is no id, if there is none.
    next: u32,
}

impl Stretches {
    #[inline]
    pub fn add(&mut self, id: u32) {
        match self.all.last_mut() {
            Some(last) if id == self.next => last.count += 1,
            _ => self.all.push(Stretch { first: id, count: 1 }),
        }
        self.next = hashes::next(id);
    }

    pub fn finish(self) -> Vec<Stretch> {
        self.all
    }
}

/// What was found about the ids of all pieces.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Those that pieces give and that had been given before, by another event or before tracing began.
    pub again: FxHashSet<u32>,
    /// The pieces that give one of these, or one that was asked for, in ascending order.
    pub pieces: Vec<usize>,
}

/// Looks at the ids of all pieces. Those of `initial` were given before tracing began, `asked` is asked for. `None` if pieces give ids again more than `most` times.
pub fn look(
    pieces: &[Vec<Stretch>],
    initial: &FxHashMap<u32, u32>,
    asked: &FxHashSet<u32>,
    most: usize,
) -> Option<Looked> {
    let mut firsts: FxHashMap<u32, u32> = FxHashMap::default();
    for stretch in pieces.iter().flatten() {
        *firsts.entry(stretch.first).or_default() += 1;
    }
    let special = Special::of(firsts.keys().chain(initial.keys()).chain(asked).copied());
    // Ids that matter: those given before tracing, and whether a stretch has the first id of another.
    let look_at = |(): &mut (), piece: usize| {
        let (mut is_wanted, mut overlaps, mut again) = (false, false, Vec::new());
        for stretch in &pieces[piece] {
            for (at, id) in stretch.ids().enumerate() {
                if !special.may_have(id) {
                    continue;
                }
                overlaps |= firsts.get(&id).is_some_and(|times| at > 0 || *times > 1);
                is_wanted |= asked.contains(&id);
                if initial.contains_key(&id) {
                    again.push(id);
                }
            }
        }
        Ok::<_, Infallible>((is_wanted, overlaps, again))
    };
    let Ok((looked, _)) = on_all_cores(pieces.len(), 1, || (), look_at);
    if looked.iter().any(|(_, overlaps, _)| *overlaps) {
        return look_at_all(pieces, initial, asked, most);
    }
    let again: FxHashSet<u32> = looked.iter().flat_map(|(.., again)| again).copied().collect();
    if again.len() > most {
        return None;
    }
    let wanted = looked.iter().enumerate().filter(|(_, (is_wanted, _, again))| *is_wanted || !again.is_empty());
    Some(Looked { again, pieces: wanted.map(|(piece, _)| piece).collect() })
}

/// The same where some stretches have ids in common.
fn look_at_all(
    pieces: &[Vec<Stretch>],
    initial: &FxHashMap<u32, u32>,
    asked: &FxHashSet<u32>,
    most: usize,
) -> Option<Looked> {
    let count: u64 = pieces.iter().flatten().map(|stretch| u64::from(stretch.count)).sum();
    let seen = Seen::new(count as usize + initial.len());
    initial.keys().for_each(|id| _ = seen.add(*id));
    // Each of them will be looked at, however few ids they have. Chance adds one in 128 of at most 32 million: beyond, no ids share a bit.
    let hits = AtomicUsize::new(0);
    let add = |again: &mut FxHashSet<u32>, piece: usize| {
        let mut more = 0;
        for id in pieces[piece].iter().flat_map(|stretch| stretch.ids()).filter(|id| seen.add(*id)) {
            again.insert(id);
            more += 1;
        }
        if hits.fetch_add(more, Ordering::Relaxed) + more > most + CHANCE { Err(()) } else { Ok(()) }
    };
    let (_, found) = on_all_cores(pieces.len(), 1, FxHashSet::default, add).ok()?;
    drop(seen);
    let mut perhaps = FxHashSet::default();
    found.into_iter().for_each(|ids| perhaps.extend(ids));
    // Ids may share a bit. How often each is given decides.
    let special = Special::of(perhaps.iter().chain(asked).copied());
    let count = |times: &mut FxHashMap<u32, u32>, piece: usize| {
        let mut is_wanted = false;
        for id in pieces[piece].iter().flat_map(|stretch| stretch.ids()).filter(|id| special.may_have(*id)) {
            is_wanted |= asked.contains(&id);
            if perhaps.contains(&id) {
                *times.entry(id).or_default() += 1;
                is_wanted = true;
            }
        }
        Ok::<_, Infallible>(is_wanted)
    };
    let Ok((wanted, counted)) = on_all_cores(pieces.len(), 1, FxHashMap::default, count);
    let mut times: FxHashMap<u32, u32> = initial.keys().filter(|id| perhaps.contains(id)).map(|id| (*id, 1)).collect();
    for (id, more) in counted.into_iter().flatten() {
        *times.entry(id).or_default() += more;
    }
    times.retain(|_, times| *times > 1);
    let repeated: u64 = times.values().map(|times| u64::from(*times) - 1).sum();
    let pieces = wanted.iter().enumerate().filter(|(_, is_wanted)| **is_wanted).map(|(piece, _)| piece).collect();
    (repeated <= most as u64).then(|| Looked { again: times.into_keys().collect(), pieces })
}

/// Bits for each object, as long as there are fewer than one for each id: few objects then share one.
const BITS: usize = 64;
const MOST_BITS: usize = 1 << 31;

/// Ids that are taken for others because they share a bit, at most.
const CHANCE: usize = MOST_BITS / BITS / 64;

/// A set of ids, perhaps with others that share their bits.
#[derive(Debug)]
struct Seen {
    words: Vec<AtomicU64>,
}

impl Seen {
    /// For that many objects.
    fn new(objects: usize) -> Self {
        let bits = objects.saturating_mul(BITS).next_power_of_two().clamp(64, MOST_BITS);
        Self { words: std::iter::repeat_with(AtomicU64::default).take(bits / 64).collect() }
    }

    /// Adds an id. Returns whether it may have been there.
    #[inline]
    fn add(&self, id: u32) -> bool {
        let (word, bit) = (id as usize >> 6 & (self.words.len() - 1), 1 << (id & 63));
        self.words[word].fetch_or(bit, Ordering::Relaxed) & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn stretches(ids: impl IntoIterator<Item = u32>) -> Vec<Stretch> {
        let mut stretches = Stretches::default();
        ids.into_iter().for_each(|id| stretches.add(id));
        stretches.finish()
    }

    #[test]
    fn ids_of_the_generator_are_stretches() {
        let from = |steps, count| (steps..steps + count).map(|steps| hashes::after(hashes::SEED, steps));
        let found = stretches(from(0, 5).chain(from(9, 1)).chain(from(10, 3)).chain([0x7fff_ffff, 7]));
        let expected = [(hashes::SEED, 5), (hashes::after(hashes::SEED, 9), 4), (0x7fff_ffff, 1), (7, 1)];
        assert_eq!(found, expected.map(|(first, count)| Stretch { first, count }));
        assert_eq!(found[1].ids().collect::<Vec<_>>(), from(9, 4).collect::<Vec<_>>());
        assert_eq!(stretches([]), []);
    }

    /// Pieces, each of stretches of so many ids from a place of the generator on, of which there are few.
    fn pieces() -> impl Strategy<Value = Vec<Vec<(u32, u32)>>> {
        prop::collection::vec(prop::collection::vec((0..400u32, 1..30u32), 0..4), 0..8)
    }

    proptest! {
        #[test]
        fn what_is_given_again_is_found(
            pieces in pieces(),
            initial in prop::collection::hash_set(0..400u32, 0..3),
            asked in prop::collection::hash_set(0..400u32, 0..3),
        ) {
            let id = |steps: u32| hashes::after(hashes::SEED, steps);
            let set = |steps: std::collections::HashSet<u32>| steps.into_iter().map(id).collect::<FxHashSet<u32>>();
            let initial: FxHashMap<u32, u32> = set(initial).into_iter().map(|id| (id, 1)).collect();
            let asked = set(asked);
            let ids: Vec<Vec<u32>> = pieces
                .iter()
                .map(|piece| piece.iter().flat_map(|(from, count)| (*from..from + count).map(id)).collect())
                .collect();
            let mut times: BTreeMap<u32, u32> = initial.iter().map(|(id, times)| (*id, *times)).collect();
            ids.iter().flatten().for_each(|id| *times.entry(*id).or_default() += 1);
            let again: FxHashSet<u32> = times.iter().filter(|(_, times)| **times > 1).map(|(id, _)| *id).collect();
            let all: Vec<Vec<Stretch>> = ids.iter().map(|ids| stretches(ids.iter().copied())).collect();
            let found = look(&all, &initial, &asked, 1000).unwrap();
            prop_assert_eq!(&found.again, &again);
            for (piece, ids) in ids.iter().enumerate() {
                // More may be read than is needed.
                if ids.iter().any(|id| again.contains(id) || asked.contains(id)) {
                    prop_assert!(found.pieces.contains(&piece));
                }
            }
            prop_assert!(found.pieces.is_sorted_by(|one, other| one < other));
            let repeated: u32 = times.values().map(|times| times - 1).sum();
            for most in [0, repeated.saturating_sub(1), repeated, repeated + 1] {
                let found = look(&all, &initial, &asked, most as usize);
                prop_assert_eq!(found.is_some(), repeated <= most, "{} of {}", repeated, most);
            }
        }
    }
}
