//! Utilities that do not depend on traces: memory, locks, signals, messages.

pub mod cpu_time;
pub mod id_table;
pub mod pages;
pub mod patience;
pub mod report;
pub mod signals;
pub mod stack;
pub mod sync;
