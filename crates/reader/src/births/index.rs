//! One reading of all events: in which order they are, what there was before each, and what only that tells.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use et_format::event::{ObjectHash, Ticket};
use et_format::{Nanos, Wall};
use et_names::FieldRefId;
use et_system::threads::on_all_cores;
use rustc_hash::{FxHashMap, FxHashSet};

use super::events::{Item, Items, ObjectEvent, Unfit};
use super::ids::{self, Looked, Stretch, Stretches};
use super::made::{Made, Maker};
use crate::classes::ClassIndex;
use crate::file::ReadError;
use crate::model::{ContextId, Contexts};
use crate::moment::Moment;
use crate::record::{Alloc, AllocKind, ObjectId, RecordKind, StackId, Totals};
use crate::resolve::allocs::Allocs;
use crate::resolve::fields::Fields;
use crate::resolve::object_ids::id;
use crate::resolve::{Anomalies, each_initial_reference};
use crate::stack_contexts::StackContexts;
use crate::survival::{Fates, Marker, Special};
use crate::trace::Trace;

/// Bytes of the largest piece: many times what the runtime writes.
const MOST_BYTES: u64 = 1 << 22;
/// Number of runs, stretches of ids, ids that come again and events that ask what was before, up to which a trace is read in this way: each takes up to 150 bytes. If
/// there are more, threads take turns all the time, or there were two billion objects, after which all ids come again.
const MOST: usize = 1 << 23;
/// Tickets up to which a place in the order of all fits 64 bits, and the bits for the word of the piece.
const MOST_TICKET: u64 = 1 << 42;
const WORD_BITS: u32 = MOST_BYTES.ilog2() - 2;

/// What there is before a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    pub births: u64,
    pub bytes: u64,
    /// When the latest piece had begun.
    pub time: Option<Nanos>,
}

impl Before {
    /// This point in the course of the trace, whose ticks are bytes.
    pub fn moment(&self) -> Moment {
        Moment { tick: self.bytes, bytes: self.bytes, nanos: self.time.map(|time| time.0) }
    }
}

/// The events of a thread from a ticket to its next.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub ticket: Ticket,
    /// Its piece in [`Order::pieces`], and where its events begin there.
    pub piece: u32,
    pub offset: u32,
    /// Number of objects.
    pub births: u32,
    /// Whether it has records, but for mirrors.
    pub has_records: bool,
    pub bytes: u64,
    pub before: Before,
}

/// An event that makes an object, although another had the id before; or the object is new where it need not have been.
#[derive(Clone, Copy, Debug)]
pub struct Decided {
    /// The offset of the event.
    pub offset: u32,
    /// How often its id was given before.
    pub number: u32,
}

/// A piece of the events of a thread.
#[derive(Debug)]
pub struct Piece {
    /// Index in [`TraceFile::threads`](crate::TraceFile::threads), and number of the piece.
    pub thread: usize,
    pub number: usize,
    /// The thread of its records.
    pub of: u32,
    pub wall: Option<Wall>,
    /// What its objects have in place of a stack if events tell none: the frames that were there when tracing began.
    pub base: StackId,
    /// In the order of the events.
    pub decided: Vec<Decided>,
}

/// A mirror of a class that becomes known at the beginning of a run.
#[derive(Clone, Copy, Debug)]
pub struct Mirror {
    pub run: u32,
    pub class: ClassIndex,
    /// How often its id was given before.
    pub number: u32,
    /// When it became known, and its size.
    ticket: Ticket,
    size: u64,
}

/// All objects in the order of their births.
#[derive(Debug)]
pub struct Order {
    /// What was there when tracing began.
    pub initial: Vec<Alloc>,
    pub pieces: Vec<Piece>,
    /// In order. Behind the last are the mirrors of the classes that nothing came after.
    pub runs: Vec<Run>,
    /// In order; of the number of all runs are those behind them.
    pub mirrors: Vec<Mirror>,
    pub end: Before,
}

/// What is known of a trace but its rows.
pub struct Index {
    pub order: Order,
    /// The contexts, and which each stack has.
    pub contexts: (Contexts, Vec<ContextId>),
    pub totals: Totals,
    /// Number of records by thread.
    pub records: FxHashMap<u32, u64>,
    pub anomalies: Anomalies,
    pub fates: Option<Fates>,
}

