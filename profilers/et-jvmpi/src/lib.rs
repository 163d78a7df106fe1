//! Plays a trace to a JVMPI agent in place of a VM: classes, threads, calls, births and deaths, optionally with a
//! simulated collector.
//!
//! A single thread of the process plays all threads of the trace, in the order of the trace; the `JNIEnv` of an event
//! identifies the thread. No lock is held while the agent is called.

mod catalogue;
pub mod cli;
mod collected;
mod cursor;
mod error;
mod functions;
mod heap;
mod host;
mod left_out;
mod plain;
mod teller;
mod threads;
mod vm;
