//! Finds the stays in the content of a trace.

use super::{End, Group, Mark, Stays};
use crate::batch::At;
use crate::model::{ContextId, Contexts, Stacks};
use crate::record::{AllocKind, ObjectId, Record, ThreadId};
use crate::told::{Hold, Told};

/// Follows the content of a trace, which must include deaths, and what holds objects although no record says so.
#[derive(Debug)]
pub struct Follower {
    stays: Stays,
    /// Contexts are found only where something is stored.
    stacks: Stacks<Option<ContextId>>,
    contexts: Contexts,
    /// The last record.
    last: Mark,
}

impl Follower {
    /// Begins before the first record. `contexts` are those that are known already: their numbers stay the same.
    pub fn new(contexts: Contexts) -> Self {
        Self { stays: Stays::default(), stacks: Stacks::default(), contexts, last: Mark::default() }
    }

    /// Takes the next item; calls `full` with groups of stays that are complete.
    #[inline]
    pub fn told(&mut self, told: &Told, at: &At<'_>, full: impl FnMut(Group)) {
        let record = match told {
            Told::Record(record) => record,
            Told::Hold(Hold::Initial { origin, slot, target }) => {
                return self.stays.put((*origin, *slot, *target), Mark::default(), End::Overwritten, full);
            }
            Told::Hold(_) => return,
        };
        match *record {
            Record::Death { object, .. } => {
                let mark = self.by_nobody();
                return self.stays.died(object, mark, full);
            }
            Record::Update { origin, slot, .. } if at.is_clearing => {
                let mark = self.by_nobody();
                return self.stays.put((origin, slot, ObjectId::NULL), mark, End::Cleared, full);
            }
            _ => {}
        }
        self.last.record += 1;
        self.last.tick = at.tick.0;
        // Threads are merged by their tickets, so a later chunk may have an earlier start.
        self.last.nanos = self.last.nanos.max(at.place.wall().map(|wall| wall.begin.0));
        match *record {
            Record::Alloc(alloc) => {
                if alloc.kind != AllocKind::Initial {
                    self.last.bytes += alloc.size;
                }
                self.stays.born(alloc.object);
            }
            Record::Update { origin, slot, target, thread, .. } => {
                let context = self.stacks.context(thread, &mut self.contexts);
                let mark = Mark { thread, context, ..self.last };
                self.stays.put((origin, slot, target), mark, End::Overwritten, full);
            }
            _ => self.stacks.record(record),
        }
    }

    /// Where the last record was: what follows from it is done by nobody.
    fn by_nobody(&self) -> Mark {
        Mark { thread: ThreadId(0), context: ContextId::EMPTY, ..self.last }
    }

    /// Calls `full` with the groups that are left. Returns all contexts.
    pub fn finish(self, full: impl FnMut(Group)) -> Contexts {
        self.stays.finish(full);
        self.contexts
    }
}
