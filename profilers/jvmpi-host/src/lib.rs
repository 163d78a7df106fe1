//! A host for agents of JVMPI, the profiler interface of Java 1.2 to 5, on the VMs of today, by JVMTI.
//!
//! Agents are told of events on the threads where they happen; they ask for stacks, their own storage and CPU times meanwhile, so nothing is
//! buffered. What no living VM can tell in time (deaths) is told afterwards, so that it looks as if the world stood still.
//!
//! Two rules keep it from deadlocks, whatever lock the agent holds: no lock of ours is held while the VM is called, and nothing is
//! told from inside the VM's pauses.

pub use et_jvmpi_interface::abi;
use et_jvmpi_interface::{library, monitor_functions, raw_monitor};

mod agent;
mod classes;
mod clones;
mod deliver;
mod dump;
mod functions;
mod hooks;
mod host;
mod ids;
mod java_monitors;
mod layout;
mod load;
mod methods;
mod monitor_dump;
mod objects;
mod records;
mod refs;
mod sizes;
mod sleep;
mod start;
mod starts;
mod steps;
mod sweep;
mod switches;
mod told;
mod trace;
mod values;
