//! Who has which chunk: the bookkeeping of the event buffers, without their memory.
//!
//! A chunk is free, owned by one thread, or full and with the writer.

use crate::base::sync::{Condvar, Mutex, lock, unpoisoned};

/// Number of a thread in the trace, from 1, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadIndex(pub u32);

/// Why a thread got no chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChunk {
    /// Tracing is over.
    Stopped,
    /// All chunks are owned by other threads, and no more can be made.
    NoSpace,
    /// The writer lags: a thread that waits gets one.
    Lag,
}

/// A chunk that a thread has just got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The chunk's index.
    pub index: u32,
    /// How many chunks have been handed out, this one included.
    pub sequence: u64,
    /// Bytes at its start that still hold its previous events.
    pub used: usize,
}

/// A chunk on its way to the writer.
#[derive(Debug, PartialEq, Eq)]
pub struct FullChunk {
    pub(crate) index: u32,
    /// Bytes of its events.
    pub(crate) len: usize,
    /// The thread that wrote the events.
    pub thread: ThreadIndex,
    /// It was taken from its thread, which may be adding to it still.
    pub(crate) is_shared: bool,
}

/// A chunk that was taken from its thread: behind this place is what the thread has added since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutChunk {
    pub(crate) index: u32,
    pub(crate) len: usize,
}

impl FullChunk {
    /// Bytes of its events.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// The same chunk, for another thread that only reads it. The original is what gets released.
    pub(crate) fn alias(&self) -> Self {
        Self { index: self.index, len: self.len, thread: self.thread, is_shared: self.is_shared }
    }

    /// Where it was cut, if it was taken from its thread.
    pub fn cut(&self) -> Option<CutChunk> {
        self.is_shared.then_some(CutChunk { index: self.index, len: self.len })
    }
}

/// The chunks, and who owns each.
#[derive(Debug)]
pub struct Pool {
    /// With this many chunks at the writer, threads wait instead of getting new ones.
    lag: u32,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Most recently used last: it is the one still in the caches.
    free: Vec<Free>,
    /// The owner of each chunk, by index.
    owners: Vec<Option<ThreadIndex>>,
    /// How many chunks are with the writer.
    full: u32,
    handed_out: u64,
    stopped: bool,
}

/// A chunk without an owner.
#[derive(Clone, Copy, Debug)]
struct Free {
    index: u32,
    /// Bytes that its last events took, which are still there.
    used: usize,
}

impl Pool {
    /// `count` chunks, all free. With `lag` of them at the writer, threads wait instead of getting new ones.
    pub fn new(count: u32, lag: u32) -> Self {
        let state = State {
            free: (0..count).rev().map(|index| Free { index, used: 0 }).collect(),
            owners: vec![None; count as usize],
            full: 0,
            handed_out: 0,
            stopped: false,
        };
        Self { lag, state: Mutex::new(state), freed: Condvar::new() }
    }

    /// A free chunk, which is to be emptied and then [owned](Self::own). While the writers lag, waits or says so; otherwise
    /// `grow` makes another, whose index it is given, if it can.
    pub fn take(&self, waits: bool, grow: impl Fn(u32) -> bool) -> Result<Taken, NoChunk> {
        let mut state = lock(&self.state);
        let Free { index, used } = loop {
            if state.stopped {
                return Err(NoChunk::Stopped);
            }
            if let Some(free) = state.free.pop() {
                break free;
            }
            let new = state.owners.len() as u32;
            if state.full < self.lag && grow(new) {
                state.owners.push(None);
                break Free { index: new, used: 0 };
            }
            if state.full == 0 {
                return Err(NoChunk::NoSpace);
            }
            if !waits {
                return Err(NoChunk::Lag);
            }
            state = unpoisoned(self.freed.wait(state));
        };
        state.handed_out += 1;
        Ok(Taken { index, sequence: state.handed_out, used })
    }

    /// The chunk is empty, and from now on that thread's. False if tracing has ended meanwhile.
    ///
    /// Not before: [`hand_in_all`](Self::hand_in_all) would take what was in it for events of the thread.
    pub fn own(&self, index: u32, thread: ThreadIndex) -> bool {
        let mut state = lock(&self.state);
        if !state.stopped {
            state.owners[index as usize] = Some(thread);
        }
        !state.stopped
    }

    /// Takes a chunk back from its thread and gives it to the writer, which is what `give` does. False if it was taken
    /// already.
    ///
    /// Both under one lock: a chunk that [`hand_in_all`](Self::hand_in_all) no longer finds has reached the writer
    /// before the end does.
    pub fn hand_in(&self, index: u32, give: impl FnOnce(ThreadIndex)) -> bool {
        let mut state = lock(&self.state);
        let Some(thread) = state.owners.get_mut(index as usize).and_then(Option::take) else { return false };
        state.full += 1;
        give(thread);
        true
    }

