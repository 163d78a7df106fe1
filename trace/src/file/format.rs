//! The bytes of a trace file and of the buffer file beside it (`docs/inside/trace-file.md`). No I/O here: the
//! runtime writes with this module, the reader reads with it.

pub mod buffers;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::dynamic::DynamicCounts;
use super::progress::RunId;
use crate::event::{ObjectHash, Ticket};

/// First bytes of a trace.
pub use et_names::TRACE_MAGIC as FILE_MAGIC;
/// Format version this crate reads and writes.
pub const VERSION: u16 = 1;
/// Bytes of the file header.
pub const FILE_HEADER: usize = 16;
/// First bytes of a block.
pub const BLOCK_MAGIC: [u8; 4] = *b"ETBK";
/// Bytes of a block header.
pub const BLOCK_HEADER: usize = 40;
/// No block is larger when unpacked: bounds what a damaged length makes a reader allocate.
pub const MAX_BLOCK: usize = 1 << 30;

/// Why bytes are not (part of) a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The first bytes are others.
    #[error("not a trace: it does not start with ETTRACE")]
    FileMagic,
    /// Written by another version.
    #[error("trace of format version {0}, this tool reads version {VERSION}")]
    Version(u16),
    /// No block starts here.
    #[error("no block starts here")]
    BlockMagic,
    /// A header field has a value that cannot be.
    #[error("block header is damaged: {0} is {1}")]
    Header(&'static str, u64),
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
    if bytes.len() < FILE_HEADER || bytes[..8] != FILE_MAGIC {
        return Err(FormatError::FileMagic);
    }
    match u16::from_le_bytes([bytes[8], bytes[9]]) {
        VERSION => Ok(RunId::from_bytes(std::array::from_fn(|at| bytes[10 + at]))),
        other => Err(FormatError::Version(other)),
    }
}

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
    End = 15,
}

impl BlockKind {
    /// The kind with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        use BlockKind::*;
        const ALL: [BlockKind; 12] = [
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
        let mut fields = Fields { bytes: &bytes[..BLOCK_HEADER], at: 8 };
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

/// Reads little-endian fields in order.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, FormatError> {
        Err(FormatError::Record { offset: self.at, what })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => self.fail("it ends early"),
        }
    }

    fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64, FormatError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn object(&mut self) -> Result<ObjectHash, FormatError> {
        Ok(ObjectHash(self.u32()?))
    }

    fn string(&mut self) -> Result<String, FormatError> {
        let offset = self.at;
        let len = self.u32()? as usize;
        match std::str::from_utf8(self.take(len)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(FormatError::Record { offset, what: "string is not UTF-8" }),
        }
    }

    /// A count of items of at least `min` bytes each.
    fn count(&mut self, min: usize) -> Result<usize, FormatError> {
        let count = self.u32()? as usize;
        if count > (self.bytes.len() - self.at) / min { self.fail("count out of bounds") } else { Ok(count) }
    }
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put_u32(out, text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}

/// Bits of [`ClassRecord::flags`].
pub mod class_flags {
    #![allow(missing_docs)]
    pub const ARRAY: u32 = 1;
    pub const INTERFACE: u32 = 2;
    pub const SIZE_UNKNOWN: u32 = 4;
    pub const HIDDEN: u32 = 8;
}

/// A class that was prepared or seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ClassRecord {
    pub ticket: Ticket,
    /// Its mirror.
    pub class: ObjectHash,
    /// Mirror of the superclass, null for none.
    pub superclass: ObjectHash,
    /// Null: the boot loader.
    pub loader: ObjectHash,
    /// Bytes of an instance; 0: array class, interface or not known.
    pub instance_size: u32,
    /// Bytes of the mirror object.
    pub mirror_size: u32,
    /// See [`class_flags`].
    pub flags: u32,
    /// JVM descriptor.
    pub signature: String,
}

