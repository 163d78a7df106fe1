//! Reads a trace up to a moment and keeps what is alive then.

use std::ops::ControlFlow;

use et_names::{FieldId, MethodId, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;

use super::freeze::{self, Freezing, Outside, References};
use super::moment::{Moment, Timeline};
use super::snapshot::{Object, Root, RootKind, Snapshot, Taken, Watched};
use et_names::units::{counted, number};
use et_reader::batch::At;
use et_reader::lifetimes::WeakFields;
use et_reader::model::{Heap, Node, Stack, Stacks};
use et_reader::naming::Naming;
use et_reader::record::{Alloc, AllocKind, ObjectId, Record, ThreadId};
use et_reader::resolve::{ExtraField, Lost};
use et_reader::source::{Deaths, Ending, Reading, Source, SourceError, deaths_unknown};
use et_reader::told::{Hold, Told};
use et_reader::types::{TypeId, Types};

/// Said if weak references are not known.
pub(super) const NO_REFERENT: &str =
    "no names file identifies Reference.referent: weak references count as strong ones";

/// Why no snapshot could be taken.
#[derive(Debug, Error)]
pub enum HeapError {
    #[error(transparent)]
    Read(#[from] SourceError),
    #[error(
        "{path}: references are unknown: the classes have hooks for {events} events only (instrument them again, without --events)"
    )]
    NoReferences { path: String, events: String },
    #[error("{moment} is past the end of the trace, which is at {end}")]
    Beyond { moment: Moment, end: String },
    #[error("{moment}: method {method} was never entered (write it as in `et-trace summary`: com.acme.Main.run)")]
    NoSuchMethod { moment: Moment, method: String },
    #[error("{moment}: {method} was entered only {}", counted(*entries, "time"))]
    FewerEntries { moment: Moment, method: String, entries: u64 },
    #[error("{moment}: the trace has no times: use a percentage, tick:N or bytes:N")]
    NoTimes { moment: Moment },
    #[error("object {object} is not alive at {moment}: it died at tick {}", number(*tick))]
    Dead { object: String, moment: String, tick: u64 },
    #[error("there is no object {object} at {moment}: no record up to that moment mentions it")]
    NoSuchObject { object: String, moment: String },
    #[error("no object of class {class} is alive at {moment} (write it as in `et-trace heap`: com.acme.Session)")]
    NoSuchClass { class: String, moment: String },
}

/// Options for taking a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub moment: Moment,
    /// Read to the end of the trace even if the moment is earlier: only then are deaths that are computed on the way
    /// kept.
    pub read_on: bool,
    /// How to read. Deaths, holders and places are asked for in any case.
    pub reading: Reading,
    /// An object whose fate is to be reported even if it is dead.
    pub watch: Option<ObjectId>,
}

/// Takes the heap at a moment. `Percent` and `Seconds` need a [`Timeline`], which takes an additional reading.
pub fn take<'a>(source: &'a Source, request: &Request) -> Result<Snapshot<'a>, HeapError> {
    references_known(source)?;
    let reading = of_heaps(request.reading);
    let moment = &request.moment;
    match Stop::at(moment) {
        Some(stop) => read(source, request, reading, stop),
        None => {
            let line = Timeline::of(source, Reading { deaths: Deaths::None, holders: false, ..reading })?;
            take_by(source, request, &line)
        }
    }
}

/// As [`take`], by a timeline that is known.
pub fn take_by<'a>(source: &'a Source, request: &Request, line: &Timeline) -> Result<Snapshot<'a>, HeapError> {
    match tick_of(&request.moment, line)? {
        Some(tick) => read(source, request, of_heaps(request.reading), Stop::Tick(tick)),
        None => take(source, request),
    }
}

/// The tick of a moment that a timeline tells, which are shares and times; `None` if it is another.
pub fn tick_of(moment: &Moment, line: &Timeline) -> Result<Option<u64>, HeapError> {
    match *moment {
        Moment::Percent(percent) => Ok(Some(line.tick_of_percent(percent))),
        Moment::Seconds(seconds) => {
            let Some(end) = line.seconds() else { return Err(HeapError::NoTimes { moment: moment.clone() }) };
            let beyond = || HeapError::Beyond { moment: moment.clone(), end: format!("{end:.3}s") };
            line.tick_at(seconds).ok_or_else(beyond).map(Some)
        }
        _ => Ok(None),
    }
}

