//! The threads that pack full chunks: the writer, further threads of the runtime when the writer falls behind, and
//! threads of the program that would otherwise wait for a free chunk.
//!
//! None of them calls the VM or holds a lock while it packs. A thread suspended by a debugger or another agent
//! continues in native code until it calls the VM or returns to it, so it finishes packing.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

use et_format::event::{self, Event, Ticket};
use et_format::{BlockKind, BlockPacker, Codec, NewBlock, Packing};
use et_jvm::sync::lock;

use crate::base::cpu_time;
use crate::buffers::Buffers;
use crate::buffers::pool::FullChunk;
use crate::live::rates;
use crate::output::line::Packed;
use crate::output::queue::{Job, Queue};

/// How event blocks are packed: see docs/inside/packing.md for the figures behind the choice.
const EVENTS_CODEC: Codec = Codec::Packed;
/// Another thread of the runtime is started when this many chunks wait and none of its threads is idle.
const BACKLOG: usize = 3;
/// Time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(5);
/// Bytes of stack of a thread that only packs.
const STACK: usize = 512 << 10;

/// Maximum numbers of packing threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads of the runtime, including the writer.
    pub writers: u32,
    /// Threads of the program.
    pub helpers: u32,
}

impl Limits {
    /// `given` by the option `writers`, or half of the processors, so that the program keeps as many as the writing of
    /// its trace takes. The rest is packed by threads of the program, in the time in which they would have waited.
    pub fn new(given: Option<u32>, processors: u32) -> Self {
        Self { writers: given.unwrap_or(processors / 2).max(1), helpers: processors.max(1) }
    }

    /// As [`new`](Self::new), with the processors of this machine.
    pub fn here(given: Option<u32>) -> Self {
        let processors = thread::available_parallelism().map_or(1, |count| count.get() as u32);
        Self::new(given, processors)
    }
}

/// The state of packing: working memory for threads of the program, and statistics.
#[derive(Debug)]
pub struct Packers {
    limits: Limits,
    /// For threads of the program. Created by the writer, because creation takes more stack than a thread of the
    /// program may have left.
    idle: Mutex<Vec<BlockPacker>>,
    /// Number of packers created for `idle`, including those in use.
    made: AtomicU32,
    /// Number of threads of the runtime besides the writer.
    running: AtomicU32,
    most: AtomicU32,
    helped: AtomicU64,
    /// Nanoseconds of processor time spent packing.
    nanos: AtomicU64,
    /// The part of `nanos` not spent by the writer.
    others: AtomicU64,
}

/// A thread other than the writer panicked while it packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// The kind of a thread that packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The trace writer.
    Writer,
    /// Another thread of the runtime.
    Ours,
    /// A thread of the program.
    Program,
}

