//! The way from full chunks and records to the trace, and counts of what is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::JoinHandle;

use et_format::Nanos;
use et_jvm::sync::lock;

use super::Tracer;
use crate::base::patience::Patience;
use crate::base::report::say;
use crate::buffers::{Buffers, CutChunk, FullChunk, NoChunk, ThreadIndex};
use crate::output::packers::Packers;
use crate::output::queue::Queue;
use crate::output::sink::Sink;
use crate::output::writer::Written;

/// Buffers, queue, packing threads, writer.
#[derive(Debug)]
pub struct Output {
    /// The event buffers.
    pub buffers: Buffers,
    /// The queue of the writer.
    pub queue: &'static Queue,
    /// Packs full chunks.
    pub packers: Packers,
    /// How long to wait for the reader of the trace.
    pub patience: Arc<Patience>,
    /// Destination of the trace, until the writer takes it.
    pub sink: Mutex<Option<Sink>>,
    /// Passed by the writer's thread when it runs.
    pub writer_runs: Barrier,
    /// The trace without its end, once the writer is done.
    pub written: Mutex<Option<Written<'static, Tracer>>>,
    /// The thread that searches for names tables.
    pub names: Mutex<Option<JoinHandle<()>>>,
    /// Bytes of events discarded; `None` without `discard=on`.
    discarded: Option<AtomicU64>,
    /// Chunks that were taken from threads at the end.
    cut: Mutex<Vec<CutChunk>>,
    /// Number of events without a chunk.
    lost: AtomicU64,
    /// Number of events without a chunk after the end of tracing.
    late: AtomicU64,
}

impl Output {
    /// The state at the beginning of a run. `discards`: events are discarded, and only their bytes counted.
    pub fn new(
        buffers: Buffers,
        queue: &'static Queue,
        packers: Packers,
        patience: Arc<Patience>,
        sink: Sink,
        discards: bool,
    ) -> Self {
        queue.keep_in(buffers.journal());
        Self {
            buffers,
            queue,
            packers,
            patience,
            sink: Mutex::new(Some(sink)),
            writer_runs: Barrier::new(2),
            written: Mutex::new(None),
            names: Mutex::new(None),
            discarded: discards.then(AtomicU64::default),
            cut: Mutex::default(),
            lost: AtomicU64::new(0),
            late: AtomicU64::new(0),
        }
    }

    /// Counts an event after the end of tracing.
    pub fn count_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an event without a chunk.
    pub fn count_lost(&self) {
        if self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            say("no buffer for a thread, its events are lost: too many threads, or no space beside the trace");
        }
    }

    /// Number of events without a chunk.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Bytes of events discarded; `None` without `discard=on`.
    pub fn discarded(&self) -> Option<u64> {
        self.discarded.as_ref().map(|bytes| bytes.load(Ordering::Relaxed))
    }

    /// Hands in the chunk that its thread has filled up to the address `at`, until now; 0 for none.
    pub fn hand_in(&self, at: usize, now: Nanos) {
        if at != 0 {
            let mut unread = None;
            self.buffers.hand_in(at, now, |chunk| match &self.discarded {
                None => self.queue.chunk(chunk),
                Some(_) => unread = Some(chunk),
            });
            // Not earlier, which would be under the lock for taking chunks.
            self.discard(unread);
        }
    }

    /// Takes back all chunks from threads, at the time given by `clock`, and hands them in.
    pub fn hand_in_all(&self, clock: impl Fn() -> Nanos) {
        let chunks = self.buffers.hand_in_all(clock);
        lock(&self.cut).extend(chunks.iter().filter_map(FullChunk::cut));
        match self.discarded {
            Some(_) => self.discard(chunks),
            None => chunks.into_iter().for_each(|chunk| self.queue.chunk(chunk)),
        }
    }

    /// Takes a free chunk for `thread`, see [`Buffers::take_or_help`].
    pub fn take(&self, thread: ThreadIndex, now: Nanos) -> Result<usize, NoChunk> {
        self.buffers.take_or_help(thread, now, || self.packers.help(self.queue, &self.buffers))
    }

    /// Number of events after the end. Call it when the VM has stopped its threads for good.
    pub fn late(&self) -> u64 {
        let cut = std::mem::take(&mut *lock(&self.cut));
        let added: u64 = cut.into_iter().map(|chunk| self.buffers.late_events(chunk)).sum();
        added + self.late.load(Ordering::Relaxed)
    }

    /// Waits for the end of the search for names tables.
    pub fn join_names(&self) {
        let names = lock(&self.names).take();
        if let Some(names) = names {
            let _ = names.join();
        }
    }

    /// Writes the end of the trace, once. `late` is the number of events after the end of tracing.
    pub fn close(&self, late: u64) {
        let written = lock(&self.written).take();
        if let Some(written) = written {
            written.close(late);
        }
    }

    /// Removes an empty trace.
    pub fn remove(&self) {
        self.buffers.remove_file();
        if let Some(sink) = lock(&self.sink).take() {
            sink.discard();
        }
    }

    fn discard(&self, chunks: impl IntoIterator<Item = FullChunk>) {
        for chunk in chunks {
            if let Some(discarded) = &self.discarded {
                discarded.fetch_add(chunk.bytes() as u64, Ordering::Relaxed);
            }
            self.buffers.release(chunk);
        }
    }
}