/// What was found in a piece.
#[derive(Default)]
struct Found {
    runs: Vec<Run>,
    /// The ids that are given.
    ids: Vec<Stretch>,
    perhaps: Vec<Perhaps>,
    /// How often fields are stored to.
    fields: FxHashMap<FieldRefId, u64>,
    /// Records by kind, as far as they are certain.
    totals: Totals,
}

/// An event of which not all is known.
#[derive(Clone, Copy, Debug)]
struct Perhaps {
    run: u32,
    offset: u32,
    /// Number of objects in the run before it, as far as that is certain.
    births: u32,
    what: Asked,
}

/// What only what was before tells.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Whether an object is new.
    New(ObjectEvent),
    /// Whether an object that is named is known: if not, nothing is.
    Known(ObjectHash),
}

/// Something that gives an object its id, or may.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The mirror of a class has become known, by this ticket.
    Mirror(ClassIndex, Ticket),
    Born(u32),
    Asked(Asked),
}

/// The same, with its place in the order of all. Mirrors come first in their run.
#[derive(Clone, Copy, Debug)]
struct Happened {
    run: u32,
    offset: u32,
    births: u32,
    what: Happening,
}

/// What a thread that reads pieces works with.
struct Hands<'a> {
    events: Vec<u8>,
    maker: Maker<'a>,
}

/// For each stack, where in the order of all something is allocated on it first. Behind the stacks of the trace are those of its threads when
/// tracing began.
struct FirstUses(Vec<AtomicU64>);

impl FirstUses {
    fn of(trace: &Trace) -> Self {
        let stacks = trace.stacks.len() + 1 + trace.threads.len();
        Self(std::iter::repeat_with(|| AtomicU64::new(u64::MAX)).take(stacks).collect())
    }

    fn saw(&self, stack: StackId, ticket: Ticket, offset: u32) {
        let place = ticket.0 << WORD_BITS | u64::from(offset >> 2);
        if let Some(first) = self.0.get(stack.0 as usize).filter(|_| stack != StackId::NONE) {
            first.fetch_min(place, Ordering::Relaxed);
        }
    }

    /// The contexts in the order in which they come up.
    fn contexts(self, trace: &Trace) -> (Contexts, Vec<ContextId>) {
        let (mut contexts, mut of_stacks) = (Contexts::default(), StackContexts::default());
        let mut order: Vec<(u64, u32)> = self.0.iter().map(|first| first.load(Ordering::Relaxed)).zip(0..).collect();
        order.retain(|(first, _)| *first != u64::MAX);
        order.sort_unstable();
        let mut all = vec![ContextId::EMPTY; self.0.len()];
        for (_, stack) in order {
            all[stack as usize] = match (stack as usize).checked_sub(trace.stacks.len() + 1) {
                None => of_stacks.of(StackId(stack), &trace.stacks, &mut contexts),
                Some(thread) => {
                    let frames = trace.threads[thread].frames.iter();
                    frames.fold(ContextId::EMPTY, |caller, frame| contexts.call(caller, frame.method))
                }
            };
        }
        (contexts.plain(), all)
    }
}

/// Reads all events. `None`: the trace has to be read in another way.
///
/// # Errors
/// A block that is not of events is damaged.
pub fn index(trace: &Trace) -> Result<Option<Index>, ReadError> {
    // Its buffers change while they are read.
    if trace.file.cut_off().is_some_and(|cut_off| cut_off.still_runs) {
        return Ok(None);
    }
    let mut anomalies = Anomalies::default();
    let initial = Initial::of(trace, &mut anomalies)?;
    // The receivers of frames that were there would otherwise be new.
    let mut receivers = trace.threads.iter().flat_map(|thread| &thread.frames).map(|frame| frame.receiver);
    if !receivers.all(|receiver| receiver.is_null() || initial.times.contains_key(&receiver.0)) {
        return Ok(None);
    }
    let marker = Marker::of(trace)?;
    trace.file.begin_events("reading events");
    Ok(indexed(trace, initial, marker, anomalies))
}

