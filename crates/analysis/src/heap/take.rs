//! Reads a trace up to a moment and keeps what is alive then.

use std::ops::ControlFlow;

use et_names::{FieldId, MethodId, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;

use super::graph::Graph;
use super::moment::{Moment, Timeline};
use super::snapshot::{Class, ClassNumber, Object, Root, RootKind, Snapshot, Taken, Watched};
use et_names::units::{counted, number};
use et_reader::Trace;
use et_reader::batch::At;
use et_reader::lifetimes::WeakFields;
use et_reader::model::{Heap, Node, Stack, Stacks};
use et_reader::naming::Naming;
use et_reader::record::{Alloc, AllocKind, ObjectId, Record, ThreadId};
use et_reader::resolve::{ExtraField, Lost};
use et_reader::source::{Deaths, Ending, Reading, Source, SourceError, deaths_unknown};
use et_reader::told::{Hold, Told};
use et_reader::types::{TypeId, Types};

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
    let stop = match moment {
        Moment::Percent(_) | Moment::Seconds(_) => {
            let line = Timeline::of(source, Reading { deaths: Deaths::None, holders: false, ..reading })?;
            return take_by(source, request, &line);
        }
        Moment::Tick(tick) => Stop::Tick(*tick),
        Moment::Bytes(bytes) => Stop::Bytes(*bytes),
        Moment::Entry { method, nth } => {
            Stop::Entry { method: method.clone(), left: *nth, entries: 0, known: FxHashMap::default() }
        }
        Moment::End => Stop::Never,
    };
    read(source, request, reading, stop)
}

/// As [`take`], by a timeline that is known.
pub fn take_by<'a>(source: &'a Source, request: &Request, line: &Timeline) -> Result<Snapshot<'a>, HeapError> {
    let moment = &request.moment;
    let tick = match *moment {
        Moment::Percent(percent) => line.tick_of_percent(percent),
        Moment::Seconds(seconds) => {
            let Some(end) = line.seconds() else { return Err(HeapError::NoTimes { moment: moment.clone() }) };
            let beyond = || HeapError::Beyond { moment: moment.clone(), end: format!("{end:.3}s") };
            line.tick_at(seconds).ok_or_else(beyond)?
        }
        _ => return take(source, request),
    };
    read(source, request, of_heaps(request.reading), Stop::Tick(tick))
}

