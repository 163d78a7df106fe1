//! Totals over the records.

use std::hash::Hash;

use et_names::MethodId;
use rustc_hash::FxHashMap;

use super::Amount;
use super::code::{Callers, Code, NONE, Origin, PackageId};
use super::held::Held;
use super::lives::{Life, LifetimeSum, Lives, Made};
use super::rows::{KindCounts, Origins, Row};
use et_reader::made_in::{MadeIn, Places};
use et_reader::model::Stacks;
use et_reader::record::{Alloc, AllocKind, ObjectId, Record, ThreadId, Tick};
use et_reader::source::{At, Source};
use et_reader::types::Types;

/// Statistics of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadTally {
    pub id: ThreadId,
    pub records: u64,
    pub allocated: Amount,
}

/// The most bytes that were alive.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakTally {
    pub live: Amount,
    pub tick: u64,
    /// Bytes allocated by then.
    pub made_bytes: u64,
    /// Where the object was made that came last.
    pub caller: MethodId,
}

/// What was alive at a tick, by row.
#[derive(Debug)]
struct Sample {
    tick: u64,
    alive: Vec<Amount>,
}

/// Samples that are kept at most; then every second goes.
const SAMPLES: usize = 32;

/// All statistics.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub code: Code<'a>,
    pub rows: Vec<Row>,
    numbers: FxHashMap<Origins, u32>,
    places: Places<'a>,
    /// The methods of places.
    methods: FxHashMap<MadeIn, MethodId>,
    source: &'a Source,
    pub kinds: [Amount; AllocKind::ALL.len()],
    made_bytes: u64,
    pub threads: Vec<ThreadTally>,
    thread_numbers: FxHashMap<ThreadId, usize>,
    current: usize,
    stacks: Stacks<Callers>,
    /// `None` if deaths are unknown.
    pub lives: Option<Lives>,
    live: Amount,
    pub peak: PeakTally,
    samples: Vec<Sample>,
    sample_every: u64,
    held: Held,
    last_tick: u64,
}

impl<'a> Tally<'a> {
    pub fn new(source: &'a Source, with_lives: bool) -> Self {
        Self {
            code: Code::of(source),
            rows: Vec::new(),
            numbers: FxHashMap::default(),
            places: Places::new(source.naming()),
            methods: FxHashMap::default(),
            source,
            kinds: Default::default(),
            made_bytes: 0,
            threads: vec![ThreadTally::default()],
            thread_numbers: FxHashMap::from_iter([(ThreadId(0), 0)]),
            current: 0,
            stacks: Stacks::default(),
            lives: with_lives.then(Lives::default),
            live: Amount::default(),
            peak: PeakTally { live: Amount::default(), tick: 0, made_bytes: 0, caller: NONE },
            samples: Vec::new(),
            sample_every: 64,
            held: Held::default(),
            last_tick: 0,
        }
    }

    pub fn record(&mut self, record: &Record, at: &At<'_>) {
        let tick = at.tick;
        self.last_tick = tick.0;
        if let Record::Death { object, .. } = *record {
            // The thread in which an object died has not necessarily done anything with it.
            self.death(object, tick);
            return;
        }
        if at.is_clearing {
            return;
        }
        let thread = record.thread();
        if thread != self.threads[self.current].id {
            self.switch_to(thread);
        }
        self.threads[self.current].records += 1;
        if self.lives.is_some() {
            // Weak references are cleared between deaths.
            if !matches!(record, Record::Update { target: ObjectId::NULL, .. }) {
                self.held.end_of_batch();
            }
            self.sample(tick);
            self.mention(record, tick);
        }
        match *record {
            Record::Entry { method, .. } => self.enter(record, method),
            Record::Alloc(alloc) => self.made(&alloc, record.kind() as usize, at.types, tick),
            _ => self.stacks.record(record),
        }
    }

    fn switch_to(&mut self, thread: ThreadId) {
        let threads = &mut self.threads;
        self.current = *self.thread_numbers.entry(thread).or_insert_with(|| {
            threads.push(ThreadTally { id: thread, ..ThreadTally::default() });
            threads.len() - 1
        });
    }

    fn enter(&mut self, record: &Record, method: MethodId) {
        let origin = self.code.enter(method);
        self.stacks.record_with(record, |below| {
            let below = below.map(|frame| frame.data).unwrap_or_default();
            Callers {
                outside: if origin == Origin::Jdk { below.outside } else { method },
                program: if origin == Origin::Program { method } else { below.program },
            }
        });
    }

    fn method_of(&mut self, place: MadeIn) -> MethodId {
        let source = self.source;
        *self.methods.entry(place).or_insert_with(|| place.method(source.naming()).unwrap_or(NONE))
    }

    fn made(&mut self, alloc: &Alloc, kind: usize, types: &Types, tick: Tick) {
        self.kinds[kind].add(alloc.size);
        let is_initial = alloc.kind == AllocKind::Initial;
        let mut made = Made::Before(alloc.ty);
        let top = self.stacks.top(alloc.thread).map(|(at, frame)| (at, *frame));
        let (outside, program, method) =
            top.map_or((NONE, NONE, NONE), |(_, top)| (top.data.outside, top.data.program, top.method));
        let nearest = if outside == NONE { method } else { outside };
        if !is_initial {
            self.made_bytes += alloc.size;
            self.threads[self.current].allocated.add(alloc.size);
            let place = self.places.on_stack(alloc.into(), self.stacks.methods(alloc.thread), types);
            let method = self.method_of(place);
            let caller = match method {
                NONE => nearest,
                _ => match self.code.origin(method) {
                    Origin::Program => NONE,
                    Origin::Library => program,
                    Origin::Jdk => outside,
                },
            };
            let key = Origins { made_in: place, caller, ty: alloc.ty };
            let rows = &mut self.rows;
            let at = *self.numbers.entry(key).or_insert_with(|| {
                rows.push(Row {
                    key,
                    made: Amount::default(),
                    kinds: KindCounts::default(),
                    alive: Amount::default(),
                    lifetime: LifetimeSum::default(),
                });
                rows.len() as u32 - 1
            });
            let row = &mut self.rows[at as usize];
            row.made.add(alloc.size);
            row.kinds[kind] += 1;
            made = Made::Traced(at);
        }
        let Some(lives) = &mut self.lives else { return };
        lives.born(alloc.object, Life::new(tick.0, alloc.size, made, top.map(|(at, _)| at)));
        if let Made::Traced(number) = made {
            self.rows[number as usize].alive.add(alloc.size);
        }
        self.live.add(alloc.size);
        if self.live.bytes > self.peak.live.bytes {
            self.peak = PeakTally { live: self.live, tick: tick.0, made_bytes: self.made_bytes, caller: nearest };
        }
    }

