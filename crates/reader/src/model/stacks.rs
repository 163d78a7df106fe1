//! The stacks of all threads as they result from entries, exits and exceptions.

use et_names::MethodId;

use super::by_thread::{ByThread, Forget};
use super::contexts::{ContextId, Contexts};
use crate::record::{ObjectId, Record, ThreadId};

/// A method call that has not returned. `T` is data of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<T = ()> {
    pub method: MethodId,
    /// Its receiver; null for a static method.
    pub receiver: ObjectId,
    /// Number of its entry among all entries, from 1: distinguishes it from earlier frames in the same place.
    pub serial: u64,
    /// Data of the user.
    pub data: T,
}

/// Reference to a frame, valid while the frame is on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRef {
    /// The thread whose stack it is on.
    pub thread: ThreadId,
    /// Index in the stack; 0 is the outermost frame.
    pub depth: u32,
    /// Its [`Frame::serial`].
    pub serial: u64,
}

/// An object held by a stack, according to the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnStack {
    /// The thread that the stack belongs to.
    pub thread: ThreadId,
    /// The method that holds it: the one whose receiver it is, or the innermost method for an exception in flight.
    pub method: MethodId,
    pub object: ObjectId,
    /// Whether it is an exception in flight and not a receiver.
    pub is_in_flight: bool,
}

/// The stack of a thread.
#[derive(Clone, Debug)]
pub struct Stack<T = ()> {
    /// Frames, outermost first.
    pub frames: Vec<Frame<T>>,
    /// Exception that was thrown and not yet caught; null if there is none.
    pub in_flight: ObjectId,
    /// Serial of the frame that was last left; 0 if none was.
    pub left: u64,
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self { frames: Vec::new(), in_flight: ObjectId::NULL, left: 0 }
    }
}

impl<T> Stack<T> {
    /// The innermost frame.
    #[inline]
    pub fn top(&self) -> Option<&Frame<T>> {
        self.frames.last()
    }
}

impl<T> Forget for Stack<T> {
    fn is_as_at_first(&self) -> bool {
        self.frames.is_empty() && self.in_flight.is_null()
    }
}

/// The stacks of all threads. A thread with an empty stack takes no memory.
#[derive(Debug)]
pub struct Stacks<T = ()> {
    stacks: ByThread<Stack<T>>,
    entries: u64,
}

impl<T> Default for Stacks<T> {
    fn default() -> Self {
        Self { stacks: ByThread::default(), entries: 0 }
    }
}

impl<T> Stacks<T> {
    /// Applies the next record. `enter` returns the data for a new frame, given the frame of its caller.
    #[inline]
    pub fn record_with(&mut self, record: &Record, enter: impl FnOnce(Option<&Frame<T>>) -> T) {
        match *record {
            Record::Entry { method, receiver, thread } => {
                self.entries += 1;
                let stack = self.stacks.of(thread);
                let data = enter(stack.top());
                stack.frames.push(Frame { method, receiver, serial: self.entries, data });
            }
            Record::Exit { thread, .. } => _ = self.leave(thread),
            Record::ExitThrow { thread, exception, .. } => {
                let stack = self.leave(thread);
                stack.in_flight = if stack.frames.is_empty() { ObjectId::NULL } else { exception };
            }
            Record::Throw { thread, exception, .. } => self.stacks.of(thread).in_flight = exception,
            Record::Handle { thread, .. } => self.stacks.of(thread).in_flight = ObjectId::NULL,
            Record::Alloc(_) | Record::Update { .. } | Record::Death { .. } | Record::Use { .. } => {}
        }
    }

    #[inline]
    fn leave(&mut self, thread: ThreadId) -> &mut Stack<T> {
        let stack = self.stacks.of(thread);
        if let Some(frame) = stack.frames.pop() {
            stack.left = frame.serial;
        }
        stack
    }

    /// The stack of a thread; `None` if it is empty.
    #[inline]
    pub fn of(&self, thread: ThreadId) -> Option<&Stack<T>> {
        self.stacks.get(thread)
    }

