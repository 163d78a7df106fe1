//! What is told of a trace: its records, and what holds objects although no record says so.

use crate::record::{ObjectId, Record, Slot, ThreadId};

/// Stands between the records, where it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Hold {
    /// A slot, when tracing began; `origin` is null for a static field.
    Initial { origin: ObjectId, slot: Slot, target: ObjectId },
    /// The VM, until here, for that thread.
    Until { object: ObjectId, thread: ThreadId },
    /// The VM, to the end of the trace.
    ToTheEnd { object: ObjectId },
}

/// All that lifetimes are worked out from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Told {
    Record(Record),
    Hold(Hold),
}