    fn death(&mut self, object: ObjectId, tick: Tick) {
        let Some(life) = self.lives.as_mut().and_then(|lives| lives.died(object)) else { return };
        self.live.remove(life.size);
        let Made::Traced(number) = life.made else { return };
        let row = &mut self.rows[number as usize];
        row.alive.remove(life.size);
        row.lifetime.died(&life, tick.0);
        let holder = life.holder.filter(|holder| self.stacks.running(*holder).is_some());
        self.held.died(number, life.size, holder, &self.stacks);
    }

    /// Handles mentions. An update does not use its target, but the method had a reference to it.
    fn mention(&mut self, record: &Record, tick: Tick) {
        let frame = self.stacks.top(record.thread()).map(|(at, _)| at);
        let Some(lives) = &mut self.lives else { return };
        let (now, stacks) = (Some(tick.0), &self.stacks);
        match *record {
            Record::Alloc(_) => {}
            Record::Update { origin, target, .. } => {
                lives.mentioned(origin, now, frame, stacks);
                lives.mentioned(target, None, frame, stacks);
            }
            // The frame is about to end.
            Record::Exit { receiver, .. } => lives.mentioned(receiver, now, None, stacks),
            Record::ExitThrow { receiver, exception, .. } => {
                lives.mentioned(receiver, now, None, stacks);
                lives.mentioned(exception, now, None, stacks);
            }
            Record::Entry { .. }
            | Record::Throw { .. }
            | Record::Handle { .. }
            | Record::Death { .. }
            | Record::Use { .. } => {
                record.objects().into_iter().for_each(|object| lives.mentioned(object, now, frame, stacks));
            }
        }
    }

    fn sample(&mut self, tick: Tick) {
        let due = self.samples.last().map_or(0, |last| last.tick + self.sample_every);
        if tick.0 < due.max(self.sample_every) {
            return;
        }
        if self.samples.len() == SAMPLES {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.sample_every *= 2;
        }
        self.samples.push(Sample { tick: tick.0, alive: self.rows.iter().map(|row| row.alive).collect() });
    }

    /// The tick nearest to the middle for which it is known what was alive, and that by row; rows added later are
    /// missing.
    pub fn middle(&self) -> (u64, &[Amount]) {
        let nearest = self.samples.iter().min_by_key(|sample| (sample.tick * 2).abs_diff(self.last_tick));
        nearest.map_or((0, &[]), |sample| (sample.tick, &sample.alive))
    }

    /// Objects and bytes that are there at the end, those included that were there before.
    pub fn alive_at_end(&self) -> Amount {
        self.live
    }

    /// Objects that local variables of methods running at the end may have held: method, row of the object, and what
    /// died with it.
    pub fn held_by_locals(&self) -> impl Iterator<Item = (MethodId, u32, Amount)> + '_ {
        self.held.at_end(&self.stacks)
    }

    /// Where an object is from that is alive at the end, and what these come to, it included.
    pub fn alive(&self, object: ObjectId, with: &[ObjectId]) -> Option<(Made, Amount)> {
        let lives = self.lives.as_ref()?;
        let mut amount = Amount::default();
        with.iter().filter_map(|&object| lives.get(object)).for_each(|life| amount.add(life.size));
        Some((lives.get(object)?.made, amount))
    }

    /// The package on whose behalf a row's objects were allocated.
    pub fn package_of(&mut self, key: Origins) -> PackageId {
        let method = match self.method_of(key.made_in) {
            NONE => key.caller,
            method if self.code.origin(method) == Origin::Jdk && key.caller != NONE => key.caller,
            method => method,
        };
        if method == NONE { PackageId::JVM } else { self.code.package_of(method) }
    }

    /// Whose code a place is in.
    pub fn origin_of(&mut self, place: MadeIn) -> Origin {
        match self.method_of(place) {
            NONE => Origin::Jdk,
            method => self.code.origin(method),
        }
    }

    /// All objects made while tracing was on.
    pub fn allocated(&self) -> Amount {
        let mut all = Amount::default();
        for (kind, amount) in AllocKind::ALL.iter().zip(&self.kinds) {
            if *kind != AllocKind::Initial {
                all += *amount;
            }
        }
        all
    }

    /// Sums of rows with the same key.
    pub fn by<K: Eq + Hash>(&self, key: impl Fn(&Row) -> K) -> FxHashMap<K, (Amount, KindCounts)> {
        let mut sums: FxHashMap<K, (Amount, KindCounts)> = FxHashMap::default();
        for row in &self.rows {
            let (amount, kinds) = sums.entry(key(row)).or_default();
            *amount += row.made;
            kinds.iter_mut().zip(row.kinds).for_each(|(sum, count)| *sum += count);
        }
        sums
    }
}
