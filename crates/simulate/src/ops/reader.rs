//! Reads operations files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use et_reader::record::LARGEST;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::error::OpsError;
use super::format::{HEAD, Head, HeadError, INITIAL, MAGIC, MOST_WORDS, Op, WORDS, ends, kind};
use super::tables::{ClassKind, Layout, Tables};

/// An open operations file whose checksums are correct. The operations can be read repeatedly.
#[derive(Debug)]
pub struct OpsReader {
    path: PathBuf,
    file: File,
    head: Head,
    tables: Tables,
    buffer: Vec<u8>,
    /// Position in the buffer of the next operation, and after the last.
    at: usize,
    filled: usize,
    /// Bytes of operations that are not buffered yet.
    left: u64,
    operations: u64,
}

const BLOCK: usize = 1 << 18;
/// Maximum number of fields of a class.
const MOST_SLOTS: u32 = 1 << 16;
/// Maximum size of the tables in bytes: a forged header must not make the reader exhaust memory.
const MOST_TABLES: u64 = 1 << 32;

impl OpsReader {
    /// Opens a file and checks its checksums.
    pub fn open(path: &Path) -> Result<Self, OpsError> {
        let file = File::open(path).map_err(|source| OpsError::Read { path: path.to_owned(), source })?;
        Self::of_file(path, file)
    }

    /// As [`open`](Self::open), for an open file.
    pub fn of_file(path: &Path, mut file: File) -> Result<Self, OpsError> {
        let path = path.to_owned();
        let read = |source| OpsError::Read { path: path.clone(), source };
        let found = file.metadata().map_err(read)?.len();
        let mut start = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(read)?;
        (&mut file).take(HEAD as u64).read_to_end(&mut start).map_err(read)?;
        let Ok(head) = <&[u8; HEAD]>::try_from(start.as_slice()) else {
            return Err(match start.starts_with(&MAGIC) {
                true => OpsError::CutOff { path, found, expected: HEAD as u64 },
                false => OpsError::NotOps { path },
            });
        };
        let head = match Head::decode(head) {
            Ok(head) => head,
            Err(HeadError::NotOps) => return Err(OpsError::NotOps { path }),
            Err(HeadError::Version(found)) => return Err(OpsError::Version { path, found }),
            Err(HeadError::ByteOrder) => return Err(OpsError::ByteOrder { path }),
            Err(HeadError::Damaged) => return Err(OpsError::Damaged { path, what: "its head".into() }),
        };
        let expected = (HEAD as u64).saturating_add(head.ops_bytes).saturating_add(head.tables_bytes);
        if found < expected {
            return Err(OpsError::CutOff { path, found, expected });
        }
        if found > expected {
            return Err(OpsError::TooLong { path, found, expected });
        }
        let damaged = |what: &str| OpsError::Damaged { path: path.clone(), what: what.to_owned() };
        let mut buffer = vec![0; BLOCK];
        let (mut hash, mut left) = (Xxh3::new(), head.ops_bytes);
        while left > 0 {
            let piece = left.min(BLOCK as u64) as usize;
            file.read_exact(&mut buffer[..piece]).map_err(read)?;
            hash.update(&buffer[..piece]);
            left -= piece as u64;
        }
        if hash.digest() != head.ops_hash || !head.ops_bytes.is_multiple_of(4) {
            return Err(damaged("the checksum of its operations is wrong"));
        }
        if head.tables_bytes > MOST_TABLES {
            return Err(damaged("its tables are too large"));
        }
        let mut tables = Vec::new();
        (&mut file).take(head.tables_bytes).read_to_end(&mut tables).map_err(read)?;
        if xxh3_64(&tables) != head.tables_hash {
            return Err(damaged("the checksum of its tables is wrong"));
        }
        let tables: Tables =
            serde_json::from_slice(&tables).map_err(|error| damaged(&format!("its tables: {error}")))?;
        if !is_possible(&tables, &head) {
            return Err(damaged("its tables do not match its operations"));
        }
        let mut reader = Self { path, file, head, tables, buffer, at: 0, filled: 0, left: 0, operations: 0 };
        reader.rewind()?;
        Ok(reader)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The underlying file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The tables of the file.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Size of all operations in bytes.
    pub fn ops_bytes(&self) -> u64 {
        self.head.ops_bytes
    }

    /// Number of operations read so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Goes back to the first operation.
    pub fn rewind(&mut self) -> Result<(), OpsError> {
        let read = |source| OpsError::Read { path: self.path.clone(), source };
        self.file.seek(SeekFrom::Start(HEAD as u64)).map_err(read)?;
        (self.at, self.filled, self.left, self.operations) = (0, 0, self.head.ops_bytes, 0);
        Ok(())
    }

    /// The next operation; `None` after the last. Its indexes are checked against the tables.
    #[inline]
    pub fn next_op(&mut self) -> Result<Option<Op>, OpsError> {
        if self.filled - self.at < 4 * MOST_WORDS && self.left > 0 {
            self.fill()?;
        }
        if self.at == self.filled {
            return Ok(None);
        }
        let bytes = &self.buffer[self.at..self.filled];
        let first = word(bytes, 0);
        let words = WORDS[(first >> 28) as usize];
        if words == 0 || bytes.len() < 4 * words {
            return Err(self.damaged());
        }
        let low = first & 0x0fff_ffff;
        let tables = &self.tables;
        let is_handle = |handle: u32| handle.wrapping_sub(1) < tables.handles;
        let is_target = |target: u32| target <= tables.handles;
        let (op, is_good) = match first >> 28 {
            kind::BIRTH => {
                let (class, site) = (word(bytes, 1), word(bytes, 3));
                let Some(known) = tables.classes.get((class & !INITIAL) as usize) else { return Err(self.damaged()) };
                let (size, slots) = match known.kind {
                    ClassKind::References => (tables.layout.array_bytes(word(bytes, 2)), word(bytes, 2)),
                    _ => (u64::from(word(bytes, 2)) * 8, known.slots),
                };
                let (class, initial) = (class & !INITIAL, class & INITIAL != 0);
                (Op::Birth { handle: low, class, size, slots, site, initial }, is_handle(low) && size <= LARGEST)
            }
            kind::BIRTH_WIDE => {
                let (class, site) = (word(bytes, 1), word(bytes, 5));
                let Some(known) = tables.classes.get((class & !INITIAL) as usize) else { return Err(self.damaged()) };
                let size = u64::from(word(bytes, 2)) | u64::from(word(bytes, 3)) << 32;
                let slots = if known.kind == ClassKind::References { word(bytes, 4) } else { known.slots };
                let (class, initial) = (class & !INITIAL, class & INITIAL != 0);
                let has_room = known.kind != ClassKind::References || tables.layout.array_bytes(slots) <= size;
                (
                    Op::Birth { handle: low, class, size, slots, site, initial },
                    has_room && is_handle(low) && size.is_multiple_of(8) && size <= LARGEST,
                )
            }
            kind::UPDATE => {
                let (target, slot) = (word(bytes, 1), word(bytes, 2));
                (Op::Update { origin: low, slot, target }, is_handle(low) && is_target(target))
            }
            kind::UPDATE_STATIC => {
                let target = word(bytes, 1);
                (Op::UpdateStatic { field: low, target }, low < tables.static_fields && is_target(target))
            }
            kind::DEATH => (Op::Death { handle: low }, is_handle(low)),
            kind::TOUCH => (Op::Touch { handle: low }, is_handle(low)),
            kind::THREAD => (Op::Thread { thread: low }, (low as usize) < tables.threads.len()),
            _ => (Op::Tick { tick: u64::from(word(bytes, 1)) | u64::from(word(bytes, 2)) << 32 }, true),
        };
        if !is_good {
            return Err(self.damaged());
        }
        self.at += 4 * words;
        self.operations += 1;
        Ok(Some(op))
    }

    #[cold]
    fn fill(&mut self) -> Result<(), OpsError> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        let room = (self.buffer.len() - self.filled) as u64;
        let piece = room.min(self.left) as usize;
        let read = self.file.read_exact(&mut self.buffer[self.filled..self.filled + piece]);
        read.map_err(|source| OpsError::Read { path: self.path.clone(), source })?;
        self.filled += piece;
        self.left -= piece as u64;
        Ok(())
    }

