//! Packing and unpacking the content of blocks.

use std::borrow::Cow;

use zstd::bulk::{Compressor, Decompressor};

use super::FormatError;
use super::block::{BlockHeader, BlockKind, Codec, MAX_BLOCK, MOST_PACKED, Wall, ZSTD_RATIO};
use crate::event::{self, Ticket};
use crate::packing::{self, ColumnPacker, Packer, Unpacker};

const ZSTD_LEVEL: i32 = 1;
/// zstd level when there is a hurry: on packed events it takes a third less time and a tenth more space than the
/// default.
const HURRIED_LEVEL: i32 = -3;
/// Fewer bytes of events than this are not worth packing.
const LEAST_PACKED: usize = 4 << 10;
/// Length in bytes of the length field before packed events.
const LENGTH: usize = 4;

/// What the header of a new block says, apart from lengths and checksum.
#[derive(Clone, Copy, Debug)]
pub struct NewBlock {
    pub kind: BlockKind,
    pub codec: Codec,
    /// Thread index; 0 if the block belongs to no single thread.
    pub thread: u32,
    /// Sequence number of the block in its file, from 0.
    pub sequence: u64,
    /// First ticket of an `Events` block; 0 for other kinds.
    pub first_ticket: Ticket,
    /// When its events happened; `None` if unknown.
    pub wall: Option<Wall>,
}

/// Packs blocks one after the other and reuses its buffers.
#[derive(Default)]
pub struct BlockPacker {
    packer: Option<Packer>,
    columns: ColumnPacker,
    /// What the last block was packed to, before zstd.
    events: Vec<u8>,
    zstd: Zstd,
    packed: Vec<u8>,
    counted: u64,
    /// Whether blocks are packed even if that is not worth it.
    packs_all: bool,
}

impl std::fmt::Debug for BlockPacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockPacker").finish_non_exhaustive()
    }
}

impl BlockPacker {
    /// Sets whether the next blocks are packed faster, at the price of being somewhat larger.
    pub fn hurry(&mut self, is_hurried: bool) {
        self.zstd.wanted = if is_hurried { HURRIED_LEVEL } else { ZSTD_LEVEL };
    }

    /// Allocates what packing needs, so that [`write`](Self::write) uses no more than [`STACK`](Self::STACK) bytes of
    /// the caller's stack.
    pub fn prepare(&mut self) {
        self.packer.get_or_insert_default();
        self.zstd.prepare();
    }

    /// Maximum stack usage of [`write`](Self::write) in bytes after [`prepare`](Self::prepare).
    pub const STACK: usize = 32 << 10;

    /// Packs blocks of few events as well, even if that makes them larger: for tests of what reads them.
    pub fn pack_all(&mut self) {
        self.packs_all = true;
    }

    /// Number of events in the last block packed, not counting tickets.
    pub fn events(&self) -> u64 {
        self.counted
    }

    /// Packs `raw` and appends header and stored bytes to `out`. Content that does not shrink is stored uncompressed;
    /// content that is not whole events, or only a few, is compressed but not [packed](Codec::Packed). Counts and stacks become
    /// [columns](Codec::Columns). Fails if `raw` is longer than [`MAX_BLOCK`], which no reader accepts.
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
            Some(codec) if self.packs_all || self.packed.len() < raw.len() => (codec, self.packed.as_slice()),
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
            // At most as long as the input, so it fits in a u32.
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

    /// Fills `packed` and returns the codec used, or `None` if `raw` should be stored as it is.
    fn pack(&mut self, kind: BlockKind, codec: Codec, raw: &[u8]) -> Option<Codec> {
        self.packed.clear();
        let least = if self.packs_all { 0 } else { LEAST_PACKED };
        if codec != Codec::Stored {
            self.events.clear();
            let has_columns = match kind {
                BlockKind::Events => self.columns.pack_counts(raw, &mut self.events),
                BlockKind::Stacks => ColumnPacker::pack_stacks(raw, &mut self.events),
                _ => false,
            };
            if has_columns {
                return self.compress_with_length().then_some(Codec::Columns);
            }
        }
        match codec {
            Codec::Stored => None,
            Codec::Packed if kind == BlockKind::Events && (least..=MOST_PACKED).contains(&raw.len()) => {
                if !self.packer.get_or_insert_default().pack(raw, &mut self.events) {
                    return self.zstd.compress(raw, &mut self.packed).then_some(Codec::Zstd);
                }
                self.counted = self.packer.as_ref().map_or(0, Packer::events);
                self.compress_with_length().then_some(codec)
            }
            Codec::Zstd | Codec::Packed | Codec::Columns => {
                self.zstd.compress(raw, &mut self.packed).then_some(Codec::Zstd)
            }
        }
    }

    /// Fills `packed` with what is in `events`, its length first. Returns false if memory could not be allocated, or it is too long.
    fn compress_with_length(&mut self) -> bool {
        let Ok(len) = u32::try_from(self.events.len()) else { return false };
        self.packed.extend_from_slice(&len.to_le_bytes());
        self.zstd.compress(&self.events, &mut self.packed)
    }
}

