//! Recordings of the JDK's Flight Recorder, for JDK Mission Control, IntelliJ and `jfr`.
//!
//! The format has no specification; this follows what the JDK's own reader (`jdk.jfr.internal.consumer`) and that of JDK Mission
//! Control expect. One chunk contains the events, then the pools of values that they refer to, then a description of all types. Times
//! are nanoseconds since the start of the run.

mod encode;
mod metadata;
mod pools;
mod survivors;

use std::io::{self, Write};

use et_analysis::course::{Course, Share};
use et_analysis::profile::{Cell, Origin};
use et_reader::made_in::MadeIn;
use et_reader::model::{ContextId, Contexts};
use et_reader::naming::Naming;
use et_reader::types::Types;
use rustc_hash::FxHashMap;

use super::weight::Weight;
use encode::{event, int, number, numbers, pooled_string, string};
use metadata::Type;
use pools::{Frame, Pools};

/// What a recording has beside allocations.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// When the run began, in milliseconds since 1970.
    pub start_unix_millis: u64,
    /// Its duration in nanoseconds; 0 if it is not known.
    pub nanos: u64,
    pub jvm_name: String,
    pub jvm_version: String,
    pub command: String,
    pub pid: u32,
    pub threads: Vec<Thread>,
    pub collections: Vec<Collection>,
}

/// A thread of the run. Times are those of its first and last events.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub id: u32,
    /// Empty if it is not known.
    pub name: String,
    /// `None` if it ran before tracing began, or if the time is not known.
    pub start_nanos: Option<u64>,
    /// `None` if it ran to the end, or if the time is not known.
    pub end_nanos: Option<u64>,
}

/// A garbage collection.
#[derive(Clone, Copy, Debug)]
pub struct Collection {
    pub start_nanos: u64,
    pub finish_nanos: u64,
    /// Heap usage afterwards in bytes; 0 if unknown.
    pub heap_used: u64,
    pub heap_committed: u64,
}

/// What the numbers in a course refer to.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Meaning<'a> {
    pub naming: Naming<'a>,
    pub contexts: &'a Contexts,
    pub types: &'a Types,
}

/// Virtual threads have numbers from here on.
const FIRST_VIRTUAL: u32 = 1 << 31;

/// A recording stays below 100 MB: this much is for stacks, an event has some 22 bytes, and the rest is names.
const MOST_STACK_BYTES: u64 = 64_000_000;
const MOST_EVENTS: usize = 1_200_000;
/// A frame in the file.
const FRAME_BYTES: u64 = 14;
/// Deeper stacks are cut as the JVM does it when asked for the most.
const DEEPEST: u32 = 2048;

/// The largest number of frames a stack with which all stacks have room.
fn depth_with_room(mut contexts: Vec<u32>) -> u32 {
    let mut room = MOST_STACK_BYTES / FRAME_BYTES;
    contexts.sort_unstable();
    // Those that are not cut, and the same number of frames for each of the others.
    let mut left = contexts.len() as u64;
    for depth in contexts {
        if u64::from(depth) * left > room {
            return (room / left).clamp(1, DEEPEST.into()) as u32;
        }
        room -= u64::from(depth);
        left -= 1;
    }
    DEEPEST
}

/// The internal name of a class: `java/lang/String`, `[I`.
fn class_name(descriptor: &str) -> &str {
    descriptor.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(descriptor)
}

/// An event of allocations under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Allocation {
    span: u32,
    thread: u64,
    stack: u64,
    class: u64,
    site: u64,
}

/// What is left out of a recording so that it does not become too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Stacks are cut to so many frames.
    pub cut_to: Option<u32>,
    /// Events have no times.
    pub times: bool,
    /// Events have no threads.
    pub threads: bool,
}

impl LeftOut {
    /// One line for each, for people.
    pub fn notes(self) -> Vec<String> {
        let cut = self.cut_to.map(|depth| format!("stacks are cut to their {depth} innermost frames"));
        let times = self.times.then(|| "allocations have no times, only their sums over the whole run".to_owned());
        let threads = self.threads.then(|| "allocations do not say by which thread".to_owned());
        cut.into_iter().chain(times).chain(threads).collect()
    }
}

