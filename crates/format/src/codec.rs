//! How the content of blocks is packed.

use std::borrow::Cow;

use zstd::bulk::{Compressor, Decompressor};

use super::FormatError;
use super::block::{BlockHeader, BlockKind, Codec, MAX_BLOCK, MOST_PACKED, Wall, ZSTD_RATIO};
use crate::event::{self, Ticket};
use crate::packing::{Packer, Unpacker};

const ZSTD_LEVEL: i32 = 1;
/// The level in a hurry: on packed events a third less time, a tenth more bytes.
const HURRIED_LEVEL: i32 = -3;
/// Events below this many bytes have too little in common.
const LEAST_PACKED: usize = 4 << 10;
/// Bytes of the length before packed events.
const LENGTH: usize = 4;

/// A block that is to be written: what its header says beside lengths.
#[derive(Clone, Copy, Debug)]
pub struct NewBlock {
    /// What it holds.
    pub kind: BlockKind,
    /// How it is to be packed.
    pub codec: Codec,
    /// Thread index, 0 where it does not apply.
    pub thread: u32,
    /// Number of the block in its file, from 0.
    pub sequence: u64,
    /// Of `Events`; else 0.
    pub first_ticket: Ticket,
    /// When it happened, if that is known.
    pub wall: Option<Wall>,
}

/// Packs blocks, one after the other: keeps what that takes.
#[derive(Default)]
pub struct BlockPacker {
    packer: Option<Packer>,
    events: Vec<u8>,
    zstd: Zstd,
    packed: Vec<u8>,
    counted: u64,
}

impl std::fmt::Debug for BlockPacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockPacker").finish_non_exhaustive()
    }
}

impl BlockPacker {
    /// Whether the next blocks may be somewhat larger if that takes less time.
    pub fn hurry(&mut self, is_hurried: bool) {
        self.zstd.wanted = if is_hurried { HURRIED_LEVEL } else { ZSTD_LEVEL };
    }

    /// Takes the memory that packing needs, so that who packs needs little of the stack: no more than [`STACK`](Self::STACK).
    pub fn prepare(&mut self) {
        self.packer.get_or_insert_default();
        self.zstd.prepare();
    }

    /// Bytes of the stack that [`write`](Self::write) takes at the most, once it is [prepared](Self::prepare).
    pub const STACK: usize = 32 << 10;

    /// Events in the block that was packed last, tickets not among them.
    pub fn events(&self) -> u64 {
        self.counted
    }

    /// Packs `raw` and appends header and stored bytes to `out`. What does not shrink is stored as it is; what are no
    /// whole events, or few, is not [packed](Codec::Packed) as such. More than [`MAX_BLOCK`] bytes, which no reader would take,
    /// are refused.
    pub fn write(&mut self, out: &mut Vec<u8>, block: NewBlock, raw: &[u8]) -> Result<(), FormatError> {
        let NewBlock { kind, codec, thread, sequence, first_ticket, wall } = block;
        let raw_len = match u32::try_from(raw.len()) {
            Ok(raw_len) if raw.len() <= MAX_BLOCK => raw_len,
            _ => return Err(FormatError::TooLarge(raw.len())),
        };
        self.counted = 0;
        let packed = self.pack(kind, codec, raw);
        if kind == BlockKind::Events && packed != Some(Codec::Packed) {
            self.counted = event::count(raw);
        }
        let (codec, stored) = match packed {
            Some(codec) if self.packed.len() < raw.len() => (codec, self.packed.as_slice()),
            _ => (Codec::Stored, raw),
        };
        let times = wall.map(Wall::encode);
        let times: &[u8] = times.as_ref().map_or(&[], |times| times);
        let mut crc = crc32fast::Hasher::new();
        crc.update(times);
        crc.update(stored);
        let header = BlockHeader {
            kind,
            codec,
            thread,
            raw_len,
            // No more than there was, which is far from the end of a u32.
            stored_len: u32::try_from(times.len() + stored.len()).unwrap_or(raw_len),
            crc: crc.finalize(),
            sequence,
            first_ticket,
            is_timed: wall.is_some(),
        };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(times);
        out.extend_from_slice(stored);
        Ok(())
    }

    /// The codec with which `packed` was filled, if it was.
    fn pack(&mut self, kind: BlockKind, codec: Codec, raw: &[u8]) -> Option<Codec> {
        self.packed.clear();
        match codec {
            Codec::Stored => None,
            Codec::Packed if kind == BlockKind::Events && (LEAST_PACKED..=MOST_PACKED).contains(&raw.len()) => {
                self.events.clear();
                if !self.packer.get_or_insert_default().pack(raw, &mut self.events) {
                    return self.pack(kind, Codec::Zstd, raw);
                }
                self.counted = self.packer.as_ref().map_or(0, Packer::events);
                let Ok(len) = u32::try_from(self.events.len()) else { return self.pack(kind, Codec::Zstd, raw) };
                self.packed.extend_from_slice(&len.to_le_bytes());
                self.zstd.compress(&self.events, &mut self.packed).then_some(codec)
            }
            Codec::Zstd | Codec::Packed => self.zstd.compress(raw, &mut self.packed).then_some(Codec::Zstd),
        }
    }
}

/// A compressor and its level.
struct Zstd {
    compressor: Option<Compressor<'static>>,
    wanted: i32,
    level: i32,
}

