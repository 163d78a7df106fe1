//! What running VMs do, as they do it: a monitor of DDM, the protocol of the Dalvik Debug Monitor, with a page and commands for shells.
//!
//! * [`discovery`] finds VMs, [`connection`] speaks to one, [`monitor`] keeps what [`vm`] made of what they said, through restarts.
//! * [`debugger`] lets debuggers through on the same connection.
//! * [`actions`] asks VMs for what takes a while; [`web`] has the page and its API, [`cli`] the commands, which use that API too.
//! * [`attach`] loads an agent into a VM that runs.

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
