//! Owners of chunks: the bookkeeping of the event buffers, without their memory.

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
    /// The writer lags: a chunk becomes free if the thread waits.
    Lag,
}

/// A chunk that a thread has just taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The chunk's index.
    pub index: u32,
    /// Number of chunks taken so far, including this one.
    pub sequence: u64,
    /// Number of bytes at its start that still contain earlier events.
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
    /// Whether it was taken from its thread, which may still be adding events.
    pub(crate) is_shared: bool,
}

/// The end of a chunk that was taken from its thread; events after it were added since.
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

    /// A second handle of the chunk for a thread that only reads it. Only the original is released.
    pub(crate) fn alias(&self) -> Self {
        Self { index: self.index, len: self.len, thread: self.thread, is_shared: self.is_shared }
    }

    /// The place where it was cut, if it was taken from its thread.
    pub fn cut(&self) -> Option<CutChunk> {
        self.is_shared.then_some(CutChunk { index: self.index, len: self.len })
    }
}

/// The chunks and their owners.
#[derive(Debug)]
pub struct Pool {
    /// Number of chunks at the writer from which threads wait instead of getting new ones.
    lag: u32,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    /// The most recently used is last: it may still be in the caches.
    free: Vec<Free>,
    /// The owner of each chunk, by index.
    owners: Vec<Option<ThreadIndex>>,
    /// Number of chunks at the writer.
    full: u32,
    handed_out: u64,
    stopped: bool,
}

/// A chunk without an owner.
#[derive(Clone, Copy, Debug)]
struct Free {
    index: u32,
    /// Bytes of earlier events that it still contains.
    used: usize,
}

impl Pool {
    /// `count` free chunks. With `lag` chunks at the writer, threads wait instead of getting new ones.
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

    /// Takes a free chunk, which must be cleared and then [owned](Self::own). If the writers lag, waits or returns
    /// [`NoChunk::Lag`]; otherwise calls `grow` with the index of another chunk to create.
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

    /// Makes the thread the owner of a chunk that has been cleared. False if tracing has ended meanwhile.
    ///
    /// Not earlier: [`hand_in_all`](Self::hand_in_all) would take the old content for events of the thread.
    pub fn own(&self, index: u32, thread: ThreadIndex) -> bool {
        let mut state = lock(&self.state);
        if !state.stopped {
            state.owners[index as usize] = Some(thread);
        }
        !state.stopped
    }

    /// Takes a chunk back from its thread and calls `give`, which hands it to the writer. False if it was already
    /// taken back.
    ///
    /// Both happen under one lock: a chunk that [`hand_in_all`](Self::hand_in_all) no longer finds has reached the
    /// writer before the end does.
    pub fn hand_in(&self, index: u32, give: impl FnOnce(ThreadIndex)) -> bool {
        let mut state = lock(&self.state);
        let Some(thread) = state.owners.get_mut(index as usize).and_then(Option::take) else { return false };
        state.full += 1;
        give(thread);
        true
    }

    /// Takes back all owned chunks for the writer. No thread gets one afterwards.
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

    /// Whether enough chunks are at the writer that it should hurry: half the number at which threads wait.
    pub fn is_short(&self) -> bool {
        lock(&self.state).full > self.lag / 2
    }

    /// No thread gets a chunk from now on; waiting threads return.
    pub fn stop(&self) {
        lock(&self.state).stopped = true;
        self.freed.notify_all();
    }

    /// The writer is done with a chunk, whose first `used` bytes must be cleared.
    pub fn release(&self, index: u32, used: usize) {
        let mut state = lock(&self.state);
        state.free.push(Free { index, used });
        state.full -= 1;
        let writer_lags = state.full >= self.lag;
        drop(state);
        if writer_lags {
            self.freed.notify_one();
        } else {
            // Wakes all: each may get a new chunk now, or learn that there is none. The thread that gets this one may
            // keep it while it waits for the others.
            self.freed.notify_all();
        }
    }

    /// Number of chunks.
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

    /// Otherwise its old content would be taken for events of the thread.
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

    /// Found by `cargo xtask loom`: with only one thread woken, the other waited until the first was done with its
    /// chunk.
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
            // A failing test must not wait for its threads.
            pool.stop();
            indexes.sort_unstable_by_key(|index| *index.as_ref().unwrap_or(&u32::MAX));
            assert_eq!(indexes, [Ok(0), Ok(1)]);
        });
    }

    /// Also found by `cargo xtask loom`: the end came in between, and the chunk after the end.
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
