//! Blocks: the parts of a trace file, each of which can be read on its own.

use super::FormatError;
use super::fields::{Fields, THREAD_LIMIT};
use crate::event::Ticket;

/// Magic number at the start of every block.
pub const BLOCK_MAGIC: [u8; 4] = *b"ETBK";
/// Length of a block header in bytes.
pub const BLOCK_HEADER: usize = 40;
/// Length in bytes of the two timestamps that precede the packed content if the header says so.
pub const TIMES: usize = 16;
/// Offset of the sequence number in a block header.
const SEQUENCE_AT: usize = 24;
/// Header flag: the stored bytes start with [`TIMES`] bytes of timestamps.
const FLAG_TIMES: u16 = 1;
/// Maximum unpacked length of a block in bytes. Limits how much memory a damaged length field can make a reader
/// allocate.
pub const MAX_BLOCK: usize = 1 << 30;

/// Maximum number of bytes that one byte of a zstd frame can expand to.
pub(super) const ZSTD_RATIO: usize = 1 << 15;
/// Maximum unpacked length in bytes of a block with [`Codec::Packed`]. The runtime's chunks are a quarter of this; the
/// limit is needed because a few packed bytes may claim to unpack to that much.
pub(super) const MOST_PACKED: usize = 1 << 20;

/// The kind of content in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum BlockKind {
    Meta = 1,
    Names = 2,
    Events = 3,
    Classes = 4,
    Threads = 5,
    Gcs = 6,
    InitialObjects = 7,
    InitialReferences = 8,
    Problem = 9,
    DynamicClasses = 10,
    Progress = 11,
    Collector = 12,
    Monitors = 13,
    Stacks = 14,
    End = 15,
    Survivors = 16,
}

impl BlockKind {
    /// Returns the kind with this number, or `None` if there is no such kind.
    pub fn from_u8(number: u8) -> Option<Self> {
        use BlockKind::*;
        const ALL: [BlockKind; 16] = [
            Meta,
            Names,
            Events,
            Classes,
            Threads,
            Gcs,
            InitialObjects,
            InitialReferences,
            Problem,
            DynamicClasses,
            Progress,
            Collector,
            Monitors,
            Stacks,
            End,
            Survivors,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// How a block's content is encoded. Numbers 1 and 3 belonged to codecs that were never released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    /// Not compressed.
    Stored = 0,
    /// A single zstd frame.
    Zstd = 2,
    /// Events only: the length (u32) of the output of [`packing`](crate::packing), then that output as a single zstd
    /// frame.
    Packed = 4,
    /// Counts and stacks: the length (u32) of their [columns](crate::packing::ColumnPacker), then these as a single zstd frame.
    Columns = 5,
}

impl Codec {
    /// Returns the codec with this number, or `None` if there is no such codec.
    pub fn from_u8(number: u8) -> Option<Self> {
        [Self::Stored, Self::Zstd, Self::Packed, Self::Columns].into_iter().find(|codec| *codec as u8 == number)
    }

    /// Maximum number of bytes that `stored` bytes can unpack to.
    fn most(self, stored: usize) -> usize {
        match self {
            Self::Stored => stored,
            Self::Zstd => stored.saturating_mul(ZSTD_RATIO),
            // A count of 20 bytes takes at least four in its columns, a stack of 13 three.
            Self::Columns => stored.saturating_mul(5 * ZSTD_RATIO),
            Self::Packed => MOST_PACKED,
        }
    }
}

/// Nanoseconds since the run began, on a monotonic clock. The wall-clock time of the start is in [`Meta`](crate::Meta).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// When the events of a chunk happened: between these two readings of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    /// Reading taken before the first event.
    pub begin: Nanos,
    /// Reading taken after the last event; `None` if the program was killed while the thread was still filling the
    /// chunk.
    pub end: Option<Nanos>,
}

impl Wall {
    /// Decodes two header fields, in which 0 means that the clock was not read.
    pub fn from_fields(begin: u64, end: u64) -> Option<Self> {
        (begin != 0).then(|| Self { begin: Nanos(begin), end: (end != 0).then_some(Nanos(end)) })
    }