/// Takes the heap at the end, and in the same reading calls `see` with the heap at each of `moments`, and its number among them, as far as the trace
/// reaches them. They are in the order in which they come: one that is over when the one before it has come is taken at once. Shares and times are
/// not known on the way: the heap at these is that of the end.
pub fn take_on_the_way<'a>(
    source: &'a Source,
    reading: Reading,
    moments: &[Moment],
    mut see: impl FnMut(usize, &Snapshot<'a>),
) -> Result<Snapshot<'a>, HeapError> {
    references_known(source)?;
    let reading = of_heaps(reading);
    let mut left = moments.iter().enumerate();
    let mut next = left.next();
    let stop = |next: Option<(usize, &Moment)>| next.and_then(|(_, moment)| Stop::at(moment)).unwrap_or(Stop::Never);
    let request = Request { read_on: true, ..Request::default() };
    let mut taker = Taker::new(source, stop(next), &request, reading);
    let ending = source.for_each_told(reading, |told, at| {
        let _ = taker.told(told, at);
        while let Some((number, moment)) = next.filter(|_| taker.phase == Phase::Over) {
            taker.moment = moment.clone();
            see(number, &taker.snapshot(at.types, &[], taker.taken(Vec::new(), Lost::default())));
            next = left.next();
            taker.go_on(stop(next));
            let _ = taker.told(told, at);
        }
        ControlFlow::Continue(())
    })?;
    taker.moment = Moment::End;
    taker.go_on(Stop::Never);
    taker.finish(ending)
}

fn references_known(source: &Source) -> Result<(), HeapError> {
    if deaths_unknown(source.events()).is_some() {
        let (path, events) = (source.path().display().to_string(), source.events().to_string());
        return Err(HeapError::NoReferences { path, events });
    }
    Ok(())
}

/// How a trace is read for its heap.
fn of_heaps(reading: Reading) -> Reading {
    Reading { deaths: Deaths::Trace, holders: true, places: true, ..reading }
}

fn read<'a>(source: &'a Source, request: &Request, reading: Reading, stop: Stop) -> Result<Snapshot<'a>, HeapError> {
    let mut taker = Taker::new(source, stop, request, reading);
    let ending = source.for_each_told(reading, |told, at| taker.told(told, at))?;
    taker.finish(ending)
}

/// Where to stop.
#[derive(Debug)]
enum Stop {
    Never,
    Tick(u64),
    Bytes(u64),
    Entry { method: String, left: u64, entries: u64, known: FxHashMap<MethodId, bool> },
}

impl Stop {
    /// Where a moment is; `None` of a share or a time, for which it must be known how long the run was.
    fn at(moment: &Moment) -> Option<Self> {
        Some(match moment {
            Moment::Percent(_) | Moment::Seconds(_) => return None,
            Moment::Tick(tick) => Self::Tick(*tick),
            Moment::Bytes(bytes) => Self::Bytes(*bytes),
            Moment::Entry { method, nth } => {
                Self::Entry { method: method.clone(), left: *nth, entries: 0, known: FxHashMap::default() }
            }
            Moment::End => Self::Never,
        })
    }
}

/// Data about a live object.
#[derive(Clone, Copy, Debug)]
struct Known {
    size: u64,
    ty: TypeId,
    length: u32,
    site: SiteId,
    thread: ThreadId,
    kind: AllocKind,
    born: u64,
}

/// Progress of the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Before,
    /// The moment is reached; deaths at the last record may still follow.
    Reached,
    Over,
}

