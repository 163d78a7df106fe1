//! The queue of the writer: chunks of events, and records of all other kinds.
//!
//! Threads add to it and continue. No lock here is ever held during a call of the VM: a safepoint could be waiting for
//! its holder.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use et_format::collector::Collected;
use et_format::dynamic::{DynamicClass, DynamicCounts};
use et_format::event::Ticket;
use et_format::{BlockKind, ClassRecord, GcRecord, MonitorRecord, Problem, StackRecord, ThreadRecord, encode_json};

use crate::base::sync::{Condvar, Mutex, MutexGuard, lock, unpoisoned};
use crate::buffers::journal::Journal;
use crate::buffers::pool::FullChunk;
use crate::live::rates;
use crate::output::artifacts::{Artifact, Artifacts, Told};
use crate::output::line::{Done, Line, Packed, Task};

/// The queue of the writer.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    /// Names tables of artifacts, and the state of which classes are in the trace.
    artifacts: Artifacts,
    /// Signalled when more chunks wait than the writer can pack.
    help: Condvar,
    /// Signalled when the writer has taken the queued work.
    taken: Condvar,
    done: Condvar,
}

/// Maximum bytes of blocks queued before a producer of large blocks blocks.
const MANY_BYTES: usize = 64 << 20;
/// Bytes of stacks for which the writer is woken, and at which others wait for it: half of the journal, which adds to small records.
const MANY_STACKS: usize = 16 << 10;
const MOST_STACKS: usize = 128 << 10;
/// How long a thread may pack a chunk before an otherwise idle writer packs it too.
pub const TAKE_OVER: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
struct Waiting {
    /// Written first, in this order.
    blocks: VecDeque<(BlockKind, Vec<u8>)>,
    names: Vec<Vec<u8>>,
    classes: Vec<u8>,
    dynamic_classes: Vec<u8>,
    threads: Vec<u8>,
    monitors: Vec<u8>,
    stacks: Vec<u8>,
    gcs: Vec<GcRecord>,
    chunks: Line,
    /// Number of threads other than the writer that wait for chunks to pack.
    sleeping: u32,
    end: Option<Finish>,
    /// Whether only the writer may still pack.
    is_closed: bool,
    finished: bool,
    /// Keeps records in case the process is killed. Chunks are in the buffer file anyway.
    journal: Option<Journal>,
}

impl Waiting {
    fn take(&mut self) -> Option<Task> {
        if self.is_closed || self.finished { None } else { self.chunks.take() }
    }

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
    /// The cause, as recorded in `End`.
    pub reason: &'static str,
    /// The last ticket given out.
    pub end_ticket: Ticket,
    /// The final counts.
    pub counters: Counters,
}

/// A chunk to pack. If it is dropped, the writer packs it.
#[derive(Debug)]
pub struct Job<'a> {
    queue: &'a Queue,
    task: Task,
    is_done: bool,
}

impl Job<'_> {
    /// The chunk to pack.
    pub fn chunk(&self) -> &FullChunk {
        &self.task.chunk
    }

    /// Packing failed: the writer will pack the chunk. Returns the chunk to release, if it was appended meanwhile.
    pub fn give_back(mut self) -> Option<FullChunk> {
        self.is_done = true;
        self.queue.done(self.task.number, None)
    }

    /// Packing succeeded. Returns the chunk to release, if it was appended meanwhile.
    pub fn done(mut self, packed: Packed) -> Option<FullChunk> {
        self.is_done = true;
        self.queue.done(self.task.number, Some(packed))
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // Only panics of the writer come here, and they end tracing, so it does not matter that a chunk appended
            // meanwhile is never freed.
            self.queue.done(self.task.number, None);
        }
    }
}

/// Counts of what is missing in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events without a buffer.
    pub lost_events: u64,
    /// Events that were not written because the thread's stack was full.
    pub overflows: u64,
    /// Bytes of events discarded unread; `None` without `discard=on`.
    pub discarded_bytes: Option<u64>,
    /// Counts of classes created at run time; `None` with `dynamic=off`.
    pub dynamic: Option<DynamicCounts>,
}

