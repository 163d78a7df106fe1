//! Chunks: what packets of DDM contain. Each has a type of four letters, a length, and data.

pub mod zlib;

use std::fmt;

use crate::wire::{Malformed, Reader, Writer};

/// The type of a chunk: four letters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkType(pub [u8; 4]);

macro_rules! types {
    ($($name:ident $letters:literal $says:literal,)*) => {
        impl ChunkType {
            $(#[doc = $says] pub const $name: Self = Self(*$letters);)*
        }
    };
}

types! {
    HELO b"HELO" "The first request, and what the VM says of itself.",
    FEAT b"FEAT" "What the VM can do, by name; not in the specification of 2007.",
    DBGD b"DBGD" "The debugger has gone.",
    APNM b"APNM" "The application has another name.",
    WAIT b"WAIT" "The VM waits for a debugger.",
    THEN b"THEN" "Says whether births and deaths of threads are reported.",
    THCR b"THCR" "A thread has started.",
    THDE b"THDE" "A thread has ended.",
    THNM b"THNM" "A thread has another name; not in the specification of 2007.",
    THST b"THST" "States of threads, at an interval.",
    STKL b"STKL" "The stack of a thread; not in the specification of 2007.",
    HPIF b"HPIF" "Size and use of the heap.",
    HPSG b"HPSG" "The heap as runs of allocation units.",
    HPSO b"HPSO" "The same; runs end where objects do.",
    HPST b"HPST" "What follows describes a heap from its start.",
    HPEN b"HPEN" "The heap is described.",
    NHSG b"NHSG" "The native heap as runs of allocation units.",
    NHST b"NHST" "What follows describes a native heap from its start.",
    NHEN b"NHEN" "The native heap is described.",
    HPGC b"HPGC" "Collect garbage; not in the specification of 2007.",
    HPDU b"HPDU" "Dump the heap to a file; not in the specification of 2007.",
    REAE b"REAE" "Says whether recent allocations are kept; not in the specification of 2007.",
    REAQ b"REAQ" "Whether they are; not in the specification of 2007.",
    REAL b"REAL" "Recent allocations; not in the specification of 2007.",
    EXIT b"EXIT" "End the program.",
    FAIL b"FAIL" "A request could not be done.",
    ZLIB b"ZLIB" "Another chunk, compressed.",
}

impl fmt::Display for ChunkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for ChunkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A chunk as it came, or as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The type, which together with the direction defines the meaning of the data.
    pub kind: ChunkType,
    pub data: Vec<u8>,
}

/// The most that one packet's chunks may come to when they are decompressed.
pub const MOST_EXPANDED: usize = 64 << 20;

impl Chunk {
    pub fn new(kind: ChunkType, data: Vec<u8>) -> Self {
        Self { kind, data }
    }

    /// Encodes the chunk as the only one of a packet.
    pub fn encode(&self) -> Vec<u8> {
        encode(std::slice::from_ref(self))
    }
}

/// Chunks as the data of a packet.
pub fn encode(chunks: &[Chunk]) -> Vec<u8> {
    let mut out = Writer::default();
    for chunk in chunks {
        out.bytes(&chunk.kind.0).count(chunk.data.len()).bytes(&chunk.data);
    }
    out.finish()
}

/// The chunks of a packet, those that are compressed decompressed. No bytes, no chunks: an empty reply.
pub fn decode(data: &[u8]) -> Result<Vec<Chunk>, Malformed> {
    let mut reader = Reader::new("a packet of chunks", data);
    let mut chunks = Vec::new();
    let mut room = MOST_EXPANDED;
    while reader.left() > 0 {
        let mut kind = [0; 4];
        kind.copy_from_slice(reader.take(4)?);
        let length = reader.count(1)?;
        let data = reader.take(length)?;
        let chunk = match ChunkType(kind) {
            ChunkType::ZLIB => {
                let chunk = zlib::expand(data, room)?;
                room -= chunk.data.len();
                chunk
            }
            kind => Chunk { kind, data: data.to_vec() },
        };
        chunks.push(chunk);
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_any_number_of_chunks() {
        let chunks = vec![Chunk::new(ChunkType::THEN, vec![1]), Chunk::new(ChunkType(*b"\0abc"), vec![])];
        assert_eq!(encode(&chunks), b"THEN\0\0\0\x01\x01\0abc\0\0\0\0");
        assert_eq!(decode(&encode(&chunks)), Ok(chunks));
        assert_eq!(decode(b""), Ok(vec![]));
        assert_eq!(
            decode(b"THEN\0\0\0\x02\x01").unwrap_err().to_string(),
            "a packet of chunks ends after 1 of 2 bytes"
        );
        assert_eq!(ChunkType(*b"\x1babc").to_string(), "\\x1babc");
    }
}
