//! The buffer file `<trace>.buf`: a memory-mapped file that survives the process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{FormatError, Nanos, RunId, Wall};
use crate::event::Ticket;

/// Magic number at the start of a buffer file.
pub const MAGIC: [u8; 8] = *b"ETBUFS\0\0";
/// The two candidate paths of the buffer file of a trace that is a regular file, in the order in which the runtime
/// tries them.
pub fn beside(trace: &Path, run: RunId) -> [PathBuf; 2] {
    let with = |end: String| {
        let mut name = OsString::from(trace);
        name.push(end);
        name.into()
    };
    // The first name may already exist. The second contains the random run id, so it cannot.
    [with(".buf".to_owned()), with(format!(".{run}.buf"))]
}

/// File name in the temporary directory when the trace goes to a pipe, which has no directory of its own.
pub fn pipe_name(run: RunId) -> String {
    format!("et-{run}.buf")
}

/// Environment variable that tells the process that converts the trace to text where to find the buffer file, which is
/// open but already unlinked.
pub const OPEN_VARIABLE: &str = "ET_BUFFERS";

/// Version of the layout. Version 2 has other events than version 1: see [`crate::VERSION`].
pub const VERSION: u32 = 2;
/// The oldest version that can be read.
pub const OLDEST_VERSION: u32 = 1;
/// Length of the file header in bytes.
pub const FILE_HEADER: usize = 64;
/// Offset of the journals, or of the chunks if there are no journals.
pub const JOURNALS_AT: usize = 4096;
/// Number of journals. They have equal sizes and end where the chunks start.
pub const JOURNALS: usize = 2;
/// Length of a journal's header in bytes; entries follow.
pub const JOURNAL_HEADER: usize = 16;
/// Offset in a journal's header of the length of its entries in bytes (u32).
pub const JOURNAL_USED_AT: usize = 0;
/// Offset in a journal's header of its flags (u32): 0 or [`OVERFLOWED`].
pub const JOURNAL_FLAGS_AT: usize = 4;
/// Offset in a journal's header of the number of the first block that its records go to (u64); 0 if writing has not
/// begun.
pub const JOURNAL_BLOCK_AT: usize = 8;
/// Journal flag: some records did not fit.
pub const OVERFLOWED: u32 = 1;
/// Length in bytes of an entry's header: kind of block (u32), length (u32). Entries are padded to a multiple of 4
/// bytes.
pub const ENTRY_HEADER: usize = 8;
/// Offset in the file header of the layout version (u32).
pub const VERSION_AT: usize = 8;
/// Offset in the file header of the length of a chunk in bytes, its header included (u32).
pub const CHUNK_SIZE_AT: usize = 12;
/// Offset in the file header of the number of chunks (u32).
pub const CHUNK_COUNT_AT: usize = 16;
/// Offset in the file header of the process id (u32).
pub const PID_AT: usize = 20;
/// Offset in the file header of the last ticket issued (u64).
pub const TICKET_AT: usize = 24;
/// Offset in the file header of the run id (6 bytes), which the trace's header has as well.
pub const RUN_AT: usize = 32;
/// Offset in the file header of the offset of the first chunk (u32).
pub const CHUNKS_START_AT: usize = 40;
/// Length of a chunk header in bytes; events follow.
pub const CHUNK_HEADER: usize = 64;
/// Offset in a chunk header of its state (u32), one of the `STATE_` values.
pub const CHUNK_STATE_AT: usize = 0;
/// Offset in a chunk header of the thread index (u32).
pub const CHUNK_THREAD_AT: usize = 4;
/// Offset in a chunk header of the number that says in which order chunks were handed over to the writer (u64).
pub const CHUNK_SEQUENCE_AT: usize = 8;
/// Offset in a chunk header of the time at which the thread got the chunk (u64, [`Nanos`]); 0 if not recorded.
pub const CHUNK_BEGIN_AT: usize = 16;
/// Offset in a chunk header of the time at which the thread handed it over (u64, [`Nanos`]); 0 if it has not yet, or if
/// not recorded.
pub const CHUNK_END_AT: usize = 24;
/// The chunk has no owner, and any events in it have been written to the trace.
pub const STATE_FREE: u32 = 0;
/// A thread is writing events to the chunk.
pub const STATE_OWNED: u32 = 1;
/// The chunk is queued for the writer.
pub const STATE_FULL: u32 = 2;

/// The decoded header of a buffer file (`docs/inside/trace-file.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Length of a chunk in bytes, its header included.
    pub chunk_size: u32,
    pub chunk_count: u32,
    pub pid: u32,
    pub ticket: Ticket,
    pub run: RunId,
    /// Offset of the first chunk in bytes.
    pub chunks_at: u32,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