fn indexed(trace: &Trace, initial: Initial, marker: Option<Marker>, mut anomalies: Anomalies) -> Option<Index> {
    let mut pieces = pieces(trace);
    let firsts = FirstUses::of(trace);
    let kept = AtomicUsize::new(0);
    let hands = || Hands { events: Vec::new(), maker: Maker::new(trace) };
    let look = |hands: &mut Hands<'_>, piece| first_look(trace, &pieces, piece, hands, (&firsts, &kept));
    let (mut found, hands) = on_all_cores(pieces.len(), 1, hands, look).ok()?;
    let mut totals = Totals::default();
    let mut records: FxHashMap<u32, u64> = FxHashMap::default();
    for (piece, found) in pieces.iter().zip(&found) {
        for (sum, count) in totals.0.iter_mut().zip(found.totals.0) {
            *sum += count;
            *records.entry(piece.of).or_default() += count;
        }
    }
    for thread in &trace.threads {
        // They are entered when the thread begins.
        let frames = thread.frames.len() as u64;
        totals.0[RecordKind::Entry as usize] += frames;
        *records.entry(thread.index).or_default() += frames;
        anomalies.frames_at_thread_end += if thread.end.is_some() { frames } else { 0 };
    }
    hands.iter().for_each(|hands| anomalies.add(&hands.maker.anomalies));
    let (runs, places) = in_order(&pieces, &mut found)?;
    let mut happened = mirrors(trace, &runs);
    for (piece, found) in found.iter().enumerate() {
        happened.extend(found.perhaps.iter().map(|perhaps| Happened {
            run: places[piece][perhaps.run as usize],
            offset: perhaps.offset,
            births: perhaps.births,
            what: Happening::Asked(perhaps.what),
        }));
    }
    // Fields of initial references are in there already.
    let mut fields = initial.fields;
    for (field, stores) in found.iter().flat_map(|found| &found.fields) {
        fields.stored(*field, *stores, &trace.names, &trace.types, &mut anomalies);
    }
    let given: Vec<Vec<Stretch>> = found.into_iter().map(|found| found.ids).collect();
    let hash_of = |happened: &Happened| match happened.what {
        Happening::Mirror(class, _) => trace.classes.get(class).record.class.0,
        Happening::Born(hash) => hash,
        Happening::Asked(Asked::New(told)) => told.object().0,
        Happening::Asked(Asked::Known(object)) => object.0,
    };
    // What was there when tracing began is known in any case.
    let asked: FxHashSet<u32> = happened.iter().map(hash_of).filter(|hash| !initial.times.contains_key(hash)).collect();
    let Looked { again, pieces: giving } = ids::look(&given, &initial.times, &asked, MOST)?;
    drop(given);
    if !giving.is_empty() {
        trace.file.begin_events("looking for ids that come again");
        let special = Special::of(again.iter().chain(&asked).copied());
        let is_wanted = |hash: u32| special.may_have(hash) && (again.contains(&hash) || asked.contains(&hash));
        let look = |events: &mut Vec<u8>, at: usize| second_look(trace, &pieces, giving[at], events, &is_wanted);
        let (born, _) = on_all_cores(giving.len(), 1, Vec::new, look).ok()?;
        for (piece, born) in giving.into_iter().zip(born) {
            for born in born {
                happened.push(Happened { run: *places[piece].get(born.run as usize)?, ..born });
            }
        }
    }
    // Mirrors of a run are in the order of their classes, which is that of the list.
    happened.sort_by_key(|happened| (happened.run, happened.offset));
    let mut deciding = Deciding {
        times: initial.times,
        maker: Maker::new(trace),
        pieces: &mut pieces,
        firsts: &firsts,
        totals: &mut totals,
        records: &mut records,
        mirrors: Vec::new(),
        again: Vec::new(),
        rest: Before::default(),
    };
    let mut runs = runs;
    deciding.all(&happened, &mut runs, hash_of).ok()?;
    let Deciding { maker, mirrors, again, rest, .. } = deciding;
    anomalies.add(&maker.anomalies);
    totals.0[AllocKind::Initial.record_kind() as usize] += initial.allocs.len() as u64;
    if !initial.allocs.is_empty() {
        *records.entry(0).or_default() += initial.allocs.len() as u64;
    }
    let mut order = Order { initial: initial.allocs, pieces, runs, mirrors, end: Before::default() };
    let fates = order.sum_up(&rest, &again, marker);
    Some(Index { contexts: firsts.contexts(trace), order, totals, records, anomalies, fates })
}

fn pieces(trace: &Trace) -> Vec<Piece> {
    let threads = trace.file.threads().iter().enumerate();
    let pieces = threads.flat_map(|(thread, events)| {
        (0..events.len()).map(move |number| Piece {
            thread,
            number,
            of: events.thread,
            wall: trace.file.wall(events, number),
            base: base(trace, events.thread),
            decided: Vec::new(),
        })
    });
    pieces.collect()
}

