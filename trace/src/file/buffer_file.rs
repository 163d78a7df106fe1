//! The buffer file beside a trace that has no end: what of its events had not been written yet.

use std::ops::Range;
use std::path::Path;

use rustc_hash::FxHashSet;

use super::Bytes;
use super::format::FormatError;
use super::format::buffers::{CHUNK_HEADER, CHUNKS_AT, ChunkHeader, FileHeader, STATE_FREE, STATE_FULL, STATE_OWNED};
use super::progress::RunId;
use crate::event::{self, Event, Ticket};

/// What the buffer file beside a trace without an end is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferFile {
    /// There is none, or the trace came from where none can be (a pipe).
    Absent,
    /// It is there and was read.
    Read {
        /// Chunks of events that the trace did not have.
        chunks: usize,
        /// Chunks that should be there and cannot be read.
        damaged: usize,
    },
    /// Left alone: it is of another run.
    OtherRun,
    /// Left alone: it is no buffer file, or of another version.
    Damaged(FormatError),
    /// The system says no.
    Unreadable(String),
    /// Not looked at: the runtime has given up what was in it.
    GivenUp,
}

impl std::fmt::Display for BufferFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNKNOWN: &str = "the last events of each thread may be missing, how many is not known";
        match self {
            Self::Absent => write!(f, "no buffer file (.buf) is beside it: {UNKNOWN}"),
            Self::Read { chunks, damaged } => {
                match chunks {
                    0 => f.write_str("the buffer file beside it held no more events")?,
                    1 => f.write_str("the buffer file beside it held 1 more chunk of events")?,
                    more => write!(f, "the buffer file beside it held {more} more chunks of events")?,
                }
                if *damaged > 0 {
                    write!(f, ", and {damaged} that cannot be read: events are missing, how many is not known")?;
                }
                Ok(())
            }
            Self::OtherRun => write!(f, "the buffer file (.buf) beside it is of another run, so not read: {UNKNOWN}"),
            Self::Damaged(why) => write!(f, "the buffer file (.buf) beside it cannot be read ({why}): {UNKNOWN}"),
            Self::Unreadable(why) => write!(f, "the buffer file (.buf) beside it cannot be opened ({why}): {UNKNOWN}"),
            Self::GivenUp => Ok(()),
        }
    }
}

/// What lies beside a trace.
#[derive(Debug)]
pub enum Beside {
    Nothing,
    Unreadable(String),
    File(Bytes),
}

impl Beside {
    /// Opens the buffer file of a trace.
    pub fn open(trace: &Path) -> Self {
        let mut path = trace.as_os_str().to_owned();
        path.push(".buf");
        match std::fs::File::open(&path).and_then(|file| Bytes::of_file(&file)) {
            Ok(bytes) => Self::File(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::Nothing,
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }
}

/// A chunk of events that the trace does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub thread: u32,
    /// Order of hand-over to the thread.
    sequence: u64,
    /// Its events in the file.
    pub events: Range<usize>,
}

/// The chunks of `run` that are not `written` yet, by thread and in their order; how many could not be read.
pub fn chunks(bytes: &[u8], run: RunId, written: &FxHashSet<(u32, Ticket)>) -> Result<(Vec<Chunk>, usize), BufferFile> {
    let header = FileHeader::decode(bytes).map_err(BufferFile::Damaged)?;
    if header.run != run {
        return Err(BufferFile::OtherRun);
    }
    let (size, count) = (header.chunk_size as usize, header.chunk_count as usize);
    let whole = bytes.get(CHUNKS_AT..).unwrap_or_default().chunks_exact(size);
    let mut damaged = count.saturating_sub(whole.len());
    let mut found = Vec::new();
    for (index, chunk) in whole.enumerate().take(count) {
        let Some(header) = ChunkHeader::decode(chunk) else { continue };
        match header.state {
            STATE_FREE => continue,
            STATE_OWNED | STATE_FULL => {}
            _ => {
                damaged += 1;
                continue;
            }
        }
        let used = event::used_bytes(&chunk[CHUNK_HEADER..]);
        match event::decode(&chunk[CHUNK_HEADER..CHUNK_HEADER + used]) {
            Ok(Some((Event::Ticket(first), _))) if written.contains(&(header.thread, first)) => {}
            Ok(Some((Event::Ticket(_), _))) => {
                let start = CHUNKS_AT + index * size + CHUNK_HEADER;
                found.push(Chunk { thread: header.thread, sequence: header.sequence, events: start..start + used });
            }
            Ok(None) => {}
            _ => damaged += 1,
        }
    }
    found.sort_by_key(|chunk| (chunk.thread, chunk.sequence));
    Ok((found, damaged))
}
