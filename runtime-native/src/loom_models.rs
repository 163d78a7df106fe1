//! The hand-over of chunks in all interleavings of threads: `cargo xtask loom`.
//!
//! `Pool` and `Queue` are the real ones. The memory of a chunk is modelled as one number, accessed with relaxed
//! ordering: the hand-over must provide the ordering.

use std::collections::BTreeMap;
use std::time::Duration;

use et_format::event::Ticket;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    fence,
};
use loom::thread;

use crate::buffers::pool::{FullChunk, NoChunk, Pool, Taken, ThreadIndex};
use crate::output::line::Packed;
use crate::output::queue::{Counters, Finish, Job, Queue};

/// Longer than any thread packs.
const LONG: Duration = Duration::from_secs(1000);
/// Maximum number of preemptions per run; more find nothing new, and take hours.
const SWITCHES: usize = 3;

struct Model {
    pool: Pool,
    queue: Queue,
    memory: Vec<AtomicU32>,
    /// Maximum number of chunks.
    limit: u32,
}

impl Model {
    fn new(count: u32, lag: u32, limit: u32) -> Arc<Self> {
        let memory = (0..limit).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { pool: Pool::new(count, lag), queue: Queue::default(), memory, limit })
    }

    fn take(&self, thread: u32) -> Result<u32, NoChunk> {
        let mut waits = false;
        let Taken { index, used, .. } = loop {
            match self.pool.take(waits, |index| index < self.limit) {
                Err(NoChunk::Lag) => waits = !self.help(),
                taken => break taken?,
            }
        };
        let memory = &self.memory[index as usize];
        assert!(used > 0 || memory.load(Relaxed) == 0, "it is somebody's, or nobody says that it must be emptied");
        memory.store(0, Relaxed);
        if self.pool.own(index, ThreadIndex(thread)) { Ok(index) } else { Err(NoChunk::Stopped) }
    }

    /// Acts as a thread that would have to wait.
    fn help(&self) -> bool {
        self.queue.job().is_some_and(|job| {
            self.pack(job);
            true
        })
    }

    fn pack(&self, job: Job<'_>) {
        let events = self.memory[job.chunk().index as usize].load(Relaxed).into();
        let packed = Packed { block: vec![job.chunk().thread.0 as u8], events, ..Packed::default() };
        if let Some(chunk) = job.done(packed) {
            self.pool.release(chunk.index, 1);
        }
    }

    /// Acts as a thread whose chunk is full. False if the thread no longer owned it.
    fn hand_in(&self, index: u32) -> bool {
        let full = |thread| self.queue.chunk(FullChunk { index, len: 0, thread, is_shared: false });
        self.pool.hand_in(index, full)
    }

    /// Takes a chunk, writes to it, hands it in.
    fn fill(&self, thread: u32, value: u32) -> bool {
        let Ok(index) = self.take(thread) else { return false };
        self.memory[index as usize].store(value, Relaxed);
        self.hand_in(index)
    }

    /// Acts as the writer until the end; returns the values in order of arrival, by thread.
    fn write(&self) -> BTreeMap<u32, Vec<u32>> {
        self.write_with(LONG)
    }

    /// As [`write`](Self::write); packs chunks itself that others have been packing for that long.
    fn write_with(&self, take_over: Duration) -> BTreeMap<u32, Vec<u32>> {
        let mut written: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        loop {
            let end = self.step(take_over, &mut written);
            self.queue.written();
            if end {
                break;
            }
        }
        self.queue.close_jobs();
        self.queue.writer_is_gone();
        written
    }

    fn step(&self, take_over: Duration, written: &mut BTreeMap<u32, Vec<u32>>) -> bool {
        let Some(work) = self.queue.next(None, take_over, 0) else { return false };
        for done in work.packed {
            if done.packed.events != 0 {
                let thread = done.packed.block[0].into();
                written.entry(thread).or_default().push(done.packed.events as u32);
            }
            if let Some(chunk) = done.chunk {
                self.pool.release(chunk.index, 1);
            }
        }
        if let Some(job) = work.job {
            self.pack(job);
        }
        work.end.is_some()
    }

    /// Appends one chunk after some thread has packed it.
    fn append_one(&self) {
        let mut written = BTreeMap::new();
        while written.is_empty() {
            self.step(LONG, &mut written);
        }
    }

    /// Acts as the end of the program.
    fn finish(&self) {
        for (index, thread) in self.pool.hand_in_all(|_| ()) {
            self.queue.chunk(FullChunk { index, len: 0, thread, is_shared: false });
        }
        self.queue.finish(Finish { reason: "end", end_ticket: Ticket(0), counters: Counters::default() }, None);
    }
}