/// What stands for the frames that a thread had when tracing began.
fn base(trace: &Trace, thread: u32) -> StackId {
    let place = trace.threads.binary_search_by_key(&thread, |thread| thread.index);
    let place = place.ok().filter(|place| !trace.threads[*place].frames.is_empty());
    place.map_or(StackId::NONE, |place| StackId((trace.stacks.len() + 1 + place) as u32))
}

/// What was there when tracing began.
struct Initial {
    allocs: Vec<Alloc>,
    /// How often ids have been given.
    times: FxHashMap<u32, u32>,
    fields: Fields,
}

impl Initial {
    fn of(trace: &Trace, anomalies: &mut Anomalies) -> Result<Self, ReadError> {
        let maker = Allocs::new(trace);
        let (mut allocs, mut times) = (Vec::new(), FxHashMap::default());
        trace.initial_objects(|object| {
            if !object.object.is_null() && times.insert(object.object.0, 1).is_none() {
                let id = ObjectId(object.object.0.into());
                allocs.push(Alloc { object: id, ..maker.initial(object, anomalies) });
            }
        })?;
        let current = |hash: ObjectHash| times.contains_key(&hash.0).then(|| ObjectId(hash.0.into()));
        let mut fields = Fields::new(&trace.names);
        each_initial_reference(trace, &mut fields, current, |reference| {
            anomalies.bad_initial_references += u64::from(reference.is_none());
        })?;
        Ok(Self { allocs, times, fields })
    }
}

fn load<'e>(trace: &Trace, piece: &Piece, events: &'e mut Vec<u8>) -> Result<Items<'e>, Unfit> {
    let thread = &trace.file.threads()[piece.thread];
    if trace.file.event_bytes(thread, piece.number) > MOST_BYTES {
        return Err(Unfit);
    }
    trace.file.load_events(thread, piece.number, events).map_err(|_| Unfit)?;
    Ok(Items::new(events, 0))
}

fn first_look(
    trace: &Trace,
    pieces: &[Piece],
    number: usize,
    hands: &mut Hands<'_>,
    (firsts, kept): (&FirstUses, &AtomicUsize),
) -> Result<Found, Unfit> {
    let Hands { events, maker } = hands;
    let mut items = load(trace, &pieces[number], events)?;
    let (mut found, mut run) = (Found::default(), None);
    let base = pieces[number].base;
    // The last array of each depth that an instruction has made.
    let mut arrays: Vec<ObjectHash> = Vec::new();
    maker.begin();
    let mut ids = Stretches::default();
    while let Some((offset, item)) = items.next()? {
        if let Item::Ticket(ticket) = item {
            if ticket.0 >= MOST_TICKET {
                return Err(Unfit);
            }
            found.runs.extend(run.replace(Run {
                ticket,
                piece: number as u32,
                offset: items.at as u32,
                births: 0,
                has_records: false,
                bytes: 0,
                before: Before::default(),
            }));
            continue;
        }
        // Pieces begin with a ticket.
        let run = run.as_mut().ok_or(Unfit)?;
        match item {
            Item::Born(told) => {
                let (made, may_be_first) = maker.of(told, run.ticket);
                if may_be_first || base != StackId::NONE {
                    firsts.saw(stack_of(&made, base), run.ticket, offset);
                }
                run.births += 1;
                run.bytes += made.size;
                run.has_records = true;
                found.totals.0[made.kind.record_kind() as usize] += 1;
                ids.add(told.object().0);
                if let ObjectEvent::Array { depth, object, .. } = told {
                    arrays.resize(usize::from(depth) + 1, ObjectHash::NULL);
                    arrays[usize::from(depth)] = object;
                }
            }
            Item::Perhaps(told) => {
                let (run, births) = (found.runs.len() as u32, run.births);
                found.perhaps.push(Perhaps { run, offset, births, what: Asked::New(told) });
            }
            Item::Put { field, origin, target } => {
                run.has_records = true;
                found.totals.0[RecordKind::Update as usize] += 1;
                // Nearly always both have just been made.
                if field.is_some() || !arrays.windows(2).any(|pair| pair == [origin, target]) {
                    let (run, births) = (found.runs.len() as u32, run.births);
                    let named = [origin, target].into_iter().filter(|object| !object.is_null()).map(Asked::Known);
                    found.perhaps.extend(named.map(|what| Perhaps { run, offset, births, what }));
                    if let Some(field) = field {
                        *found.fields.entry(field).or_default() += 1;
                    }
                }
            }
            Item::Ticket(_) | Item::Nothing => {}
        }
    }
    found.runs.extend(run);
    found.ids = ids.finish();
    let more = found.runs.len() + found.perhaps.len() + found.fields.len() + found.ids.len();
    if kept.fetch_add(more, Ordering::Relaxed) > MOST { Err(Unfit) } else { Ok(found) }
}