impl Queue {
    /// From now on, also keeps records in a journal.
    pub fn keep_in(&self, journal: Option<Journal>) {
        lock(&self.waiting).journal = journal;
    }

    /// Queues a block.
    pub fn block(&self, kind: BlockKind, raw: Vec<u8>) {
        self.add(|waiting| {
            waiting.keep(kind, &raw);
            waiting.blocks.push_back((kind, raw));
        });
    }

    /// Queues one of many large blocks; first waits until at most `MANY_BYTES` are queued. Call it only where the
    /// caller blocks nothing but the program.
    pub fn large_block(&self, kind: BlockKind, raw: Vec<u8>) {
        self.wait_for_room();
        self.block(kind, raw);
    }

    fn wait_for_room(&self) {
        let mut waiting = lock(&self.waiting);
        while waiting.block_bytes() > MANY_BYTES && !waiting.finished {
            waiting = wait(&self.taken, waiting, None);
        }
    }

    /// Queues a report of the collector. There are too many for the journal: if the process is killed, some are lost.
    pub fn collected(&self, record: &Collected) {
        let raw = encoded(|raw| record.encode(raw));
        self.add(|waiting| waiting.blocks.push_back((BlockKind::Collector, raw)));
    }

    /// Queues what a walk through the heap has found: too much for the journal. If the process is killed, it is not known.
    /// Waits like [`large_block`](Self::large_block).
    pub fn survivors(&self, raw: Vec<u8>) {
        self.wait_for_room();
        self.add(|waiting| waiting.blocks.push_back((BlockKind::Survivors, raw)));
    }

    /// Queues a problem, for readers of the trace.
    pub fn problem(&self, what: impl Into<String>, count: u64) {
        self.block(BlockKind::Problem, encode_json(&Problem { what: what.into(), count }));
    }

    /// Queues the record of a class, and its names.
    pub fn class(&self, record: &ClassRecord) {
        if let Some(rates) = rates::get() {
            rates.class(record);
        }
        self.told(self.artifacts.loaded(&record.signature));
        self.record(BlockKind::Classes, |raw| record.encode(raw), |waiting| &mut waiting.classes);
    }

    /// Sets the artifacts whose classes the program may load.
    pub fn artifacts(&self, artifacts: Vec<Artifact>) {
        self.told(self.artifacts.found(artifacts));
    }

    /// Notes that a class was made from the bytes of an artifact's class.
    pub fn instrumented_before(&self, class: &str, artifact: u64) {
        self.told(self.artifacts.made_of(class, artifact));
    }

    fn told(&self, told: Vec<Told>) {
        for told in told {
            match told {
                Told::Names(raw) => self.names(raw),
                Told::Problem(line) => self.problem(line, 1),
            }
        }
    }

    /// Queues a names table.
    pub fn names(&self, raw: Vec<u8>) {
        if let Some(rates) = rates::get() {
            rates.names(&raw);
        }
        self.add(|waiting| {
            waiting.keep(BlockKind::Names, &raw);
            waiting.names.push(raw);
        });
    }

    /// Queues the record of a class created at run time.
    pub fn dynamic_class(&self, record: &DynamicClass) {
        self.record(BlockKind::DynamicClasses, |raw| record.encode(raw), |waiting| &mut waiting.dynamic_classes);
    }

    /// Queues the record of a thread.
    pub fn thread(&self, record: &ThreadRecord) {
        self.record(BlockKind::Threads, |raw| record.encode(raw), |waiting| &mut waiting.threads);
    }

    /// Queues an event of a monitor.
    pub fn monitor(&self, record: &MonitorRecord) {
        self.record(BlockKind::Monitors, |raw| record.encode(raw), |waiting| &mut waiting.monitors);
    }

