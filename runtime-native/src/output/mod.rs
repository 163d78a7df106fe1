//! From full chunks and records to the trace: the queue, packing threads, the writer, and the destination of the
//! trace.

pub mod artifacts;
pub mod line;
pub mod names;
pub mod packers;
pub mod queue;
pub mod sink;
pub mod writer;