impl ClassRecord {
    /// Appends the record to a `Classes` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u64(out, self.ticket.0);
        for value in [self.class.0, self.superclass.0, self.loader.0, self.instance_size, self.mirror_size, self.flags]
        {
            put_u32(out, value);
        }
        put_string(out, &self.signature);
    }

    /// All records of a `Classes` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::new();
        while !fields.done() {
            records.push(Self {
                ticket: Ticket(fields.u64()?),
                class: fields.object()?,
                superclass: fields.object()?,
                loader: fields.object()?,
                instance_size: fields.u32()?,
                mirror_size: fields.u32()?,
                flags: fields.u32()?,
                signature: fields.string()?,
            });
        }
        Ok(records)
    }
}

/// A frame that was on a thread's stack when tracing began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct InitialFrame {
    /// JVM descriptor of the class.
    pub class: String,
    pub method: String,
    pub descriptor: String,
    /// Null: static, or not known.
    pub receiver: ObjectHash,
}

/// Bits of [`ThreadRecord::Start`]'s flags.
pub mod thread_flags {
    #![allow(missing_docs)]
    pub const DAEMON: u32 = 1;
    pub const RUNNING_AT_START: u32 = 2;
}

/// A thread came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ThreadRecord {
    Start {
        ticket: Ticket,
        /// From 1, never reused.
        thread: u32,
        object: ObjectHash,
        /// See [`thread_flags`].
        flags: u32,
        name: String,
        /// Outermost first.
        frames: Vec<InitialFrame>,
    },
    End {
        ticket: Ticket,
        thread: u32,
    },
}

impl ThreadRecord {
    /// Appends the record to a `Threads` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Start { ticket, thread, object, flags, name, frames } => {
                out.push(1);
                put_u64(out, ticket.0);
                put_u32(out, *thread);
                put_u32(out, object.0);
                put_u32(out, *flags);
                put_string(out, name);
                put_u32(out, frames.len() as u32);
                for frame in frames {
                    put_string(out, &frame.class);
                    put_string(out, &frame.method);
                    put_string(out, &frame.descriptor);
                    put_u32(out, frame.receiver.0);
                }
            }
            Self::End { ticket, thread } => {
                out.push(2);
                put_u64(out, ticket.0);
                put_u32(out, *thread);
            }
        }
    }

    /// All records of a `Threads` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::new();
        while !fields.done() {
            records.push(match fields.u8()? {
                1 => {
                    let ticket = Ticket(fields.u64()?);
                    let (thread, object, flags) = (fields.u32()?, fields.object()?, fields.u32()?);
                    let name = fields.string()?;
                    let count = fields.count(16)?;
                    let mut frames = Vec::with_capacity(count);
                    for _ in 0..count {
                        frames.push(InitialFrame {
                            class: fields.string()?,
                            method: fields.string()?,
                            descriptor: fields.string()?,
                            receiver: fields.object()?,
                        });
                    }
                    Self::Start { ticket, thread, object, flags, name, frames }
                }
                2 => Self::End { ticket: Ticket(fields.u64()?), thread: fields.u32()? },
                _ => return fields.fail("tag of a thread record"),
            });
        }
        Ok(records)
    }
}

/// A garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct GcRecord {
    pub start: Ticket,
    pub finish: Ticket,
    /// Since the trace began, monotonic.
    pub start_nanos: u64,
    pub finish_nanos: u64,
    /// Bytes after it, 0: not known.
    pub heap_used: u64,
    pub heap_committed: u64,
}

impl GcRecord {
    /// Appends the record to a `Gcs` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for value in
            [self.start.0, self.finish.0, self.start_nanos, self.finish_nanos, self.heap_used, self.heap_committed]
        {
            put_u64(out, value);
        }
    }

    /// All records of a `Gcs` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::with_capacity(raw.len() / 48);
        while !fields.done() {
            records.push(Self {
                start: Ticket(fields.u64()?),
                finish: Ticket(fields.u64()?),
                start_nanos: fields.u64()?,
                finish_nanos: fields.u64()?,
                heap_used: fields.u64()?,
                heap_committed: fields.u64()?,
            });
        }
        Ok(records)
    }
}

/// An object that existed when tracing began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct InitialObject {
    pub object: ObjectHash,
    pub class: ObjectHash,
    /// Bytes.
    pub size: u32,
    /// -1: no array.
    pub length: i32,
}