    /// Takes all chunks back that threads own, for the writer. From then on no thread gets one.
    pub fn hand_in_all(&self, mark: impl Fn(u32)) -> Vec<(u32, ThreadIndex)> {
        let mut state = lock(&self.state);
        state.stopped = true;
        self.freed.notify_all();
        let mut taken = Vec::new();
        for index in 0..state.owners.len() as u32 {
            if let Some(thread) = state.owners[index as usize].take() {
                state.full += 1;
                mark(index);
                taken.push((index, thread));
            }
        }
        taken
    }

    /// Whether so many chunks are with the writer that it should hurry. Threads wait only with twice as many.
    pub fn is_short(&self) -> bool {
        lock(&self.state).full > self.lag / 2
    }

    /// From now on no thread gets a chunk; those that wait return.
    pub fn stop(&self) {
        lock(&self.state).stopped = true;
        self.freed.notify_all();
    }

    /// The writer is done with a chunk, whose first bytes are in use still.
    pub fn release(&self, index: u32, used: usize) {
        let mut state = lock(&self.state);
        state.free.push(Free { index, used });
        state.full -= 1;
        let writer_lags = state.full >= self.lag;
        drop(state);
        if writer_lags {
            self.freed.notify_one();
        } else {
            // All of them may have a new one now, or learn that there is none. Who gets this one may keep it, and wait for the
            // others to do something.
            self.freed.notify_all();
        }
    }

    /// How many chunks there are.
    pub fn count(&self) -> usize {
        lock(&self.state).owners.len()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    fn taken(pool: &Pool, thread: u32, grow: impl Fn(u32) -> bool) -> Result<u32, NoChunk> {
        let Taken { index, .. } = pool.take(true, grow)?;
        if pool.own(index, ThreadIndex(thread)) { Ok(index) } else { Err(NoChunk::Stopped) }
    }

    /// What it held would be taken for events of the thread.
    #[test]
    fn a_chunk_that_is_being_emptied_is_nobodys() {
        let pool = Pool::new(1, 1);
        let index = taken(&pool, 1, |_| false).unwrap();
        assert!(pool.hand_in(index, |_| ()));
        pool.release(index, 96);
        assert_eq!(pool.take(true, |_| false), Ok(Taken { index, sequence: 2, used: 96 }));
        assert_eq!(pool.hand_in_all(|_| ()), []);
        assert!(!pool.own(index, ThreadIndex(1)));
    }

    /// `cargo xtask loom` found it: with one thread woken, the other waited until the first was done with its chunk.
    #[test]
    fn all_that_wait_go_on_when_there_may_be_new_chunks() {
        let pool = Pool::new(1, 1);
        let index = taken(&pool, 1, |_| false).unwrap();
        assert!(pool.hand_in(index, |_| ()));
        assert_eq!(pool.take(false, |_| false), Err(NoChunk::Lag));
        let (got, all) = mpsc::channel();
        std::thread::scope(|scope| {
            for thread in [2, 3] {
                let (got, pool) = (got.clone(), &pool);
                scope.spawn(move || got.send(taken(pool, thread, |index| index < 2)));
            }
            std::thread::sleep(Duration::from_millis(50));
            assert!(all.try_recv().is_err(), "the writer has the only chunk");
            pool.release(index, 0);
            let patience = Duration::from_secs(20);
            let mut indexes = [(); 2].map(|()| all.recv_timeout(patience).map(|taken| taken.unwrap()));
            // A test that fails must not wait for its threads.
            pool.stop();
            indexes.sort_unstable_by_key(|index| *index.as_ref().unwrap_or(&u32::MAX));
            assert_eq!(indexes, [Ok(0), Ok(1)]);
        });
    }

    /// `cargo xtask loom` found it, too: the end came between, and the chunk behind the end.
    #[test]
    fn a_chunk_reaches_the_writer_before_anybody_learns_that_its_thread_has_it_no_longer() {
        let pool = Pool::new(1, 1);
        let index = taken(&pool, 1, |_| false).unwrap();
        assert!(pool.hand_in(index, |thread| {
            assert_eq!(thread, ThreadIndex(1));
            assert!(pool.state.try_lock().is_err(), "the trace could end now, without this chunk");
        }));
        assert_eq!(pool.hand_in_all(|_| ()), []);
        assert!(!pool.hand_in(index, |_| unreachable!("nobody has it")));
    }
}
