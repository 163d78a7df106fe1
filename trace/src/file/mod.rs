//! The trace file (`docs/inside/trace-file.md`).

#[cfg(feature = "read")]
mod buffer_file;
#[cfg(feature = "read")]
mod bytes;
#[cfg(feature = "read")]
mod cut_off;
pub mod dynamic;
pub mod format;
pub mod packing;
pub mod progress;
#[cfg(feature = "read")]
mod reader;
#[cfg(feature = "read")]
mod stream;

#[cfg(feature = "read")]
pub use buffer_file::BufferFile;
#[cfg(feature = "read")]
pub(crate) use bytes::Bytes;
#[cfg(feature = "read")]
pub use cut_off::CutOff;
#[cfg(feature = "read")]
pub use reader::{Block, ReadError, ThreadEvents, TraceFile};
