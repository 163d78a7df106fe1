//! An agent that lets monitors look into a running VM. It speaks the protocol of the Dalvik Debug Monitor (DDM) on a port of
//! loopback's, lets a debugger through the same connection to the VM's own `libjdwp`, and writes logs for the viewers of TPTP. Nothing is
//! instrumented; it can be loaded at any time.
//!
//! Three kinds of threads, so that nobody waits for the wrong one:
//!
//! * One thread does all input and output ([`serve`]). The VM does not know it, so a debugger that stops all threads does not stop
//!   the connection that it comes by.
//! * One thread of the VM's does what needs the VM ([`work`]): states of threads, walks of the heap, answers by id. Another runs
//!   handlers of the program's own chunks, which may take as long as they like.
//! * Threads of the program tell of what happens to them ([`agent`]): they put a note into the [`hub`], or a line into the
//!   [`xml`] log, and go on.
//!
//! No lock that a callback of a collection takes is held while the VM is called.

mod agent;
mod allocations;
mod classes;
mod discovery;
mod filter;
mod heap;
mod hub;
mod ids;
mod jdwp;
mod monitors;
mod options;
mod profile;
mod programs;
mod serve;
mod start;
mod state;
mod tags;
mod task;
mod threads;
mod time;
mod work;
mod xml;
