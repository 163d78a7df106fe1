//! The formats of the trace file and of its buffer file (`docs/inside/trace-file.md`), and of the events in them
//! (`docs/inside/events.md`). This crate does no I/O: the runtime uses it for writing, all tools for reading.

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
mod stacks;
mod survivors;
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
pub use stacks::{STACK, StackCounts, StackRecord};
pub use survivors::{HeapWalk, Survivors};

use progress::RunId;

/// Magic number at the start of a trace.
pub use et_names::TRACE_MAGIC as FILE_MAGIC;
/// Format version that this crate writes. Version 2 added timestamps to event blocks, version 3 entries that say that
/// the method was left as well, version 4 blocks of monitors, version 5 blocks of stacks and of survivors, version 6 columns.
pub const VERSION: u16 = 6;
/// The oldest version that this crate reads.
pub const OLDEST_VERSION: u16 = 1;
/// Length of the file header in bytes.
pub const FILE_HEADER: usize = 16;

/// Why bytes are not a trace, or not a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The magic number of the file is wrong.
    #[error("not a trace: it does not start with ETTRACE")]
    FileMagic,
    /// The file is empty.
    #[error("the file is empty: nothing was traced into it")]
    Empty,
    /// The trace was written by an unsupported version.
    #[error(
        "trace of format version {0}, this tool reads versions {OLDEST_VERSION} to {VERSION}: read it with the et-trace of its own version"
    )]
    Version(u16),
    /// There is no block at this place.
    #[error("no block starts here")]
    BlockMagic,
    /// A header field has an impossible value: name and value of the field.
    #[error("block header is damaged: {0} is {1}")]
    Header(&'static str, u64),
    /// The codec was added in a later version, or the header is damaged.
    #[error(
        "a block is packed with codec {0}, which this tool does not know: read it with the et-trace of its own version"
    )]
    Codec(u8),
    /// The stored bytes are damaged.
    #[error("checksum is {found:08x}, the header says {expected:08x}")]
    Checksum {
        /// Checksum in the header.
        expected: u32,
        /// Checksum of the bytes.
        found: u32,
    },
    /// The stored bytes cannot be unpacked.
    #[error("block does not unpack: {0}")]
    Unpack(String),
    /// A record is truncated or has an impossible value.
    #[error("record at byte {offset} of the block is damaged: {what}")]
    Record {
        /// Offset in the unpacked block, in bytes.
        offset: usize,
        /// What was to be decoded there.
        what: &'static str,
    },
    /// The block is longer than readers accept: its length in bytes.
    #[error("a block of {0} bytes is too large for a trace")]
    TooLarge(usize),
    /// A JSON block is not JSON, or a required field is missing.
    #[error("{0}")]
    Json(String),
}

/// Encodes the 16-byte file header of a trace.
pub fn file_header(run: RunId) -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[..8].copy_from_slice(&FILE_MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    header[10..].copy_from_slice(&run.to_bytes());
    header
}

/// Checks the file header and returns the run that the trace belongs to.
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
