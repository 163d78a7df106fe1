//! An agent through which monitors look into a running VM. It speaks the protocol of the Dalvik Debug Monitor (DDM) on
//! a loopback port, forwards a debugger on the same connection to the VM's own `libjdwp`, and writes logs for the
//! viewers of TPTP. It instruments nothing and can be loaded at any time.
//!
//! There are three kinds of threads, so that none waits for the wrong one:
//!
//! * One thread does all input and output ([`serve`]). It is not attached to the VM, so a debugger that suspends all
//!   threads does not block its own connection.
//! * One attached thread does what needs the VM ([`work`]): thread states, heap walks, answers by id. Another runs
//!   handlers of the program's own chunks, which may take any time.
//! * Threads of the program report events ([`agent`]): they add a note to the [`hub`], or a line to the [`xml`] log,
//!   and continue.
//!
//! Locks taken by callbacks during a collection are never held while the VM is called.

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
