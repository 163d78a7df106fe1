//! Chunks that no other monitor knows: reports of the thread and heap profilers, and queries with their answers.
//!
//! A monitor queries by `FEAT` which of them a VM supports; for other VMs they are unknown types, with an empty reply.
//! Ids of objects and classes are eight-byte numbers chosen by the VM, never 0, and valid until the object is freed.
//! Thread ids are those of `THCR`.
//!
//! | type | request | reply | unsolicited | feature |
//! |---|---|---|---|---|
//! | `ETEV` | u4 kinds of events, as bits | empty | [`Events`] | `et-events` |
//! | `ETAL` | u4 interval in ms, u4 most rows | empty | [`Allocations`] | `et-allocations` |
//! | `ETHI` | | [`MemoryInfo`] | | `et-memory` |
//! | `ETHG` | u4 most rows | [`Histogram`] | | `et-histogram` |
//! | `ETIN` | u8 class, u4 most objects | [`Instances`] | | `et-objects` |
//! | `ETOB` | u8 object | [`ObjectInfo`] | | `et-objects` |
//! | `ETCL` | u8 class | [`ClassInfo`] | | `et-objects` |
//! | `ETMU` | u8 object | [`MonitorUsage`] | | `et-objects` |
//! | `ETTH` | u4 thread | [`ThreadInfo`] | | `et-threads` |
//! | `ETLH` | text name | [`HeapLogged`] | | `et-log` |
//!
//! A query for an unknown id is answered with `FAIL`, code [`crate::message::Failure::NO_SUCH_ID`].

mod allocations;
mod answers;
mod events;
mod memory;
mod source;

pub use allocations::{Allocations, Site};
pub use answers::{ClassInfo, HeapLogged, Instance, Instances, MonitorUsage, ObjectInfo, ThreadInfo};
pub use events::{Event, Events, Happened};
pub use memory::{Histogram, HistogramRow, Memory, MemoryInfo};
pub use source::{AllocationSource, Put, TAKE_SOURCE, TakeSource};

use crate::chunk::ChunkType;

/// Names of what a VM can do, in its answer to `FEAT`.
pub mod features {
    /// Contention, waits and collections, as they happen.
    pub const EVENTS: &str = "et-events";
    /// Allocation rates: of traced programs only.
    pub const ALLOCATIONS: &str = "et-allocations";
    /// Sizes of the heap and of its parts, with 64 bits, at little cost.
    pub const MEMORY: &str = "et-memory";
    /// Feature: objects and bytes by class.
    pub const HISTOGRAM: &str = "et-histogram";
    /// Objects, classes and monitors by id.
    pub const OBJECTS: &str = "et-objects";
    /// Feature: threads by id.
    pub const THREADS: &str = "et-threads";
    /// `HPDU` writes a heap dump: Android's name for it.
    pub const HEAP_DUMP: &str = "hprof-heap-dump";
    /// It writes a log for the viewers of TPTP, into which heap dumps may go.
    pub const LOG: &str = "et-log";
    /// `STKL` has the stack of a thread.
    pub const STACKS: &str = "et-stacks";
}

impl ChunkType {
    /// Contention, waits and collections.
    pub const ETEV: Self = Self(*b"ETEV");
    /// Allocation rates.
    pub const ETAL: Self = Self(*b"ETAL");
    /// Sizes of the heap.
    pub const ETHI: Self = Self(*b"ETHI");
    /// Objects and bytes by class.
    pub const ETHG: Self = Self(*b"ETHG");
    /// Objects of a class.
    pub const ETIN: Self = Self(*b"ETIN");
    /// An object.
    pub const ETOB: Self = Self(*b"ETOB");
    /// A class.
    pub const ETCL: Self = Self(*b"ETCL");
    /// The owner of a monitor, and the threads that wait for it.
    pub const ETMU: Self = Self(*b"ETMU");
    /// A thread.
    pub const ETTH: Self = Self(*b"ETTH");
    /// A heap dump to the log.
    pub const ETLH: Self = Self(*b"ETLH");
    /// The token: the user's own monitors know it.
    pub const ETKN: Self = Self(*b"ETKN");
}
