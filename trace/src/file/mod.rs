//! The trace file (`docs/inside/trace-file.md`).

pub mod format;
#[cfg(feature = "read")]
mod reader;

#[cfg(feature = "read")]
pub use reader::{Block, CutOff, ReadError, ThreadEvents, TraceFile};