impl FileHeader {
    /// Encodes the header.
    pub fn encode(&self) -> [u8; FILE_HEADER] {
        let mut out = [0; FILE_HEADER];
        out[..8].copy_from_slice(&MAGIC);
        for (at, value) in [
            (VERSION_AT, VERSION),
            (CHUNK_SIZE_AT, self.chunk_size),
            (CHUNK_COUNT_AT, self.chunk_count),
            (PID_AT, self.pid),
            (CHUNKS_START_AT, self.chunks_at),
        ] {
            out[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        out[TICKET_AT..TICKET_AT + 8].copy_from_slice(&self.ticket.0.to_le_bytes());
        out[RUN_AT..RUN_AT + RunId::BYTES].copy_from_slice(&self.run.to_bytes());
        out
    }

    /// Decodes and checks the header at the start of a buffer file.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() < FILE_HEADER || bytes[..8] != MAGIC {
            return Err(FormatError::Header("buffer file's magic", 0));
        }
        let version = u32_at(bytes, VERSION_AT);
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(FormatError::Header("buffer file's version", version.into()));
        }
        let header = Self {
            chunk_size: u32_at(bytes, CHUNK_SIZE_AT),
            chunk_count: u32_at(bytes, CHUNK_COUNT_AT),
            pid: u32_at(bytes, PID_AT),
            ticket: Ticket(u64_at(bytes, TICKET_AT)),
            run: RunId::from_bytes(std::array::from_fn(|at| bytes[RUN_AT + at])),
            chunks_at: u32_at(bytes, CHUNKS_START_AT),
        };
        if (header.chunks_at as usize) < JOURNALS_AT {
            return Err(FormatError::Header("buffer file's start of chunks", header.chunks_at.into()));
        }
        if (header.chunk_size as usize) < CHUNK_HEADER {
            return Err(FormatError::Header("buffer file's chunk size", header.chunk_size.into()));
        }
        Ok(header)
    }
}

/// Records that had not reached the trace when the process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal<'a> {
    /// Number of the first block that the records go to; 0 if writing had not begun.
    pub first_block: u64,
    /// Some records did not fit and are lost.
    pub overflowed: bool,
    /// Block kind and content of each record.
    pub entries: Vec<(u32, &'a [u8])>,
}

/// Decodes the journals of a buffer file, the one with the older records first.
pub fn journals<'a>(bytes: &'a [u8], header: &FileHeader) -> impl Iterator<Item = Journal<'a>> + use<'a> {
    let all = bytes.get(JOURNALS_AT..header.chunks_at as usize).unwrap_or_default();
    let size = all.len() / JOURNALS;
    let mut journals: Vec<Journal<'_>> = all.chunks_exact(size.max(JOURNAL_HEADER)).map(journal).collect();
    journals.sort_by_key(|journal| journal.first_block == 0);
    journals.into_iter()
}

fn journal(bytes: &[u8]) -> Journal<'_> {
    let used = u32_at(bytes, JOURNAL_USED_AT) as usize;
    let mut rest = bytes.get(JOURNAL_HEADER..).and_then(|rest| rest.get(..used)).unwrap_or_default();
    let mut overflowed = u32_at(bytes, JOURNAL_FLAGS_AT) != 0 || rest.len() < used;
    let mut entries = Vec::new();
    while rest.len() >= ENTRY_HEADER {
        let len = u32_at(rest, 4) as usize;
        let Some(record) = rest[ENTRY_HEADER..].get(..len) else {
            overflowed = true;
            break;
        };
        entries.push((u32_at(rest, 0), record));
        rest = rest.get((ENTRY_HEADER + len).next_multiple_of(4)..).unwrap_or_default();
    }
    Journal { first_block: u64_at(bytes, JOURNAL_BLOCK_AT), overflowed, entries }
}

/// The decoded header of a chunk (`docs/inside/trace-file.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// One of the `STATE_` values.
    pub state: u32,
    pub thread: u32,
    pub sequence: u64,
    /// When its events happened; `None` if not recorded.
    pub wall: Option<Wall>,
}

impl ChunkHeader {
    /// Encodes the header.
    pub fn encode(&self) -> [u8; CHUNK_HEADER] {
        let mut out = [0; CHUNK_HEADER];
        out[..4].copy_from_slice(&self.state.to_le_bytes());
        out[4..8].copy_from_slice(&self.thread.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        if let Some(Wall { begin, end }) = self.wall {
            for (at, Nanos(nanos)) in [(CHUNK_BEGIN_AT, begin), (CHUNK_END_AT, end.unwrap_or_default())] {
                out[at..at + 8].copy_from_slice(&nanos.to_le_bytes());
            }
        }
        out
    }

    /// Decodes a chunk header; `None` if there are too few bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= CHUNK_HEADER).then(|| Self {
            state: u32_at(bytes, CHUNK_STATE_AT),
            thread: u32_at(bytes, CHUNK_THREAD_AT),
            sequence: u64_at(bytes, CHUNK_SEQUENCE_AT),
            wall: Wall::from_fields(u64_at(bytes, CHUNK_BEGIN_AT), u64_at(bytes, CHUNK_END_AT)),
        })
    }
}
