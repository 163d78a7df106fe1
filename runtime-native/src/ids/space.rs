//! Ids that the runtime gives out by itself, for hooks to write into the mark words of fresh objects.
//!
//! They are a part of the same sequence that the VM draws from, so that what it draws meanwhile, for objects whose mark
//! word cannot be written, is never one of them: the VM's part is [`VMS_OWN`] steps long. Threads get them in blocks.
//! When all have been given out, the next *lap* begins at the first again, without those that objects still have.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use et_names::hashes::{PERIOD, after, next};
use rustc_hash::{FxHashMap, FxHashSet};

/// Ids of a block at most. A native call for so many costs nothing, and what a short thread leaves goes to the next one.
const BLOCK: u32 = 1 << 12;
/// Ids from where the VM's generator stands that are left to it.
const VMS_OWN: u32 = 1 << 28;
/// Ids before where the VM's generator started that archived objects may have: the archive of a copy is dumped from 2^24
/// steps before that, and the runtime comes some steps after it.
const ARCHIVED: u32 = 1 << 25;

/// Ids that follow each other in the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first, 0 if there is none.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Block {
    /// As HeapProxy and `Thread.etIds` hold it.
    pub fn to_bits(self) -> i64 {
        i64::from(self.count) << 32 | i64::from(self.first)
    }

    /// As above.
    pub fn from_bits(bits: i64) -> Self {
        Self { first: bits as u32, count: (bits >> 32) as u32 }
    }

    /// Takes the first one off it.
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

/// Which thread has a block: whatever tells live threads apart.
pub type Holder = usize;

/// The ids of a run.
#[derive(Debug)]
pub struct IdSpace {
    state: Mutex<State>,
    lap_begun: Condvar,
    first: u32,
    /// Ids of a lap.
    lap: u32,
}

#[derive(Debug)]
struct State {
    next: u32,
    /// Ids of this lap that are left.
    left: u32,
    /// Blocks that were given out for the first time in this lap.
    given: u32,
    /// Ids that are not to be given out in this lap.
    taken: FxHashSet<u32>,
    /// The last block of each thread, whole: who knows how far it is.
    held: FxHashMap<Holder, Block>,
    /// What ended threads left.
    spare: Vec<Block>,
    /// Somebody is looking for the ids that objects still have.
    looking: bool,
    /// Holders that ended meanwhile.
    ended: Vec<Holder>,
    used_up: bool,
    laps: u32,
}

