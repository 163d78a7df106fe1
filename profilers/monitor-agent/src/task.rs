//! Tasks for the thread that may call the VM, and for the one that calls the program's handlers.

use et_ddm::heap::When;
use et_ddm::{Chunk, Request};

use crate::hub::{Asker, Ticket};

/// Work for the thread of handlers.
#[derive(Debug)]
pub enum Call {
    /// A request to a handler.
    Chunk(Asker, Chunk),
    /// A monitor has come, or gone.
    Connection(bool),
}

#[derive(Debug)]
pub enum Task {
    /// All threads, for that connection.
    Threads(Ticket),
    /// Report the states of all threads.
    States,
    /// Answer a request.
    Ask(Asker, Request),
    /// The collector is concurrent: what follows should show the result of a collection.
    AwaitPauses,
    /// The size of the heap, for those connections, which asked for it at collections.
    HeapInfos(Vec<(Ticket, When)>),
    /// Send the heap, with or without boundaries of objects, to the client that has requested it; the reply comes
    /// first.
    Walk(Asker, Ticket, bool),
    /// The heap after a collection, for those connections (with objects' ends or without).
    Segments(Vec<(Ticket, bool)>),
    /// Send the native heap.
    NativeSegments(Vec<Ticket>),
    /// The reference graph; ids are kept.
    Graph(Asker, bool),
    /// A heap dump of that name into the log.
    LogHeap(Asker, String),
    /// Report allocations, with this number of rows.
    Allocations(u32),
    /// A chunk for the program's handlers.
    Program(Asker, Chunk),
    /// A monitor has sent HELO.
    Connected,
    /// A monitor has disconnected.
    Disconnected,
    /// Enable or disable monitor events.
    MonitorEvents(bool),
    /// Prepare for a debugger.
    StartDebugger,
    /// Exit the program with this code.
    Exit(u32),
}