/// A recording in memory.
#[allow(missing_debug_implementations)]
pub struct Recording<'a> {
    meaning: Meaning<'a>,
    run: &'a Run,
    weight: Weight,
    pools: Pools,
    events: Vec<u8>,
    allocations: Vec<(Allocation, Cell)>,
    /// Duration of a span of time.
    span_nanos: u64,
    left_out: LeftOut,
    /// Deeper stacks are cut.
    depth: u32,
}

impl<'a> Recording<'a> {
    /// Makes a recording of what has weight.
    pub fn new(course: &Course, weight: Weight, run: &'a Run, meaning: Meaning<'a>) -> Self {
        Self::with_limit(course, weight, run, meaning, MOST_EVENTS)
    }

    fn with_limit(course: &Course, weight: Weight, run: &'a Run, meaning: Meaning<'a>, most: usize) -> Self {
        let mut recording = Self {
            meaning,
            run,
            weight,
            pools: Pools::default(),
            events: Vec::new(),
            allocations: Vec::new(),
            span_nanos: course.span_nanos,
            left_out: LeftOut::default(),
            depth: DEEPEST,
        };
        recording.run_events();
        recording.collect(course, most);
        recording
    }

    /// What is left out of it.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    fn thread(&mut self, id: u32) -> u64 {
        let threads = &self.run.threads;
        self.pools.thread(id, || {
            let known = threads.binary_search_by_key(&id, |thread| thread.id).ok().map(|at| threads[at].name.clone());
            (known.unwrap_or_default(), id >= FIRST_VIRTUAL)
        })
    }

    fn push(&mut self, ty: Type, start: u64, fields: impl FnOnce(&mut Vec<u8>)) {
        let mut content = Vec::with_capacity(64);
        number(&mut content, ty as u64);
        number(&mut content, start);
        fields(&mut content);
        event(&mut self.events, &content);
    }

    fn run_events(&mut self) {
        let run = self.run;
        self.push(Type::Jvm, 0, |out| {
            let (arguments, flags) = ("", "");
            for text in [&run.jvm_name, &run.jvm_version, arguments, flags, &run.command] {
                string(out, text);
            }
            number(out, run.start_unix_millis);
            number(out, run.pid.into());
        });
        for thread in &run.threads {
            let number_in_pool = self.thread(thread.id);
            let stack = 0;
            if let Some(start) = thread.start_nanos {
                self.push(Type::ThreadStart, start, |out| numbers(out, &[number_in_pool, stack, number_in_pool]));
            }
            if let Some(end) = thread.end_nanos {
                self.push(Type::ThreadEnd, end, |out| numbers(out, &[number_in_pool; 2]));
            }
        }
        // The trace says neither.
        let (name, cause) = (self.pools.gc_name("unknown"), self.pools.gc_cause("unknown"));
        let when = self.pools.gc_when("After GC");
        for (id, gc) in (0i32..).zip(&run.collections) {
            let pause = gc.finish_nanos.saturating_sub(gc.start_nanos);
            self.push(Type::Collection, gc.start_nanos, |out| {
                number(out, pause);
                int(out, id);
                numbers(out, &[name, cause, pause, pause]);
            });
            if gc.heap_used > 0 {
                self.push(Type::Heap, gc.finish_nanos, |out| {
                    int(out, id);
                    let reserved = gc.heap_committed;
                    numbers(out, &[when, gc.heap_committed, reserved, gc.heap_used]);
                });
            }
        }
    }

    /// Adds the allocations of a course, in at most so many events.
    fn collect(&mut self, course: &Course, most: usize) {
        let weight = self.weight;
        let wanted = || course.cells.iter().filter(|(_, cell)| weight.of(cell) > 0 || cell.allocated.objects > 0);
        let contexts = self.meaning.contexts;
        let mut depths: FxHashMap<(ContextId, MadeIn), u32> = FxHashMap::default();
        for (Share { origin, .. }, _) in wanted() {
            depths.entry((origin.context, origin.place)).or_insert_with(|| contexts.get(origin.context).depth + 1);
        }
        let deepest = depths.values().copied().max().unwrap_or(0);
        let depth = depth_with_room(depths.into_values().collect());
        self.depth = depth;
        self.left_out.cut_to = (deepest > depth + 1).then_some(depth);
        let mut places: FxHashMap<Origin, (u64, u64, u64)> = FxHashMap::default();
        let mut cells: FxHashMap<Allocation, Cell> = FxHashMap::default();
        for (share, cell) in wanted() {
            let (stack, class, site) = match places.get(&share.origin) {
                Some(known) => *known,
                None => {
                    let found = self.place(&share.origin, depth);
                    places.insert(share.origin, found);
                    found
                }
            };
            let thread = self.thread(share.thread.0);
            cells.entry(Allocation { span: share.span, thread, stack, class, site }).or_default().merge(cell);
        }
        let mut reduce = |is_left_out: &mut bool, key: fn(Allocation) -> Allocation| {
            if cells.len() > most {
                *is_left_out = true;
                let mut fewer: FxHashMap<Allocation, Cell> = FxHashMap::default();
                for (allocation, cell) in cells.drain() {
                    fewer.entry(key(allocation)).or_default().merge(&cell);
                }
                cells = fewer;
            }
        };
        reduce(&mut self.left_out.times, |allocation| Allocation { span: 0, ..allocation });
        reduce(&mut self.left_out.threads, |allocation| Allocation { thread: 0, ..allocation });
        self.allocations = cells.into_iter().collect();
        self.allocations.sort_unstable_by_key(|(allocation, _)| *allocation);
    }

    /// Stack, class and site of an origin.
    fn place(&mut self, origin: &Origin, depth: u32) -> (u64, u64, u64) {
        let Meaning { naming, contexts, types } = self.meaning;
        let mut at = origin.context;
        let mut frames = Vec::new();
        if let MadeIn::Site(site) = origin.place
            && let Some(method) = naming.method_of_site(site).filter(|_| !origin.is_initial)
        {
            let line = naming.line_of_site(site).map_or(-1, |line| line.cast_signed());
            frames.push(Frame { method: self.pools.method(method, naming), line });
            // If the innermost method is another one, the allocating method has no hooks.
            if contexts.get(at).method == method {
                at = contexts.get(at).caller;
            }
        }
        while at != ContextId::EMPTY && frames.len() < depth as usize {
            let context = contexts.get(at);
            // The call, if the trace has stacks.
            let line = Some(context.at).filter(|at| at.0 != 0).and_then(|at| naming.line_of_site(at));
            let line = line.map_or(-1, |line| line.cast_signed());
            frames.push(Frame { method: self.pools.method(context.method, naming), line });
            at = context.caller;
        }
        let stack = self.pools.stack(&frames, at != ContextId::EMPTY);
        (
            stack,
            self.pools.class(class_name(types.descriptor(origin.class))),
            self.pools.string(origin.place.text(naming)),
        )
    }

    /// Writes it with these notes.
    pub fn write(mut self, notes: &[String], mut out: impl Write) -> io::Result<()> {
        let weight = self.weight;
        for note in notes {
            self.push(Type::Note, 0, |out| string(out, note));
        }
        let allocations = std::mem::take(&mut self.allocations);
        let span_nanos = if self.left_out.times { 0 } else { self.span_nanos };
        for (Allocation { span, thread, stack, class, site }, cell) in &allocations {
            self.push(Type::Allocation, u64::from(*span) * span_nanos, |out| {
                let (made, alive) = (cell.allocated, cell.alive);
                numbers(out, &[*thread, *stack, *class, weight.of(cell)]);
                numbers(out, &[made.objects, made.bytes, alive.objects, alive.bytes]);
                pooled_string(out, *site);
            });
        }
        let mut pools = Vec::new();
        self.pools.write(&mut pools, 0);
        let mut types = Vec::new();
        metadata::write(&mut types, 0, self.run.nanos);
        let pools_at = HEADER as u64 + self.events.len() as u64;
        let types_at = pools_at + pools.len() as u64;
        let header = Header { size: types_at + types.len() as u64, pools_at, types_at };
        out.write_all(&header.encode(self.run))?;
        for part in [&self.events, &pools, &types] {
            out.write_all(part)?;
        }
        out.flush()
    }
}

