//! What waits for the writer: chunks of events, and records of all other kinds.
//!
//! Everybody puts it here and goes on. No lock here is ever held while the JVM is called: a safepoint could be waiting for
//! its holder.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use et_format::collector::Collected;
use et_format::dynamic::{DynamicClass, DynamicCounts};
use et_format::event::Ticket;
use et_format::{BlockKind, ClassRecord, GcRecord, Problem, ThreadRecord, encode_json};
use et_names::NamesTable;

use crate::buffers::FullChunk;
use crate::journal::Journal;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// What waits to be written.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    /// The writer has taken what waited.
    taken: Condvar,
    done: Condvar,
}

/// Bytes of blocks that may wait before who brings many of them waits for the writer.
const MANY_BYTES: usize = 64 << 20;

#[derive(Debug, Default)]
struct Waiting {
    /// In this order, before all else.
    blocks: VecDeque<(BlockKind, Vec<u8>)>,
    names: Vec<Vec<u8>>,
    classes: Vec<u8>,
    dynamic_classes: Vec<u8>,
    threads: Vec<u8>,
    gcs: Vec<GcRecord>,
    chunks: VecDeque<FullChunk>,
    end: Option<Finish>,
    finished: bool,
    /// Keeps all but the chunks, which are kept anyway.
    journal: Option<Journal>,
}

impl Waiting {
    fn block_bytes(&self) -> usize {
        self.blocks.iter().map(|(_, raw)| raw.len()).sum()
    }

    fn keep(&mut self, kind: BlockKind, record: &[u8]) {
        if let Some(journal) = &mut self.journal {
            journal.add(kind, record);
        }
    }
}

/// How tracing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// What ended it.
    pub reason: &'static str,
    /// The last ticket given out.
    pub end_ticket: Ticket,
    /// As they are then.
    pub counters: Counters,
}

/// What is counted beside the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events that no buffer could be had for.
    pub lost_events: u64,
    /// Events that were not written because the stack ended.
    pub overflows: u64,
    /// What became of classes made at run time.
    pub dynamic: Option<DynamicCounts>,
}

impl Queue {
    /// Keeps what waits in a journal as well, from now on.
    pub fn keep_in(&self, journal: Option<Journal>) {
        self.lock().journal = journal;
    }

    /// A block of its own.
    pub fn block(&self, kind: BlockKind, raw: Vec<u8>) {
        self.add(|waiting| {
            waiting.keep(kind, &raw);
            waiting.blocks.push_back((kind, raw));
        });
    }

    /// One of many large blocks: waits until few are waiting, so that they do not fill the memory. To be called where nobody
    /// waits for the caller but the program.
    pub fn large_block(&self, kind: BlockKind, raw: Vec<u8>) {
        let mut waiting = self.lock();
        while waiting.block_bytes() > MANY_BYTES && !waiting.finished {
            waiting = wait(&self.taken, waiting, None);
        }
        drop(waiting);
        self.block(kind, raw);
    }

    /// What the collector said of objects. Not kept in the journal, which so much would drown: who kills a program
    /// loses some of it.
    pub fn collected(&self, record: &Collected) {
        let raw = encoded(|raw| record.encode(raw));
        self.add(|waiting| waiting.blocks.push_back((BlockKind::Collector, raw)));
    }

    /// Something odd, for the reader of the trace.
    pub fn problem(&self, what: impl Into<String>, count: u64) {
        self.block(BlockKind::Problem, encode_json(&Problem { what: what.into(), count }));
    }

    /// A class record.
    pub fn class(&self, record: &ClassRecord) {
        self.record(BlockKind::Classes, |raw| record.encode(raw), |waiting| &mut waiting.classes);
    }

    /// The names table of a class made at run time.
    pub fn names(&self, table: &NamesTable) {
        let raw = table.encode();
        self.add(|waiting| {
            waiting.keep(BlockKind::Names, &raw);
            waiting.names.push(raw);
        });
    }

    /// A class made at run time is defined.
    pub fn dynamic_class(&self, record: &DynamicClass) {
        self.record(BlockKind::DynamicClasses, |raw| record.encode(raw), |waiting| &mut waiting.dynamic_classes);
    }

    /// A thread record.
    pub fn thread(&self, record: &ThreadRecord) {
        self.record(BlockKind::Threads, |raw| record.encode(raw), |waiting| &mut waiting.threads);
    }

    /// A collection that has just finished; the writer asks for the use of the heap.
    pub fn gc(&self, record: GcRecord) {
        let raw = encoded(|raw| record.encode(raw));
        self.add(|waiting| {
            waiting.keep(BlockKind::Gcs, &raw);
            waiting.gcs.push(record);
        });
    }

    /// A chunk of events.
    pub fn chunk(&self, chunk: FullChunk) {
        self.add(|waiting| waiting.chunks.push_back(chunk));
    }

