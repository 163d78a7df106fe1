//! Traces of Elephant Tracks: the event encoding, the trace file, and everything that reads them.
//!
//! The runtime uses [`event`] and [`file::format`] only; both are free of I/O.

pub mod event;
pub mod file;