struct Taker<'a> {
    source: &'a Source,
    naming: Naming<'a>,
    moment: Moment,
    read_on: bool,
    stop: Stop,
    phase: Phase,
    clock: et_reader::record::Clock,
    weak_fields: WeakFields,
    heap: Heap<Known>,
    stacks: Stacks,
    held: FxHashMap<ObjectId, RootKind>,
    /// Threads by their objects, for a text: a thread whose number is reused has ended.
    thread_objects: FxHashMap<ThreadId, ObjectId>,
    loaders: FxHashSet<u32>,
    began: bool,
    /// Whether something has happened since tracing began.
    has_started: bool,
    ticket: u64,
    nanos: Option<u64>,
    tick: u64,
    bytes: u64,
    watch: Option<ObjectId>,
    watched: Watched,
}

impl<'a> Taker<'a> {
    fn new(source: &'a Source, stop: Stop, request: &Request, reading: Reading) -> Self {
        let loaders = match source {
            Source::Trace(trace) => trace.classes.iter().map(|class| class.record.loader.0).collect(),
            Source::Text(_) => FxHashSet::default(),
        };
        Self {
            source,
            naming: source.naming(),
            moment: request.moment.clone(),
            read_on: request.read_on,
            stop,
            phase: Phase::Before,
            clock: source.clock(reading.clock),
            weak_fields: source.weak_fields(),
            heap: Heap::default(),
            stacks: Stacks::default(),
            held: FxHashMap::default(),
            thread_objects: FxHashMap::default(),
            loaders,
            began: false,
            has_started: false,
            ticket: 0,
            nanos: None,
            tick: 0,
            bytes: 0,
            watch: request.watch,
            watched: Watched::Unknown,
        }
    }

    fn told(&mut self, told: &Told, at: &At<'_>) -> ControlFlow<()> {
        if self.phase == Phase::Over {
            return ControlFlow::Continue(());
        }
        let is_of_start = self.is_of_start(told, at);
        let is_here = match self.stop {
            Stop::Tick(tick) => at.tick.0 >= tick,
            // Nothing need be allocated first.
            Stop::Bytes(bytes) => self.bytes >= bytes,
            Stop::Never | Stop::Entry { .. } => false,
        };
        if self.phase == Phase::Before && is_here && !is_of_start {
            self.phase = Phase::Reached;
        }
        match told {
            Told::Record(record) if self.phase == Phase::Reached => return self.behind(record, at.is_clearing),
            Told::Hold(_) if self.phase == Phase::Reached => return self.over(),
            Told::Record(record) => self.record(record, at),
            Told::Hold(hold) => self.hold(*hold),
        }
        ControlFlow::Continue(())
    }

    /// Whether the item describes an initial object, what held it, or that nothing did: no moment precedes these.
    fn is_of_start(&mut self, told: &Told, at: &At<'_>) -> bool {
        self.has_started |= match told {
            Told::Record(Record::Alloc(alloc)) => alloc.kind != AllocKind::Initial,
            // An initial object may be dead before the others are described: the program has not done that.
            Told::Record(Record::Death { .. }) | Told::Hold(_) => false,
            Told::Record(_) => !at.is_clearing,
        };
        !self.has_started
    }

    /// Handles records after the moment: objects that died at the last record before it are dead, and weak references
    /// to them are cleared.
    fn behind(&mut self, record: &Record, is_clearing: bool) -> ControlFlow<()> {
        if is_clearing || matches!(record, Record::Death { .. }) {
            self.apply(record);
            return ControlFlow::Continue(());
        }
        self.over()
    }

