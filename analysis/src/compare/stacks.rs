//! What the stacks hold by definition: the receivers of running methods, and exceptions in flight.

use et_trace::model::{ByThread, Forget};
use et_trace::record::{ObjectId, Record};

/// The stacks of all threads.
#[derive(Debug, Default)]
pub struct Stacks {
    stacks: ByThread<Stack>,
}

#[derive(Debug, Default)]
struct Stack {
    receivers: Vec<ObjectId>,
    in_flight: ObjectId,
}

impl Forget for Stack {
    fn is_as_at_first(&self) -> bool {
        self.receivers.is_empty() && self.in_flight.is_null()
    }
}

impl Stacks {
    /// The next record.
    #[inline]
    pub fn record(&mut self, record: &Record) {
        match *record {
            Record::Entry { receiver, thread, .. } => self.stacks.of(thread).receivers.push(receiver),
            Record::Exit { thread, .. } => {
                self.stacks.of(thread).receivers.pop();
            }
            Record::ExitThrow { thread, exception, .. } => {
                let stack = self.stacks.of(thread);
                stack.receivers.pop();
                stack.in_flight = if stack.receivers.is_empty() { ObjectId::NULL } else { exception };
            }
            Record::Throw { thread, exception, .. } => self.stacks.of(thread).in_flight = exception,
            Record::Handle { thread, .. } => self.stacks.of(thread).in_flight = ObjectId::NULL,
            _ => {}
        }
    }

    /// The receivers of methods that have not returned.
    pub fn receivers(&self) -> impl Iterator<Item = ObjectId> {
        self.stacks.iter().flat_map(|(_, stack)| stack.receivers.iter().copied())
    }

    /// The exceptions in flight.
    pub fn in_flight(&self) -> impl Iterator<Item = ObjectId> {
        self.stacks.iter().map(|(_, stack)| stack.in_flight)
    }
}