    /// Methods on a thread's stack, innermost first.
    pub fn methods(&self, thread: ThreadId) -> impl Iterator<Item = MethodId> + '_ {
        let frames = self.of(thread).map(|stack| stack.frames.as_slice()).unwrap_or_default();
        frames.iter().rev().map(|frame| frame.method)
    }

    /// The stack of a thread, for modification other than by records.
    #[inline]
    pub fn of_mut(&mut self, thread: ThreadId) -> &mut Stack<T> {
        self.stacks.of(thread)
    }

    /// The innermost frame of a thread.
    #[inline]
    pub fn top(&self, thread: ThreadId) -> Option<(FrameRef, &Frame<T>)> {
        let stack = self.of(thread)?;
        let top = stack.top()?;
        Some((FrameRef { thread, depth: stack.frames.len() as u32 - 1, serial: top.serial }, top))
    }

    /// Returns a frame if it is still on its stack.
    #[inline]
    pub fn running(&self, frame: FrameRef) -> Option<&Frame<T>> {
        self.of(frame.thread)?.frames.get(frame.depth as usize).filter(|there| there.serial == frame.serial)
    }

    /// All stacks that are not empty, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (ThreadId, &Stack<T>)> {
        self.stacks.iter()
    }

    /// Everything held by methods that have not returned: by thread, outermost first, exceptions in flight last.
    pub fn held(&self) -> Vec<OnStack> {
        let mut stacks: Vec<(ThreadId, &Stack<T>)> = self.iter().collect();
        stacks.sort_unstable_by_key(|&(thread, _)| thread);
        let of = |(thread, stack): (ThreadId, &Stack<T>)| {
            let receivers = stack.frames.iter().map(|frame| (frame.method, frame.receiver, false));
            let in_flight = stack.top().map(|top| (top.method, stack.in_flight, true));
            let held = receivers.chain(in_flight).filter(|(_, object, _)| !object.is_null());
            held.map(|(method, object, is_in_flight)| OnStack { thread, method, object, is_in_flight })
                .collect::<Vec<_>>()
        };
        stacks.into_iter().flat_map(of).collect()
    }

    /// Receivers of methods that have not returned.
    pub fn receivers(&self) -> impl Iterator<Item = ObjectId> {
        self.iter().flat_map(|(_, stack)| stack.frames.iter().map(|frame| frame.receiver))
    }

    pub fn in_flight(&self) -> impl Iterator<Item = ObjectId> {
        self.iter().map(|(_, stack)| stack.in_flight).filter(|exception| !exception.is_null())
    }
}

impl Stacks<Option<ContextId>> {
    /// Context of a thread's innermost method. Contexts of frames are computed on demand, together with those of their
    /// callers: most calls return without one.
    #[inline]
    pub fn context(&mut self, thread: ThreadId, contexts: &mut Contexts) -> ContextId {
        match self.top(thread) {
            None => ContextId::EMPTY,
            Some((_, Frame { data: Some(known), .. })) => *known,
            Some(_) => self.find_context(thread, contexts),
        }
    }

    fn find_context(&mut self, thread: ThreadId, contexts: &mut Contexts) -> ContextId {
        let frames = &mut self.stacks.of(thread).frames;
        let known = frames.iter().rposition(|frame| frame.data.is_some());
        let mut context = known.and_then(|at| frames[at].data).unwrap_or_default();
        for frame in &mut frames[known.map_or(0, |at| at + 1)..] {
            context = contexts.call(context, frame.method);
            frame.data = Some(context);
        }
        context
    }
}

