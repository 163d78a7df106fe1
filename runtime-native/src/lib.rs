//! The native half of the runtime: a JVMTI agent that starts tracing, hands buffers to threads, and writes the
//! trace.
pub mod buffers;
pub mod names;
pub mod options;
pub mod report;
pub mod sink;
pub mod writer;
