//! What only local variables of methods that were running at the end may have held (`docs/semantics.md`, "Alive at the end").
//!
//! Local variables leave no records, so an object that one holds dies at its last mention. If the method that had it in hand
//! still runs at the end of the trace, it may be there yet. A method that makes one object after the other in a
//! loop holds the last of them: so for each running method and each site only the last one counts, with all that died with it.

use et_names::MethodId;
use rustc_hash::FxHashMap;

use super::Amount;
use super::tally::ThreadTally;

/// A frame: thread, depth, serial number.
pub(super) type FrameRef = (u32, u32, u64);

/// Where in a stack, and what kind of object.
type Key = (u32, u32, u32);

#[derive(Clone, Copy, Debug)]
struct Dropped {
    serial: u64,
    amount: Amount,
}

/// What died while a method ran that had had it in hand.
#[derive(Debug)]
pub(super) struct Held {
    dropped: FxHashMap<Key, Dropped>,
    /// Whose the deaths are that follow.
    batch: Option<Key>,
    /// So many entries are looked through for those whose method has ended.
    tidy_at: usize,
}

impl Default for Held {
    fn default() -> Self {
        Self { dropped: FxHashMap::default(), batch: None, tidy_at: 1024 }
    }
}

impl Held {
    /// Something else happened than deaths.
    #[inline]
    pub fn end_of_batch(&mut self) {
        self.batch = None;
    }

    /// An object died; holders come before what they hold.
    pub fn died(&mut self, row: u32, bytes: u64, holder: Option<FrameRef>, threads: &[ThreadTally]) {
        if let Some((thread, depth, serial)) = holder {
            let key = (thread, depth, row);
            let known = self.dropped.get(&key).is_some_and(|known| known.serial == serial);
            // Two of a kind that die at once may both be held.
            if !(known && self.batch == Some(key)) {
                if self.dropped.len() >= self.tidy_at {
                    self.tidy(threads);
                }
                self.dropped.insert(key, Dropped { serial, amount: Amount::default() });
            }
            self.batch = Some(key);
        }
        if let Some(dropped) = self.batch.and_then(|key| self.dropped.get_mut(&key)) {
            dropped.amount.add(bytes);
        }
    }

    fn tidy(&mut self, threads: &[ThreadTally]) {
        self.dropped
            .retain(|&(thread, depth, _), dropped| threads[thread as usize].running(depth, dropped.serial).is_some());
        self.tidy_at = (self.dropped.len() * 2).max(1024);
    }

    /// Method, row and amount of what is left.
    pub fn at_end<'a>(&'a self, threads: &'a [ThreadTally]) -> impl Iterator<Item = (MethodId, u32, Amount)> + 'a {
        self.dropped.iter().filter_map(|(&(thread, depth, row), dropped)| {
            let frame = threads[thread as usize].running(depth, dropped.serial)?;
            Some((frame.method, row, dropped.amount))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::{Frame, NONE};
    use super::*;

    #[test]
    fn the_last_of_a_kind_counts_with_what_it_held() {
        let frame = |method, serial| Frame { method: MethodId(method), outside: NONE, program: NONE, serial };
        let mut threads = vec![ThreadTally { stack: vec![frame(1, 10), frame(2, 11)], ..ThreadTally::default() }];
        let (main, callee) = ((0, 0, 10), (0, 1, 11));
        let mut held = Held::default();
        // A request, and another: the first is gone from the variable.
        held.died(0, 16, Some(main), &threads);
        held.end_of_batch();
        held.died(0, 24, Some(main), &threads);
        held.end_of_batch();
        // The cache with two pages, of which nobody had hold.
        held.died(1, 32, Some(main), &threads);
        held.died(2, 100, None, &threads);
        held.died(2, 100, None, &threads);
        held.end_of_batch();
        // What nobody had in hand and nobody held.
        held.died(3, 1000, None, &threads);
        held.end_of_batch();
        held.died(4, 8, Some(callee), &threads);
        threads[0].stack.pop();
        let mut left: Vec<_> =
            held.at_end(&threads).map(|(m, row, amount)| (m.0, row, amount.objects, amount.bytes)).collect();
        left.sort_unstable();
        assert_eq!(left, [(1, 0, 1, 24), (1, 1, 3, 232)]);
        threads[0].stack[0].serial = 12;
        assert_eq!(held.at_end(&threads).count(), 0, "another method runs in its place");
    }
}