impl InitialObject {
    /// Bytes of a record.
    pub const BYTES: usize = 16;

    /// Appends the record to an `InitialObjects` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for value in [self.object.0, self.class.0, self.size, self.length as u32] {
            put_u32(out, value);
        }
    }

    /// All records of an `InitialObjects` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::with_capacity(raw.len() / Self::BYTES);
        while !fields.done() {
            records.push(Self {
                object: fields.object()?,
                class: fields.object()?,
                size: fields.u32()?,
                length: fields.u32()? as i32,
            });
        }
        Ok(records)
    }
}

/// A field of an `InitialReferences` block's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct InitialField {
    /// Mirror of the declaring class.
    pub class: ObjectHash,
    pub name: String,
    pub descriptor: String,
}

/// The slot that holds an initial reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum InitialSlot {
    /// Field of the origin; index into the block's field list.
    Field(u32),
    /// Static field; index into the block's field list.
    Static(u32),
    /// Array element.
    Element(u32),
}

/// A reference that was there when tracing began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct InitialReference {
    /// Null for a static field.
    pub origin: ObjectHash,
    pub target: ObjectHash,
    pub slot: InitialSlot,
}

/// An `InitialReferences` block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct InitialReferences {
    pub fields: Vec<InitialField>,
    pub references: Vec<InitialReference>,
}

impl InitialReferences {
    /// Bytes of one reference.
    pub const REFERENCE_BYTES: usize = 13;

    /// The block's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u32(out, self.fields.len() as u32);
        for field in &self.fields {
            put_u32(out, field.class.0);
            put_string(out, &field.name);
            put_string(out, &field.descriptor);
        }
        put_u32(out, self.references.len() as u32);
        for reference in &self.references {
            put_u32(out, reference.origin.0);
            put_u32(out, reference.target.0);
            let (kind, index) = match reference.slot {
                InitialSlot::Field(index) => (1, index),
                InitialSlot::Static(index) => (2, index),
                InitialSlot::Element(index) => (3, index),
            };
            out.push(kind);
            put_u32(out, index);
        }
    }

    /// Reads an `InitialReferences` block.
    pub fn decode_block(raw: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new(raw);
        let count = fields.count(12)?;
        let mut block = Self::default();
        for _ in 0..count {
            block.fields.push(InitialField {
                class: fields.object()?,
                name: fields.string()?,
                descriptor: fields.string()?,
            });
        }
        let count = fields.count(Self::REFERENCE_BYTES)?;
        block.references.reserve(count);
        for _ in 0..count {
            let (origin, target) = (fields.object()?, fields.object()?);
            let (kind, index) = (fields.u8()?, fields.u32()?);
            let slot = match kind {
                1 | 2 if index as usize >= block.fields.len() => return fields.fail("field index out of bounds"),
                1 => InitialSlot::Field(index),
                2 => InitialSlot::Static(index),
                3 => InitialSlot::Element(index),
                _ => return fields.fail("kind of an initial reference"),
            };
            block.references.push(InitialReference { origin, target, slot });
        }
        if fields.done() { Ok(block) } else { fields.fail("bytes after the last reference") }
    }
}

/// Which JVM ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct Jvm {
    pub name: String,
    pub version: String,
}

/// Where arrays keep their elements, by the descriptor's letter (`L` for all references).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct ArrayLayout {
    pub base_offset: BTreeMap<String, u32>,
    pub index_scale: BTreeMap<String, u32>,
    pub object_alignment: u32,
}

/// The `Meta` block: how the trace came to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct Meta {
    pub tool: String,
    pub pid: u32,
    pub start_unix_millis: u64,
    pub jvm: Jvm,
    pub java_home: String,
    pub command: String,
    pub options: BTreeMap<String, String>,
    pub id_scheme: String,
    pub array_layout: ArrayLayout,
    pub start_ticket: Ticket,
}

/// A `Problem` block: something lost, dropped or odd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct Problem {
    pub what: String,
    pub count: u64,
}