/// The objects with certain ids, by the runs of the piece.
fn second_look(
    trace: &Trace,
    pieces: &[Piece],
    number: usize,
    events: &mut Vec<u8>,
    is_wanted: &impl Fn(u32) -> bool,
) -> Result<Vec<Happened>, Unfit> {
    let mut items = load(trace, &pieces[number], events)?;
    let (mut found, mut runs, mut births) = (Vec::new(), 0u32, 0);
    while let Some((offset, item)) = items.next()? {
        match item {
            Item::Ticket(_) => (runs, births) = (runs + 1, 0),
            Item::Born(told) => {
                let hash = told.object().0;
                if is_wanted(hash) {
                    let run = runs.checked_sub(1).ok_or(Unfit)?;
                    found.push(Happened { run, offset, births, what: Happening::Born(hash) });
                }
                births += 1;
            }
            Item::Perhaps(_) | Item::Put { .. } | Item::Nothing => {}
        }
    }
    Ok(found)
}

/// The stack of an object, given what stands for that of its thread.
pub fn stack_of(made: &Made, base: StackId) -> StackId {
    if made.stack == StackId::NONE { base } else { made.stack }
}

/// All runs in order, and the place there of each of the runs of a piece. `None` if their tickets do not tell the order.
fn in_order(pieces: &[Piece], found: &mut [Found]) -> Option<(Vec<Run>, Vec<Vec<u32>>)> {
    let count: usize = found.iter().map(|found| found.runs.len()).sum();
    let mut places: Vec<Vec<u32>> = found.iter().map(|found| vec![0; found.runs.len()]).collect();
    let mut runs: Vec<Run> = Vec::with_capacity(count);
    for found in found {
        runs.append(&mut std::mem::take(&mut found.runs));
    }
    let thread = |run: &Run| pieces[run.piece as usize].thread;
    let follows = |one: &Run, other: &Run| thread(one) != thread(other) || one.ticket < other.ticket;
    if !runs.is_sorted_by(follows) {
        return None;
    }
    // Those of a thread are in order already.
    runs.sort_unstable_by_key(|run| run.ticket);
    if !runs.is_sorted_by(|one, other| one.ticket < other.ticket) {
        return None;
    }
    let mut next = vec![0; places.len()];
    for (place, run) in (0..).zip(&runs) {
        let of = &mut next[run.piece as usize];
        places[run.piece as usize][*of] = place;
        *of += 1;
    }
    Some((runs, places))
}

/// The mirrors of all classes: each becomes known before the first ticket behind its record, in the order of the classes.
fn mirrors(trace: &Trace, runs: &[Run]) -> Vec<Happened> {
    let mut latest = Ticket(0);
    let classes = (0..trace.classes.len() as u32).map(ClassIndex);
    let mirrors = classes.filter_map(|class| {
        let record = &trace.classes.get(class).record;
        latest = latest.max(record.ticket);
        let run = runs.partition_point(|run| run.ticket <= latest) as u32;
        let what = Happening::Mirror(class, latest);
        (!record.class.is_null()).then_some(Happened { run, offset: 0, births: 0, what })
    });
    mirrors.collect()
}

/// Decides in order what is new, and what number each id has.
struct Deciding<'d, 'a> {
    /// How often ids have been given, of those that matter.
    times: FxHashMap<u32, u32>,
    maker: Maker<'a>,
    pieces: &'d mut [Piece],
    firsts: &'d FirstUses,
    totals: &'d mut Totals,
    records: &'d mut FxHashMap<u32, u64>,
    mirrors: Vec<Mirror>,
    /// Objects whose id another one had: the run, their number in it, and the id.
    again: Vec<(u32, u64, ObjectId)>,
    /// Objects and bytes behind all runs.
    rest: Before,
}

