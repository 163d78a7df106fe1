//! Blocks: what a trace file is made of.

use std::borrow::Cow;

use super::FormatError;
use super::fields::Fields;
use crate::event::Ticket;

/// First bytes of a block.
pub const BLOCK_MAGIC: [u8; 4] = *b"ETBK";
/// Bytes of a block header.
pub const BLOCK_HEADER: usize = 40;
/// No block is larger when unpacked: bounds what a damaged length makes a reader allocate.
pub const MAX_BLOCK: usize = 1 << 30;

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
    End = 15,
}

impl BlockKind {
    /// The kind with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        use BlockKind::*;
        const ALL: [BlockKind; 13] = [
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
            End,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// How a block's bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Codec {
    /// As they are.
    Stored = 0,
    /// One LZ4 block (no frame, no length).
    Lz4 = 1,
    /// One zstd frame.
    Zstd = 2,
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
    pub stored_len: u32,
    /// CRC-32 of the stored bytes.
    pub crc: u32,
    /// Number of the block in its file, from 0.
    pub sequence: u64,
    /// Of `Events`; else 0.
    pub first_ticket: Ticket,
}

impl BlockHeader {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; BLOCK_HEADER] {
        let mut out = [0; BLOCK_HEADER];
        out[..4].copy_from_slice(&BLOCK_MAGIC);
        out[4] = self.kind as u8;
        out[5] = self.codec as u8;
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
        let mut fields = Fields::new(&bytes[8..BLOCK_HEADER]);
        let header = BlockHeader {
            kind: BlockKind::from_u8(bytes[4]).ok_or(FormatError::Header("kind", bytes[4].into()))?,
            codec: match bytes[5] {
                0 => Codec::Stored,
                1 => Codec::Lz4,
                2 => Codec::Zstd,
                other => return Err(FormatError::Header("codec", other.into())),
            },
            thread: fields.u32()?,
            raw_len: fields.u32()?,
            stored_len: fields.u32()?,
            crc: fields.u32()?,
            sequence: fields.u64()?,
            first_ticket: Ticket(fields.u64()?),
        };
        // What the codec can unpack a byte to, at the most: a larger claim is false, and decides what is allocated.
        let ratio: u64 = match header.codec {
            Codec::Stored => 1,
            Codec::Lz4 => 255,
            Codec::Zstd => 1 << 15,
        };
        if header.raw_len as usize > MAX_BLOCK || u64::from(header.raw_len) > u64::from(header.stored_len) * ratio {
            return Err(FormatError::Header("raw length", header.raw_len.into()));
        }
        if header.codec == Codec::Stored && header.stored_len != header.raw_len {
            return Err(FormatError::Header("stored length", header.stored_len.into()));
        }
        Ok(Some(header))
    }

    /// Checks and unpacks the stored bytes.
    pub fn unpack<'a>(&self, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, FormatError> {
        let found = crc32fast::hash(stored);
        if found != self.crc {
            return Err(FormatError::Checksum { expected: self.crc, found });
        }
        let raw_len = self.raw_len as usize;
        let raw = match self.codec {
            Codec::Stored => return Ok(Cow::Borrowed(stored)),
            Codec::Lz4 => {
                lz4_flex::block::decompress(stored, raw_len).map_err(|e| FormatError::Unpack(e.to_string()))?
            }
            Codec::Zstd => zstd::bulk::decompress(stored, raw_len).map_err(|e| FormatError::Unpack(e.to_string()))?,
        };
        if raw.len() != raw_len {
            return Err(FormatError::Unpack(format!("{} bytes instead of {raw_len}", raw.len())));
        }
        Ok(Cow::Owned(raw))
    }
}

/// Packs `raw` and appends header and stored bytes to `out`. What does not shrink is stored as it is.
pub fn write_block(
    out: &mut Vec<u8>,
    kind: BlockKind,
    codec: Codec,
    thread: u32,
    sequence: u64,
    first_ticket: Ticket,
    raw: &[u8],
) {
    let packed = match codec {
        Codec::Stored => None,
        Codec::Lz4 => Some(lz4_flex::block::compress(raw)),
        Codec::Zstd => zstd::bulk::compress(raw, 1).ok(),
    }
    .filter(|packed| packed.len() < raw.len());
    let (codec, stored) = match &packed {
        Some(packed) => (codec, packed.as_slice()),
        None => (Codec::Stored, raw),
    };
    let header = BlockHeader {
        kind,
        codec,
        thread,
        raw_len: raw.len() as u32,
        stored_len: stored.len() as u32,
        crc: crc32fast::hash(stored),
        sequence,
        first_ticket,
    };
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(stored);
}