impl Default for Zstd {
    fn default() -> Self {
        Self { compressor: None, wanted: ZSTD_LEVEL, level: ZSTD_LEVEL }
    }
}

impl Zstd {
    fn prepare(&mut self) {
        if self.compressor.is_none() {
            self.compressor = Compressor::new(self.level).ok();
        }
    }

    /// Appends a frame to `packed`; returns whether there was the memory for that.
    fn compress(&mut self, raw: &[u8], packed: &mut Vec<u8>) -> bool {
        self.prepare();
        let Some(zstd) = &mut self.compressor else { return false };
        if self.wanted != self.level && zstd.set_compression_level(self.wanted).is_ok() {
            self.level = self.wanted;
        }
        let start = packed.len();
        packed.resize(start + zstd::zstd_safe::compress_bound(raw.len()), 0);
        match zstd.compress_to_buffer(raw, &mut packed[start..]) {
            Ok(len) => {
                packed.truncate(start + len);
                true
            }
            Err(_) => false,
        }
    }
}

/// Packs one block that tells no times: see [`BlockPacker::write`].
pub fn write_block(
    out: &mut Vec<u8>,
    kind: BlockKind,
    codec: Codec,
    thread: u32,
    sequence: u64,
    first_ticket: Ticket,
    raw: &[u8],
) -> Result<(), FormatError> {
    let block = NewBlock { kind, codec, thread, sequence, first_ticket, wall: None };
    BlockPacker::default().write(out, block, raw)
}

/// Bytes of a block's content when only zstd is undone, `stored` being what is stored of it.
pub fn packed_len(header: &BlockHeader, stored: &[u8]) -> u32 {
    match (header.codec, header.packed(stored).first_chunk()) {
        (Codec::Packed, Some(len)) => u32::from_le_bytes(*len),
        _ => header.raw_len,
    }
}

/// Unpacks blocks, one after the other: keeps what that takes.
#[derive(Default)]
pub struct BlockUnpacker {
    unpacker: Option<Unpacker>,
    zstd: Option<Decompressor<'static>>,
    events: Vec<u8>,
}

impl std::fmt::Debug for BlockUnpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockUnpacker").finish_non_exhaustive()
    }
}

impl BlockUnpacker {
    /// Checks and unpacks the stored bytes of a block into `raw`.
    pub fn unpack(&mut self, header: &BlockHeader, stored: &[u8], raw: &mut Vec<u8>) -> Result<(), FormatError> {
        raw.clear();
        let stored = header.check(stored)?;
        let raw_len = header.raw_len as usize;
        if header.codec == Codec::Stored {
            raw.extend_from_slice(stored);
            return Ok(());
        }
        raw.resize(raw_len, 0);
        let len = match header.codec {
            Codec::Stored => raw_len,
            Codec::Zstd => decompress(&mut self.zstd, stored, raw)?,
            Codec::Packed => {
                let (len, frame) = stored.split_at_checked(LENGTH).unwrap_or((&[0; LENGTH], &[]));
                let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
                // Packing adds something to what it cannot predict, but not as much again.
                if len > frame.len().saturating_mul(ZSTD_RATIO) || len > 2 * raw_len + LEAST_PACKED {
                    return Err(FormatError::Unpack(format!("{len} bytes of packed events are too many")));
                }
                self.events.clear();
                self.events.resize(len, 0);
                let found = decompress(&mut self.zstd, frame, &mut self.events)?;
                let events = &self.events[..found];
                self.unpacker
                    .get_or_insert_default()
                    .unpack(events, raw)
                    .map_err(|e| FormatError::Unpack(e.to_string()))?;
                raw_len
            }
        };
        match len == raw_len {
            true => Ok(()),
            false => Err(FormatError::Unpack(format!("{len} bytes instead of {raw_len}"))),
        }
    }
}

/// Undoes a zstd frame; returns how many bytes it gave.
fn decompress(zstd: &mut Option<Decompressor<'static>>, frame: &[u8], into: &mut [u8]) -> Result<usize, FormatError> {
    let fail = |error: std::io::Error| FormatError::Unpack(error.to_string());
    let zstd = match zstd {
        Some(zstd) => zstd,
        None => zstd.insert(Decompressor::new().map_err(fail)?),
    };
    zstd.decompress_to_buffer(frame, into).map_err(fail)
}

impl BlockHeader {
    /// Checks and unpacks the stored bytes.
    pub fn unpack<'a>(&self, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, FormatError> {
        if self.codec == Codec::Stored {
            return self.check(stored).map(Cow::Borrowed);
        }
        let mut raw = Vec::new();
        BlockUnpacker::default().unpack(self, stored, &mut raw)?;
        Ok(Cow::Owned(raw))
    }

    /// Whether the stored bytes are those that were written.
    pub fn is_whole(&self, stored: &[u8]) -> bool {
        self.check(stored).is_ok()
    }

    /// The packed bytes, if they are those that were written.
    fn check<'a>(&self, stored: &'a [u8]) -> Result<&'a [u8], FormatError> {
        match crc32fast::hash(stored) {
            found if found == self.crc => Ok(self.packed(stored)),
            found => Err(FormatError::Checksum { expected: self.crc, found }),
        }
    }
}