    /// Queues stacks that events are about to name. They are so many that the writer is not woken for each; if it cannot keep up, this waits
    /// for it, since the journal has room only for so many.
    pub fn stacks(&self, records: &[StackRecord]) {
        if records.is_empty() {
            return;
        }
        if let Some(rates) = rates::get() {
            rates.stacks(records);
        }
        let mut guard = lock(&self.waiting);
        while guard.stacks.len() > MOST_STACKS && !guard.finished {
            self.wake.notify_one();
            guard = wait(&self.taken, guard, None);
        }
        let Waiting { stacks, journal, .. } = &mut *guard;
        let before = stacks.len();
        records.iter().for_each(|record| record.encode(stacks));
        if let Some(journal) = journal {
            journal.add(BlockKind::Stacks, &stacks[before..]);
        }
        let are_many = stacks.len() > MANY_STACKS;
        drop(guard);
        // Once: to wake takes longer than to queue.
        if are_many && before <= MANY_STACKS {
            self.wake.notify_one();
        }
    }

    /// Queues the record of a collection that has just finished; the writer adds the heap usage.
    pub fn gc(&self, record: GcRecord) {
        let raw = encoded(|raw| record.encode(raw));
        self.add(|waiting| {
            waiting.keep(BlockKind::Gcs, &raw);
            waiting.gcs.push(record);
        });
    }

    /// Queues a chunk of events.
    pub fn chunk(&self, chunk: FullChunk) {
        let mut waiting = lock(&self.waiting);
        waiting.chunks.push(chunk);
        // The first chunk is left to the writer.
        let helps = waiting.sleeping > 0 && waiting.chunks.waiting() > 1;
        drop(waiting);
        self.wake.notify_one();
        if helps {
            self.help.notify_one();
        }
    }