fn spawn<T: 'static>(model: &Arc<Model>, run: impl FnOnce(&Model) -> T + 'static) -> thread::JoinHandle<T> {
    let model = Arc::clone(model);
    thread::spawn(move || run(&model))
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(SWITCHES);
    builder.check(model);
}

/// Two threads share two chunks, while the writer empties and releases them.
#[test]
fn loom_nothing_is_lost_and_nothing_comes_twice() {
    check(|| {
        let model = Model::new(2, 1, 2);
        let writer = spawn(&model, Model::write);
        let other = spawn(&model, |model| assert!(model.fill(2, 21)));
        assert!(model.fill(1, 11) && model.fill(1, 12));
        other.join().unwrap();
        model.finish();
        assert_eq!(writer.join().unwrap(), BTreeMap::from([(1, vec![11, 12]), (2, vec![21])]));
    });
}

/// Two threads wait, and each keeps the chunk it gets: a thread that could get a new chunk must not wait for the
/// other's.
#[test]
fn loom_all_that_wait_are_woken() {
    check(|| {
        let model = Model::new(1, 1, 2);
        assert!(model.fill(1, 11));
        let waiting = [2, 3].map(|thread| spawn(&model, move |model| model.take(thread)));
        model.append_one();
        let mut got: Vec<_> = waiting.into_iter().map(|waiting| waiting.join().unwrap().unwrap()).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1]);
    });
}

/// The last chunk is released and another thread gets it: a waiting thread learns that there will be none.
#[test]
fn loom_who_can_get_none_does_not_wait_for_ever() {
    check(|| {
        let model = Model::new(1, 1, 1);
        assert!(model.fill(1, 11));
        let waiting = [2, 3].map(|thread| spawn(&model, move |model| model.take(thread)));
        model.append_one();
        let got = waiting.map(|waiting| waiting.join().unwrap());
        assert!(got.contains(&Ok(0)) && got.contains(&Err(NoChunk::NoSpace)), "{got:?}");
    });
}

/// A thread hands in a chunk, gets the next one and writes to it, while the trace ends.
#[test]
fn loom_what_comes_while_the_trace_ends_is_in_it() {
    check(|| {
        let model = Model::new(2, 2, 2);
        let writer = spawn(&model, Model::write);
        let late = spawn(&model, |model| {
            let index = model.take(1).ok()?;
            model.memory[index as usize].store(11, Relaxed);
            Some(model.hand_in(index))
        });
        model.finish();
        let (late, written) = (late.join().unwrap(), writer.join().unwrap());
        match late {
            Some(true) => assert_eq!(written, BTreeMap::from([(1, vec![11])])),
            // Its chunk was taken with what it had written so far.
            Some(false) => assert!(written.get(&1).is_none_or(|values| *values == [11]), "{written:?}"),
            None => assert_eq!(written, BTreeMap::new()),
        }
    });
}

/// Tracing stops while threads wait.
#[test]
fn loom_who_waits_goes_away_when_tracing_stops() {
    check(|| {
        let model = Model::new(1, 1, 1);
        assert!(model.fill(1, 11));
        let waiting = [2, 3].map(|thread| spawn(&model, move |model| model.take(thread)));
        model.pool.stop();
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap(), Err(NoChunk::Stopped));
        }
    });
}

/// A thread of the runtime packs beside the writer: everything is written in hand-in order, and the thread ends.
#[test]
fn loom_two_pack_and_one_appends() {
    check(|| {
        let model = Model::new(2, 2, 2);
        assert!(model.fill(1, 11) && model.fill(1, 12));
        let writer = spawn(&model, Model::write);
        let packer = spawn(&model, |model| {
            while let Some(job) = model.queue.wait_for_job(LONG) {
                model.pack(job);
            }
        });
        model.finish();
        assert_eq!(writer.join().unwrap(), BTreeMap::from([(1, vec![11, 12])]));
        packer.join().unwrap();
    });
}

