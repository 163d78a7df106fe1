//! Which collections objects have survived, in traces that do not tell when objects die (`survival=5`).
//!
//! After collections the runtime has walked the heap and noted which objects were there ([`HeapWalk`]). An object whose
//! event has an earlier ticket than a walk existed with its id when the walk began: a hook gives the object its id before it
//! looks at the ticket counter. So if the walk did not find it, it was gone when the walk ended. Of later objects the lack
//! of an entry says nothing.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use et_format::event::{ObjectHash, Ticket};
use et_format::{BlockKind, HeapWalk, Survivors};
use rustc_hash::FxHashMap;

use crate::file::{Block, ReadError, TraceFile};
use crate::moment::Moment;
use crate::record::ObjectId;
use crate::trace::Trace;

/// What walks say of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fate {
    /// Number of collections that it has certainly survived.
    pub survived: u32,
    /// The most that it can have survived: walks have not looked at all of them.
    pub survived_at_most: u32,
    /// The first walk after its birth.
    pub first: u32,
    /// The last walk that found it; `None`: none did.
    pub seen: Option<u32>,
    /// The first walk after that, which did not; `None`: it was there at the last walk.
    pub missed: Option<u32>,
    /// What walks say of it does not fit, or may be of another object with the same id.
    pub is_uncertain: bool,
}

impl Fate {
    /// Whether it was there at that walk.
    pub fn is_there_at(&self, walk: u32) -> bool {
        self.first <= walk && self.seen.is_some_and(|seen| walk <= seen)
    }
}

/// A walk, and where in the trace it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    pub heap: HeapWalk,
    /// The trace when it began, and when it ended.
    pub begin: Moment,
    pub end: Moment,
    /// Number of objects that existed when it began: the first whose event is not certainly earlier.
    pub born: u64,
    /// Number of collections that were over.
    pub collections: u32,
    /// Number of objects that it found, including those that the trace does not tell of.
    pub found: u64,
}

/// The walks of a trace, and how many collections there were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survival {
    walks: Vec<Walk>,
    collections: u64,
}

/// What the walks of a trace say of each of its objects.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    survival: Arc<Survival>,
    /// Number of objects that existed when each collection began.
    born_before: Vec<u64>,
    presence: Presence,
    /// Objects that have an id that others had before, and their numbers.
    later: FxHashMap<ObjectId, u64>,
    /// What a walk found, or has an id that was given again. Most objects are not among these, and need not be looked up.
    special: Special,
}

/// A set of hashes that may hold some that were not added: those with the same low bits as one that was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Special {
    /// A bit for each value of the low bits; their number is a power of two, so that few are set. Empty: anything may have been added.
    words: Vec<u64>,
}

impl Special {
    /// 32 MB, of which the hashes of a large heap set one in fifty.
    const MOST_WORDS: usize = 1 << 22;

    pub fn of(hashes: impl Iterator<Item = u32> + Clone) -> Self {
        let words = (hashes.clone().count() / 4 + 1).next_power_of_two().min(Self::MOST_WORDS);
        let mut set = Self { words: vec![0; words] };
        for hash in hashes {
            let (word, bit) = set.place(hash);
            set.words[word] |= bit;
        }
        set
    }

    fn place(&self, hash: u32) -> (usize, u64) {
        (hash as usize >> 6 & self.words.len().wrapping_sub(1), 1 << (hash & 63))
    }

    /// Reads what tells whether it may have a hash.
    #[inline]
    fn touch(&self, hash: u32) -> u64 {
        self.words.get(self.place(hash).0).copied().unwrap_or(0)
    }

    #[inline]
    pub fn may_have(&self, hash: u32) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let (word, bit) = self.place(hash);
        self.words[word] & bit != 0
    }
}

