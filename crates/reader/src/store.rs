//! Pieces of bytes that are written once and read in any order: in memory while they are small, then in an unnamed
//! temporary file, which vanishes with the process however it ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Location of a piece.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    at: u64,
    stored: u32,
    raw: u32,
}

#[derive(Debug)]
enum Place {
    Memory(Vec<u8>),
    File(File),
}

/// Compressed pieces.
#[derive(Debug)]
pub struct Store {
    place: Place,
    end: u64,
    /// Maximum number of bytes to keep in memory.
    limit: u64,
}

impl Store {
    /// Creates an empty store that moves to a file when it exceeds `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { place: Place::Memory(Vec::new()), end: 0, limit }
    }

    /// Compresses and appends a piece.
    pub fn append(&mut self, raw: &[u8]) -> io::Result<Piece> {
        let stored = lz4_flex::block::compress(raw);
        let piece = Piece { at: self.end, stored: stored.len() as u32, raw: raw.len() as u32 };
        self.end += stored.len() as u64;
        if self.end > self.limit
            && let Place::Memory(bytes) = &self.place
        {
            let file = tempfile::tempfile()?;
            file.write_all_at(bytes, 0)?;
            self.place = Place::File(file);
        }
        match &mut self.place {
            Place::Memory(bytes) => bytes.extend_from_slice(&stored),
            Place::File(file) => file.write_all_at(&stored, piece.at)?,
        }
        Ok(piece)
    }

    /// Reads and decompresses a piece.
    pub fn read(&self, piece: Piece) -> io::Result<Vec<u8>> {
        let unpack = |stored: &[u8]| {
            lz4_flex::block::decompress(stored, piece.raw as usize)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        };
        match &self.place {
            Place::Memory(bytes) => {
                let at = piece.at as usize;
                unpack(&bytes[at..at + piece.stored as usize])
            }
            Place::File(file) => {
                let mut stored = vec![0; piece.stored as usize];
                file.read_exact_at(&mut stored, piece.at)?;
                unpack(&stored)
            }
        }
    }

    /// Total length of the compressed pieces in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_same_in_memory_and_on_disk() {
        for limit in [0, 40, u64::MAX] {
            let mut store = Store::new(limit);
            let texts: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; usize::from(n) * 7]).collect();
            let pieces: Vec<_> = texts.iter().map(|text| store.append(text).unwrap()).collect();
            for (piece, text) in pieces.iter().zip(&texts).rev() {
                assert_eq!(&store.read(*piece).unwrap(), text);
            }
        }
    }
}
