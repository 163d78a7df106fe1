//! The content of a trace: its records, and what holds objects although no record says so.

use crate::record::{ObjectId, Record, Slot, ThreadId};

/// Something that holds an object, at its position between the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// A slot, when tracing began; `origin` is null for a static field.
    Initial { origin: ObjectId, slot: Slot, target: ObjectId },
    /// The VM, until now, for that thread.
    Until { object: ObjectId, thread: ThreadId },
    /// The VM, to the end of the trace.
    ToTheEnd { object: ObjectId },
}

/// Everything that lifetimes are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Record(Record),
    Hold(Hold),
}