    /// Ends the trace behind all that was added before, and waits until it is written; no longer than `patience`, if
    /// there is one.
    pub fn finish(&self, finish: Finish, patience: Option<Duration>) {
        self.add(|waiting| waiting.end = Some(finish));
        let deadline = patience.map(|patience| Instant::now() + patience);
        let mut waiting = self.lock();
        while !waiting.finished {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            waiting = wait(&self.done, waiting, left);
        }
    }

    /// What was queued as blocks, for tests without a writer.
    #[cfg(test)]
    pub fn take_blocks(&self) -> Vec<(BlockKind, Vec<u8>)> {
        self.lock().blocks.drain(..).collect()
    }

    /// The class records that were queued, for tests without a writer.
    #[cfg(test)]
    pub fn take_classes(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().classes)
    }

    /// As above, tables of classes made at run time.
    #[cfg(test)]
    pub fn take_names(&self) -> Vec<NamesTable> {
        let names = std::mem::take(&mut self.lock().names);
        names.iter().map(|raw| NamesTable::decode(raw).unwrap()).collect()
    }

    /// Nothing is written anymore: who waits for the end of the trace waits no longer.
    pub fn writer_is_gone(&self) {
        self.lock().finished = true;
        self.taken.notify_all();
        self.done.notify_all();
    }

    fn record(&self, kind: BlockKind, encode: impl FnOnce(&mut Vec<u8>), to: fn(&mut Waiting) -> &mut Vec<u8>) {
        let raw = encoded(encode);
        self.add(|waiting| {
            waiting.keep(kind, &raw);
            to(waiting).extend(raw);
        });
    }

    fn add(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.lock());
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was taken is in the trace.
    pub fn written(&self) {
        if let Some(journal) = &mut self.lock().journal {
            journal.written();
        }
    }

    /// The next work: all records there are, and at most one chunk. None if there is none for so long. Its first block will
    /// have that number.
    pub fn next(&self, patience: Option<Duration>, first_block: u64) -> Option<Work> {
        let mut waiting = self.lock();
        let mut timed_out = false;
        loop {
            let work = Work {
                blocks: std::mem::take(&mut waiting.blocks),
                names: std::mem::take(&mut waiting.names),
                classes: std::mem::take(&mut waiting.classes),
                dynamic_classes: std::mem::take(&mut waiting.dynamic_classes),
                threads: std::mem::take(&mut waiting.threads),
                gcs: std::mem::take(&mut waiting.gcs),
                chunk: waiting.chunks.pop_front(),
                end: if waiting.chunks.is_empty() { waiting.end } else { None },
            };
            if !work.is_empty() {
                self.taken.notify_all();
                if let Some(journal) = &mut waiting.journal {
                    journal.taken(first_block);
                }
                return Some(work);
            }
            if timed_out {
                return None;
            }
            let start = Instant::now();
            waiting = wait(&self.wake, waiting, patience);
            timed_out = patience.is_some_and(|patience| start.elapsed() >= patience);
        }
    }
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut raw = Vec::new();
    encode(&mut raw);
    raw
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>, patience: Option<Duration>) -> MutexGuard<'a, T> {
    match patience {
        None => condition.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(patience) => condition.wait_timeout(guard, patience).unwrap_or_else(PoisonError::into_inner).0,
    }
}

#[derive(Debug, Default)]
pub struct Work {
    pub blocks: VecDeque<(BlockKind, Vec<u8>)>,
    pub names: Vec<Vec<u8>>,
    pub classes: Vec<u8>,
    pub dynamic_classes: Vec<u8>,
    pub threads: Vec<u8>,
    pub gcs: Vec<GcRecord>,
    pub chunk: Option<FullChunk>,
    pub end: Option<Finish>,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.blocks.is_empty()
            && self.names.is_empty()
            && self.classes.is_empty()
            && self.dynamic_classes.is_empty()
            && self.threads.is_empty()
            && self.gcs.is_empty()
            && self.chunk.is_none()
            && self.end.is_none()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    const KIND: BlockKind = BlockKind::InitialObjects;

    #[test]
    fn who_brings_many_large_blocks_waits_for_the_writer() {
        let queue = Queue::default();
        thread::scope(|scope| {
            scope.spawn(|| (0..6).for_each(|_| queue.large_block(KIND, vec![0; MANY_BYTES / 2 + 1])));
            let mut seen = 0;
            while seen < 6 {
                // Time for more than there is room for.
                thread::sleep(Duration::from_millis(20));
                let count = queue.next(None, 0).map_or(0, |work| work.blocks.len());
                assert!(count <= 2, "{count} blocks are waiting");
                seen += count;
            }
        });
    }

    #[test]
    fn without_a_writer_nobody_waits() {
        let queue = Queue::default();
        queue.writer_is_gone();
        (0..4).for_each(|_| queue.large_block(KIND, vec![0; MANY_BYTES + 1]));
        assert_eq!(queue.take_blocks().len(), 4);
    }
}