/// Calls `visit` with each walk in a trace file of which no part is missing, in their order, its blocks, and what they say: the program may have been
/// killed while it wrote one.
///
/// # Errors
/// A block is damaged.
pub fn each_walk(file: &TraceFile, mut visit: impl FnMut(HeapWalk, &[&Block], &[Survivors])) -> Result<(), ReadError> {
    let mut blocks: Vec<&Block> = file.of_kind(BlockKind::Survivors).collect();
    blocks.sort_by_key(|block| (block.header.first_ticket, block.header.sequence));
    for blocks in blocks.chunk_by(|one, other| one.header.first_ticket == other.header.first_ticket) {
        let mut parts = Vec::new();
        for block in blocks {
            parts.push(decode(file, block)?);
        }
        parts.sort_by_key(|part| part.part.0);
        let is_whole = |(at, part): (usize, &Survivors)| part.part == (at as u32, parts.len() as u32);
        if parts.iter().enumerate().all(is_whole) {
            visit(parts[0].walk, blocks, &parts);
        }
    }
    Ok(())
}

/// What a block of a walk says.
///
/// # Errors
/// It is damaged.
pub fn decode(file: &TraceFile, block: &Block) -> Result<Survivors, ReadError> {
    Survivors::decode(&file.unpack(block)?).map_err(|source| file.block_error(block, source))
}

/// In which walks each id was found.
#[derive(Clone, Debug, Default)]
struct Presence {
    /// The first and the last walk of the latest series.
    last: FxHashMap<u32, (u32, u32)>,
    /// The series before.
    earlier: FxHashMap<u32, Vec<(u32, u32)>>,
}

impl Presence {
    fn add(&mut self, walk: u32, objects: &[ObjectHash]) {
        // The first walk finds more than later ones add.
        self.last.reserve(objects.len().saturating_sub(self.last.len()));
        for object in objects {
            let series = self.last.entry(object.0).or_insert((walk, walk));
            if series.1 + 1 < walk {
                let over = std::mem::replace(series, (walk, walk));
                self.earlier.entry(object.0).or_default().push(over);
            }
            series.1 = walk;
        }
    }

    /// The last of these walks that found the id, and whether all before it did.
    fn last_of(&self, hash: u32, walks: &Range<u32>) -> Option<(u32, bool)> {
        let is_in = |(first, last): &(u32, u32)| *first < walks.end && *last >= walks.start;
        // Most objects were found by walks one after the other.
        let latest = *self.last.get(&hash)?;
        let (first, last) = match is_in(&latest) {
            true => latest,
            false => *self.earlier.get(&hash)?.iter().rev().find(|series| is_in(series))?,
        };
        Some((last.min(walks.end - 1), first <= walks.start))
    }
}

/// Where in the order of births walks and collections are, as a trace is read.
#[derive(Debug)]
pub struct Marker {
    walks: Vec<Walk>,
    fates: Fates,
    /// Tickets of the beginnings and ends of walks, and of the starts of collections, that have not been passed, the first
    /// last.
    walks_to_come: Vec<Ticket>,
    ends_to_come: Vec<Ticket>,
    collections_to_come: Vec<Ticket>,
}

impl Survival {
    /// Walks that were read before, in order, and the number of collections.
    pub fn known(walks: Vec<Walk>, collections: u64) -> Self {
        Self { walks, collections }
    }

    /// The walks, in order.
    pub fn walks(&self) -> &[Walk] {
        &self.walks
    }

    /// Number of collections.
    pub fn collections(&self) -> u64 {
        self.collections
    }

    /// Number of collections behind which no walk came before the next, or at all.
    pub fn not_looked_at(&self) -> u64 {
        let mut before = 0;
        let mut looked_at = 0;
        for walk in &self.walks {
            looked_at += u64::from(walk.collections > before);
            before = walk.collections;
        }
        self.collections().saturating_sub(looked_at)
    }

    /// Whether the last walk was at the end of the trace, so that what it found is what was there.
    pub fn reaches_the_end(&self) -> bool {
        self.walks.last().is_some_and(|walk| walk.heap.at_the_end)
    }

    /// Between which moments an object died: when a walk found it last, or its birth, and when it was gone; `None`: it was not.
    pub fn death_of(&self, fate: &Fate, born: Moment) -> (Moment, Option<Moment>) {
        let after = fate.seen.map_or(born, |seen| self.walks[seen as usize].begin);
        (after, fate.missed.map(|missed| self.walks[missed as usize].end))
    }
}