/// Length of a chunk's header.
const HEADER: usize = 68;

struct Header {
    size: u64,
    pools_at: u64,
    types_at: u64,
}

impl Header {
    fn encode(&self, run: &Run) -> Vec<u8> {
        const VERSION: [u16; 2] = [2, 0];
        const TICKS_PER_SECOND: u64 = 1_000_000_000;
        const COMPRESSED_NUMBERS: u32 = 1;
        let mut out = b"FLR\0".to_vec();
        VERSION.iter().for_each(|part| out.extend(part.to_be_bytes()));
        let start_ticks = 0;
        let start_unix_nanos = run.start_unix_millis.saturating_mul(1_000_000);
        for value in
            [self.size, self.pools_at, self.types_at, start_unix_nanos, run.nanos, start_ticks, TICKS_PER_SECOND]
        {
            out.extend(value.to_be_bytes());
        }
        out.extend(COMPRESSED_NUMBERS.to_be_bytes());
        debug_assert_eq!(out.len(), HEADER);
        out
    }
}

#[cfg(test)]
mod tests {
    use et_analysis::Amount;
    use et_reader::record::ThreadId;
    use et_reader::source::Source;
    use et_reader::testing::TraceBuilder;
    use et_reader::types::TypeId;
    use et_reader::{Trace, TraceFile, made_in::Means};

