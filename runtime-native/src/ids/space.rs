//! Ids given out by the runtime, for hooks to write into the mark words of new objects.
//!
//! They are part of the sequence that the VM draws from, so that hashes drawn by the VM, for objects whose mark word
//! cannot be written, never collide with them: the VM's part is [`VMS_OWN`] steps long. Threads get ids in blocks.
//! When all have been given out, the next *lap* begins with the first again, omitting ids still in use.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use et_jvm::sync::{lock, unpoisoned};
use et_names::hashes::{PERIOD, after, next};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of ids in a block. One native call for this many is cheap, and the rest of a short-lived thread's
/// block is reused.
const BLOCK: u32 = 1 << 12;
/// Number of ids from the VM's position in the sequence that are left to the VM.
const VMS_OWN: u32 = 1 << 28;
/// Number of ids before the start of the VM's generator that archived objects may have: the archive of a copy is
/// dumped from 2^24 steps before it, and the runtime starts some steps after it.
const ARCHIVED: u32 = 1 << 25;

/// Consecutive ids of the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first id, 0 if there is none.
    pub first: u32,
    /// The number of ids.
    pub count: u32,
}

impl Block {
    /// The block in one word, as in `Thread.etIds`.
    pub fn to_bits(self) -> i64 {
        i64::from(self.count) << 32 | i64::from(self.first)
    }

    /// The block from one word, as in `Thread.etIds`.
    pub fn from_bits(bits: i64) -> Self {
        Self { first: bits as u32, count: (bits >> 32) as u32 }
    }

    /// Removes the first id from the block.
    pub fn pop(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        let id = self.first;
        self.first = next(id);
        Some(id)
    }

    fn ids(self) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(self.first), |id| Some(next(*id))).take(self.count as usize)
    }
}

/// How long a thread waits for another that searches for ids in use. Then it searches itself, because the other may be
/// suspended.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 5000 });

/// The holder of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A thread, by a number unique among live threads.
    Thread(usize),
    /// The heap walk when tracing begins.
    Walk,
    /// Ids as tags; each block has its own number.
    Tags(u64),
}

/// The ids of a run.
#[derive(Debug)]
pub struct IdSpace {
    state: Mutex<State>,
    lap_begun: Condvar,
    first: u32,
    /// Number of ids in a lap.
    lap: u32,
}

#[derive(Debug)]
struct State {
    next: u32,
    /// Number of ids left in this lap.
    left: u32,
    /// Number of new blocks given out in this lap.
    given: u32,
    /// Ids in use, which this lap skips.
    taken: FxHashSet<u32>,
    /// The last block of each holder, as it was given out; how much of it has been used is unknown.
    held: FxHashMap<Holder, Block>,
    /// Blocks returned by threads that have ended.
    spare: Vec<Block>,
    /// Number of threads searching for ids in use, for the next lap.
    looking: u32,
    /// Holders that have ended meanwhile.
    ended: Vec<Holder>,
    used_up: bool,
    laps: u32,
}

impl IdSpace {
    /// `drawn` is the last hash that the VM drew; `lap` is the number of ids in a lap, for tests.
    pub fn new(drawn: u32, lap: Option<u32>) -> Self {
        let first = after(drawn, VMS_OWN);
        let lap = lap.unwrap_or(u32::MAX).min(PERIOD - VMS_OWN - ARCHIVED);
        let state = State {
            next: first,
            left: lap,
            given: 0,
            taken: FxHashSet::default(),
            held: FxHashMap::default(),
            spare: Vec::new(),
            looking: 0,
            ended: Vec::new(),
            used_up: false,
            laps: 0,
        };
        Self { state: Mutex::new(state), lap_begun: Condvar::new(), first, lap }
    }

    /// A new block for a thread that has used up its last one; an empty one if no ids are left. `live` returns the ids
    /// of all existing objects, or `None` if they cannot be found; no lock is held while it runs.
    pub fn take(&self, holder: Holder, live: impl Fn() -> Option<FxHashSet<u32>>) -> Block {
        let mut state = lock(&self.state);
        let mut is_patient = true;
        loop {
            if state.looking > 0 && is_patient {
                let (guard, waited) = unpoisoned(self.lap_begun.wait_timeout(state, PATIENCE));
                state = guard;
                is_patient = !waited.timed_out();
                continue;
            }
            if state.used_up {
                return Block::default();
            }
            if let Some(block) = state.take(holder) {
                return block;
            }
            // The walk will find the used ids of its own block; that must be a walk by this thread, since another's
            // may be over.
            if state.looking == 0 {
                state.held.remove(&holder);
            }
            state.looking += 1;
            let lap = state.laps;
            drop(state);
            let found = live();
            state = lock(&self.state);
            // If another thread was faster, this result belongs to the previous lap.
            if state.laps == lap && !state.used_up {
                state.begin_lap(self.first, self.lap, found);
                self.lap_begun.notify_all();
            }
        }
    }

