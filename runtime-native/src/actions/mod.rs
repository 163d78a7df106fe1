//! Actions on the VM during a traced run: class and thread records, heap walks, survivors, the supply of ids, monitor events.
//! Each takes the tracer as an argument.

pub mod compiled;
pub mod define;
pub mod heap;
pub mod id_supply;
pub mod monitors;
pub mod prepared;
pub mod present;
pub mod redefined;
pub mod slot_lookup;
pub mod survivors;
pub mod threads;
pub mod walk;
