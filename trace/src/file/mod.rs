//! The trace file (`docs/inside/trace-file.md`).

pub mod format;