    pub(crate) fn encode(self) -> [u8; TIMES] {
        let mut out = [0; TIMES];
        out[..8].copy_from_slice(&self.begin.0.to_le_bytes());
        out[8..].copy_from_slice(&self.end.unwrap_or_default().0.to_le_bytes());
        out
    }
}

/// The decoded header of a block (`docs/inside/trace-file.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    pub kind: BlockKind,
    pub codec: Codec,
    /// Thread index; 0 if the block belongs to no single thread.
    pub thread: u32,
    pub raw_len: u32,
    /// Length of the stored bytes, including the timestamps if there are any.
    pub stored_len: u32,
    /// CRC-32 of the stored bytes.
    pub crc: u32,
    /// Sequence number of the block in its file, from 0.
    pub sequence: u64,
    /// First ticket of an `Events` block, ticket of the walk of `Survivors`; 0 for other kinds.
    pub first_ticket: Ticket,
    /// Whether the stored bytes start with timestamps, which [`wall`](Self::wall) reads.
    pub is_timed: bool,
}

impl BlockHeader {
    /// Encodes the header.
    pub fn encode(&self) -> [u8; BLOCK_HEADER] {
        let mut out = [0; BLOCK_HEADER];
        out[..4].copy_from_slice(&BLOCK_MAGIC);
        out[4] = self.kind as u8;
        out[5] = self.codec as u8;
        out[6..8].copy_from_slice(&(if self.is_timed { FLAG_TIMES } else { 0 }).to_le_bytes());
        out[8..12].copy_from_slice(&self.thread.to_le_bytes());
        out[12..16].copy_from_slice(&self.raw_len.to_le_bytes());
        out[16..20].copy_from_slice(&self.stored_len.to_le_bytes());
        out[20..24].copy_from_slice(&self.crc.to_le_bytes());
        out[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        out[32..40].copy_from_slice(&self.first_ticket.0.to_le_bytes());
        out
    }

    /// Reads a header; `Ok(None)` if fewer than [`BLOCK_HEADER`] bytes are left.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, FormatError> {
        if bytes.len() < BLOCK_HEADER {
            return Ok(None);
        }
        if bytes[..4] != BLOCK_MAGIC {
            return Err(FormatError::BlockMagic);
        }
        let flags = u16::from_le_bytes([bytes[6], bytes[7]]);
        if flags & !FLAG_TIMES != 0 {
            return Err(FormatError::Header("flags", flags.into()));
        }
        let mut fields = Fields::new(&bytes[8..BLOCK_HEADER]);
        let header = BlockHeader {
            kind: BlockKind::from_u8(bytes[4]).ok_or(FormatError::Header("kind", bytes[4].into()))?,
            codec: Codec::from_u8(bytes[5]).ok_or(FormatError::Codec(bytes[5]))?,
            thread: fields.u32()?,
            raw_len: fields.u32()?,
            stored_len: fields.u32()?,
            crc: fields.u32()?,
            sequence: fields.u64()?,
            first_ticket: Ticket(fields.u64()?),
            is_timed: flags & FLAG_TIMES != 0,
        };
        let Some(packed) = (header.stored_len as usize).checked_sub(header.times()) else {
            return Err(FormatError::Header("stored length", header.stored_len.into()));
        };
        if header.thread >= THREAD_LIMIT {
            return Err(FormatError::Header("thread", header.thread.into()));
        }
        // A larger length cannot be right, and the reader would allocate that much.
        if header.raw_len as usize > MAX_BLOCK || header.raw_len as usize > header.codec.most(packed) {
            return Err(FormatError::Header("raw length", header.raw_len.into()));
        }
        if header.codec == Codec::Stored && packed != header.raw_len as usize {
            return Err(FormatError::Header("stored length", header.stored_len.into()));
        }
        Ok(Some(header))
    }

    /// Overwrites the sequence number in an encoded block, which is not known yet when the block is packed.
    pub fn set_sequence(block: &mut [u8], sequence: u64) {
        if let Some(field) = block.get_mut(SEQUENCE_AT..SEQUENCE_AT + 8) {
            field.copy_from_slice(&sequence.to_le_bytes());
        }
    }

    /// Length in bytes of the timestamps before the packed content: [`TIMES`] or 0.
    fn times(&self) -> usize {
        if self.is_timed { TIMES } else { 0 }
    }

    /// Reads the timestamps from the stored bytes; `None` if they were not recorded.
    pub fn wall(&self, stored: &[u8]) -> Option<Wall> {
        if !self.is_timed {
            return None;
        }
        let mut fields = Fields::new(stored.get(..TIMES)?);
        Wall::from_fields(fields.u64().ok()?, fields.u64().ok()?)
    }

    /// The stored bytes after the timestamps.
    pub(crate) fn packed<'a>(&self, stored: &'a [u8]) -> &'a [u8] {
        stored.get(self.times()..).unwrap_or_default()
    }
}