impl Deciding<'_, '_> {
    fn all(
        &mut self,
        happened: &[Happened],
        runs: &mut [Run],
        hash_of: impl Fn(&Happened) -> u32,
    ) -> Result<(), Unfit> {
        for of_run in happened.chunk_by(|one, other| one.run == other.run) {
            let place = of_run[0].run;
            let mut more = (0u64, 0u64);
            for at in of_run {
                let hash = hash_of(at);
                let is_known = self.times.contains_key(&hash);
                let ordinal = more.0 + u64::from(at.births);
                match at.what {
                    Happening::Born(_) => {}
                    Happening::Asked(Asked::Known(_)) if !is_known => return Err(Unfit),
                    Happening::Mirror(..) | Happening::Asked(_) if is_known => continue,
                    Happening::Asked(Asked::Known(_)) => continue,
                    Happening::Mirror(class, _) => {
                        self.count(AllocKind::Vm, 0);
                        more = (more.0 + 1, more.1 + self.maker.mirror(class).size);
                    }
                    Happening::Asked(Asked::New(told)) => {
                        let run = &mut runs[place as usize];
                        let piece = &self.pieces[run.piece as usize];
                        let made = self.maker.look_up(told, run.ticket);
                        self.firsts.saw(stack_of(&made, piece.base), run.ticket, at.offset);
                        more = (more.0 + 1, more.1 + made.size);
                        run.has_records = true;
                        let of = piece.of;
                        self.count(made.kind, of);
                    }
                }
                let times = self.times.entry(hash).or_default();
                let number = *times;
                *times += 1;
                if number > 0 {
                    self.again.push((place, ordinal, id(ObjectHash(hash), number)));
                }
                match at.what {
                    Happening::Mirror(class, ticket) => {
                        let size = self.maker.mirror(class).size;
                        self.mirrors.push(Mirror { run: place, class, number, ticket, size });
                    }
                    Happening::Born(_) if number == 0 => {}
                    Happening::Born(_) | Happening::Asked(_) => {
                        let piece = runs[place as usize].piece;
                        self.pieces[piece as usize].decided.push(Decided { offset: at.offset, number });
                    }
                }
            }
            match runs.get_mut(place as usize) {
                Some(run) => (run.births, run.bytes) = (run.births + more.0 as u32, run.bytes + more.1),
                None => (self.rest.births, self.rest.bytes) = more,
            }
        }
        Ok(())
    }

    fn count(&mut self, kind: AllocKind, thread: u32) {
        self.totals.0[kind.record_kind() as usize] += 1;
        *self.records.entry(thread).or_default() += 1;
    }
}

impl Order {
    /// Works out what there is before each run, and what walks through the heap say. `rest` is what there is behind all runs.
    fn sum_up(&mut self, rest: &Before, again: &[(u32, u64, ObjectId)], mut marker: Option<Marker>) -> Option<Fates> {
        let mut now = Before { births: self.initial.len() as u64, ..Before::default() };
        let mut again = again.iter().copied().peekable();
        let born = |marker: &mut Option<Marker>, place: u32, now: &Before, again: &mut std::iter::Peekable<_>| {
            while let Some((_, ordinal, id)) = again.next_if(|(run, ..): &(u32, u64, ObjectId)| *run == place) {
                if let Some(marker) = marker {
                    marker.born(id, now.births + ordinal);
                }
            }
        };
        let mut mirrors = self.mirrors.iter().copied().peekable();
        // Mirrors have tickets of their own.
        let mut mirrors_of = |marker: &mut Option<Marker>, place: u32, mut now: Before| {
            while let Some(Mirror { ticket, size, .. }) = mirrors.next_if(|mirror| mirror.run == place) {
                mark(marker, ticket, &now);
                (now.births, now.bytes) = (now.births + 1, now.bytes + size);
            }
            now
        };
        for (place, run) in (0..).zip(&mut self.runs) {
            run.before = now;
            let with_mirrors = mirrors_of(&mut marker, place, now);
            mark(&mut marker, run.ticket, &with_mirrors);
            born(&mut marker, place, &now, &mut again);
            let begin = self.pieces[run.piece as usize].wall.map(|wall| wall.begin).filter(|_| run.has_records);
            now = Before {
                births: now.births + u64::from(run.births),
                bytes: now.bytes + run.bytes,
                time: now.time.max(begin),
            };
        }
        mirrors_of(&mut marker, self.runs.len() as u32, now);
        born(&mut marker, self.runs.len() as u32, &now, &mut again);
        self.end = Before { births: now.births + rest.births, bytes: now.bytes + rest.bytes, ..now };
        marker.map(|marker| marker.finish(self.end.moment(), self.end.births))
    }
}

/// What comes next has this ticket.
fn mark(marker: &mut Option<Marker>, ticket: Ticket, now: &Before) {
    if let Some(marker) = marker {
        marker.at(ticket, || (now.moment(), now.births));
    }
}