impl IdSpace {
    /// `drawn` is the last hash that the VM drew; `lap` is how many ids there are before they are used again, for tests.
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
            looking: false,
            ended: Vec::new(),
            used_up: false,
            laps: 0,
        };
        Self { state: Mutex::new(state), lap_begun: Condvar::new(), first, lap }
    }

    /// A block for a thread that has used up its last one; an empty one if there are no ids left. `live` tells the ids of all
    /// objects that there are, none if that cannot be found out; no lock is held while it runs.
    pub fn take(&self, holder: Holder, live: impl Fn() -> Option<FxHashSet<u32>>) -> Block {
        let mut state = self.lock();
        loop {
            if state.looking {
                state = self.lap_begun.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if state.used_up {
                return Block::default();
            }
            let block = state.spare.pop().or_else(|| state.next_block());
            if let Some(block) = block {
                state.held.insert(holder, block);
                return block;
            }
            // What is in use of its own block will be found.
            state.held.remove(&holder);
            state.looking = true;
            drop(state);
            let found = live();
            state = self.lock();
            state.looking = false;
            state.begin_lap(self.first, self.lap, found);
            self.lap_begun.notify_all();
        }
    }

    /// The thread has ended and leaves this.
    pub fn give_back(&self, holder: Holder, left: Block) {
        let mut state = self.lock();
        if state.looking {
            state.ended.push(holder);
            return;
        }
        state.held.remove(&holder);
        if left.count > 0 {
            state.spare.push(left);
        }
    }

    /// How often ids have been started from the first again.
    pub fn laps(&self) -> u32 {
        self.lock().laps
    }

    /// Whether objects have had to do without an id of ours because there was none left.
    pub fn is_used_up(&self) -> bool {
        self.lock().used_up
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The next ids that nobody has, as many as follow each other.
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
        let Some(live) = live.filter(|_| self.given > 0) else {
            self.used_up = true;
            return;
        };
        self.taken = live;
        self.taken.extend(self.held.values().flat_map(|block| block.ids()));
        for holder in std::mem::take(&mut self.ended) {
            self.held.remove(&holder);
        }
        // What is spare comes up again in its place.
        self.spare.clear();
        (self.next, self.left, self.given) = (first, lap, 0);
        self.laps += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody() -> Option<FxHashSet<u32>> {
        panic!("nothing is used up yet")
    }

    #[test]
    fn blocks_follow_each_other_far_from_what_the_vm_draws() {
        let space = IdSpace::new(1_234_567, None);
        let blocks: Vec<Block> = (0..3).map(|thread| space.take(thread, nobody)).collect();
        let ids: Vec<u32> = blocks.iter().flat_map(|block| block.ids()).collect();
        assert_eq!(ids.len(), 3 * BLOCK as usize);
        assert!(ids.windows(2).all(|pair| next(pair[0]) == pair[1]));
        assert_eq!(ids[0], after(1_234_567, 1 << 28));
        // A lap ends before what archives have, and the VM's own come behind that.
        assert_eq!(after(ids[0], space.lap + ARCHIVED), 1_234_567);
    }

    #[test]
    fn what_an_ended_thread_leaves_goes_to_the_next() {
        let space = IdSpace::new(1, None);
        let block = space.take(1, nobody);
        let left = Block { first: after(block.first, 100), count: block.count - 100 };
        space.give_back(1, Block::from_bits(left.to_bits()));
        assert_eq!(space.take(2, nobody), left);
        assert_ne!(space.take(1, nobody), left);
        space.give_back(2, Block::default());
        assert_eq!(space.take(3, nobody).count, BLOCK);
    }

    #[test]
    fn a_lap_leaves_out_what_is_in_use() {
        let space = IdSpace::new(1, Some(3 * BLOCK));
        let blocks: Vec<Block> = (1..=3).map(|thread| space.take(thread, nobody)).collect();
        let live = blocks[0].ids().nth(9).unwrap();
        let look = || Some([live].into_iter().collect());
        let found = space.take(1, look);
        assert_eq!(found, Block { first: blocks[0].first, count: 9 });
        assert_eq!(space.take(1, look), Block { first: next(live), count: BLOCK - 10 });
        // Threads 2 and 3 still have theirs, and nobody knows how far they are.
        assert_eq!(space.take(1, look), found);
        assert_eq!(space.laps(), 2);
    }

    #[test]
    fn ids_are_used_up_when_a_lap_has_not_one() {
        let space = IdSpace::new(1, Some(BLOCK));
        space.take(1, nobody);
        let all = || Some(space.lock().held.values().flat_map(|block| block.ids()).collect());
        assert_eq!(space.take(2, all), Block::default());
        assert_eq!(space.take(2, || None), Block::default());
        assert!(space.is_used_up());
    }

    #[test]
    fn the_second_lap_gives_the_first_ones_ids_again() {
        let space = IdSpace::new(1, Some(4 * BLOCK));
        let blocks: Vec<Block> = (0..4).map(|_| space.take(1, nobody)).collect();
        let live = blocks[0].ids().nth(9).unwrap();
        let first = space.take(1, || Some([live].into_iter().collect()));
        let second = space.take(1, nobody);
        assert_eq!((first, second.first), (Block { count: 9, ..blocks[0] }, after(blocks[0].first, 10)));
        assert_eq!(space.laps(), 1);
        let more: Vec<Block> = (0..3).map(|_| space.take(1, nobody)).collect();
        assert_eq!(more.iter().chain([&first, &second]).map(|block| block.count).sum::<u32>(), 4 * BLOCK - 1);
        let again = space.take(1, || Some(FxHashSet::default()));
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
                        let block = space.take(thread, || {
                            std::thread::yield_now();
                            Some(FxHashSet::default())
                        });
                        assert!(block.count > 0);
                    }
                    space.give_back(thread, Block::default());
                });
            }
        });
        assert!(space.laps() > 0 && !space.is_used_up());
    }
}
