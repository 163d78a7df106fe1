//! What is done with the VM for a traced run: records of classes and threads, walks of the heap, the supply of ids, events of monitors.
//! Each takes the tracer as an argument.

pub mod compiled;
pub mod define;
pub mod heap;
pub mod id_supply;
pub mod monitors;
pub mod prepared;
pub mod redefined;
pub mod slot_lookup;
pub mod threads;
