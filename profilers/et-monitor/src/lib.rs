//! A monitor for running VMs that speaks DDM, the protocol of the Dalvik Debug Monitor, with a web page and shell
//! commands.
//!
//! * [`discovery`] finds VMs, [`connection`] talks to one, [`monitor`] keeps the state that [`vm`] derives from
//!   messages, also across restarts.
//! * [`debugger`] forwards debuggers over the same connection.
//! * [`actions`] sends requests to VMs; [`web`] has the page and its API, [`cli`] the commands, which use that API too.
//! * [`attach`] loads an agent into a running VM.

pub mod actions;
mod aside;
pub mod attach;
pub mod cli;
pub mod connection;
pub mod debugger;
pub mod discovery;
pub mod monitor;
pub mod vm;
pub mod web;
