//! The native half of the runtime: a JVMTI agent that starts tracing, hands buffers to threads, and writes the
//! trace. The hooks themselves are Java (`runtime-java`); `docs/inside/runtime.md` tells how the two play together.

pub mod agent;
pub mod begin;
pub mod buffers;
pub mod classes;
pub mod collector;
pub mod compiled;
pub mod control;
pub mod cpu_time;
pub mod define;
pub mod dynamic;
pub mod dynamic_ids;
pub mod early;
pub mod heap;
pub mod id_supply;
pub mod id_table;
pub mod ids;
pub mod jni_table;
pub mod journal;
pub mod layout;
pub mod live_threads;
#[cfg(all(test, loom))]
mod loom_models;
pub mod mirrors;
pub mod names;
pub mod natives;
pub mod options;
pub mod pages;
pub mod patience;
pub mod pool;
pub mod prepared;
pub mod proxy;
pub mod queue;
pub mod redefined;
pub mod reflection;
pub mod report;
pub mod signals;
pub mod sink;
pub mod slot_lookup;
pub mod slots;
pub mod start;
pub mod sync;
pub mod threads;
pub mod tracer;
pub mod tracing;
pub mod unloading;
pub mod writer;
