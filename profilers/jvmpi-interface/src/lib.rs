//! JVMPI from the point of view of agents, independent of who implements it: the host in a VM (`jvmpi-host`), or a
//! trace (`et-jvmpi`).

pub mod abi;
pub mod foreign;
pub mod library;
pub mod monitor_functions;
pub mod raw_monitor;
pub mod session;
