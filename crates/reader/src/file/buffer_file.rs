//! The buffer file beside a trace without an end: it has the events that were not yet written to the trace.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

use et_format::buffers::{
    self, CHUNK_HEADER, ChunkHeader, FileHeader, OPEN_VARIABLE, STATE_FREE, STATE_FULL, STATE_OWNED,
};
use et_format::dynamic::DynamicClass;
use et_format::event::{self, Event, Ticket};
use et_format::progress::RunId;
use et_format::{
    BlockKind, ClassRecord, FormatError, GcRecord, InitialObject, InitialReferences, Meta, MonitorRecord, Problem,
    StackRecord, THREAD_LIMIT, ThreadRecord, Wall, decode_json,
};
use et_names::NamesTable;
use rustc_hash::FxHashSet;

use super::Bytes;

/// The outcome of reading the buffer file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferFile {
    /// There is no buffer file, or there cannot be one because the trace came through a pipe.
    Absent,
    /// It was read.
    Read {
        /// Chunks of events that were missing in the trace.
        chunks: usize,
        /// Other records that were missing in the trace.
        records: usize,
        /// Chunks and records that could not be decoded.
        damaged: usize,
        /// Some records were lost because the journal was full.
        overflowed: bool,
    },
    /// Ignored: it belongs to another run.
    OtherRun,
    /// Ignored: it is not a buffer file, or of another version.
    Damaged(FormatError),
    /// It could not be opened or read: the system's error message.
    Unreadable(String),
    /// Ignored: the runtime had abandoned its content.
    GivenUp,
}

impl std::fmt::Display for BufferFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNKNOWN: &str = "an unknown number of the last events of each thread may be missing";
        match self {
            Self::Absent => write!(f, "no buffer file (.buf) is beside it: {UNKNOWN}"),
            Self::Read { chunks, records, damaged, overflowed } => {
                match chunks {
                    0 => f.write_str("the buffer file beside it held no more events")?,
                    1 => f.write_str("the buffer file beside it held 1 more chunk of events")?,
                    more => write!(f, "the buffer file beside it held {more} more chunks of events")?,
                }
                match records {
                    0 => {}
                    1 => f.write_str(", and 1 other record")?,
                    more => write!(f, ", and {more} other records")?,
                }
                if *damaged > 0 {
                    write!(f, ", and {damaged} parts that cannot be read: an unknown number of events are missing")?;
                }
                if *overflowed {
                    f.write_str("; initial objects or names that had not been written yet are missing")?;
                }
                Ok(())
            }
            Self::OtherRun => {
                write!(f, "the buffer file (.buf) beside it belongs to another run and was not read: {UNKNOWN}")
            }
            Self::Damaged(why) => write!(f, "the buffer file (.buf) beside it cannot be read ({why}): {UNKNOWN}"),
            Self::Unreadable(why) => write!(f, "the buffer file (.buf) beside it cannot be opened ({why}): {UNKNOWN}"),
            Self::GivenUp => Ok(()),
        }
    }
}

/// What was found beside a trace.
#[derive(Debug)]
pub enum Beside {
    Nothing,
    Unreadable(String),
    File(Bytes),
}

impl Beside {
    /// Opens the buffer file of a trace that is a regular file.
    pub fn open(trace: &Path, run: RunId) -> Self {
        let [usual, own] = buffers::beside(trace, run);
        match Self::of(&own) {
            Self::Nothing => Self::of(&usual),
            found => found,
        }
    }

    /// Opens the buffer file of a run whose trace went to a pipe.
    pub fn of_pipe(run: RunId) -> Self {
        let path = match std::env::var_os(OPEN_VARIABLE) {
            Some(open) => open.into(),
            None => std::env::temp_dir().join(buffers::pipe_name(run)),
        };
        match Self::of(&path) {
            Self::File(bytes) => Self::File(bytes),
            // It may belong to another user.
            Self::Nothing | Self::Unreadable(_) => Self::Nothing,
        }
    }

