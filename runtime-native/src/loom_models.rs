//! The hand-over of chunks in all orders in which threads may come: `cargo xtask loom`.
//!
//! `Pool` and `Queue` are the real ones. The memory of a chunk is one number here, read and written without any order of
//! its own: what keeps it in order must be the hand-over.

use std::collections::BTreeMap;
use std::time::Duration;

use et_format::event::Ticket;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use crate::buffers::pool::{FullChunk, NoChunk, Pool, Taken, ThreadIndex};
use crate::output::line::Packed;
use crate::output::queue::{Counters, Finish, Job, Queue};

/// Nobody packs for so long.
const LONG: Duration = Duration::from_secs(1000);
/// More switches between threads than that in one run find nothing new, and take hours.
const SWITCHES: usize = 3;

struct Model {
    pool: Pool,
    queue: Queue,
    memory: Vec<AtomicU32>,
    /// Chunks that there may be.
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

    /// As a thread does that would have to wait.
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

    /// As a thread does whose chunk is full. False if it was no longer the thread's.
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

    /// As the writer does until the end: the values in the order in which they came, by thread.
    fn write(&self) -> BTreeMap<u32, Vec<u32>> {
        self.write_with(LONG)
    }

    /// As above; what others pack for so long it packs, too.
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

    /// Has one chunk packed, by whomever, and appends it.
    fn append_one(&self) {
        let mut written = BTreeMap::new();
        while written.is_empty() {
            self.step(LONG, &mut written);
        }
    }

    /// As at the end of the program.
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

/// Two threads with two chunks between them, while the writer empties and gives back.
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

/// Two threads wait, and each keeps what it gets: who could have a new one must not wait for that of the other.
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

/// The last chunk comes back and another thread gets it: who waits learns that there will be none.
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

/// A thread hands a chunk in, gets the next one, leaves something in it, all while the trace ends.
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
            // Its chunk was taken from it, with what it had written so far.
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

/// A thread of ours packs beside the writer: all is written, in the order in which it was handed in, and the thread ends.
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

/// A thread that would have to wait packs; what it packs is in the trace, in order, and it gets a chunk.
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

/// Who packs stands still, for ever as far as the others can tell: the writer packs the same chunk, and nobody gets the chunk
/// before the other is done with it.
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

/// Who packs gives up: the writer does it.
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
