//! What is to be done by the thread that may call the VM.

use et_ddm::heap::When;
use et_ddm::{Chunk, Request};

use crate::hub::{Asker, Ticket};

/// Something to be done.
#[derive(Debug)]
pub enum Task {
    /// All threads, for that connection.
    Threads(Ticket),
    /// States of all threads.
    States,
    /// What has a reply.
    Ask(Asker, Request),
    /// The collector works beside the program: what comes next is to show what it leaves.
    AwaitPauses,
    /// The size of the heap, for those connections, which asked for it at collections.
    HeapInfos(Vec<(Ticket, When)>),
    /// The heap, with objects' ends or without, for who has just asked; the reply comes first.
    Walk(Asker, Ticket, bool),
    /// The heap behind a collection, for those connections (with objects' ends or without).
    Segments(Vec<(Ticket, bool)>),
    /// The native heap.
    NativeSegments(Vec<Ticket>),
    /// The reference graph; ids are kept.
    Graph(Asker, bool),
    /// A heap dump of that name into the log.
    LogHeap(Asker, String),
    /// What was allocated, in so many rows.
    Allocations(u32),
    /// A chunk for the program's handlers.
    Program(Asker, Chunk),
    /// A monitor has said HELO.
    Connected,
    /// It has gone.
    Disconnected,
    /// Somebody wants to know of monitors, or nobody any more.
    MonitorEvents(bool),
    /// A debugger has come.
    StartDebugger,
    /// The program is to end.
    Exit(u32),
}