impl Fates {
    /// The walks.
    pub fn survival(&self) -> &Arc<Survival> {
        &self.survival
    }

    /// The same, for many objects one after the other.
    pub fn in_order(&self) -> InOrder<'_> {
        InOrder { fates: self, numbers: 0..0, fate: None }
    }

    /// What walks say of the object with this number in the order of births; `None`: no walk came after it.
    pub fn of(&self, number: u64, object: ObjectId) -> Option<Fate> {
        let hash = object.identity_hash()?;
        let walks = self.survival.walks();
        let is_special = self.special.may_have(hash);
        let first_after = |number: u64| walks.partition_point(|walk| walk.born <= number) as u32;
        // An id is given again only when its object is not in the heap any more.
        let next = if is_special { self.later.get(&ObjectId(object.0 + NEXT)) } else { None };
        let judging = first_after(number)..next.map_or(walks.len() as u32, |next| first_after(*next));
        let is_judged = !judging.is_empty();
        if !is_judged && next.is_none() {
            return None;
        }
        let found = if is_judged && is_special { self.presence.last_of(hash, &judging) } else { None };
        let seen = found.map(|(seen, _)| seen);
        let missed = seen.map_or(judging.start, |seen| seen + 1);
        let missed = Some(missed).filter(|missed| (*missed as usize) < walks.len());
        let begun = self.born_before.partition_point(|born| *born <= number) as u32;
        let over = |walk: u32| walks[walk as usize].collections.saturating_sub(begun);
        let survived = seen.map_or(0, over);
        let survived_at_most = match missed {
            // The last of them has freed it.
            Some(missed) => over(missed).saturating_sub(1).max(survived),
            None => (self.born_before.len() as u32).saturating_sub(begun).max(survived),
        };
        // The next object with the id may have been what the last of the walks found.
        let may_be_the_next = next.is_some() && seen.is_some_and(|seen| seen + 1 == judging.end);
        let is_uncertain = may_be_the_next || found.is_some_and(|(_, is_complete)| !is_complete);
        Some(Fate { survived, survived_at_most, first: judging.start, seen, missed, is_uncertain })
    }
}

/// Number of objects of which [`InOrder::touch`] is told together.
pub(crate) const AT_ONCE: usize = 64;

/// Fates of objects that are asked for in the order of their births, or nearly: of most objects no walk tells anything of their own, so
/// that those between two walks or collections have the same.
#[derive(Debug)]
pub struct InOrder<'f> {
    fates: &'f Fates,
    /// The objects that have the fate, but for special ones.
    numbers: Range<u64>,
    fate: Option<Fate>,
}

impl InOrder<'_> {
    /// The fates of these objects, of which the first has that number and the others follow.
    pub fn all(&mut self, first: u64, objects: &[ObjectId]) -> Vec<Option<Fate>> {
        let mut all = Vec::with_capacity(objects.len());
        for (number, objects) in (first..).step_by(AT_ONCE).zip(objects.chunks(AT_ONCE)) {
            self.touch(objects.iter().copied());
            all.extend((number..).zip(objects).map(|(number, object)| self.of(number, *object)));
        }
        all
    }

    /// Has what is known of these objects in the processor's caches. Ids are random, so that each look waits for memory: those of a loop that does
    /// nothing else wait together.
    pub fn touch(&self, objects: impl Iterator<Item = ObjectId> + Clone) {
        let look = |sum, object: ObjectId| sum ^ self.fates.special.touch(object.0 as u32 & 0x7fff_ffff);
        std::hint::black_box(objects.clone().fold(0, look));
        let hashes = objects.filter_map(ObjectId::identity_hash);
        let special = hashes.filter(|hash| self.fates.special.may_have(*hash));
        std::hint::black_box(special.filter(|hash| self.fates.presence.last.contains_key(hash)).count());
    }

    /// As [`Fates::of`].
    #[inline]
    pub fn of(&mut self, number: u64, object: ObjectId) -> Option<Fate> {
        match self.may_differ(object) {
            true => self.fates.of(number, object),
            false => self.shared(number, object).0,
        }
    }

    /// Whether a walk may tell something of the object itself, so that its fate need not be that of those around it.
    #[inline]
    pub fn may_differ(&self, object: ObjectId) -> bool {
        object.identity_hash().is_none_or(|hash| self.fates.special.may_have(hash))
    }

    /// The fate of an object that [does not differ](Self::may_differ), and the number before which those after it have the same.
    #[inline]
    pub fn shared(&mut self, number: u64, object: ObjectId) -> (Option<Fate>, u64) {
        if !self.numbers.contains(&number) {
            self.go_to(number, object);
        }
        (self.fate, self.numbers.end)
    }

    #[cold]
    fn go_to(&mut self, number: u64, object: ObjectId) {
        let walks = self.fates.survival.walks();
        let collections = &self.fates.born_before;
        let (walk, collection) =
            (walks.partition_point(|walk| walk.born <= number), collections.partition_point(|born| *born <= number));
        let before = |at: usize| at.checked_sub(1);
        let begins = [before(walk).map_or(0, |at| walks[at].born), before(collection).map_or(0, |at| collections[at])];
        let ends = [
            walks.get(walk).map_or(u64::MAX, |walk| walk.born),
            collections.get(collection).copied().unwrap_or(u64::MAX),
        ];
        self.numbers = begins[0].max(begins[1])..ends[0].min(ends[1]);
        self.fate = self.fates.of(number, object);
    }
}

