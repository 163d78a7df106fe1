//! Which objects may still be named: found in advance, going over the blocks from the last to the first, without
//! unpacking them.
//!
//! A packed block stores each word that its earlier words do not predict ([`et_format::BlockUnpacker::literals`]), so an
//! object from before the block is named in it only if its hash is among the stored words. Lengths and other numbers are
//! there as well: what is found here are all objects that later blocks name, and a few others that happen to have the
//! hash of a number. That only delays when such an object is found dead, not when it has died.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use et_format::event::{self, Event, LEFT};
use et_system::threads::spawn_scoped;

use super::pool::{Closing, Pool, Promise, Urgency};
use crate::file::{ThreadEvents, TraceFile};
use crate::resolve::bits::IdSet;
use crate::store::{Piece, Store};

/// Maximum number of bytes of lists kept in memory; the rest goes to a temporary file.
const MEMORY: u64 = 64 << 20;
/// Number of blocks that are looked at ahead.
const AHEAD: usize = 64;

/// Hashes of the objects that blocks may name, and which block is the last to do so.
#[derive(Debug)]
pub struct Literals {
    /// Hashes that blocks which have not been passed may name.
    pending: IdSet,
    lists: Store,
    /// By the order in which blocks were filled: the hashes that no later one names.
    last: Vec<Option<Piece>>,
    /// Which blocks have been passed, and how many before the first that has not.
    passed: Vec<bool>,
    all_before: usize,
}

/// A block: its thread's events, its number, and when it was filled.
pub type BlockOf<'a> = (&'a ThreadEvents, usize);

impl Literals {
    /// Looks at all blocks, given in the order in which they were filled. With `by_events`, only the events count.
    pub fn find(file: &TraceFile, blocks: &[BlockOf<'_>], by_events: bool) -> std::io::Result<Self> {
        let mut found = Self {
            pending: IdSet::default(),
            lists: Store::new(MEMORY),
            last: vec![None; blocks.len()],
            passed: vec![false; blocks.len()],
            all_before: 0,
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let pool = Pool::<Vec<u8>>::default();
        std::thread::scope(|scope| {
            let others = cores.min(blocks.len().div_ceil(8)).saturating_sub(1);
            let _workers: Vec<_> =
                (0..others).map_while(|_| spawn_scoped(scope, || pool.work(&mut Vec::new())).ok()).collect();
            let _closing = Closing(&pool);
            found.look_at(file, blocks, by_events, &pool)
        })?;
        Ok(found)
    }

    /// Looks at the blocks from the last to the first: others look at those before while one is added.
    fn look_at<'a>(
        &mut self,
        file: &'a TraceFile,
        blocks: &[BlockOf<'a>],
        by_events: bool,
        pool: &Pool<'a, Vec<u8>>,
    ) -> std::io::Result<()> {
        let mut events = Vec::new();
        let mut waiting: VecDeque<Promise<Vec<u32>>> = VecDeque::new();
        let mut rest = blocks.iter().rev();
        for last in self.last.iter_mut().rev() {
            let missing = AHEAD.saturating_sub(waiting.len());
            waiting.extend(rest.by_ref().take(missing).map(|&block| {
                pool.add(Urgency::Scan, move |events: &mut Vec<u8>| of_block(file, block, by_events, events))
            }));
            let Some(promise) = waiting.pop_front() else { break };
            let mut hashes = pool.wait(&promise, &mut events);
            self.pending.touch_all(&hashes);
            hashes.retain(|&hash| self.pending.insert(hash));
            if !hashes.is_empty() {
                let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
                *last = Some(self.lists.append(&bytes)?);
            }
        }
        Ok(())
    }

    /// Whether a block that has not been passed may name it.
    #[inline]
    pub fn may_name(&self, hash: u32) -> bool {
        self.pending.contains(hash)
    }

    /// Has [`may_name`](Self::may_name) find in the cache what it needs for this hash.
    #[inline]
    pub fn touch(&self, hash: u32) -> u64 {
        self.pending.touch(hash)
    }

    /// The block has been passed. Returns hashes that no other block names.
    ///
    /// Blocks are passed about in the order in which they were filled. But a thread that has long been idle hands in its
    /// events late: what that block names last may be named in one that was filled before and is passed later.
    pub fn pass(&mut self, block: usize) -> std::io::Result<Vec<u32>> {
        self.passed[block] = true;
        let mut hashes = Vec::new();
        while self.passed.get(self.all_before) == Some(&true) {
            if let Some(piece) = self.last[self.all_before].take() {
                let bytes = self.lists.read(piece)?;
                hashes.extend(bytes.as_chunks().0.iter().map(|hash| u32::from_le_bytes(*hash)));
            }
            self.all_before += 1;
        }
        self.pending.touch_all(&hashes);
        for &hash in &hashes {
            self.pending.remove(hash);
        }
        Ok(hashes)
    }
}

/// The hashes in a block, each once. `events` is a buffer.
fn of_block(file: &TraceFile, (thread, piece): BlockOf<'_>, by_events: bool, events: &mut Vec<u8>) -> Vec<u32> {
    let mut hashes = Vec::new();
    let take = |word: u32| hashes.extend(Some(word & !LEFT).filter(|&hash| hash != 0));
    // What is damaged names nothing: it is left out later, too.
    let is_told = !by_events && file.literals(thread, piece, take).unwrap_or(true);
    if !is_told && file.load_events(thread, piece, events).is_ok() {
        named(events, &mut hashes);
    }
    // In order, sets are looked up in one direction.
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// All objects that events name.
fn named(bytes: &[u8], into: &mut Vec<u32>) {
    let mut at = 0;
    while let Ok(Some((event, len))) = event::decode(&bytes[at..]) {
        at += len;
        let few = match event {
            Event::EntryOn { receiver, .. } | Event::Leaf { receiver, .. } => [receiver.0, 0],
            Event::New { object, class, .. }
            | Event::Found { object, class, .. }
            | Event::Made { object, class, .. }
            | Event::MadeAt { object, class, .. } => [object.0, class.0],
            Event::NewArray { object, .. } | Event::Used { object } => [object.0, 0],
            Event::PutField { origin, target, .. } => [origin.0, target.0],
            Event::PutStatic { target, .. } => [target.0, 0],
            Event::PutElement { array, target, .. } => [array.0, target.0],
            Event::PutElements { array, targets, .. } => {
                into.extend(targets.iter().map(|target| target.0).filter(|&hash| hash != 0));
                [array.0, 0]
            }
            Event::Throw { exception, .. } | Event::Handle { exception, .. } => [exception.0, 0],
            Event::ExitThrow { exception, receiver, .. } => [exception.0, receiver.0],
            Event::Switch { owner } => [owner.0, 0],
            Event::Exit { .. }
            | Event::Entry { .. }
            | Event::EntryInit { .. }
            | Event::SuperCall { .. }
            | Event::Counted { .. }
            | Event::Ticket(_) => {
                continue;
            }
        };
        into.extend(few.into_iter().filter(|&hash| hash != 0));
    }
}