    /// A block, unless that requires a search for ids in use. Can be called while other threads are stopped.
    pub fn take_at_once(&self, holder: Holder) -> Option<Block> {
        let mut state = lock(&self.state);
        if state.used_up { None } else { state.take(holder) }
    }

    /// The holder ends and returns `left`.
    pub fn give_back(&self, holder: Holder, left: Block) {
        let mut state = lock(&self.state);
        if state.looking > 0 {
            state.ended.push(holder);
            return;
        }
        state.held.remove(&holder);
        if left.count > 0 {
            state.spare.push(left);
        }
    }

    /// Number of laps begun after the first.
    pub fn laps(&self) -> u32 {
        lock(&self.state).laps
    }

    /// Whether some object has got no id of ours because none was left.
    pub fn is_used_up(&self) -> bool {
        lock(&self.state).used_up
    }
}

impl State {
    fn take(&mut self, holder: Holder) -> Option<Block> {
        if self.looking > 0 {
            return None;
        }
        let block = self.spare.pop().or_else(|| self.next_block())?;
        self.held.insert(holder, block);
        Some(block)
    }

    /// The next unused ids, as many as are consecutive.
    fn next_block(&mut self) -> Option<Block> {
        while self.left > 0 && self.taken.contains(&self.next) {
            self.step();
        }
        let first = self.next;
        let mut count = 0;
        if self.taken.is_empty() {
            count = self.left.min(BLOCK);
            (self.next, self.left) = (after(first, count), self.left - count);
        } else {
            while self.left > 0 && count < BLOCK && !self.taken.contains(&self.next) {
                self.step();
                count += 1;
            }
        }
        self.given += u32::from(count > 0);
        (count > 0).then_some(Block { first, count })
    }

    fn step(&mut self) {
        self.next = next(self.next);
        self.left -= 1;
    }

