//! What may be held only by local variables of methods running at the end (`docs/semantics.md`, "Alive at the end").
//!
//! Local variables leave no records, so an object held by one dies at its last mention. If the method that last used it
//! is still running at the end of the trace, it may still be there. A method that allocates one object after the other
//! in a loop holds the last of them: so for each running method only the last one counts of those that were made in one
//! place for one caller, with all that died with it.

use et_names::MethodId;
use rustc_hash::FxHashMap;

use crate::model::{FrameRef, Stacks};
use crate::record::ThreadId;

/// Where in a stack, and the number of the object's origins.
type Key = (ThreadId, u32, u32);

#[derive(Clone, Copy, Debug)]
struct Dropped {
    serial: u64,
    objects: u64,
    bytes: u64,
}

/// Objects that died while a method was running that had used them.
#[derive(Debug)]
pub(super) struct Held {
    dropped: FxHashMap<Key, Dropped>,
    /// The object whose death the following deaths belong to.
    batch: Option<Key>,
    /// Number of entries at which those of finished methods are removed.
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
    pub fn died<T>(&mut self, origins: u32, bytes: u64, holder: Option<FrameRef>, stacks: &Stacks<T>) {
        if let Some(FrameRef { thread, depth, serial }) = holder {
            let key = (thread, depth, origins);
            let known = self.dropped.get(&key).is_some_and(|known| known.serial == serial);
            // Two of a kind that die at once may both be held.
            if !(known && self.batch == Some(key)) {
                if self.dropped.len() >= self.tidy_at {
                    self.tidy(stacks);
                }
                self.dropped.insert(key, Dropped { serial, objects: 0, bytes: 0 });
            }
            self.batch = Some(key);
        }
        if let Some(dropped) = self.batch.and_then(|key| self.dropped.get_mut(&key)) {
            dropped.objects += 1;
            dropped.bytes = dropped.bytes.saturating_add(bytes);
        }
    }

    fn tidy<T>(&mut self, stacks: &Stacks<T>) {
        self.dropped.retain(|&(thread, depth, _), &mut Dropped { serial, .. }| {
            stacks.running(FrameRef { thread, depth, serial }).is_some()
        });
        self.tidy_at = (self.dropped.len() * 2).max(1024);
    }

    /// What is left: the method, number of the origins, objects and bytes.
    pub fn at_end<'a, T>(&'a self, stacks: &'a Stacks<T>) -> impl Iterator<Item = (MethodId, u32, u64, u64)> + 'a {
        self.dropped.iter().filter_map(|(&(thread, depth, origins), &Dropped { serial, objects, bytes })| {
            let frame = stacks.running(FrameRef { thread, depth, serial })?;
            Some((frame.method, origins, objects, bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ObjectId, Record};

    #[test]
    fn the_last_of_a_kind_counts_with_what_it_held() {
        let thread = ThreadId(1);
        let mut stacks = Stacks::<()>::default();
        let entry = |method| Record::Entry { method: MethodId(method), receiver: ObjectId::NULL, thread };
        let exit = Record::Exit { method: MethodId(0), receiver: ObjectId::NULL, thread };
        stacks.record(&entry(1));
        let main = stacks.top(thread).map(|(at, _)| at);
        stacks.record(&entry(2));
        let callee = stacks.top(thread).map(|(at, _)| at);
        let mut held = Held::default();
        // A request, and another: the first is gone from the variable.
        held.died(0, 16, main, &stacks);
        held.end_of_batch();
        held.died(0, 24, main, &stacks);
        held.end_of_batch();
        // The cache with two pages, which no method had used.
        held.died(1, 32, main, &stacks);
        held.died(2, 100, None, &stacks);
        held.died(2, 100, None, &stacks);
        held.end_of_batch();
        // Used by no method and held by nothing.
        held.died(3, 1000, None, &stacks);
        held.end_of_batch();
        held.died(4, 8, callee, &stacks);
        stacks.record(&exit);
        let mut left: Vec<_> =
            held.at_end(&stacks).map(|(method, of, objects, bytes)| (method.0, of, objects, bytes)).collect();
        left.sort_unstable();
        assert_eq!(left, [(1, 0, 1, 24), (1, 1, 3, 232)]);
        stacks.record(&exit);
        stacks.record(&entry(3));
        assert_eq!(held.at_end(&stacks).count(), 0, "another method runs in its place");
    }
}
