//! From full chunks and records to the trace: the queue, the threads that pack, the writer, and where the trace goes.

pub mod artifacts;
pub mod line;
pub mod names;
pub mod packers;
pub mod queue;
pub mod sink;
pub mod writer;