/// Takes the heap at the end, and in the same reading calls `see` with the heap at each of `ticks`, which are in
/// ascending order, as far as the trace reaches them.
pub fn take_on_the_way<'a>(
    source: &'a Source,
    reading: Reading,
    ticks: &[u64],
    mut see: impl FnMut(u64, &Snapshot<'a>),
) -> Result<Snapshot<'a>, HeapError> {
    references_known(source)?;
    let reading = of_heaps(reading);
    let mut left = ticks.iter().copied();
    let mut next = left.next();
    let request = Request { read_on: true, ..Request::default() };
    let mut taker = Taker::new(source, next.map_or(Stop::Never, Stop::Tick), &request, reading);
    let ending = source.for_each_told(reading, |told, at| {
        let _ = taker.told(told, at);
        while let Some(tick) = next.filter(|_| taker.phase == Phase::Over) {
            taker.moment = Moment::Tick(tick);
            see(tick, &taker.snapshot(at.types, &[], taker.taken(Vec::new(), Lost::default())));
            next = left.next();
            taker.go_on(next.map_or(Stop::Never, Stop::Tick));
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
            clock: reading.clock,
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
        let is_of_start = self.is_of_start(told);
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

    /// Whether the item describes an initial object or what held it: no moment precedes these.
    fn is_of_start(&mut self, told: &Told) -> bool {
        self.has_started |= match told {
            Told::Record(Record::Alloc(alloc)) => alloc.kind != AllocKind::Initial,
            Told::Record(_) => true,
            Told::Hold(_) => false,
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
        self.tick = at.tick.0 + u64::from(record.ticks_of(self.clock));
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
                let is_loader = object.0 >> 62 == 0 && self.loaders.contains(&(object.0 as u32 & 0x7fff_ffff));
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
        let types = match self.source {
            Source::Trace(trace) => &*trace.types,
            Source::Text(_) => &ending.text_types,
        };
        let mut warnings = ending.warnings.clone();
        if !self.source.tells_holders() {
            warnings.push(
                "the text does not say what the VM holds: its objects count as held by local variables".to_owned(),
            );
        }
        if self.weak_fields.referent.is_none() {
            warnings
                .push("no names file identifies Reference.referent: weak references count as strong ones".to_owned());
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
        let threads = self.threads_running();
        Freezing::new(&self.heap, types, &self.weak_fields, self.source).freeze(self, &threads, extra_fields, taken)
    }

    /// Running threads, with the ids of their objects as far as they are known.
    fn threads_running(&self) -> Vec<(ThreadId, Option<ObjectId>, u32)> {
        match self.source {
            Source::Trace(trace) => {
                let is_running = |thread: &&et_reader::Thread| {
                    thread.start.0 <= self.ticket && thread.end.is_none_or(|end| end.0 > self.ticket)
                };
                let of = |thread: &et_reader::Thread| {
                    let id = ThreadId(thread.index);
                    (id, self.thread_objects.get(&id).copied(), thread.object.0)
                };
                trace.threads.iter().filter(is_running).map(of).collect()
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

/// Makes a snapshot of a heap: nodes without gaps, and few bytes for each.
struct Freezing<'h, 'a> {
    heap: &'h Heap<Known>,
    source: &'a Source,
    referent: Option<u32>,
    /// Number of each heap node in the snapshot.
    numbers: Vec<u32>,
    objects: Vec<Object>,
    classes: Vec<Class>,
    /// By class: whether the referent of its objects is weak.
    has_weak: Vec<bool>,
    class_class: Option<ClassNumber>,
}

const GONE: u32 = u32::MAX;

impl<'h, 'a> Freezing<'h, 'a> {
    fn new(heap: &'h Heap<Known>, types: &Types, weak: &WeakFields, source: &'a Source) -> Self {
        let mut freezing = Self {
            heap,
            source,
            referent: weak.referent.map(|field| field.0),
            numbers: Vec::new(),
            objects: Vec::with_capacity(heap.len()),
            classes: Vec::new(),
            has_weak: Vec::new(),
            class_class: None,
        };
        let mut numbers: FxHashMap<TypeId, ClassNumber> = FxHashMap::default();
        for (node, object) in heap.iter() {
            freezing.numbers.resize(node.0 as usize, GONE);
            freezing.numbers.push(freezing.objects.len() as u32);
            let Known { size, ty, length, site, thread, kind, born } = object.data;
            let class = *numbers.entry(ty).or_insert_with(|| freezing.class(types.descriptor(ty), weak));
            freezing.objects.push(Object { id: object.id, size, class, length, site, thread, kind, born });
        }
        freezing
    }

    fn class(&mut self, descriptor: &str, weak: &WeakFields) -> ClassNumber {
        let number = ClassNumber(self.classes.len() as u32);
        let is_array = descriptor.starts_with('[');
        self.has_weak.push(!is_array && !weak.final_references.contains(descriptor));
        self.classes.push(Class { descriptor: descriptor.to_owned(), is_array });
        if descriptor == "Ljava/lang/Class;" {
            self.class_class = Some(number);
        }
        number
    }

    fn number(&self, node: Node) -> Option<Node> {
        self.numbers.get(node.0 as usize).copied().filter(|&number| number != GONE).map(Node)
    }

    /// Where objects with these hashes are: the youngest of each.
    fn by_hash(&self, wanted: &FxHashSet<u32>) -> FxHashMap<u32, Node> {
        let mut found: FxHashMap<u32, Node> = FxHashMap::default();
        for (node, object) in (0..).map(Node).zip(&self.objects) {
            let hash = object.id.0 as u32 & 0x7fff_ffff;
            if object.id.0 >> 62 == 0 && wanted.contains(&hash) {
                let known = found.entry(hash).or_insert(node);
                if self.objects[known.0 as usize].id < object.id {
                    *known = node;
                }
            }
        }
        found
    }

    fn freeze(
        mut self,
        taker: &Taker<'a>,
        threads: &[(ThreadId, Option<ObjectId>, u32)],
        extra_fields: &[ExtraField],
        taken: Taken,
    ) -> Snapshot<'a> {
        let mut wanted: FxHashSet<u32> = threads.iter().map(|&(_, _, hash)| hash).collect();
        let trace = self.source.trace();
        wanted.extend(trace.into_iter().flat_map(|trace| trace.classes.iter().map(|class| class.record.class.0)));
        wanted.remove(&0);
        let by_hash = self.by_hash(&wanted);
        let mirrors = trace.map(|trace| self.mirrors(trace, &by_hash)).unwrap_or_default();
        let statics = self.statics(trace, &mirrors);
        let (graph, weak) = self.graph(&statics);
        let threads: Vec<(ThreadId, Option<Node>)> = threads
            .iter()
            .map(|&(thread, object, hash)| {
                let object = object.and_then(|object| self.heap.find(object)).and_then(|node| self.number(node));
                (thread, object.or_else(|| by_hash.get(&hash).copied()))
            })
            .collect();
        let mut stacks: Vec<(ThreadId, Stack)> =
            taker.stacks.iter().map(|(thread, stack)| (thread, stack.clone())).collect();
        stacks.retain(|(_, stack)| !stack.frames.is_empty());
        stacks.sort_unstable_by_key(|&(thread, _)| thread);
        let mut snapshot = Snapshot {
            naming: taker.naming,
            extra_fields: extra_fields.to_vec(),
            roots: self.roots(taker, &statics, &stacks, &threads),
            objects: std::mem::take(&mut self.objects),
            classes: std::mem::take(&mut self.classes),
            graph,
            weak,
            static_fields: statics.iter().map(|(field, ..)| field.0).collect(),
            statics,
            mirrors,
            stacks,
            threads,
            thread_names: thread_names(trace),
            taken,
        };
        add_locals(&mut snapshot);
        snapshot.roots.sort_unstable();
        // What a mirror holds needs no root of its own.
        for root in &snapshot.roots {
            let through_mirror = |field| {
                let at = snapshot.statics.binary_search_by_key(&field, |(field, ..)| *field);
                at.is_ok_and(|at| snapshot.statics[at].1.is_some())
            };
            if !matches!(root.kind, RootKind::Static(field) if through_mirror(field)) {
                snapshot.graph.edge(0, root.node.0);
            }
        }
        snapshot.graph.end_node();
        snapshot
    }

    fn mirrors(&self, trace: &Trace, by_hash: &FxHashMap<u32, Node>) -> Vec<(Node, String)> {
        let mut mirrors: Vec<(Node, String)> = Vec::new();
        for class in trace.classes.iter() {
            if let Some(&node) = by_hash.get(&class.record.class.0)
                && Some(self.objects[node.0 as usize].class) == self.class_class
            {
                mirrors.push((node, class.record.signature.clone()));
            }
        }
        // If mirrors of several classes had the same id one after the other, the last counts.
        mirrors.reverse();
        mirrors.sort_by_key(|&(node, _)| node);
        mirrors.dedup_by_key(|(node, _)| *node);
        mirrors
    }

    /// Static fields, ordered by field.
    fn statics(&self, trace: Option<&Trace>, mirrors: &[(Node, String)]) -> Vec<(FieldId, Option<Node>, Node)> {
        // The first class of a name is the one that its fields count for.
        let mut of_type: FxHashMap<&str, Node> = FxHashMap::default();
        mirrors.iter().for_each(|(node, descriptor)| _ = of_type.entry(descriptor).or_insert(*node));
        let mut statics: Vec<(FieldId, Option<Node>, Node)> = self
            .heap
            .statics()
            .filter_map(|(field, target)| {
                let target = self.number(target)?;
                let class =
                    trace.and_then(|trace| trace.names.class_of_field(FieldId(field)).map(|class| (trace, class)));
                let mirror = class.and_then(|(trace, class)| {
                    let descriptor = trace.types.descriptor(trace.names.type_of(class));
                    of_type.get(descriptor).copied()
                });
                Some((FieldId(field), mirror, target))
            })
            .collect();
        statics.sort_unstable();
        statics
    }

    /// The references, all but those from the root.
    fn graph(&self, statics: &[(FieldId, Option<Node>, Node)]) -> (Graph, Vec<(Node, FieldId, Node)>) {
        let mut edges = 0;
        for (_, object) in self.heap.iter() {
            object.refs().for_each(|_| edges += 1);
        }
        let mut of_mirrors: Vec<(Node, FieldId, Node)> =
            statics.iter().filter_map(|&(field, mirror, target)| Some((mirror?, field, target))).collect();
        of_mirrors.sort_unstable();
        let mut of_mirrors = of_mirrors.into_iter().peekable();
        let (mut graph, mut weak) = (Graph::with_capacity(self.objects.len(), edges + statics.len()), Vec::new());
        let mut slots = Vec::new();
        for (from, (node, object)) in (0..).map(Node).zip(self.heap.iter()) {
            debug_assert_eq!(self.number(node), Some(from));
            object.refs().for_each_slot(|slot, target| slots.push((slot, target)));
            // Fields are in no order, elements are.
            slots.sort_unstable_by_key(|&(slot, _)| slot);
            let class = self.objects[from.0 as usize].class.0 as usize;
            for (slot, target) in slots.drain(..) {
                let Some(target) = self.number(target) else { continue };
                if Some(slot) == self.referent && self.has_weak[class] {
                    weak.push((from, FieldId(slot), target));
                } else {
                    graph.edge(slot, target.0);
                }
            }
            while let Some((_, field, target)) = of_mirrors.next_if(|&(mirror, ..)| mirror == from) {
                graph.edge(field.0, target.0);
            }
            graph.end_node();
        }
        (graph, weak)
    }

    /// All that is known to hold objects from outside.
    fn roots(
        &self,
        taker: &Taker<'_>,
        statics: &[(FieldId, Option<Node>, Node)],
        stacks: &[(ThreadId, Stack)],
        threads: &[(ThreadId, Option<Node>)],
    ) -> Vec<Root> {
        let node = |id: ObjectId| self.heap.find(id).and_then(|node| self.number(node));
        let mut roots: Vec<Root> = Vec::new();
        let mut add = |kind, node: Option<Node>| roots.extend(node.map(|node| Root { kind, node }));
        statics.iter().for_each(|&(field, _, target)| add(RootKind::Static(field), Some(target)));
        for (thread, stack) in stacks {
            let thread = *thread;
            for (depth, frame) in (0..).zip(&stack.frames) {
                add(RootKind::Receiver { thread, depth, method: frame.method }, node(frame.receiver));
            }
            if let Some(top) = stack.top() {
                let depth = stack.frames.len() as u32 - 1;
                add(RootKind::Exception { thread, depth, method: top.method }, node(stack.in_flight));
            }
        }
        threads.iter().for_each(|&(thread, object)| add(RootKind::Thread(thread), object));
        taker.held.iter().for_each(|(&object, &kind)| add(kind, node(object)));
        for (node, object) in (0..).map(Node).zip(&self.objects) {
            if Some(object.class) == self.class_class {
                add(RootKind::Class, Some(node));
            }
        }
        roots
    }
}

fn thread_names(trace: Option<&Trace>) -> Vec<(ThreadId, String)> {
    let threads = trace.map(|trace| &*trace.threads).unwrap_or_default();
    threads.iter().map(|thread| (ThreadId(thread.index), thread.name.clone())).collect()
}

/// Adds roots for what is alive though nothing that is recorded holds it. Of objects that hold each other in a circle it is the first.
fn add_locals(snapshot: &mut Snapshot<'_>) {
    let (graph, objects) = (&snapshot.graph, &snapshot.objects);
    let mut reached = vec![false; objects.len()];
    let mut stack: Vec<u32> = Vec::new();
    let mut follow = |from: u32, reached: &mut [bool]| {
        stack.push(from);
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut reached[node as usize], true) {
                stack.extend(graph.targets(node).iter().filter(|&&target| !reached[target as usize]));
            }
        }
    };
    for root in &snapshot.roots {
        follow(root.node.0, &mut reached);
    }
    let mut is_held = vec![false; objects.len()];
    for from in (0..objects.len() as u32).filter(|&from| !reached[from as usize]) {
        for &target in graph.targets(from) {
            is_held[target as usize] |= target != from;
        }
    }
    let mut locals = Vec::new();
    for in_circles in [false, true] {
        for node in 0..objects.len() as u32 {
            if !reached[node as usize] && (in_circles || !is_held[node as usize]) {
                locals.push(Root { kind: RootKind::Local(objects[node as usize].thread), node: Node(node) });
                follow(node, &mut reached);
            }
        }
    }
    snapshot.roots.extend(locals);
}
