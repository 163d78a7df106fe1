//! JVMPI as agents see it, whoever answers them: the host in a VM (`jvmpi`), or a trace (`et-jvmpi`).

pub mod abi;
pub mod foreign;
pub mod library;
pub mod monitor_functions;
pub mod raw_monitor;
pub mod session;