    fn over(&mut self) -> ControlFlow<()> {
        self.phase = Phase::Over;
        if self.read_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    #[inline]
    fn record(&mut self, record: &Record, at: &At<'_>) {
        if let Some(ticket) = at.place.ticket() {
            self.ticket = ticket.0;
        }
        if let Some(wall) = at.place.wall() {
            self.nanos = self.nanos.max(Some(wall.begin.0));
        }
        self.tick = at.tick.0 + record.ticks(self.clock);
        self.apply(record);
        if let (Stop::Entry { method, left, entries, known }, Record::Entry { method: entered, .. }) =
            (&mut self.stop, record)
        {
            let naming = self.naming;
            if *known.entry(*entered).or_insert_with(|| naming.method(*entered) == *method) {
                *entries += 1;
                *left -= 1;
                if *left == 0 {
                    self.phase = Phase::Reached;
                }
            }
        }
    }

    fn apply(&mut self, record: &Record) {
        match *record {
            Record::Alloc(Alloc { kind, object, size, ty, site, length, thread, .. }) => {
                self.began |= kind != AllocKind::Initial;
                if kind != AllocKind::Initial {
                    self.bytes += size;
                }
                let born = self.tick;
                self.heap.insert(object, Known { size, ty, length, site, thread, kind, born });
            }
            Record::Update { origin, target, slot, thread, .. } => {
                for id in [origin, target] {
                    self.mentioned(id, thread);
                }
                self.heap.put(origin, slot, target);
            }
            Record::Death { object, .. } => {
                if let Some(node) = self.heap.forget(object) {
                    self.heap.free(node);
                }
                if !self.held.is_empty() {
                    self.held.remove(&object);
                }
            }
            _ => {
                self.stacks.record(record);
                let thread = record.thread();
                for id in record.objects() {
                    self.mentioned(id, thread);
                }
            }
        }
        if let Some(watch) = self.watch
            && record.objects().contains(&watch)
        {
            self.watched = match record {
                Record::Death { .. } => Watched::Dead { tick: self.tick },
                _ => Watched::Alive,
            };
        }
    }

    #[inline]
    fn mentioned(&mut self, id: ObjectId, thread: ThreadId) {
        if let Some(node) = self.heap.node(id) {
            self.heap.data(node).thread = thread;
        }
    }

    fn hold(&mut self, hold: Hold) {
        match hold {
            Hold::Initial { origin, slot, target } => _ = self.heap.put(origin, slot, target),
            Hold::Until { object, thread } => {
                if self.thread_objects.insert(thread, object).is_some() && matches!(self.source, Source::Text(_)) {
                    self.thread_objects.remove(&thread);
                }
            }
            Hold::ToTheEnd { object } => {
                let is_loader = object.identity_hash().is_some_and(|hash| self.loaders.contains(&hash));
                let kind = match (is_loader, self.began) {
                    (true, _) => RootKind::Loader,
                    (false, true) => RootKind::Constant,
                    (false, false) => RootKind::Vm,
                };
                self.held.entry(object).or_insert(kind);
            }
        }
    }

    /// Why the moment did not come, if it did not.
    fn missed(&self) -> Option<HeapError> {
        if self.phase != Phase::Before {
            return None;
        }
        let moment = self.moment.clone();
        match &self.stop {
            Stop::Never => None,
            Stop::Tick(tick) if *tick <= self.tick => None,
            Stop::Tick(_) => Some(HeapError::Beyond { moment, end: format!("tick {}", number(self.tick)) }),
            Stop::Bytes(bytes) if *bytes <= self.bytes => None,
            Stop::Bytes(_) => {
                Some(HeapError::Beyond { moment, end: format!("{} bytes allocated", number(self.bytes)) })
            }
            Stop::Entry { method, entries: 0, .. } => Some(HeapError::NoSuchMethod { moment, method: method.clone() }),
            &Stop::Entry { ref method, entries, .. } => {
                Some(HeapError::FewerEntries { moment, method: method.clone(), entries })
            }
        }
    }

    /// The moment has passed; the next is to come.
    fn go_on(&mut self, stop: Stop) {
        (self.phase, self.stop) = (Phase::Before, stop);
    }

    fn finish(self, ending: Ending) -> Result<Snapshot<'a>, HeapError> {
        if let Some(error) = self.missed() {
            return Err(error);
        }
        let types = self.source.types_at(&ending);
        let mut warnings = ending.warnings.clone();
        if !self.source.tells_holders() {
            warnings.push(
                "the text does not say what the VM holds: its objects count as held by local variables".to_owned(),
            );
        }
        if self.weak_fields.referent.is_none() {
            warnings.push(NO_REFERENT.to_owned());
        }
        let taken = self.taken(warnings, ending.outcome.lost);
        Ok(self.snapshot(types, &ending.outcome.extra_fields, taken))
    }

