//! The bytes of a trace file and of the buffer file beside it (`docs/inside/trace-file.md`), and the events in them
//! (`docs/inside/events.md`). No I/O here: the runtime writes with this crate, all others read with it.

mod block;
pub mod buffers;
mod codec;
pub mod collector;
pub mod dynamic;
pub mod event;
mod fields;
mod initial;
mod json;
mod monitors;
pub mod packing;
pub mod progress;
mod records;
#[cfg(test)]
mod tests;
pub mod trace_path;

use thiserror::Error;

pub use block::{BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, BlockKind, Codec, MAX_BLOCK, Nanos, Wall};
pub use codec::{BlockPacker, BlockUnpacker, NewBlock, packed_len, write_block};
pub use fields::THREAD_LIMIT;
pub use initial::{InitialField, InitialObject, InitialReference, InitialReferences, InitialSlot};
pub use json::{ArrayLayout, End, Jvm, LATE, Meta, Packing, Problem, decode_json, encode_json};
pub use monitors::{MonitorEvent, MonitorPlace, MonitorRecord};
pub use records::{ClassRecord, GcRecord, InitialFrame, ThreadRecord, class_flags, thread_flags};

use progress::RunId;

/// First bytes of a trace.
pub use et_names::TRACE_MAGIC as FILE_MAGIC;
/// Format version that this crate writes. 2 differs from 1 in that blocks of events may tell when they happened, 3 from 2 in
/// that an entry may tell that the method was left as well, 4 from 3 in that there may be blocks of monitors.
pub const VERSION: u16 = 4;
/// The first of the versions that it reads.
pub const OLDEST_VERSION: u16 = 1;
/// Bytes of the file header.
pub const FILE_HEADER: usize = 16;

/// Why bytes are not (part of) a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The first bytes are others.
    #[error("not a trace: it does not start with ETTRACE")]
    FileMagic,
    /// There are no bytes.
    #[error("the file is empty: nothing was traced into it")]
    Empty,
    /// Written by another version.
    #[error(
        "trace of format version {0}, this tool reads versions {OLDEST_VERSION} to {VERSION}: read it with the et-trace of its own version"
    )]
    Version(u16),
    /// No block starts here.
    #[error("no block starts here")]
    BlockMagic,
    /// A header field has a value that cannot be.
    #[error("block header is damaged: {0} is {1}")]
    Header(&'static str, u64),
    /// Packed by another version, or damaged.
    #[error(
        "a block is packed with codec {0}, which this tool does not know: read it with the et-trace of its own version"
    )]
    Codec(u8),
    /// The stored bytes are not those that were written.
    #[error("checksum is {found:08x}, the header says {expected:08x}")]
    Checksum {
        /// In the header.
        expected: u32,
        /// Of the bytes.
        found: u32,
    },
    /// The bytes do not unpack.
    #[error("block does not unpack: {0}")]
    Unpack(String),
    /// A record ends early or says something impossible.
    #[error("record at byte {offset} of the block is damaged: {what}")]
    Record {
        /// Byte of the unpacked block.
        offset: usize,
        /// What was read there.
        what: &'static str,
    },
    /// More than a reader takes.
    #[error("a block of {0} bytes is too large for a trace")]
    TooLarge(usize),
    /// A JSON block is not JSON or lacks what it must have.
    #[error("{0}")]
    Json(String),
}

/// The 16 bytes that start a trace.
pub fn file_header(run: RunId) -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[..8].copy_from_slice(&FILE_MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    header[10..].copy_from_slice(&run.to_bytes());
    header
}

/// Checks the start of a trace; which run it is of.
pub fn check_file_header(bytes: &[u8]) -> Result<RunId, FormatError> {
    if bytes.is_empty() {
        return Err(FormatError::Empty);
    }
    if bytes.len() < FILE_HEADER || bytes[..8] != FILE_MAGIC {
        return Err(FormatError::FileMagic);
    }
    match u16::from_le_bytes([bytes[8], bytes[9]]) {
        OLDEST_VERSION..=VERSION => Ok(RunId::from_bytes(std::array::from_fn(|at| bytes[10 + at]))),
        other => Err(FormatError::Version(other)),
    }
}