/// A thread that would have to wait packs instead; the result is in the trace, in order, and the thread gets a chunk.
#[test]
fn loom_who_would_wait_helps() {
    check(|| {
        let model = Model::new(1, 1, 1);
        let writer = spawn(&model, Model::write);
        assert!(model.fill(1, 11) && model.fill(1, 12));
        model.finish();
        assert_eq!(writer.join().unwrap(), BTreeMap::from([(1, vec![11, 12])]));
    });
}

/// A packing thread is stopped, for ever as far as others can tell: the writer packs the same chunk, which no thread
/// gets before the stopped one is done with it.
#[test]
fn loom_who_stands_still_is_not_waited_for_and_reads_what_it_read() {
    check(|| {
        let model = Model::new(2, 2, 2);
        assert!(model.fill(1, 11) && model.fill(1, 12));
        let writer = spawn(&model, |model| model.write_with(Duration::ZERO));
        let slow = spawn(&model, |model| {
            let Some(job) = model.queue.job() else { return };
            let memory = &model.memory[job.chunk().index as usize];
            let before = memory.load(Relaxed);
            thread::yield_now();
            assert_eq!(memory.load(Relaxed), before);
            model.pack(job);
        });
        let filled = model.fill(2, 21);
        model.finish();
        let mut expected = BTreeMap::from([(1, vec![11, 12])]);
        if filled {
            expected.insert(2, vec![21]);
        }
        assert_eq!(writer.join().unwrap(), expected);
        slow.join().unwrap();
    });
}

/// A packing thread gives up: the writer packs the chunk.
#[test]
fn loom_what_is_given_up_the_writer_packs() {
    check(|| {
        let model = Model::new(1, 1, 1);
        assert!(model.fill(1, 11));
        let writer = spawn(&model, Model::write);
        let other = spawn(&model, |model| drop(model.queue.job()));
        model.finish();
        assert_eq!(writer.join().unwrap(), BTreeMap::from([(1, vec![11])]));
        other.join().unwrap();
    });
}

/// What `HeapProxyPlatform` does on a processor that orders nothing by itself: whoever reads what another thread has stored, as the
/// program does, without any synchronization, writes its next event under a later ticket.
#[test]
fn loom_what_is_read_comes_after_what_was_stored() {
    check(|| {
        let counter = Arc::new(AtomicU64::new(0));
        let field = Arc::new(AtomicU64::new(0));
        let storing = {
            let (counter, field) = (counter.clone(), field.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    // nextTicket(): an addition that is volatile in Java, and a fence. Without the fence this fails.
                    let ticket = counter.fetch_add(1, AcqRel) + 1;
                    fence(Release);
                    // The event has been written under this ticket; now the program stores.
                    field.store(ticket, Relaxed);
                }
            })
        };
        let reading = {
            let (counter, field) = (counter.clone(), field.clone());
            thread::spawn(move || {
                let mut mine = counter.fetch_add(1, AcqRel) + 1;
                fence(Release);
                let seen = field.load(Relaxed);
                // lastTicket(): a fence, and a read with acquire.
                fence(Acquire);
                if counter.load(Acquire) != mine {
                    mine = counter.fetch_add(1, AcqRel) + 1;
                }
                assert!(mine > seen, "ticket {mine} for what ticket {seen} has stored");
            })
        };
        storing.join().unwrap();
        reading.join().unwrap();
    });
}

/// A slot of `IdTable` and of the table of stacks: whoever finds the key finds what belongs to it.
#[test]
fn loom_who_finds_an_id_finds_its_layout() {
    check(|| {
        let slot = Arc::new((AtomicU32::new(0), AtomicU64::new(0)));
        let other = slot.clone();
        let filling = thread::spawn(move || {
            other.1.store(4711, Relaxed);
            other.0.store(7, Release);
        });
        if slot.0.load(Acquire) == 7 {
            assert_eq!(slot.1.load(Relaxed), 4711);
        }
        filling.join().unwrap();
    });
}
