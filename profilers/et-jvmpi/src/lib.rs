//! A trace plays the VM to an agent of JVMPI: classes, threads, calls, births and deaths, with a simulated collector if one is wanted.
//!
//! One thread of the process plays all threads of the trace, in the trace's order; an event's `JNIEnv` says whose it is. No lock is held while
//! the agent is called.

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
