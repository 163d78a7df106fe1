//! Stacks that are not mounted: those of virtual threads, which one carrier leaves and another one continues.

use et_format::event::ObjectHash;
use rustc_hash::FxHashMap;

use crate::resolve::thread::{FIRST_CONTINUATION, StartedFrame};

/// A stack on which no constructor waits for its object.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Outermost first.
    pub frames: Vec<StartedFrame>,
    /// The exception that was thrown and not yet caught.
    pub in_flight: ObjectHash,
}

/// Whose stack it is that events happen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Null: the thread itself.
    pub continuation: ObjectHash,
    /// The thread of its records.
    pub thread: u32,
}

/// A stack that a thread goes on with.
#[derive(Debug)]
pub struct Mounted {
    pub owner: Owner,
    pub stack: Stack,
}

/// The stacks of continuations that are not mounted.
#[derive(Debug)]
pub struct Unmounted {
    /// There may be millions that have ended, and nothing tells.
    threads: FxHashMap<ObjectHash, u32>,
    /// Only what is not empty.
    stacks: FxHashMap<ObjectHash, Stack>,
    next_thread: u32,
}

impl Default for Unmounted {
    fn default() -> Self {
        let (threads, stacks) = (FxHashMap::default(), FxHashMap::default());
        Self { threads, stacks, next_thread: FIRST_CONTINUATION }
    }
}

impl Unmounted {
    /// Keeps the stack of a continuation.
    pub fn put(&mut self, owner: Owner, mut stack: Stack) {
        self.threads.insert(owner.continuation, owner.thread);
        if stack.frames.is_empty() && stack.in_flight.is_null() {
            self.stacks.remove(&owner.continuation);
        } else {
            // It may never be mounted again.
            stack.frames.shrink_to_fit();
            self.stacks.insert(owner.continuation, stack);
        }
    }

    /// The stack of a continuation, and its thread: a new one, if it has not been kept.
    pub fn take(&mut self, continuation: ObjectHash) -> (Owner, Stack) {
        let thread = self.threads.remove(&continuation).unwrap_or_else(|| {
            self.next_thread += 1;
            self.next_thread - 1
        });
        (Owner { continuation, thread }, self.stacks.remove(&continuation).unwrap_or_default())
    }

    /// A new object has this hash, so the continuation that had it is dead.
    #[inline]
    pub fn forget(&mut self, continuation: ObjectHash) {
        if !self.threads.is_empty() {
            self.threads.remove(&continuation);
            self.stacks.remove(&continuation);
        }
    }
}

#[cfg(test)]
mod tests {
    use et_names::MethodId;

    use super::*;
    use crate::resolve::thread::Subject;

    #[test]
    fn a_continuation_keeps_its_thread_and_its_stack_until_its_hash_is_used_again() {
        let mut unmounted = Unmounted::default();
        let (first, second) = (ObjectHash(0x100), ObjectHash(0x200));
        let (owner, mut stack) = unmounted.take(first);
        assert_eq!((owner.thread, stack.frames.len()), (FIRST_CONTINUATION, 0));
        stack.frames.push(StartedFrame { method: MethodId(1), receiver: Subject::NONE, from_start: false });
        unmounted.put(owner, stack);
        let (other, stack) = unmounted.take(second);
        assert_eq!(other.thread, FIRST_CONTINUATION + 1);
        unmounted.put(other, stack);
        let (owner, stack) = unmounted.take(first);
        assert_eq!((owner.thread, stack.frames.len()), (FIRST_CONTINUATION, 1));
        // It is mounted, so another thread that says so means another one.
        assert_eq!(unmounted.take(first).0.thread, FIRST_CONTINUATION + 2);
        unmounted.put(owner, stack);
        unmounted.forget(first);
        let (owner, stack) = unmounted.take(first);
        assert_eq!((owner.thread, stack.frames.len()), (FIRST_CONTINUATION + 3, 0));
        assert_eq!(unmounted.take(second).0.thread, other.thread);
    }

    #[test]
    fn an_empty_stack_takes_the_place_of_one_with_frames() {
        let mut unmounted = Unmounted::default();
        let (owner, mut stack) = unmounted.take(ObjectHash(1));
        stack.in_flight = ObjectHash(7);
        unmounted.put(owner, stack);
        unmounted.put(owner, Stack::default());
        assert!(unmounted.take(ObjectHash(1)).1.in_flight.is_null());
    }
}