    fn taken(&self, warnings: Vec<String>, lost: Lost) -> Taken {
        Taken {
            moment: self.moment.to_string(),
            tick: self.tick,
            allocated_bytes: self.bytes,
            seconds: self.nanos.map(|nanos| nanos as f64 / 1e9),
            watched: self.watched,
            warnings,
            lost,
        }
    }

    fn snapshot(&self, types: &Types, extra_fields: &[ExtraField], taken: Taken) -> Snapshot<'a> {
        // Number of each heap node in the snapshot.
        let mut numbers: Vec<u32> = Vec::new();
        let mut freezing = Freezing::new(self.source, &self.weak_fields, self.heap.len());
        for (node, object) in self.heap.iter() {
            numbers.resize(node.0 as usize, GONE);
            numbers.push(freezing.len() as u32);
            let Known { size, ty, length, site, thread, kind, born } = object.data;
            freezing.object(ty, types, |class| Object { id: object.id, size, class, length, site, thread, kind, born });
        }
        let number = |node: Node| numbers.get(node.0 as usize).copied().filter(|&number| number != GONE).map(Node);
        let find = |id: ObjectId| self.heap.find(id).and_then(number);
        let statics = self.heap.statics().filter_map(|(field, target)| Some((FieldId(field), number(target)?)));
        let running = self.threads_running();
        let hashes = running.iter().map(|&(.., hash)| hash);
        let named = freezing.named(hashes);
        let threads: Vec<(ThreadId, Option<Node>)> = running
            .iter()
            .map(|&(thread, object, hash)| (thread, object.and_then(find).or_else(|| named.get(&hash).copied())))
            .collect();
        let mut stacks: Vec<(ThreadId, Stack)> =
            self.stacks.iter().map(|(thread, stack)| (thread, stack.clone())).collect();
        stacks.retain(|(_, stack)| !stack.frames.is_empty());
        stacks.sort_unstable_by_key(|&(thread, _)| thread);
        let of_stack = |(thread, stack): &(ThreadId, Stack)| {
            let frames = stack.frames.iter().map(|frame| (frame.method, find(frame.receiver)));
            freeze::stack_roots(*thread, frames, find(stack.in_flight))
        };
        let mut roots: Vec<Root> = stacks.iter().flat_map(of_stack).collect();
        let mut add = |kind, node: Option<Node>| roots.extend(node.map(|node| Root { kind, node }));
        threads.iter().for_each(|&(thread, object)| add(RootKind::Thread(thread), object));
        self.held.iter().for_each(|(&object, &kind)| add(kind, find(object)));
        let outside = Outside { roots, stacks, threads, unheld: |_, thread| RootKind::Local(thread) };
        let mut edges = 0;
        self.heap.iter().for_each(|(_, object)| object.refs().for_each(|_| edges += 1));
        let mut objects = self.heap.iter();
        let next_slots = |slots: &mut Vec<(u32, u32)>| {
            let Some((_, object)) = objects.next() else { return };
            object.refs().for_each_slot(|slot, target| slots.extend(number(target).map(|target| (slot, target.0))));
            // Fields are in no order, elements are.
            slots.sort_unstable_by_key(|&(slot, _)| slot);
        };
        let references = References { statics: statics.collect(), count: edges, next_slots };
        freezing.freeze(&named, references, outside, extra_fields, taken)
    }

    /// Running threads, with the ids of their objects as far as they are known.
    fn threads_running(&self) -> Vec<(ThreadId, Option<ObjectId>, u32)> {
        match self.source {
            Source::Trace(trace) => {
                let of = |thread: &et_reader::Thread| {
                    let id = ThreadId(thread.index);
                    (id, self.thread_objects.get(&id).copied(), thread.object.0)
                };
                freeze::threads_running(trace, self.ticket).map(of).collect()
            }
            Source::Text(_) => {
                let mut all: Vec<_> =
                    self.thread_objects.iter().map(|(&thread, &object)| (thread, Some(object), 0)).collect();
                all.sort_unstable();
                all
            }
        }
    }
}

const GONE: u32 = u32::MAX;
