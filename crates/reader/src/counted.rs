//! Traces that only count allocations, by stack and class (`counts=1s`, `docs/inside/counts.md`): rows that stand for several objects.
//!
//! Objects of such a trace have no ids and no records, so that there is nothing to resolve and nothing to put in order: each block is read
//! on its own. A count belongs to the time at which its block began, within spans whose number is limited; so memory depends on the
//! number of stacks and not on how long the run was.

use std::io;
use std::sync::Arc;

use et_format::event::{self, COUNTED_UNIT, Event, ObjectHash, Ticket};
use et_names::SiteId;
use rustc_hash::FxHashMap;

use crate::lifetimes::HeldByStack;
use crate::model::{ContextId, Contexts};
use crate::observed::{Observed, ThreadRecords};
use crate::population::{Columns, Groups, Moment, Population, Rows, UNKNOWN_USE};
use crate::record::{AllocKind, ObjectId, ThreadId};
use crate::resolve::Lost;
use crate::stack_contexts::StackContexts;
use crate::trace::Trace;
use crate::types::TypeId;

/// The run is divided into this many spans at first. They become twice as long when there are too many rows.
const SPANS: u64 = 1 << 10;
const MOST_ROWS: usize = 1 << 21;
/// Rows of a group.
const GROUP: usize = 100_000;

/// What counts that are one row have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    span: u32,
    thread: ThreadId,
    context: ContextId,
    site: SiteId,
    class: TypeId,
    is_by_vm: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    objects: u64,
    bytes: u64,
}

/// The counts of a trace so far.
struct Counts {
    counts: FxHashMap<Key, Count>,
    /// When the first block of each span began.
    begins: FxHashMap<u32, u64>,
    span_nanos: u64,
    most: usize,
}

impl Counts {
    fn new(span_nanos: u64, most: usize) -> Self {
        Self { counts: FxHashMap::default(), begins: FxHashMap::default(), span_nanos, most }
    }

    fn add(&mut self, key: Key, count: Count) {
        let sum = self.counts.entry(key).or_default();
        sum.objects += count.objects;
        sum.bytes = sum.bytes.saturating_add(count.bytes);
    }

    /// The span of a block that began then.
    fn span(&mut self, begin: u64) -> u32 {
        let span = u32::try_from(begin / self.span_nanos).unwrap_or(u32::MAX);
        self.began(span, begin);
        span
    }

    fn began(&mut self, span: u32, begin: u64) {
        self.begins.entry(span).and_modify(|first| *first = (*first).min(begin)).or_insert(begin);
    }

    fn tidy(&mut self) {
        while self.counts.len() > self.most && self.counts.keys().any(|key| key.span > 0) {
            self.span_nanos = self.span_nanos.saturating_mul(2);
            for (span, begin) in std::mem::take(&mut self.begins) {
                self.began(span / 2, begin);
            }
            for (key, count) in std::mem::take(&mut self.counts) {
                self.add(Key { span: key.span / 2, ..key }, count);
            }
        }
    }
}

/// Reads the counts of a trace, as rows that stand for all objects of a count. Damaged blocks are left out and counted.
pub fn counted(trace: &Trace) -> (Population, Observed) {
    with_limit(trace, MOST_ROWS)
}

fn with_limit(trace: &Trace, most: usize) -> (Population, Observed) {
    let file = &trace.file;
    let pieces = || file.threads().iter().flat_map(|thread| (0..thread.len()).map(move |piece| (thread, piece)));
    let walls = pieces().filter_map(|(thread, piece)| file.wall(thread, piece));
    let known = file.end().map(|end| end.seconds).or(file.last_known().map(|progress| progress.seconds)).unwrap_or(0.0);
    let last = walls.map(|wall| wall.end.unwrap_or(wall.begin).0).max();
    let nanos = last.map(|last| last.max((known * 1e9) as u64));
    let mut counts = Counts::new(nanos.unwrap_or(0) / SPANS + 1, most);
    let (mut contexts, mut stacks) = (Contexts::default(), StackContexts::default());
    let (mut lost, mut events) = (Lost::default(), Vec::new());
    let mut threads: FxHashMap<u32, u64> = FxHashMap::default();
    for (thread, piece) in pieces() {
        if file.load_events(thread, piece, &mut events).is_err() {
            lost.undecodable_pieces += 1;
            lost.undecodable_bytes += file.event_bytes(thread, piece);
            continue;
        }
        let begin = file.wall(thread, piece).map_or(0, |wall| wall.begin.0);
        let span = counts.span(begin);
        let (mut at, mut now) = (0, Ticket(0));
        loop {
            let (event, len) = match event::decode(&events[at..]) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(_) => {
                    lost.undecodable_pieces += 1;
                    lost.undecodable_bytes += (events.len() - at) as u64;
                    break;
                }
            };
            at += len;
            let (site, class, objects, units) = match event {
                Event::Ticket(ticket) => {
                    now = ticket;
                    continue;
                }
                Event::Counted { site, class, objects, units } => (site, class, objects, units),
                _ => continue,
            };
            let (site, stack) = trace.stacks.split(site);
            let class = class_at(trace, class, now);
            let makes_another = trace.names.site(site).is_some_and(|(_, there)| there.dimensions == 0)
                && class != TypeId::UNKNOWN
                && trace.names.site_type(site, 0) != Some(class);
            // The constructor of an object, without hooks, makes others on the same stack.
            let site = if makes_another { SiteId(0) } else { site };
            let key = Key {
                span,
                thread: ThreadId(thread.thread),
                context: stacks.of(stack, &trace.stacks, &mut contexts),
                site,
                class,
                is_by_vm: site.0 == 0,
            };
            *threads.entry(thread.thread).or_default() += u64::from(objects);
            counts.add(key, Count { objects: objects.into(), bytes: COUNTED_UNIT * u64::from(units) });
        }
        counts.tidy();
    }
    let (rows, objects, bytes) = rows(counts, nanos.is_some(), &trace.types);
    let population = Population {
        groups: Box::new(rows),
        objects,
        contexts,
        types: Arc::clone(&trace.types),
        has_deaths: false,
        has_uses: false,
        survival: None,
        end: Moment { tick: 0, bytes, nanos },
        lost,
        warnings: Vec::new(),
    };
    let mut threads: Vec<ThreadRecords> =
        threads.into_iter().map(|(thread, records)| ThreadRecords { thread: ThreadId(thread), records }).collect();
    threads.sort_unstable_by_key(|thread| thread.thread);
    (population, Observed { threads, ..Observed::default() })
}