    fn begin_lap(&mut self, first: u32, lap: u32, live: Option<FxHashSet<u32>>) {
        self.looking = 0;
        let Some(live) = live.filter(|_| self.given > 0) else {
            self.used_up = true;
            return;
        };
        self.taken = live;
        self.taken.extend(self.held.values().flat_map(|block| block.ids()));
        for holder in std::mem::take(&mut self.ended) {
            self.held.remove(&holder);
        }
        // Spare ids come up again in the new lap.
        self.spare.clear();
        (self.next, self.left, self.given) = (first, lap, 0);
        self.laps += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Holder::Thread;

    fn nobody() -> Option<FxHashSet<u32>> {
        panic!("nothing is used up yet")
    }

    #[test]
    fn blocks_follow_each_other_far_from_what_the_vm_draws() {
        let space = IdSpace::new(1_234_567, None);
        let blocks: Vec<Block> = (0..3).map(|thread| space.take(Thread(thread), nobody)).collect();
        let ids: Vec<u32> = blocks.iter().flat_map(|block| block.ids()).collect();
        assert_eq!(ids.len(), 3 * BLOCK as usize);
        assert!(ids.windows(2).all(|pair| next(pair[0]) == pair[1]));
        assert_eq!(ids[0], after(1_234_567, 1 << 28));
        // A lap ends before the ids of archives, which are followed by the VM's own.
        assert_eq!(after(ids[0], space.lap + ARCHIVED), 1_234_567);
    }

    #[test]
    fn what_an_ended_thread_leaves_goes_to_the_next() {
        let space = IdSpace::new(1, None);
        let block = space.take(Thread(1), nobody);
        let left = Block { first: after(block.first, 100), count: block.count - 100 };
        space.give_back(Thread(1), Block::from_bits(left.to_bits()));
        assert_eq!(space.take(Thread(2), nobody), left);
        assert_ne!(space.take(Thread(1), nobody), left);
        space.give_back(Thread(2), Block::default());
        assert_eq!(space.take(Thread(3), nobody).count, BLOCK);
    }

    #[test]
    fn a_lap_leaves_out_what_is_in_use() {
        let space = IdSpace::new(1, Some(3 * BLOCK));
        let blocks: Vec<Block> = (1..=3).map(|thread| space.take(Thread(thread), nobody)).collect();
        let live = blocks[0].ids().nth(9).unwrap();
        let look = || Some([live].into_iter().collect());
        let found = space.take(Thread(1), look);
        assert_eq!(found, Block { first: blocks[0].first, count: 9 });
        assert_eq!(space.take(Thread(1), look), Block { first: next(live), count: BLOCK - 10 });
        // Threads 2 and 3 still hold blocks that may be partly used.
        assert_eq!(space.take(Thread(1), look), found);
        assert_eq!(space.laps(), 2);
    }

    #[test]
    fn ids_are_used_up_when_a_lap_has_not_one() {
        let space = IdSpace::new(1, Some(BLOCK));
        space.take(Thread(1), nobody);
        let all = || Some(lock(&space.state).held.values().flat_map(|block| block.ids()).collect());
        assert_eq!(space.take(Thread(2), all), Block::default());
        assert_eq!(space.take(Thread(2), || None), Block::default());
        assert!(space.is_used_up());
    }

    #[test]
    fn the_second_lap_gives_the_first_ones_ids_again() {
        let space = IdSpace::new(1, Some(4 * BLOCK));
        let blocks: Vec<Block> = (0..4).map(|_| space.take(Thread(1), nobody)).collect();
        let live = blocks[0].ids().nth(9).unwrap();
        let first = space.take(Thread(1), || Some([live].into_iter().collect()));
        let second = space.take(Thread(1), nobody);
        assert_eq!((first, second.first), (Block { count: 9, ..blocks[0] }, after(blocks[0].first, 10)));
        assert_eq!(space.laps(), 1);
        let more: Vec<Block> = (0..3).map(|_| space.take(Thread(1), nobody)).collect();
        assert_eq!(more.iter().chain([&first, &second]).map(|block| block.count).sum::<u32>(), 4 * BLOCK - 1);
        let again = space.take(Thread(1), || Some(FxHashSet::default()));
        assert_eq!(again.first, blocks[0].first);
        assert_eq!(space.laps(), 2);
    }

    #[test]
    fn threads_that_come_while_one_looks_wait_for_it() {
        let space = IdSpace::new(1, Some(64 * BLOCK));
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let space = &space;
                scope.spawn(move || {
                    for _ in 0..100 {
                        let block = space.take(Thread(thread), || {
                            std::thread::yield_now();
                            Some(FxHashSet::default())
                        });
                        assert!(block.count > 0);
                    }
                    space.give_back(Thread(thread), Block::default());
                });
            }
        });
        assert!(space.laps() > 0 && !space.is_used_up());
    }

    /// A thread that searches for ids is suspended, perhaps by one that wants an id itself.
    #[test]
    fn nobody_waits_for_ever_for_one_that_looks() {
        let space = IdSpace::new(1, Some(BLOCK));
        let first = space.take(Thread(1), nobody);
        let (resume, suspended) = std::sync::mpsc::channel::<()>();
        let suspended = Mutex::new(suspended);
        std::thread::scope(|scope| {
            let (looks, has_begun) = std::sync::mpsc::channel();
            let space = &space;
            scope.spawn(move || {
                let found = space.take(Thread(1), || {
                    let _ = looks.send(());
                    let _ = suspended.lock().unwrap().recv();
                    // Result of the previous lap: using it would give out ids twice.
                    Some(FxHashSet::default())
                });
                assert_eq!(found, Block::default(), "the other thread has all ids");
            });
            has_begun.recv().unwrap();
            assert_eq!(space.take_at_once(Thread(2)), None);
            let block = space.take(Thread(2), || Some(FxHashSet::default()));
            assert_eq!((block, space.laps()), (first, 1));
            drop(resume);
        });
    }

    /// The ids of a thread's block need not be in use yet when another thread walks.
    #[test]
    fn what_was_found_early_says_nothing_of_a_thread_that_looks_later() {
        let space = IdSpace::new(1, Some(2 * BLOCK));
        let blocks = [1, 2].map(|thread| space.take(Thread(thread), nobody));
        let (looks, both_look) = std::sync::mpsc::channel();
        let (begins, has_begun) = std::sync::mpsc::channel::<()>();
        let (both_look, has_begun) = (Mutex::new(both_look), Mutex::new(has_begun));
        std::thread::scope(|scope| {
            let (space, both_look, has_begun) = (&space, &both_look, &has_begun);
            let first = scope.spawn(move || {
                let found = space.take(Thread(1), || {
                    let _ = both_look.lock().unwrap().recv_timeout(Duration::from_secs(60));
                    Some(FxHashSet::default())
                });
                let next = space.take_at_once(Thread(3));
                drop(begins);
                (found, next)
            });
            while lock(&space.state).looking == 0 {
                std::thread::yield_now();
            }
            space.take(Thread(2), || {
                let _ = looks.send(());
                let _ = has_begun.lock().unwrap().recv();
                Some(FxHashSet::default())
            });
            assert_eq!(first.join().unwrap(), (blocks[0], None), "the other thread's block is in use");
        });
    }

    #[test]
    fn who_cannot_look_gets_what_is_there() {
        let space = IdSpace::new(1, Some(BLOCK + 1));
        let counts = [(); 3].map(|()| space.take_at_once(Holder::Walk).map(|block| block.count));
        assert_eq!(counts, [Some(BLOCK), Some(1), None]);
        assert!(!space.is_used_up());
    }
}
