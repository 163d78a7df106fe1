//! The trace writer: the thread that appends blocks to the trace file sequentially. It shares the packing of full
//! chunks with other threads (`packers`), and is the only one to pack records.
//!
//! All other threads put records into the queue (`queue`) and continue; only a lack of free chunks makes a thread
//! pack, or wait (`buffers`).

mod append;

use std::time::{Duration, Instant};

use et_format::event::Ticket;
use et_format::progress::{Progress, RunId, Stopped};
use et_format::{BlockKind, BlockPacker, End, LATE, Problem, file_header};

use et_jvm::hotspot::HeapUse;

use crate::base::cpu_time;
use crate::buffers::Buffers;
use crate::output::packers::{Packers, Who};
use crate::output::queue::{Counters, Finish, Queue, TAKE_OVER};
use crate::output::sink::{Sink, SinkError};

/// The problem recorded in a trace whose events were discarded.
const DISCARDED: &str = "bytes of events were thrown away unread, and the events not counted (discard=on): this is not the trace of the run";
/// Maximum age of the counts in the trace if a run is killed.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// What the writer needs from the JVM, so that it can be tested without one.
pub trait Host {
    /// The heap usage, after a garbage collection.
    fn heap_use(&self) -> HeapUse;
    /// The current counts.
    fn counters(&self) -> Counters;
    /// Writing failed: the hooks must be stopped.
    fn failed(&self, error: &SinkError);
}

/// The body of the writer's thread: returns when everything except the end is written.
pub fn run<'a, H: Host>(
    run: RunId,
    queue: &Queue,
    buffers: &'a Buffers,
    packers: &'a Packers,
    sink: Sink,
    host: &'a H,
    start: Instant,
) -> Written<'a, H> {
    let mut writer = Writer::new(run, sink, buffers, packers, host, start);
    // The other packing threads end with this scope. They do not wait for other threads.
    std::thread::scope(|scope| {
        let closing = Closing(queue);
        let finish = loop {
            if let Some(finish) = writer.step(queue, || packers.provide(scope, queue, buffers)) {
                break finish;
            }
        };
        drop(closing);
        writer.counters = Some(finish.counters);
        let cpu_seconds = cpu_time::of_this_thread().map(|time| (time + packers.others()).as_secs_f64());
        Written { writer, finish, cpu_seconds }
    })
}

/// Dismisses the packing threads, even if the writer panics.
struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close_jobs();
    }
}

/// A trace that is complete except for its end. Until that is written, the buffer file stays.
#[derive(Debug)]
pub struct Written<'a, H> {
    writer: Writer<'a, H>,
    finish: Finish,
    cpu_seconds: Option<f64>,
}

impl<H: Host> Written<'_, H> {
    /// Writes the end and closes the trace, on any thread. `late` is the number of events after the end of tracing.
    pub fn close(mut self, late: u64) {
        if late > 0 {
            let problem = Problem { what: LATE.into(), count: late };
            self.writer.pack(BlockKind::Problem, &et_format::encode_json(&problem));
        }
        if let Err(error) = self.writer.end(self.finish, self.cpu_seconds) {
            self.writer.fail(&error);
        }
        self.writer.write_progress();
        self.writer.buffers.remove_file();
    }
}

#[derive(Debug)]
struct Writer<'a, H> {
    buffers: &'a Buffers,
    host: &'a H,
    start: Instant,
    /// None once the trace is closed.
    sink: Option<Sink>,
    /// After a failure, why tracing stopped. Chunks are then only counted and released.
    stopped: Option<Stopped>,
    blocks: u64,
    event_bytes: u64,
    /// Number of events in the trace.
    events: u64,
    packers: &'a Packers,
    packer: BlockPacker,
    /// Whether the counts have been written since the last work.
    is_resting: bool,
    /// Processor time spent appending events.
    append: Duration,
    /// Output not written yet.
    packed: Vec<u8>,
    last_progress: Instant,
    /// The last ticket read while the buffer file was intact.
    ticket: Ticket,
    /// The final counts, which then replace the host's.
    counters: Option<Counters>,
}

