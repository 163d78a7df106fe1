//! A host for agents of JVMPI, the profiler interface of Java 1.2 to 5, on current VMs, based on JVMTI.
//!
//! Events are delivered to agents on the threads on which they happen; agents request stacks, thread-local storage and
//! CPU times during events, so nothing is buffered. What a current VM cannot report in time (deaths) is delivered
//! later, in a way that looks like a safepoint.
//!
//! Two rules prevent deadlocks whatever locks the agent holds: no lock of the host is held while the VM is called, and
//! no event is delivered inside a VM pause.

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
mod shown;
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
