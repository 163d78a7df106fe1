//! Blocks: what a trace file is made of.

use super::FormatError;
use super::fields::{Fields, THREAD_LIMIT};
use crate::event::Ticket;

/// First bytes of a block.
pub const BLOCK_MAGIC: [u8; 4] = *b"ETBK";
/// Bytes of a block header.
pub const BLOCK_HEADER: usize = 40;
/// Bytes of the times before what a block stores, if it has any.
pub const TIMES: usize = 16;
/// Where a header has the block's number.
const SEQUENCE_AT: usize = 24;
/// In a header's flags: [`TIMES`] come first in the stored bytes.
const FLAG_TIMES: u16 = 1;
/// No block is larger when unpacked: bounds what a damaged length makes a reader allocate.
pub const MAX_BLOCK: usize = 1 << 30;

/// A byte of a zstd frame is at most so many.
pub(super) const ZSTD_RATIO: usize = 1 << 15;
/// No packed block is larger when unpacked: the runtime's chunks have a quarter of it, and a few bytes may claim as much.
pub(super) const MOST_PACKED: usize = 1 << 20;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
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
    End = 15,
}

impl BlockKind {
    /// The kind with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        use BlockKind::*;
        const ALL: [BlockKind; 14] = [
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
            End,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// How a block's bytes are packed. 1 and 3 were codecs of versions that were never released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    /// As they are.
    Stored = 0,
    /// One zstd frame.
    Zstd = 2,
    /// Events only: what [`packing`](crate::packing) makes of them, its length (u32), then one zstd frame of it.
    Packed = 4,
}

impl Codec {
    /// The codec with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        [Self::Stored, Self::Zstd, Self::Packed].into_iter().find(|codec| *codec as u8 == number)
    }

    /// How many bytes so many can unpack to, at the most.
    fn most(self, stored: usize) -> usize {
        match self {
            Self::Stored => stored,
            Self::Zstd => stored.saturating_mul(ZSTD_RATIO),
            Self::Packed => MOST_PACKED,
        }
    }
}

/// Nanoseconds since the run began, on a clock that only goes forward. What time of day that was is in
/// [`Meta`](crate::Meta).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// When the events of a chunk happened: not before the first of these readings of the clock, and not after the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    /// Read before the first event.
    pub begin: Nanos,
    /// Read behind the last; none if the program was killed while the thread was filling the chunk.
    pub end: Option<Nanos>,
}

impl Wall {
    /// As two fields have it, in which 0 means that nothing was read.
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

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct BlockHeader {
    pub kind: BlockKind,
    pub codec: Codec,
    /// Thread index, 0 where it does not apply.
    pub thread: u32,
    pub raw_len: u32,
    /// With the times, if there are any.
    pub stored_len: u32,
    /// CRC-32 of the stored bytes.
    pub crc: u32,
    /// Number of the block in its file, from 0.
    pub sequence: u64,
    /// Of `Events`; else 0.
    pub first_ticket: Ticket,
    /// Whether [`wall`](Self::wall) tells when it happened.
    pub is_timed: bool,
}

impl BlockHeader {
    /// The header's bytes.
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
        // A larger claim is false, and decides what is allocated.
        if header.raw_len as usize > MAX_BLOCK || header.raw_len as usize > header.codec.most(packed) {
            return Err(FormatError::Header("raw length", header.raw_len.into()));
        }
        if header.codec == Codec::Stored && packed != header.raw_len as usize {
            return Err(FormatError::Header("stored length", header.stored_len.into()));
        }
        Ok(Some(header))
    }

    /// Gives a block, header first, another number: who packs it need not know it yet.
    pub fn set_sequence(block: &mut [u8], sequence: u64) {
        if let Some(field) = block.get_mut(SEQUENCE_AT..SEQUENCE_AT + 8) {
            field.copy_from_slice(&sequence.to_le_bytes());
        }
    }

    /// Bytes of times in front of the packed ones.
    fn times(&self) -> usize {
        if self.is_timed { TIMES } else { 0 }
    }

    /// When the events happened, out of the stored bytes; none if it was not noted.
    pub fn wall(&self, stored: &[u8]) -> Option<Wall> {
        if !self.is_timed {
            return None;
        }
        let mut fields = Fields::new(stored.get(..TIMES)?);
        Wall::from_fields(fields.u64().ok()?, fields.u64().ok()?)
    }

    /// The stored bytes without the times.
    pub(crate) fn packed<'a>(&self, stored: &'a [u8]) -> &'a [u8] {
        stored.get(self.times()..).unwrap_or_default()
    }
}