impl<'a, H: Host> Writer<'a, H> {
    fn new(run: RunId, sink: Sink, buffers: &'a Buffers, packers: &'a Packers, host: &'a H, start: Instant) -> Self {
        let mut packed = file_header(run).to_vec();
        packed.extend_from_slice(&Progress::default().fixed_block());
        Self {
            buffers,
            host,
            start,
            sink: Some(sink),
            stopped: None,
            blocks: 1,
            event_bytes: 0,
            events: 0,
            packers,
            packer: BlockPacker::default(),
            is_resting: true,
            append: Duration::ZERO,
            packed,
            last_progress: start,
            ticket: Ticket(0),
            counters: None,
        }
    }

    /// Waits for work and does it. Calls `provide` before packing. Returns how tracing ended, once everything except
    /// the end is written.
    fn step(&mut self, queue: &Queue, provide: impl FnOnce()) -> Option<Finish> {
        // After the last work the counts are written once more, in case the program is killed while it waits.
        let patience = (!self.is_resting).then_some(PROGRESS_EVERY);
        let Some(mut work) = queue.next(patience, TAKE_OVER, self.blocks) else {
            self.is_resting = true;
            self.write_progress();
            if let Err(error) = self.flush() {
                self.fail(&error);
            }
            self.packers.rest();
            return None;
        };
        self.is_resting = false;
        let (packed, job, end) = (std::mem::take(&mut work.packed), work.job.take(), work.end);
        if let Err(error) = self.write(work) {
            self.fail(&error);
        }
        queue.written();
        self.append_all(packed);
        provide();
        if let Some(job) = job {
            // A panic of the writer does not return here.
            _ = self.packers.pack(&mut self.packer, self.buffers, job, Who::Writer);
        }
        if end.is_none() && self.last_progress.elapsed() >= PROGRESS_EVERY {
            self.write_progress();
        }
        end
    }

    /// Writes the progress of the run into the trace's `Progress` block, or why tracing stopped.
    fn write_progress(&mut self) {
        self.last_progress = Instant::now();
        if !self.buffers.are_whole() && self.stopped.is_none() {
            self.fail(&SinkError::Buffers(self.buffers.name()));
            return;
        }
        if self.stopped.is_none() {
            self.ticket = self.buffers.last_ticket();
        }
        let Some(sink) = &self.sink else { return };
        let Counters { lost_events, overflows, dynamic, .. } = self.counters.unwrap_or_else(|| self.host.counters());
        let progress = Progress {
            seconds: self.start.elapsed().as_secs_f64(),
            ticket: self.ticket,
            event_bytes: self.event_bytes,
            blocks: if self.stopped.is_some() { 0 } else { self.blocks },
            lost_events,
            overflows,
            dynamic,
            stopped: self.stopped.clone(),
        };
        if !sink.write_progress(&progress) {
            // Written together with the next block.
            self.pack(BlockKind::Progress, &progress.json());
        }
    }

    fn end(&mut self, finish: Finish, cpu_seconds: Option<f64>) -> Result<(), SinkError> {
        if self.stopped.is_some() {
            return Ok(());
        }
        if let Some(discarded) = finish.counters.discarded_bytes {
            let problem = Problem { what: DISCARDED.into(), count: discarded };
            self.pack(BlockKind::Problem, &et_format::encode_json(&problem));
        }
        let end = End {
            reason: finish.reason.into(),
            end_ticket: finish.end_ticket,
            event_bytes: self.event_bytes,
            blocks: self.blocks + 1,
            lost_events: finish.counters.lost_events,
            seconds: self.start.elapsed().as_secs_f64(),
            events: Some(self.events),
            discarded_bytes: finish.counters.discarded_bytes,
            writer_cpu_seconds: cpu_seconds,
            packing: Some(self.packers.packing(self.append)),
            dynamic: finish.counters.dynamic,
        };
        self.pack(BlockKind::End, &et_format::encode_json(&end));
        self.flush()?;
        self.sink.take().map_or(Ok(()), Sink::close)
    }

    /// Stops tracing. Only the first failure is reported: later ones follow from it.
    fn fail(&mut self, error: &SinkError) {
        if self.stopped.is_some() {
            return;
        }
        self.buffers.stop();
        self.host.failed(error);
        let seconds = self.start.elapsed().as_secs_f64();
        self.stopped = Some(Stopped { why: error.cause(), seconds, lost_chunks: 0, lost_events: 0 });
        // Otherwise the rest of the buffers would be taken for the continuation of the trace.
        self.write_progress();
        self.buffers.remove_file();
        // The reader of a pipe need not wait any longer.
        self.sink = self.sink.take().filter(Sink::is_plain);
    }
}

#[cfg(test)]
mod tests;
