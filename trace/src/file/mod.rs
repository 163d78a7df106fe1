//! The trace file (`docs/inside/trace-file.md`).

#[cfg(feature = "read")]
mod buffer_file;
#[cfg(feature = "read")]
mod bytes;
pub mod dynamic;
pub mod format;
pub mod progress;
#[cfg(feature = "read")]
mod reader;

#[cfg(feature = "read")]
pub use buffer_file::BufferFile;
#[cfg(feature = "read")]
pub(crate) use bytes::Bytes;
#[cfg(feature = "read")]
pub use reader::{Block, CutOff, ReadError, ThreadEvents, TraceFile};
