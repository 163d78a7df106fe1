//! What a collector reports to a profiler: five events that describe any collection scheme (JVMPI, "GC-independent
//! events"). An object's id is its address: valid until the object is deleted or moved, or its arena is deleted.

mod check;
mod csv;
mod parquet;

use std::io;

pub use check::{Checker, Violation};
pub use csv::{CSV_HEADER, CsvWriter};
pub use parquet::{PARQUET_NAME, ParquetWriter};

use crate::ops::Class;

/// Destination of events. The first error is kept until [`finish`](Self::finish).
pub trait Sink {
    /// Writes an event that happens during that operation.
    fn push(&mut self, operation: u64, event: &Event);

    /// Whether no error has occurred so far.
    fn is_well(&self) -> bool;

    /// Completes the output. Returns the first error, if any.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Id of an arena, a part of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArenaId(pub u32);

/// An event of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Event {
    /// An arena is created.
    NewArena { arena: ArenaId, name: &'static str },
    /// An arena is deleted, which frees all objects left in it.
    DeleteArena { arena: ArenaId },
    /// An object is allocated. `class` is an index into the tables.
    NewObject { arena: ArenaId, object: u64, class: u32, size: u64 },
    /// An object is freed.
    DeleteObject { arena: ArenaId, object: u64 },
    /// An object moves: it gets another id, possibly in another arena.
    MoveObject { arena: ArenaId, object: u64, new_arena: ArenaId, new_object: u64 },
}

/// The value of JVMPI's `is_array`.
fn array_kind(class: &Class) -> u8 {
    match class.descriptor.as_bytes() {
        [b'[', b'[' | b'L', ..] => 2,
        [b'[', b'Z', ..] => 4,
        [b'[', b'C', ..] => 5,
        [b'[', b'F', ..] => 6,
        [b'[', b'D', ..] => 7,
        [b'[', b'B', ..] => 8,
        [b'[', b'S', ..] => 9,
        [b'[', b'I', ..] => 10,
        [b'[', b'J', ..] => 11,
        _ => 0,
    }
}

/// Number of events of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct EventCounts {
    pub new_arena: u64,
    pub delete_arena: u64,
    pub new_object: u64,
    pub delete_object: u64,
    pub move_object: u64,
}

impl EventCounts {
    /// Counts an event.
    #[inline]
    pub fn count(&mut self, event: &Event) {
        match event {
            Event::NewArena { .. } => self.new_arena += 1,
            Event::DeleteArena { .. } => self.delete_arena += 1,
            Event::NewObject { .. } => self.new_object += 1,
            Event::DeleteObject { .. } => self.delete_object += 1,
            Event::MoveObject { .. } => self.move_object += 1,
        }
    }
}