fn class_at(trace: &Trace, mirror: ObjectHash, now: Ticket) -> TypeId {
    trace.classes.at(mirror, now).map_or(TypeId::UNKNOWN, |class| trace.classes.get(class).ty)
}

fn rows(counts: Counts, has_times: bool, types: &crate::types::Types) -> (CountedRows, u64, u64) {
    let Counts { counts, begins, .. } = counts;
    let mut all: Vec<(Key, Count)> = counts.into_iter().collect();
    all.sort_unstable_by_key(|(key, _)| *key);
    let (mut rows, mut objects, mut bytes) = (Vec::with_capacity(all.len()), 0, 0u64);
    for (key, count) in all {
        objects += count.objects;
        bytes = bytes.saturating_add(count.bytes);
        let kind = match key.is_by_vm {
            true => AllocKind::Vm,
            false if types.descriptor(key.class).starts_with('[') => AllocKind::Array,
            false => AllocKind::New,
        };
        let nanos = has_times.then(|| begins.get(&key.span).copied().unwrap_or(0));
        rows.push(Row { key, kind, count, nanos, so_far: bytes });
    }
    (CountedRows(rows), objects, bytes)
}

#[derive(Clone, Copy, Debug)]
struct Row {
    key: Key,
    kind: AllocKind,
    count: Count,
    /// When the first block of the span began.
    nanos: Option<u64>,
    /// Bytes allocated so far.
    so_far: u64,
}

/// All counts, in the order of time.
#[derive(Debug)]
struct CountedRows(Vec<Row>);

impl Groups for CountedRows {
    fn len(&self) -> usize {
        self.0.len().div_ceil(GROUP)
    }

    fn read(&self, group: usize, _columns: Columns) -> io::Result<Rows> {
        let rows = self.0.chunks(GROUP).nth(group).unwrap_or_default();
        let len = rows.len();
        Ok(Rows {
            len,
            spans: None,
            counts: rows.iter().map(|row| row.count.objects).collect(),
            number: (0..len).map(|row| (group * GROUP + row) as u64).collect(),
            object: vec![ObjectId::NULL; len],
            class: rows.iter().map(|row| row.key.class).collect(),
            kind: rows.iter().map(|row| row.kind).collect(),
            size: rows.iter().map(|row| row.count.bytes).collect(),
            length: vec![0; len],
            site: rows.iter().map(|row| row.key.site).collect(),
            context: rows.iter().map(|row| row.key.context).collect(),
            thread: rows.iter().map(|row| row.key.thread).collect(),
            birth_tick: vec![0; len],
            birth_bytes: rows.iter().map(|row| row.so_far).collect(),
            birth_nanos: rows.iter().map(|row| row.nanos).collect(),
            last_use_tick: vec![UNKNOWN_USE; len],
            death_tick: vec![None; len],
            death_bytes: vec![None; len],
            death_nanos: vec![None; len],
            death_thread: vec![None; len],
            death_context: vec![None; len],
            escaped_thread: vec![None; len],
            escaped_frame: vec![None; len],
            death_record: vec![None; len],
            death_kind: vec![None; len],
            fate: vec![None; len],
        })
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_become_longer_and_nothing_is_lost() {
        let key = |span, site| Key {
            span,
            thread: ThreadId(1),
            context: ContextId::EMPTY,
            site: SiteId(site),
            class: TypeId::UNKNOWN,
            is_by_vm: false,
        };
        let mut counts = Counts::new(10, 8);
        for span in 0..16 {
            counts.span(u64::from(span) * 10 + 3);
            for site in [1, 2] {
                counts.add(key(span, site), Count { objects: 3, bytes: 48 });
            }
        }
        counts.tidy();
        assert_eq!((counts.counts.len(), counts.span_nanos), (8, 40));
        let (rows, objects, bytes) = rows(counts, true, &crate::types::Types::default());
        assert_eq!((objects, bytes), (96, 16 * 2 * 48));
        let rows = rows.read(0, Columns::ALL).unwrap();
        assert_eq!((rows.len, rows.objects(0), rows.size[0]), (8, 12, 192));
        assert_eq!(rows.birth_nanos.last(), Some(&Some(123)));
        assert_eq!(rows.birth_bytes.last(), Some(&bytes));
    }

    #[test]
    fn more_rows_than_are_wanted_remain_if_they_are_of_one_span() {
        let mut counts = Counts::new(1, 1);
        for site in 1..=3 {
            let (context, class) = (ContextId::EMPTY, TypeId::UNKNOWN);
            let key = Key { span: 5, thread: ThreadId(1), context, site: SiteId(site), class, is_by_vm: false };
            counts.add(key, Count { objects: 1, bytes: 8 });
        }
        counts.tidy();
        assert_eq!((counts.counts.len(), counts.counts.keys().all(|key| key.span == 0)), (3, true));
    }
}
