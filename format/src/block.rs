//! Blocks: what a trace file is made of.

use super::FormatError;
use super::codec::Codec;
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
            codec: Codec::from_u8(bytes[5]).ok_or(FormatError::Codec(bytes[5]))?,
            thread: fields.u32()?,
            raw_len: fields.u32()?,
            stored_len: fields.u32()?,
            crc: fields.u32()?,
            sequence: fields.u64()?,
            first_ticket: Ticket(fields.u64()?),
        };
        // A larger claim is false, and decides what is allocated.
        if header.raw_len as usize > MAX_BLOCK || header.raw_len as usize > header.codec.most(header.stored_len) {
            return Err(FormatError::Header("raw length", header.raw_len.into()));
        }
        if header.codec == Codec::Stored && header.stored_len != header.raw_len {
            return Err(FormatError::Header("stored length", header.stored_len.into()));
        }
        Ok(Some(header))
    }
}