    /// Takes a chunk to pack, if there is one.
    pub fn job(&self) -> Option<Job<'_>> {
        let task = lock(&self.waiting).take()?;
        Some(self.job_of(task))
    }

    /// Takes a chunk to pack, for a dedicated thread; waits up to `patience` for one. `None` on timeout, or if there
    /// will be no more.
    pub fn wait_for_job(&self, patience: Duration) -> Option<Job<'_>> {
        let mut waiting = lock(&self.waiting);
        let start = Instant::now();
        loop {
            if let Some(task) = waiting.take() {
                return Some(self.job_of(task));
            }
            let left = patience.saturating_sub(start.elapsed());
            if waiting.is_closed || waiting.finished || left.is_zero() {
                return None;
            }
            waiting.sleeping += 1;
            waiting = wait(&self.help, waiting, Some(left));
            waiting.sleeping -= 1;
        }
    }

    /// Whether at least `backlog` chunks wait, and no thread is idle.
    pub fn lacks_packers(&self, backlog: usize) -> bool {
        let waiting = lock(&self.waiting);
        waiting.sleeping == 0 && waiting.chunks.waiting() >= backlog
    }

    /// Dismisses the threads that wait for chunks to pack. None may come afterwards.
    pub fn close_jobs(&self) {
        lock(&self.waiting).is_closed = true;
        self.help.notify_all();
    }

    fn job_of(&self, task: Task) -> Job<'_> {
        Job { queue: self, task, is_done: false }
    }

    fn done(&self, number: u64, packed: Option<Packed>) -> Option<FullChunk> {
        let mut waiting = lock(&self.waiting);
        let released = waiting.chunks.done(number, packed);
        let needs_writer = waiting.chunks.needs_writer();
        drop(waiting);
        if needs_writer {
            self.wake.notify_one();
        }
        released
    }

    /// Ends the trace after everything queued, and waits until it is written, at most `patience` if given.
    pub fn finish(&self, finish: Finish, patience: Option<Duration>) {
        self.add(|waiting| waiting.end = Some(finish));
        let deadline = patience.map(|patience| Instant::now() + patience);
        let mut waiting = lock(&self.waiting);
        while !waiting.finished {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            waiting = wait(&self.done, waiting, left);
        }
    }

    /// The queued blocks, for tests without a writer.
    #[cfg(test)]
    pub fn take_blocks(&self) -> Vec<(BlockKind, Vec<u8>)> {
        lock(&self.waiting).blocks.drain(..).collect()
    }

    /// The queued class records, for tests without a writer.
    #[cfg(test)]
    pub fn take_classes(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.waiting).classes)
    }

    /// The queued names tables, for tests without a writer.
    #[cfg(test)]
    pub fn take_names(&self) -> Vec<et_names::NamesTable> {
        let names = std::mem::take(&mut lock(&self.waiting).names);
        names.iter().map(|raw| et_names::NamesTable::decode(raw).unwrap()).collect()
    }

    /// Nothing will be written any more: wakes the threads that wait for the writer.
    pub fn writer_is_gone(&self) {
        lock(&self.waiting).finished = true;
        self.help.notify_all();
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
        change(&mut lock(&self.waiting));
        self.wake.notify_one();
    }

    /// The work taken last is in the trace.
    pub fn written(&self) {
        if let Some(journal) = &mut lock(&self.waiting).journal {
            journal.written();
        }
    }

    /// The next work: all queued records, and the packed chunks that are next, or else one chunk to pack. Waits for
    /// work, at most `patience` if given; then the result is `None`. `first_block` is the number of its first block. A
    /// chunk that has been packed for longer than `take_over` is packed again.
    pub fn next(&self, patience: Option<Duration>, take_over: Duration, first_block: u64) -> Option<Work<'_>> {
        let mut waiting = lock(&self.waiting);
        let start = Instant::now();
        loop {
            // Together with the records, so that a record queued before a chunk was handed in is written before it.
            let packed: Vec<Done> = std::iter::from_fn(|| waiting.chunks.next_done()).collect();
            let task = match packed.is_empty() && !waiting.finished {
                true => waiting.chunks.take_over(take_over).or_else(|| waiting.chunks.take()),
                false => None,
            };
            let work = Work {
                blocks: std::mem::take(&mut waiting.blocks),
                names: std::mem::take(&mut waiting.names),
                classes: std::mem::take(&mut waiting.classes),
                dynamic_classes: std::mem::take(&mut waiting.dynamic_classes),
                threads: std::mem::take(&mut waiting.threads),
                monitors: std::mem::take(&mut waiting.monitors),
                stacks: std::mem::take(&mut waiting.stacks),
                gcs: std::mem::take(&mut waiting.gcs),
                packed,
                job: task.map(|task| self.job_of(task)),
                end: if waiting.chunks.is_empty() { waiting.end } else { None },
            };
            if !work.is_empty() {
                self.taken.notify_all();
                if let Some(journal) = &mut waiting.journal {
                    journal.taken(first_block);
                }
                return Some(work);
            }
            let left = patience.map(|patience| patience.saturating_sub(start.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let is_moving = waiting.chunks.is_moving();
            let look = if is_moving { Some(left.map_or(take_over, |left| left.min(take_over))) } else { left };
            waiting = wait(&self.wake, waiting, look);
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
        None => unpoisoned(condition.wait(guard)),
        Some(patience) => unpoisoned(condition.wait_timeout(guard, patience)).0,
    }
}

/// Work for the writer, in this order.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Work<'a> {
    pub blocks: VecDeque<(BlockKind, Vec<u8>)>,
    pub names: Vec<Vec<u8>>,
    pub classes: Vec<u8>,
    pub dynamic_classes: Vec<u8>,
    pub threads: Vec<u8>,
    pub monitors: Vec<u8>,
    pub stacks: Vec<u8>,
    pub gcs: Vec<GcRecord>,
    pub packed: Vec<Done>,
    pub job: Option<Job<'a>>,
    pub end: Option<Finish>,
}

impl Work<'_> {
    fn is_empty(&self) -> bool {
        self.blocks.is_empty()
            && self.names.is_empty()
            && self.classes.is_empty()
            && self.dynamic_classes.is_empty()
            && self.threads.is_empty()
            && self.monitors.is_empty()
            && self.stacks.is_empty()
            && self.gcs.is_empty()
            && self.packed.is_empty()
            && self.job.is_none()
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
                // Enough time to exceed the limit.
                thread::sleep(Duration::from_millis(20));
                let count = queue.next(None, TAKE_OVER, 0).map_or(0, |work| work.blocks.len());
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