impl<T: Default> Stacks<T> {
    /// Applies the next record, for stacks without data.
    #[inline]
    pub fn record(&mut self, record: &Record) {
        self.record_with(record, |_| T::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const ONE: ThreadId = ThreadId(1);

    fn entry(method: u32, receiver: u64) -> Record {
        Record::Entry { method: MethodId(method), receiver: ObjectId(receiver), thread: ONE }
    }

    fn exit(method: u32) -> Record {
        Record::Exit { method: MethodId(method), receiver: ObjectId::NULL, thread: ONE }
    }

    #[test]
    fn frames_are_there_from_entry_to_exit() {
        let mut stacks = Stacks::<u32>::default();
        let depth = |below: Option<&Frame<u32>>| below.map_or(1, |frame| frame.data + 1);
        for record in [entry(1, 0), entry(2, 7), exit(2), entry(3, 9)] {
            stacks.record_with(&record, depth);
        }
        let stack = stacks.of(ONE).unwrap();
        let frames: Vec<_> = stack.frames.iter().map(|frame| (frame.method.0, frame.serial, frame.data)).collect();
        assert_eq!(frames, [(1, 1, 1), (3, 3, 2)]);
        assert_eq!(stack.left, 2);
        let (at, top) = stacks.top(ONE).unwrap();
        assert_eq!((at, top.method.0), (FrameRef { thread: ONE, depth: 1, serial: 3 }, 3));
        assert_eq!(stacks.running(at), Some(top));
        assert!(stacks.running(FrameRef { serial: 2, ..at }).is_none(), "another is in its place");
        assert_eq!(stacks.receivers().collect::<Vec<_>>(), [ObjectId(0), ObjectId(9)]);
        let exception = ObjectId(5);
        stacks.record(&Record::Throw { method: MethodId(3), receiver: ObjectId(9), exception, thread: ONE });
        stacks.record(&Record::Entry { method: MethodId(4), receiver: ObjectId(6), thread: ThreadId(0) });
        let held: Vec<_> =
            stacks.held().iter().map(|held| (held.thread.0, held.method.0, held.object.0, held.is_in_flight)).collect();
        assert_eq!(held, [(0, 4, 6, false), (1, 3, 9, false), (1, 3, 5, true)]);
    }

    proptest! {
        /// Whenever contexts are requested, they equal those of a tree that is extended at each call, and the tree has
        /// no more nodes than were requested.
        #[test]
        fn contexts_are_found_when_they_are_asked_for(
            steps in prop::collection::vec((0..2u32, 0..4u32, any::<bool>()), 0..200),
        ) {
            let (mut stacks, mut lazy) = (Stacks::<Option<ContextId>>::default(), Contexts::default());
            let (mut model, mut all) = ([vec![], vec![]], Contexts::default());
            let mut chains = BTreeSet::new();
            for (thread, method, asked) in steps {
                let (number, thread) = (thread as usize, ThreadId(thread + 1));
                match method {
                    0 => {
                        model[number].pop();
                        stacks.record(&Record::Exit { method: MethodId(0), receiver: ObjectId::NULL, thread });
                    }
                    _ => {
                        let method = MethodId(method);
                        let caller = model[number].last().copied().unwrap_or_default();
                        model[number].push(all.call(caller, method));
                        stacks.record(&Record::Entry { method, receiver: ObjectId::NULL, thread });
                    }
                }
                if asked {
                    let expected = model[number].last().copied().unwrap_or_default();
                    let found = stacks.context(thread, &mut lazy);
                    let chain: Vec<_> = lazy.methods(found).collect();
                    prop_assert_eq!(&chain, &all.methods(expected).collect::<Vec<_>>());
                    chains.extend((0..chain.len()).map(|from| chain[from..].to_vec()));
                }
            }
            prop_assert_eq!(lazy.len(), chains.len() + 1);
        }
    }

    #[test]
    fn exceptions_are_in_flight_until_handled_or_out_of_the_thread() {
        let mut stacks = Stacks::<()>::default();
        let exception = ObjectId(5);
        let thrown = |kind: u8| match kind {
            0 => Record::Throw { method: MethodId(1), receiver: ObjectId::NULL, exception, thread: ONE },
            1 => Record::Handle { method: MethodId(1), receiver: ObjectId::NULL, exception, thread: ONE },
            _ => Record::ExitThrow { method: MethodId(1), receiver: ObjectId::NULL, exception, thread: ONE },
        };
        let in_flight = |stacks: &Stacks| stacks.in_flight().collect::<Vec<_>>();
        for record in [entry(1, 0), entry(2, 0), thrown(0), thrown(2)] {
            stacks.record(&record);
        }
        assert_eq!(in_flight(&stacks), [exception]);
        stacks.record(&thrown(1));
        assert_eq!(in_flight(&stacks), []);
        stacks.record(&thrown(2));
        assert_eq!(in_flight(&stacks), [], "nobody is left to handle it");
    }
}