    /// The error for an invalid operation.
    #[cold]
    pub fn damaged(&self) -> OpsError {
        let what = format!("operation {} is invalid", self.operations);
        OpsError::Damaged { path: self.path.clone(), what }
    }
}

#[inline]
fn word(bytes: &[u8], index: usize) -> u32 {
    let at = 4 * index;
    match bytes.get(at..at + 4) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// The tables determine how much memory a replay takes, so they are checked against the number of operations: each
/// handle has a birth, each static field a store, and the layout must be possible in a VM.
fn is_possible(tables: &Tables, head: &Head) -> bool {
    let Layout { reference_bytes, header_bytes, array_base } = tables.layout;
    // Some slack does no harm.
    let most = |kind: u32| head.ops_bytes / (4 * WORDS[kind as usize] as u64) + 64;
    u64::from(tables.handles) <= most(kind::BIRTH)
        && u64::from(tables.static_fields) <= most(kind::UPDATE_STATIC)
        && tables.classes.iter().all(|class| class.slots <= MOST_SLOTS)
        && matches!(reference_bytes, 4 | 8)
        && (8..=32).contains(&header_bytes)
        && (8..=32).contains(&array_base)
}

/// Whether a file begins with the magic bytes.
pub(crate) fn is_ops(file: &mut File) -> std::io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    let read = file.read_exact(&mut start);
    file.seek(SeekFrom::Start(0))?;
    match read {
        Ok(()) => Ok(start == MAGIC),
        Err(error) if error.kind() == ends().kind() => Ok(false),
        Err(error) => Err(error),
    }
}