impl Packers {
    /// The state before any thread packs.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            idle: Mutex::default(),
            made: AtomicU32::new(0),
            running: AtomicU32::new(0),
            most: AtomicU32::new(0),
            helped: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            others: AtomicU64::new(0),
        }
    }

    /// Packs one full chunk on a thread of the program; false if there is none, or if the maximum number of threads
    /// are packing.
    pub fn help(&self, queue: &Queue, buffers: &Buffers) -> bool {
        let Some(mut packer) = lock(&self.idle).pop() else { return false };
        let Some(job) = queue.job() else {
            lock(&self.idle).push(packer);
            return false;
        };
        match self.pack(&mut packer, buffers, job, Who::Program) {
            Ok(()) => lock(&self.idle).push(packer),
            // Its working memory may be inconsistent. If packing fails again, the writer reports why.
            Err(Panicked) => _ = self.made.fetch_sub(1, Ordering::Relaxed),
        }
        true
    }

    /// Called periodically by the writer: prepares working memory for threads of the program, and starts a thread if
    /// the writer falls behind.
    pub fn provide<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        queue: &'scope Queue,
        buffers: &'scope Buffers,
    ) {
        if buffers.is_short() && self.made.load(Ordering::Relaxed) < self.limits.helpers {
            let mut packer = BlockPacker::default();
            packer.prepare();
            self.made.fetch_add(1, Ordering::Relaxed);
            lock(&self.idle).push(packer);
        }
        let running = self.running.load(Ordering::Relaxed);
        if running + 1 < self.limits.writers && queue.lacks_packers(BACKLOG) {
            let packer = thread::Builder::new().name("et-packer".into()).stack_size(STACK);
            // If no further thread can be started, the existing ones continue.
            if packer.spawn_scoped(scope, || self.run(queue, buffers)).is_ok() {
                self.running.fetch_add(1, Ordering::Relaxed);
                self.most.fetch_max(running + 1, Ordering::Relaxed);
            }
        }
    }

    /// Frees idle working memory. Called when nothing has happened for a while.
    pub fn rest(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle));
        self.made.fetch_sub(idle.len() as u32, Ordering::Relaxed);
    }

    /// The body of a thread that only packs.
    fn run(&self, queue: &Queue, buffers: &Buffers) {
        let mut packer = BlockPacker::default();
        while let Some(job) = queue.wait_for_job(IDLE) {
            if let Err(Panicked) = self.pack(&mut packer, buffers, job, Who::Ours) {
                // If packing fails again, the writer reports why.
                packer = BlockPacker::default();
            }
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Packs a chunk. If that panics, the chunk goes to the writer; a panic of the writer is passed on.
    pub fn pack(&self, packer: &mut BlockPacker, buffers: &Buffers, job: Job<'_>, who: Who) -> Result<(), Panicked> {
        let start = cpu_time::of_this_thread();
        let packed = catch_unwind(AssertUnwindSafe(|| pack(packer, buffers, job.chunk())));
        let (released, result) = match packed {
            Ok(packed) => (job.done(packed), Ok(())),
            Err(panic) if who == Who::Writer => resume_unwind(panic),
            Err(_) => (job.give_back(), Err(Panicked)),
        };
        if let Some(chunk) = released {
            buffers.release(chunk);
        }
        if let (Some(start), Some(end)) = (start, cpu_time::of_this_thread()) {
            let nanos = end.saturating_sub(start).as_nanos() as u64;
            self.nanos.fetch_add(nanos, Ordering::Relaxed);
            if who != Who::Writer {
                self.others.fetch_add(nanos, Ordering::Relaxed);
            }
        }
        if who == Who::Program {
            self.helped.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Processor time spent packing by all threads except the writer.
    pub fn others(&self) -> Duration {
        Duration::from_nanos(self.others.load(Ordering::Relaxed))
    }

    /// Statistics for the trace. `append` is the processor time spent appending.
    pub fn packing(&self, append: Duration) -> Packing {
        Packing {
            writers: 1 + self.most.load(Ordering::Relaxed),
            helped_blocks: self.helped.load(Ordering::Relaxed),
            cpu_seconds: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64(),
            append_seconds: append.as_secs_f64(),
        }
    }
}

/// Packs a chunk into a block.
fn pack(packer: &mut BlockPacker, buffers: &Buffers, chunk: &FullChunk) -> Packed {
    let events = buffers.events(chunk);
    let mut packed = Packed { event_bytes: events.len() as u64, ..Packed::default() };
    if events.is_empty() {
        return packed;
    }
    if let Some(rates) = rates::get() {
        rates.count(&events);
    }
    let first_ticket = match event::decode(&events) {
        Ok(Some((Event::Ticket(ticket), _))) => ticket,
        _ => Ticket(0),
    };
    let block = NewBlock {
        kind: BlockKind::Events,
        codec: EVENTS_CODEC,
        thread: chunk.thread.0,
        // Set when it is appended.
        sequence: 0,
        first_ticket,
        wall: buffers.wall(chunk),
    };
    packer.hurry(buffers.is_short());
    if let Err(error) = packer.write(&mut packed.block, block, &events) {
        packed.problem = Some(format!("{:?} left out: {error}", block.kind));
    }
    packed.events = packer.events();
    packed
}