    fn of(path: &Path) -> Self {
        match open_file(path).and_then(|file| Bytes::of_file(&file)) {
            Ok(bytes) => Self::File(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::Nothing,
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }
}

/// Opens a file without blocking: anybody with write access to the directory may have put something else there, such as
/// a FIFO without a writer.
fn open_file(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    File::open(path)
}

/// A chunk of events that is missing in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub thread: u32,
    /// Order in which the chunks were given to threads.
    sequence: u64,
    /// Range of its events in the file.
    pub events: Range<usize>,
    /// When the events happened; `None` if not recorded.
    pub wall: Option<Wall>,
}

/// Decodes the header, provided that the file belongs to that run.
pub fn header(bytes: &[u8], run: RunId) -> Result<FileHeader, BufferFile> {
    let header = FileHeader::decode(bytes).map_err(BufferFile::Damaged)?;
    if header.run == run { Ok(header) } else { Err(BufferFile::OtherRun) }
}

/// Whether records of this kind can be decoded completely.
pub fn is_whole(kind: BlockKind, records: &[u8]) -> bool {
    match kind {
        BlockKind::Meta => decode_json::<Meta>(records).is_ok(),
        BlockKind::Problem => decode_json::<Problem>(records).is_ok(),
        BlockKind::Names => NamesTable::decode(records).is_ok(),
        BlockKind::Classes => ClassRecord::decode_block(records).is_ok(),
        BlockKind::DynamicClasses => DynamicClass::decode_block(records).is_ok(),
        BlockKind::Threads => ThreadRecord::decode_block(records).is_ok(),
        BlockKind::Gcs => GcRecord::decode_block(records).is_ok(),
        BlockKind::Monitors => MonitorRecord::decode_block(records).is_ok(),
        BlockKind::Stacks => StackRecord::decode_block(records).is_ok(),
        BlockKind::InitialObjects => InitialObject::decode_block(records).is_ok(),
        BlockKind::InitialReferences => InitialReferences::decode_block(records).is_ok(),
        // Kinds that are not kept in journals.
        BlockKind::Events | BlockKind::Progress | BlockKind::Collector | BlockKind::Survivors | BlockKind::End => false,
    }
}

/// Kinds for which the writer merges all queued records into one block.
pub fn is_merged(kind: BlockKind) -> bool {
    matches!(
        kind,
        BlockKind::Classes
            | BlockKind::DynamicClasses
            | BlockKind::Threads
            | BlockKind::Gcs
            | BlockKind::Monitors
            | BlockKind::Stacks
    )
}

/// Chunks that have not been `written` to the trace, by thread and in order, and the number of chunks that could not be
/// decoded.
pub fn chunks(bytes: &[u8], header: &FileHeader, written: &FxHashSet<(u32, Ticket)>) -> (Vec<Chunk>, usize) {
    let chunks_at = header.chunks_at as usize;
    let (size, count) = (header.chunk_size as usize, header.chunk_count as usize);
    let whole = bytes.get(chunks_at..).unwrap_or_default().chunks_exact(size);
    let mut damaged = count.saturating_sub(whole.len());
    let mut found = Vec::new();
    for (index, chunk) in whole.enumerate().take(count) {
        let Some(header) = ChunkHeader::decode(chunk) else { continue };
        match header.state {
            STATE_FREE => continue,
            STATE_OWNED | STATE_FULL if header.thread < THREAD_LIMIT => {}
            _ => {
                damaged += 1;
                continue;
            }
        }
        let used = event::used_bytes(&chunk[CHUNK_HEADER..]);
        match event::decode(&chunk[CHUNK_HEADER..CHUNK_HEADER + used]) {
            Ok(Some((Event::Ticket(first), _))) if written.contains(&(header.thread, first)) => {}
            Ok(Some((Event::Ticket(_), _))) => {
                let start = chunks_at + index * size + CHUNK_HEADER;
                found.push(Chunk {
                    thread: header.thread,
                    sequence: header.sequence,
                    events: start..start + used,
                    wall: header.wall,
                });
            }
            Ok(None) => {}
            _ => damaged += 1,
        }
    }
    found.sort_by_key(|chunk| (chunk.thread, chunk.sequence));
    (found, damaged)
}