/// What the ids of two objects that had the same hash one after the other differ by.
const NEXT: u64 = 1 << 31;

impl Marker {
    /// Reads the walks of a trace. `None` if it has none.
    ///
    /// # Errors
    /// A block is damaged.
    pub fn of(trace: &Trace) -> Result<Option<Self>, ReadError> {
        let (mut walks, mut fates) = (Vec::new(), Fates::default());
        let mut finishes: Vec<Ticket> = trace.gcs.iter().map(|gc| gc.finish).collect();
        finishes.sort_unstable();
        each_walk(&trace.file, |heap, _, read| {
            let number = walks.len() as u32;
            read.iter().for_each(|part| fates.presence.add(number, &part.objects));
            walks.push(Walk {
                heap,
                begin: Moment::default(),
                end: Moment::default(),
                born: 0,
                collections: finishes.partition_point(|finish| *finish < heap.begin) as u32,
                found: read.iter().map(|part| part.objects.len() as u64).sum(),
            });
        })?;
        if walks.is_empty() {
            return Ok(None);
        }
        let mut collections_to_come: Vec<Ticket> = trace.gcs.iter().map(|gc| gc.start).collect();
        collections_to_come.sort_unstable_by(|one, other| other.cmp(one));
        let walks_to_come = walks.iter().rev().map(|walk| walk.heap.begin).collect();
        let ends_to_come = walks.iter().rev().map(|walk| walk.heap.end).collect();
        Ok(Some(Self { walks, fates, walks_to_come, ends_to_come, collections_to_come }))
    }

    /// The tickets that matter, in order: [`at`](Self::at) must be called before the first event of each that there is, or of a
    /// later one.
    pub fn tickets(&self) -> VecDeque<Ticket> {
        let all = [&self.walks_to_come, &self.ends_to_come, &self.collections_to_come];
        let mut tickets: Vec<Ticket> = all.into_iter().flatten().copied().collect();
        tickets.sort_unstable();
        tickets.into()
    }

    /// What comes next has this ticket; so far the trace has come to `now`, with that many objects.
    #[inline]
    pub fn at(&mut self, ticket: Ticket, now: impl FnOnce() -> (Moment, u64)) {
        let is_passed = |to_come: &[Ticket]| to_come.last().is_some_and(|next| *next <= ticket);
        if is_passed(&self.walks_to_come) || is_passed(&self.ends_to_come) || is_passed(&self.collections_to_come) {
            self.pass(ticket, now());
        }
    }