/// The `End` block: the run was traced to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct End {
    pub reason: String,
    pub end_ticket: Ticket,
    /// Before packing.
    pub event_bytes: u64,
    pub blocks: u64,
    pub lost_events: u64,
    pub seconds: f64,
    /// None if classes made at run time were not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<DynamicCounts>,
}

/// The bytes of a JSON block.
pub fn encode_json(value: &impl Serialize) -> Vec<u8> {
    // Our structs have string keys and finite numbers only.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Reads a JSON block.
pub fn decode_json<T: for<'de> Deserialize<'de>>(raw: &[u8]) -> Result<T, FormatError> {
    serde_json::from_slice(raw).map_err(|e| FormatError::Json(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn object() -> impl Strategy<Value = ObjectHash> {
        (0..1u32 << 31).prop_map(ObjectHash)
    }

    #[test]
    fn an_impossible_length_is_refused_before_memory_is_taken_for_it() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            let mut block = Vec::new();
            write_block(&mut block, BlockKind::Events, codec, 1, 0, Ticket(1), &[7; 1 << 16]);
            let header = BlockHeader::decode(&block).unwrap().unwrap();
            assert_eq!(header.codec, codec);
            let claims = BlockHeader { raw_len: MAX_BLOCK as u32, ..header };
            assert!(matches!(BlockHeader::decode(&claims.encode()), Err(FormatError::Header("raw length", _))));
        }
    }

    proptest! {
        #[test]
        fn blocks_come_back_as_they_were(
            raw in prop::collection::vec(0u8..4, 0..2000), codec in 0..3, thread: u32, sequence: u64, ticket: u64,
        ) {
            let codec = [Codec::Stored, Codec::Lz4, Codec::Zstd][codec as usize];
            let mut file = Vec::new();
            write_block(&mut file, BlockKind::Events, codec, thread, sequence, Ticket(ticket), &raw);
            let header = BlockHeader::decode(&file).unwrap().unwrap();
            prop_assert_eq!(BlockHeader::decode(&header.encode()).unwrap().unwrap(), header);
            prop_assert_eq!((header.thread, header.sequence, header.first_ticket), (thread, sequence, Ticket(ticket)));
            let stored = &file[BLOCK_HEADER..];
            prop_assert_eq!(stored.len(), header.stored_len as usize);
            prop_assert_eq!(header.unpack(stored).unwrap().into_owned(), raw);
            if let Some(at) = stored.len().checked_sub(1) {
                let mut damaged = stored.to_vec();
                damaged[at] ^= 1;
                let caught = matches!(header.unpack(&damaged), Err(FormatError::Checksum { .. }));
                prop_assert!(caught);
            }
        }

        #[test]
        fn class_records_come_back(
            ticket: u64, class in object(), superclass in object(), loader in object(),
            sizes in (any::<u32>(), any::<u32>(), any::<u32>()), signature in ".*",
        ) {
            let record = ClassRecord {
                ticket: Ticket(ticket), class, superclass, loader, signature,
                instance_size: sizes.0, mirror_size: sizes.1, flags: sizes.2,
            };
            let mut raw = Vec::new();
            record.encode(&mut raw);
            record.encode(&mut raw);
            prop_assert_eq!(ClassRecord::decode_block(&raw).unwrap(), vec![record.clone(), record]);
            prop_assert!(ClassRecord::decode_block(&raw[..raw.len() - 1]).is_err());
        }

        #[test]
        fn thread_records_come_back(
            ticket: u64, thread: u32, object in object(), flags: u32, name in ".*",
            frames in prop::collection::vec((".*", ".*", ".*", object()), 0..5),
        ) {
            let frames = frames
                .into_iter()
                .map(|(class, method, descriptor, receiver)| InitialFrame { class, method, descriptor, receiver })
                .collect();
            let ticket = Ticket(ticket);
            let records =
                vec![ThreadRecord::Start { ticket, thread, object, flags, name, frames }, ThreadRecord::End { ticket, thread }];
            let mut raw = Vec::new();
            records.iter().for_each(|record| record.encode(&mut raw));
            prop_assert_eq!(ThreadRecord::decode_block(&raw).unwrap(), records);
        }

        #[test]
        fn gcs_and_initial_objects_come_back(values in prop::array::uniform6(any::<u64>()), a: u32, b: u32, c: u32, d: i32) {
            let gc = GcRecord {
                start: Ticket(values[0]), finish: Ticket(values[1]), start_nanos: values[2], finish_nanos: values[3],
                heap_used: values[4], heap_committed: values[5],
            };
            let mut raw = Vec::new();
            gc.encode(&mut raw);
            prop_assert_eq!(GcRecord::decode_block(&raw).unwrap(), vec![gc]);
            let object = InitialObject { object: ObjectHash(a), class: ObjectHash(b), size: c, length: d };
            raw.clear();
            object.encode(&mut raw);
            prop_assert_eq!(raw.len(), InitialObject::BYTES);
            prop_assert_eq!(InitialObject::decode_block(&raw).unwrap(), vec![object]);
        }

        #[test]
        fn initial_references_come_back(
            fields in prop::collection::vec((object(), ".*", ".*"), 1..4),
            references in prop::collection::vec((object(), object(), 0..3, any::<u32>()), 0..20),
        ) {
            let fields: Vec<_> =
                fields.into_iter().map(|(class, name, descriptor)| InitialField { class, name, descriptor }).collect();
            let count = fields.len() as u32;
            let references = references
                .into_iter()
                .map(|(origin, target, kind, index)| InitialReference {
                    origin, target,
                    slot: match kind {
                        0 => InitialSlot::Field(index % count),
                        1 => InitialSlot::Static(index % count),
                        _ => InitialSlot::Element(index),
                    },
                })
                .collect();
            let block = InitialReferences { fields, references };
            let mut raw = Vec::new();
            block.encode(&mut raw);
            prop_assert_eq!(InitialReferences::decode_block(&raw).unwrap(), block);
        }

        #[test]
        fn any_bytes_are_read_without_panic(raw in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ClassRecord::decode_block(&raw);
            let _ = ThreadRecord::decode_block(&raw);
            let _ = GcRecord::decode_block(&raw);
            let _ = InitialObject::decode_block(&raw);
            let _ = InitialReferences::decode_block(&raw);
            let _ = BlockHeader::decode(&raw);
            let _ = check_file_header(&raw);
            let _ = decode_json::<Meta>(&raw);
            let _ = buffers::FileHeader::decode(&raw);
        }
    }

    #[test]
    fn json_blocks_use_the_documented_names() {
        let end = End { reason: "VMDeath".into(), end_ticket: Ticket(7), blocks: 3, ..End::default() };
        let text = String::from_utf8(encode_json(&end)).unwrap();
        assert_eq!(
            text,
            r#"{"reason":"VMDeath","endTicket":7,"eventBytes":0,"blocks":3,"lostEvents":0,"seconds":0.0}"#
        );
        assert_eq!(decode_json::<End>(text.as_bytes()).unwrap(), end);
        let meta: Meta = decode_json(br#"{"pid":3,"startTicket":9,"jvm":{"name":"HotSpot"},"new":1}"#).unwrap();
        assert_eq!((meta.pid, meta.start_ticket, meta.jvm.name.as_str()), (3, Ticket(9), "HotSpot"));
    }

    #[test]
    fn headers_of_files_are_checked() {
        let run = RunId::random();
        assert_eq!(check_file_header(&file_header(run)), Ok(run));
        assert_eq!(check_file_header(b"PK\x03\x04"), Err(FormatError::FileMagic));
        let mut newer = file_header(run);
        newer[8] = 2;
        assert_eq!(check_file_header(&newer), Err(FormatError::Version(2)));
        let header = buffers::FileHeader {
            chunk_size: 4096,
            chunk_count: 3,
            pid: 1,
            ticket: Ticket(1 << 40),
            run,
            chunks_at: 8192,
        };
        assert_eq!(buffers::FileHeader::decode(&header.encode()), Ok(header));
        let chunk = buffers::ChunkHeader { state: buffers::STATE_FULL, thread: 4, sequence: 1 << 33 };
        assert_eq!(buffers::ChunkHeader::decode(&chunk.encode()), Some(chunk));
    }
}
