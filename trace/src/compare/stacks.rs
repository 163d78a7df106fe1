//! What the stacks hold by definition: the receivers of running methods, and exceptions in flight.

use rustc_hash::FxHashMap;

use crate::record::{ObjectId, Record, ThreadId};

/// The stacks of all threads.
#[derive(Debug, Default)]
pub struct Stacks {
    stacks: Vec<Stack>,
    of_thread: FxHashMap<ThreadId, usize>,
    current: Option<(ThreadId, usize)>,
}

#[derive(Debug, Default)]
struct Stack {
    receivers: Vec<ObjectId>,
    in_flight: ObjectId,
}

impl Stacks {
    #[inline]
    fn of(&mut self, thread: ThreadId) -> &mut Stack {
        let at = match self.current {
            Some((current, at)) if current == thread => at,
            _ => {
                let stacks = &mut self.stacks;
                let at = *self.of_thread.entry(thread).or_insert_with(|| {
                    stacks.push(Stack::default());
                    stacks.len() - 1
                });
                self.current = Some((thread, at));
                at
            }
        };
        &mut self.stacks[at]
    }

    /// The next record.
    #[inline]
    pub fn record(&mut self, record: &Record) {
        match *record {
            Record::Entry { receiver, thread, .. } => self.of(thread).receivers.push(receiver),
            Record::Exit { thread, .. } => {
                self.of(thread).receivers.pop();
            }
            Record::ExitThrow { thread, exception, .. } => {
                let stack = self.of(thread);
                stack.receivers.pop();
                stack.in_flight = if stack.receivers.is_empty() { ObjectId::NULL } else { exception };
            }
            Record::Throw { thread, exception, .. } => self.of(thread).in_flight = exception,
            Record::Handle { thread, .. } => self.of(thread).in_flight = ObjectId::NULL,
            _ => {}
        }
    }

    /// The receivers of methods that have not returned.
    pub fn receivers(&self) -> impl Iterator<Item = ObjectId> {
        self.stacks.iter().flat_map(|stack| stack.receivers.iter().copied())
    }

    /// The exceptions in flight.
    pub fn in_flight(&self) -> impl Iterator<Item = ObjectId> {
        self.stacks.iter().map(|stack| stack.in_flight)
    }
}
