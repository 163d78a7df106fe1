//! Writes operations files sequentially; only the header is written last.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use et_reader::record::LARGEST;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::error::OpsError;
use super::format::{HEAD, Head, INITIAL, MOST_HANDLES, MOST_WORDS, Op, WORDS, first, kind};
use super::tables::{Class, ClassKind, Layout, Tables};

/// Writes an operations file.
pub struct OpsWriter {
    out: BufWriter<File>,
    hash: Xxh3,
    /// Bytes not hashed yet: hashing a few bytes at a time is slow.
    pending: Vec<u8>,
    bytes: u64,
    operations: u64,
    layout: Layout,
}

impl std::fmt::Debug for OpsWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpsWriter").field("operations", &self.operations).finish_non_exhaustive()
    }
}

const BLOCK: usize = 1 << 16;

impl OpsWriter {
    /// Begins an operations file in an empty file.
    pub fn new(file: File, layout: Layout) -> Result<Self, OpsError> {
        let mut out = BufWriter::with_capacity(BLOCK, file);
        out.write_all(&[0; HEAD])?;
        let pending = Vec::with_capacity(BLOCK + 4 * MOST_WORDS);
        Ok(Self { out, hash: Xxh3::new(), pending, bytes: 0, operations: 0, layout })
    }

    /// Number of operations written so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// The object layout.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Writes a birth in as few words as possible. The size must be a multiple of 8.
    pub fn birth(&mut self, birth: &Op, class: &Class) -> Result<(), OpsError> {
        let Op::Birth { handle, class: number, size, slots, site, initial } = *birth else { return Ok(()) };
        if handle > MOST_HANDLES {
            return Err(OpsError::TooMany);
        }
        if size > LARGEST {
            return Err(OpsError::TooLarge(size));
        }
        let number = if initial { number | INITIAL } else { number };
        let word = match class.kind {
            ClassKind::References => (self.layout.array_bytes(slots) == size).then_some(slots),
            _ => u32::try_from(size / 8).ok(),
        };
        match word {
            Some(word) => self.words([first(kind::BIRTH, handle), number, word, site]),
            None => {
                let words = [first(kind::BIRTH_WIDE, handle), number, size as u32, (size >> 32) as u32, slots, site];
                self.words(words)
            }
        }
    }

    /// Writes any other operation.
    pub fn push(&mut self, op: Op) -> Result<(), OpsError> {
        match op {
            Op::Birth { .. } => Ok(()),
            Op::Update { origin, slot, target } => self.words([first(kind::UPDATE, origin), target, slot]),
            Op::UpdateStatic { field, target } => self.words([first(kind::UPDATE_STATIC, field), target]),
            Op::Death { handle } => self.words([first(kind::DEATH, handle)]),
            Op::Touch { handle } => self.words([first(kind::TOUCH, handle)]),
            Op::Thread { thread } => self.words([first(kind::THREAD, thread)]),
            Op::Tick { tick } => self.words([first(kind::TICK, 0), tick as u32, (tick >> 32) as u32]),
        }
    }

    #[inline]
    fn words<const COUNT: usize>(&mut self, words: [u32; COUNT]) -> Result<(), OpsError> {
        debug_assert_eq!(WORDS[(words[0] >> 28) as usize], COUNT);
        for word in words {
            self.pending.extend_from_slice(&word.to_le_bytes());
        }
        self.operations += 1;
        if self.pending.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), OpsError> {
        self.hash.update(&self.pending);
        self.out.write_all(&self.pending)?;
        self.bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Writes the tables and the header.
    pub fn finish(mut self, tables: &Tables) -> Result<File, OpsError> {
        self.flush()?;
        // Tables are strings, numbers and lists: their serialization cannot fail.
        let tables = serde_json::to_vec(tables).unwrap_or_default();
        self.out.write_all(&tables)?;
        let head = Head {
            ops_bytes: self.bytes,
            tables_bytes: tables.len() as u64,
            ops_hash: self.hash.digest(),
            tables_hash: xxh3_64(&tables),
        };
        let mut file = self.out.into_inner().map_err(|error| OpsError::Write(error.into_error()))?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&head.encode())?;
        Ok(file)
    }
}