    fn pass(&mut self, ticket: Ticket, (now, born): (Moment, u64)) {
        while self.walks_to_come.pop_if(|next| *next <= ticket).is_some() {
            let at = self.walks.len() - self.walks_to_come.len() - 1;
            let walk = &mut self.walks[at];
            (walk.begin, walk.born) = (Moment { nanos: now.nanos.map(|_| walk.heap.nanos.0), ..now }, born);
        }
        while self.ends_to_come.pop_if(|next| *next <= ticket).is_some() {
            let at = self.walks.len() - self.ends_to_come.len() - 1;
            let walk = &mut self.walks[at];
            let nanos = walk.heap.nanos.0.saturating_add(walk.heap.duration.0);
            walk.end = Moment { nanos: now.nanos.map(|_| nanos), ..now };
        }
        while self.collections_to_come.pop_if(|next| *next <= ticket).is_some() {
            self.fates.born_before.push(born);
        }
    }

    /// An object has been allocated: the number is that in the order of births.
    #[inline]
    pub fn born(&mut self, object: ObjectId, number: u64) {
        if object.0 >= NEXT && object.identity_hash().is_some() {
            self.fates.later.insert(object, number);
        }
    }

    /// The trace has ended, with that many objects.
    pub fn finish(mut self, end: Moment, born: u64) -> Fates {
        self.pass(Ticket(u64::MAX), (end, born));
        let mut fates = self.fates;
        let given_again = fates.later.keys().filter_map(|object| object.identity_hash());
        fates.special = Special::of(fates.presence.last.keys().copied().chain(given_again));
        let collections = fates.born_before.len() as u64;
        Fates { survival: Arc::new(Survival { walks: self.walks, collections }), ..fates }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TraceBuilder;
    use et_format::GcRecord;

    /// Walks with those tickets that found those objects; collections finish one ticket before each of `collections`.
    fn trace(walks: &[(u64, &[u32])], collections: &[u64]) -> Trace {
        let mut builder = TraceBuilder::new();
        for &(begin, objects) in walks {
            let walk = HeapWalk { begin: Ticket(begin), end: Ticket(begin + 1), ..HeapWalk::default() };
            builder.survivors(walk, objects);
        }
        for &ticket in collections {
            builder.gc(&GcRecord { start: Ticket(ticket - 2), finish: Ticket(ticket - 1), ..GcRecord::default() });
        }
        Trace::from_file(crate::TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap()
    }

    /// Objects born at these tickets.
    fn fates(trace: &Trace, births: &[(u64, u64)]) -> Fates {
        let mut marker = Marker::of(trace).unwrap().unwrap();
        for (number, &(ticket, object)) in births.iter().enumerate() {
            let number = number as u64;
            marker.at(Ticket(ticket), || (Moment { bytes: 100 * number, ..Moment::default() }, number));
            marker.born(ObjectId(object), number);
        }
        marker.finish(Moment { bytes: 100 * births.len() as u64, ..Moment::default() }, births.len() as u64)
    }

    fn fate(
        survived: u32,
        at_most: u32,
        seen: Option<u32>,
        missed: Option<u32>,
    ) -> Option<(u32, u32, Option<u32>, Option<u32>)> {
        Some((survived, at_most, seen, missed))
    }

    /// What is certain of an object.
    fn certain(fates: &Fates, number: u64, object: u64) -> Option<(u32, u32, Option<u32>, Option<u32>)> {
        let fate = fates.of(number, ObjectId(object)).filter(|fate| !fate.is_uncertain)?;
        Some((fate.survived, fate.survived_at_most, fate.seen, fate.missed))
    }

    #[test]
    fn objects_are_gone_by_the_first_walk_that_lacks_them() {
        let trace = trace(&[(10, &[1, 2]), (20, &[2]), (30, &[2, 4])], &[9, 19, 29]);
        let known = fates(&trace, &[(2, 1), (3, 2), (4, 3), (21, 4), (22, 5), (31, 6)]);
        let found: Vec<_> = (0..6).map(|number| certain(&known, number, number + 1)).collect();
        let expected = [
            fate(1, 1, Some(0), Some(1)),
            fate(3, 3, Some(2), None),
            fate(0, 0, None, Some(0)),
            fate(1, 1, Some(2), None),
            fate(0, 0, None, Some(2)),
            None,
        ];
        assert_eq!(found, expected);
        let bytes: Vec<_> = known.survival().walks().iter().map(|walk| (walk.begin.bytes, walk.found)).collect();
        assert_eq!(bytes, [(300, 2), (300, 1), (500, 2)]);
        let survival = known.survival();
        assert_eq!((survival.collections(), survival.not_looked_at(), survival.reaches_the_end()), (3, 0, false));
    }

    /// The walk may have begun before the object was there.
    #[test]
    fn what_is_not_certainly_earlier_is_not_missed() {
        let trace = trace(&[(10, &[]), (20, &[])], &[9]);
        let known = fates(&trace, &[(9, 1), (10, 2), (11, 3)]);
        assert_eq!(certain(&known, 0, 1), fate(0, 0, None, Some(0)));
        assert_eq!(certain(&known, 1, 2), fate(0, 0, None, Some(1)));
        assert_eq!(certain(&known, 2, 3), fate(0, 0, None, Some(1)));
    }

    #[test]
    fn collections_that_no_walk_looked_at_leave_room() {
        let trace = trace(&[(10, &[1, 2]), (40, &[2])], &[9, 19, 29, 39, 49]);
        let known = fates(&trace, &[(2, 1), (3, 2), (11, 3), (25, 4)]);
        assert_eq!(certain(&known, 0, 1), fate(1, 3, Some(0), Some(1)));
        assert_eq!(certain(&known, 1, 2), fate(4, 5, Some(1), None), "one more came after the last walk");
        assert_eq!(certain(&known, 2, 3), fate(0, 2, None, Some(1)));
        assert_eq!(certain(&known, 3, 4), fate(0, 1, None, Some(1)));
        assert_eq!(known.survival().not_looked_at(), 3);
    }

    #[test]
    fn what_does_not_fit_is_uncertain() {
        let trace = trace(&[(10, &[1]), (20, &[2]), (30, &[1, 2])], &[]);
        let known = fates(&trace, &[(2, 1), (3, 2)]);
        for number in 0..2 {
            let fate = known.of(number, ObjectId(number + 1)).unwrap();
            assert_eq!((fate.seen, fate.missed, fate.is_uncertain), (Some(2), None, true));
        }
    }

    #[test]
    fn an_id_that_is_given_again_is_two_objects() {
        let trace = trace(&[(10, &[7]), (20, &[7]), (30, &[]), (40, &[7])], &[]);
        let again = 7 + NEXT;
        let known = fates(&trace, &[(2, 7), (35, again)]);
        assert_eq!(certain(&known, 0, 7), fate(0, 0, Some(1), Some(2)));
        assert_eq!(certain(&known, 1, again), fate(0, 0, Some(3), None));
        // Which of the two the second walk found is not known.
        let known = fates(&trace, &[(2, 7), (25, again)]);
        let first = known.of(0, ObjectId(7)).unwrap();
        assert_eq!((first.seen, first.missed, first.is_uncertain), (Some(1), Some(2), true));
    }

    #[test]
    fn special_hashes_are_all_found_and_others_hardly() {
        let hash = |at: u32| at.wrapping_mul(0x9e37_79b1) & 0x7fff_ffff;
        let hashes = (0..10_000).map(hash);
        let special = Special::of(hashes.clone());
        assert!(hashes.clone().all(|hash| special.may_have(hash)));
        let others = (1_000_000..1_010_000).filter(|&at| special.may_have(hash(at))).count();
        assert!(others < 2_000, "{others}");
        assert!(!Special::of(std::iter::empty()).may_have(7) && Special::default().may_have(7));
    }

    #[test]
    fn a_walk_of_which_a_part_is_missing_counts_for_nothing() {
        let mut builder = TraceBuilder::new();
        let walk = HeapWalk { begin: Ticket(5), end: Ticket(6), ..HeapWalk::default() };
        let mut raw = walk.encode(&[1, 2]).remove(0);
        raw[37] = 2;
        builder.survivors_block(&raw);
        let trace = Trace::from_file(crate::TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
        assert!(Marker::of(&trace).unwrap().is_none());
    }
}
