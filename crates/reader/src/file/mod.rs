//! The trace file (`docs/inside/trace-file.md`).

mod buffer_file;
mod bytes;
mod cut_off;
mod reader;
mod stream;

pub use buffer_file::BufferFile;
pub(crate) use bytes::Bytes;
pub use cut_off::CutOff;
pub use reader::{Block, RECOVERED, ReadError, ThreadEvents, TraceFile};