/// A zstd compressor and its level.
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

    /// Appends a frame to `packed`. Returns false if memory could not be allocated.
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

/// Packs a single block without timestamps: see [`BlockPacker::write`].
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

/// Length in bytes of a block's content after zstd decompression alone; `stored` is its stored bytes.
pub fn packed_len(header: &BlockHeader, stored: &[u8]) -> u32 {
    match (header.codec, header.packed(stored).first_chunk()) {
        (Codec::Packed | Codec::Columns, Some(len)) => u32::from_le_bytes(*len),
        _ => header.raw_len,
    }
}

/// Unpacks blocks one after the other and reuses its buffers.
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
    /// Verifies the checksum of the stored bytes and unpacks them into `raw`. Fails if they are damaged.
    pub fn unpack(&mut self, header: &BlockHeader, stored: &[u8], raw: &mut Vec<u8>) -> Result<(), FormatError> {
        raw.clear();
        let stored = header.check(stored)?;
        let raw_len = header.raw_len as usize;
        if header.codec == Codec::Stored {
            raw.extend_from_slice(stored);
            return Ok(());
        }
        if header.codec != Codec::Columns {
            raw.resize(raw_len, 0);
        }
        let len = match header.codec {
            Codec::Stored => raw_len,
            Codec::Zstd => decompress(&mut self.zstd, stored, raw)?,
            Codec::Columns => {
                let found = self.streams(header, stored)?;
                let columns = &self.events[..found];
                match header.kind {
                    BlockKind::Events => packing::unpack_counts(columns, raw_len, raw),
                    BlockKind::Stacks => packing::unpack_stacks(columns, raw_len, raw),
                    kind => return Err(FormatError::Unpack(format!("{kind:?} have no columns"))),
                }
                .map_err(|e| FormatError::Unpack(e.to_string()))?;
                raw.len()
            }
            Codec::Packed => {
                let found = self.streams(header, stored)?;
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

    /// Decompresses packed events or columns into `events` and returns their length.
    fn streams(&mut self, header: &BlockHeader, stored: &[u8]) -> Result<usize, FormatError> {
        let (len, frame) = stored.split_at_checked(LENGTH).unwrap_or((&[0; LENGTH], &[]));
        let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
        // Packing adds a little to words that it cannot predict, but never doubles them.
        if len > frame.len().saturating_mul(ZSTD_RATIO) || len > 2 * header.raw_len as usize + LEAST_PACKED {
            return Err(FormatError::Unpack(format!("{len} bytes of packed content are too many")));
        }
        self.events.clear();
        self.events.resize(len, 0);
        decompress(&mut self.zstd, frame, &mut self.events)
    }

    /// Passes to `visit` the words of a block of events that are stored and not predicted, control words excepted, for a
    /// third of the time that unpacking takes. Predictions repeat words of their block, or continue a sequence of new
    /// objects: so every object that an event of the block names is among these words, is new in it, or follows from
    /// one of them by one of those rules. Other values, such as lengths and tickets, are among them, too. Returns
    /// false for a block that is not [packed](Codec::Packed), of which nothing is passed.
    ///
    /// # Errors
    /// The block is damaged. Words may have been passed by then.
    pub fn literals(
        &mut self,
        header: &BlockHeader,
        stored: &[u8],
        visit: impl FnMut(u32),
    ) -> Result<bool, FormatError> {
        let stored = header.check(stored)?;
        if header.codec != Codec::Packed {
            return Ok(false);
        }
        let found = self.streams(header, stored)?;
        let values = packing::values(&self.events[..found]).map_err(|e| FormatError::Unpack(e.to_string()))?;
        values.for_each(visit);
        Ok(true)
    }
}

/// Decompresses a zstd frame and returns the number of bytes written to `into`.
fn decompress(zstd: &mut Option<Decompressor<'static>>, frame: &[u8], into: &mut [u8]) -> Result<usize, FormatError> {
    let fail = |error: std::io::Error| FormatError::Unpack(error.to_string());
    let zstd = match zstd {
        Some(zstd) => zstd,
        None => zstd.insert(Decompressor::new().map_err(fail)?),
    };
    zstd.decompress_to_buffer(frame, into).map_err(fail)
}

impl BlockHeader {
    /// Verifies the checksum of the stored bytes and unpacks them. Fails if they are damaged.
    pub fn unpack<'a>(&self, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, FormatError> {
        if self.codec == Codec::Stored {
            return self.check(stored).map(Cow::Borrowed);
        }
        let mut raw = Vec::new();
        BlockUnpacker::default().unpack(self, stored, &mut raw)?;
        Ok(Cow::Owned(raw))
    }

    /// Whether the checksum of the stored bytes is right.
    pub fn is_whole(&self, stored: &[u8]) -> bool {
        self.check(stored).is_ok()
    }

    /// Returns the packed bytes after verifying the checksum.
    fn check<'a>(&self, stored: &'a [u8]) -> Result<&'a [u8], FormatError> {
        match crc32fast::hash(stored) {
            found if found == self.crc => Ok(self.packed(stored)),
            found => Err(FormatError::Checksum { expected: self.crc, found }),
        }
    }
}