    use super::*;

    /// One object in each of ten spans by each of three threads.
    fn course() -> Course {
        let origin = Origin {
            context: ContextId::EMPTY,
            place: MadeIn::Nowhere(Means::Native),
            class: TypeId(0),
            is_initial: false,
        };
        let allocated = Amount { objects: 1, bytes: 16 };
        let cell = Cell { allocated, ..Cell::default() };
        let shares = (0..30).map(|at| Share { span: at / 3, thread: ThreadId(at % 3 + 1), origin });
        Course { cells: shares.map(|share| (share, cell)).collect(), span_nanos: 1000, total: Cell::default() }
    }

    #[test]
    fn times_and_threads_are_left_out_if_there_is_no_room_and_sums_stay() {
        let source: Source =
            Trace::from_file(TraceFile::from_bytes(TraceBuilder::new().finish(), None).unwrap()).unwrap().into();
        let (contexts, types, run) = (Contexts::default(), source.types(), Run::default());
        let meaning = Meaning { naming: source.naming(), contexts: &contexts, types: &types };
        for (most, events, left_out) in [
            (30, 30, LeftOut::default()),
            (29, 3, LeftOut { times: true, ..LeftOut::default() }),
            (2, 1, LeftOut { times: true, threads: true, ..LeftOut::default() }),
        ] {
            let recording = Recording::with_limit(&course(), Weight::Bytes, &run, meaning, most);
            assert_eq!(recording.left_out(), left_out);
            assert_eq!(recording.allocations.len(), events);
            let sum: u64 = recording.allocations.iter().map(|(_, cell)| cell.allocated.bytes).sum();
            assert_eq!(sum, 480);
            let mut out = Vec::new();
            recording.write(&[], &mut out).unwrap();
            assert_eq!(out[8..16], (out.len() as u64).to_be_bytes(), "the size of the chunk");
        }
    }

    #[test]
    fn stacks_are_cut_only_if_they_have_no_room() {
        let room = (MOST_STACK_BYTES / FRAME_BYTES) as u32;
        assert_eq!(depth_with_room(vec![]), DEEPEST);
        assert_eq!(depth_with_room(vec![1000; 100]), DEEPEST);
        assert_eq!(depth_with_room(vec![1000; room as usize / 500]), 500);
        // Short stacks leave room to the long ones.
        let mut depths = vec![10; room as usize / 20];
        depths.extend(vec![5000; 2000]);
        assert_eq!(depth_with_room(depths), room / 2 / 2000);
        assert_eq!(depth_with_room(vec![7; room as usize * 2]), 1);
    }
}
