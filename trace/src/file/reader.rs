//! Opens a trace: maps it, indexes its blocks, unpacks them when they are asked for.

use std::borrow::Cow;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use thiserror::Error;

use super::buffer_file::{self, Beside, BufferFile};
use super::bytes::Bytes;
use super::format::{
    self, BLOCK_HEADER, BlockHeader, BlockKind, Codec, End, FILE_HEADER, FormatError, Meta, Problem, buffers,
};
use super::progress::{Progress, RunId};
use crate::event::Ticket;

/// Why a trace cannot be read at all. A trace that is merely cut off can.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system says no.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is none of ours, or of another version.
    #[error("{path}: {source}", path = path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: FormatError,
    },
    /// A block that nothing can be read without is damaged.
    #[error("{path}: block {sequence} ({kind:?}) is damaged: {source}", path = path.display())]
    Block {
        /// Which file.
        path: PathBuf,
        /// Number of the block.
        sequence: u64,
        /// What it holds.
        kind: BlockKind,
        /// Why.
        source: FormatError,
    },
    /// A names table in the trace is damaged.
    #[error("{path}: names table in block {sequence}: {source}", path = path.display())]
    Names {
        /// Which file.
        path: PathBuf,
        /// Number of the block.
        sequence: u64,
        /// Why.
        source: et_names::DecodeError,
    },
}

/// A block of the file.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its header.
    pub header: BlockHeader,
    /// Where its stored bytes start in the file.
    pub at: usize,
}

/// Where a trace stops before its end, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct CutOff {
    /// Whole blocks before.
    pub blocks: usize,
    /// First byte that is not part of a whole block.
    pub offset: usize,
    /// Bytes from there on.
    pub bytes_left: usize,
    /// What is wrong there; `None` if the file simply ends between two blocks.
    pub why: Option<FormatError>,
    /// The last that the runtime said of the run; None if that is not in the trace.
    pub progress: Option<Progress>,
    /// What became of the events that had not been written yet.
    pub buffer_file: BufferFile,
    /// A process is writing it.
    pub still_runs: bool,
}

impl CutOff {
    fn new(blocks: usize, offset: usize, bytes_left: usize, why: Option<FormatError>) -> Self {
        Self { blocks, offset, bytes_left, why, progress: None, buffer_file: BufferFile::GivenUp, still_runs: false }
    }
}

impl std::fmt::Display for CutOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trace is cut off after {} blocks", self.blocks)?;
        let stopped = self.progress.as_ref().and_then(|progress| progress.stopped.as_ref());
        match (&self.why, stopped) {
            (Some(why), _) => write!(f, ", at byte {} ({why})", self.offset)?,
            (None, _) if self.bytes_left > 0 => {
                write!(f, ", at byte {} (a block lacks its last part)", self.offset)?;
            }
            (None, None) if self.still_runs => f.write_str(" (it has no end block: the program still runs)")?,
            (None, None) => {
                f.write_str(" (it has no end block: the program was killed, or this is a copy made while it ran)")?;
            }
            (None, Some(_)) => {}
        }
        let missing = self.progress.as_ref().map_or(0, |progress| progress.blocks.saturating_sub(self.blocks as u64));
        if missing > 0 {
            write!(f, "; at least {missing} more had been written")?;
        }
        match (&self.progress, stopped) {
            (_, Some(stopped)) => write!(
                f,
                "; tracing stopped {:.2} s after it began: {}; {} events in {} chunks did not reach the trace, and what \
                 the program did afterwards was not traced",
                stopped.seconds, stopped.why, stopped.lost_events, stopped.lost_chunks
            ),
            (Some(progress), None) => {
                write!(f, "; the last sign of life came {:.2} s after tracing began", progress.seconds)?;
                write!(f, "; {}", self.buffer_file)
            }
            (None, None) => write!(f, "; {}", self.buffer_file),
        }
    }
}

/// A piece of a thread's events: a block of the trace or a chunk of the buffer file.
#[derive(Clone, Debug)]
enum EventSource {
    Block(usize),
    Chunk(Range<usize>),
}

/// The events of one thread, in order.
#[derive(Clone, Debug)]
pub struct ThreadEvents {
    /// Thread index.
    pub thread: u32,
    pieces: Vec<EventSource>,
}

impl ThreadEvents {
    /// Number of pieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Which pieces come from the buffer file.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = usize> {
        let chunks = self.pieces.iter().enumerate().filter(|(_, piece)| matches!(piece, EventSource::Chunk(_)));
        chunks.map(|(piece, _)| piece)
    }

    /// Whether the thread left no events.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// An open trace file.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    bytes: Bytes,
    run: RunId,
    blocks: Vec<Block>,
    buffers: Option<Bytes>,
    /// Records that only the buffer file has.
    records: Vec<(BlockKind, Vec<u8>)>,
    threads: Vec<ThreadEvents>,
    cut_off: Option<CutOff>,
    end: Option<End>,
    meta: Meta,
}

impl TraceFile {
    /// Opens a trace; `-` is standard input. What cannot be mapped (a pipe) is copied to a temporary file first.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        if path == Path::new("-") {
            return Self::from_stream(Path::new("standard input"), io::stdin().lock());
        }
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(io(io::Error::other("is a directory, not a trace")));
        }
        if !metadata.is_file() {
            return Self::from_stream(path, file);
        }
        let bytes = Bytes::of_file(&file).map_err(io)?;
        // The runtime holds a lock for as long as it writes.
        let still_runs = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let _ = file.unlock();
        let mut trace = Self::new(path.to_owned(), bytes, || Beside::open(path))?;
        if let Some(cut_off) = &mut trace.cut_off {
            cut_off.still_runs = still_runs;
        }
        Ok(trace)
    }

    /// Reads a trace from a stream.
    pub fn from_stream(name: &Path, stream: impl Read) -> Result<Self, ReadError> {
        let bytes = Bytes::of_stream(stream).map_err(|source| ReadError::Io { path: name.to_owned(), source })?;
        Self::new(name.to_owned(), bytes, || Beside::Nothing)
    }

    /// Reads a trace that is in memory, with the buffer file if there is one.
    pub fn from_bytes(bytes: Vec<u8>, buffer_file: Option<Vec<u8>>) -> Result<Self, ReadError> {
        let beside = buffer_file.map_or(Beside::Nothing, |bytes| Beside::File(Bytes::Owned(bytes)));
        Self::new(PathBuf::from("memory"), Bytes::Owned(bytes), || beside)
    }

    fn new(path: PathBuf, bytes: Bytes, beside: impl FnOnce() -> Beside) -> Result<Self, ReadError> {
        let run =
            format::check_file_header(&bytes).map_err(|source| ReadError::Format { path: path.clone(), source })?;
        let (blocks, mut cut_off) = index(&bytes);
        let mut file = Self {
            path,
            bytes,
            run,
            blocks,
            buffers: None,
            records: Vec::new(),
            threads: Vec::new(),
            cut_off: None,
            end: None,
            meta: Meta::default(),
        };
        file.meta = file.first_json(BlockKind::Meta)?.unwrap_or_default();
        file.end = file.first_json(BlockKind::End)?;
        file.threads = file.threads_of_blocks();
        if file.end.is_none() {
            let offset = file.bytes.len();
            let cut_off = cut_off.get_or_insert(CutOff::new(file.blocks.len(), offset, 0, None));
            cut_off.progress = file.last_progress();
            cut_off.buffer_file = match &cut_off.progress {
                Some(Progress { stopped: Some(_), .. }) => BufferFile::GivenUp,
                _ => match file.recover(beside()) {
                    // What came through a pipe has it elsewhere, if it is on this machine still.
                    BufferFile::Absent => match file.recover(Beside::of_pipe(file.meta.pid)) {
                        BufferFile::OtherRun | BufferFile::Damaged(_) => BufferFile::Absent,
                        found => found,
                    },
                    found => found,
                },
            };
            let meta = file.recovered(BlockKind::Meta).find_map(|raw| format::decode_json(raw).ok());
            file.meta = meta.unwrap_or(file.meta);
        }
        file.cut_off = cut_off;
        Ok(file)
    }

    /// The last whole one: what is written over and over may have been caught in the middle.
    fn last_progress(&self) -> Option<Progress> {
        let blocks: Vec<&Block> = self.of_kind(BlockKind::Progress).collect();
        blocks.into_iter().rev().find_map(|block| self.json(block).ok())
    }

    fn threads_of_blocks(&self) -> Vec<ThreadEvents> {
        let mut threads: Vec<ThreadEvents> = Vec::new();
        let mut by_index = rustc_hash::FxHashMap::default();
        for (index, block) in self.blocks.iter().enumerate().filter(|(_, b)| b.header.kind == BlockKind::Events) {
            let thread = block.header.thread;
            let at = *by_index.entry(thread).or_insert_with(|| {
                threads.push(ThreadEvents { thread, pieces: Vec::new() });
                threads.len() - 1
            });
            threads[at].pieces.push(EventSource::Block(index));
        }
        threads
    }

    /// Appends the chunks that the runtime had not written yet.
    fn recover(&mut self, beside: Beside) -> BufferFile {
        let bytes = match beside {
            Beside::Nothing => return BufferFile::Absent,
            Beside::Unreadable(why) => return BufferFile::Unreadable(why),
            Beside::File(bytes) => bytes,
        };
        let written: FxHashSet<(u32, Ticket)> =
            self.of_kind(BlockKind::Events).map(|block| (block.header.thread, block.header.first_ticket)).collect();
        let header = match buffer_file::header(&bytes, self.run) {
            Ok(header) => header,
            Err(why) => return why,
        };
        let (found, mut damaged) = buffer_file::chunks(&bytes, &header, &written);
        let mut overflowed = false;
        let mut records = Vec::new();
        for journal in buffers::journals(&bytes, &header) {
            overflowed |= journal.overflowed;
            for (kind, record) in journal.entries {
                let kind = u8::try_from(kind).ok().and_then(BlockKind::from_u8);
                match kind.filter(|&kind| buffer_file::is_whole(kind, record)) {
                    None => damaged += 1,
                    Some(kind) if self.has_record(kind, journal.first_block, record) => {}
                    Some(kind) => records.push((kind, record.to_vec())),
                }
            }
        }
        self.records = records;
        let chunks = found.len();
        for chunk in found {
            let at = self.threads.iter().position(|t| t.thread == chunk.thread).unwrap_or_else(|| {
                self.threads.push(ThreadEvents { thread: chunk.thread, pieces: Vec::new() });
                self.threads.len() - 1
            });
            self.threads[at].pieces.push(EventSource::Chunk(chunk.events));
        }
        self.buffers = Some(bytes);
        BufferFile::Read { chunks, records: self.records.len(), damaged, overflowed }
    }

    /// Whether a record that the writer had begun to write is in the trace.
    fn has_record(&self, kind: BlockKind, first_block: u64, record: &[u8]) -> bool {
        let is_it = |block: &Block| {
            block.header.sequence >= first_block
                && (buffer_file::is_merged(kind) || self.unpack(block).is_ok_and(|content| *content == *record))
        };
        first_block > 0 && self.of_kind(kind).any(is_it)
    }

    /// Records that only the buffer file has.
    pub(crate) fn records(&self) -> &[(BlockKind, Vec<u8>)] {
        &self.records
    }

    /// Those of a kind.
    pub(crate) fn recovered(&self, kind: BlockKind) -> impl Iterator<Item = &[u8]> {
        self.records.iter().filter(move |(of, _)| *of == kind).map(|(_, record)| record.as_slice())
    }

    /// Which run it is of.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes on disk.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// All whole blocks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// How the trace came to be.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How it ended; `None` if it is cut off.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The last that is known of a run whose end is not in the trace.
    pub fn last_known(&self) -> Option<&Progress> {
        self.cut_off.as_ref().filter(|_| self.end.is_none()).and_then(|cut| cut.progress.as_ref())
    }

    /// Events that no buffer could be had for, as far as the trace tells.
    pub fn lost_events(&self) -> u64 {
        match &self.end {
            Some(end) => end.lost_events,
            None => self.last_known().map_or(0, |progress| progress.lost_events),
        }
    }

    /// Where it stops, if it has no proper end.
    pub fn cut_off(&self) -> Option<&CutOff> {
        self.cut_off.as_ref()
    }

    /// The threads that left events.
    pub fn threads(&self) -> &[ThreadEvents] {
        &self.threads
    }

    /// The blocks of one kind, in file order.
    pub fn of_kind(&self, kind: BlockKind) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| block.header.kind == kind)
    }

    /// The stored bytes of a block.
    pub(crate) fn stored(&self, block: &Block) -> &[u8] {
        &self.bytes[block.at..block.at + block.header.stored_len as usize]
    }

    /// A block's content, checked and unpacked.
    pub fn unpack(&self, block: &Block) -> Result<Cow<'_, [u8]>, ReadError> {
        block.header.unpack(self.stored(block)).map_err(|source| self.block_error(block, source))
    }

    /// Wraps an error in a block's content.
    pub fn block_error(&self, block: &Block, source: FormatError) -> ReadError {
        let header = &block.header;
        ReadError::Block { path: self.path.clone(), sequence: header.sequence, kind: header.kind, source }
    }

    fn json<T: for<'de> serde::Deserialize<'de>>(&self, block: &Block) -> Result<T, ReadError> {
        format::decode_json(&self.unpack(block)?).map_err(|source| self.block_error(block, source))
    }

    fn first_json<T: for<'de> serde::Deserialize<'de>>(&self, kind: BlockKind) -> Result<Option<T>, ReadError> {
        self.of_kind(kind).next().map(|block| self.json(block)).transpose()
    }

    /// What the runtime found worth a note.
    pub fn problems(&self) -> Result<Vec<Problem>, ReadError> {
        let recovered = self.recovered(BlockKind::Problem).filter_map(|raw| format::decode_json(raw).ok()).map(Ok);
        self.of_kind(BlockKind::Problem).map(|block| self.json(block)).chain(recovered).collect()
    }

    /// Unpacks a piece of a thread's events into `into`.
    pub fn load_events(&self, thread: &ThreadEvents, piece: usize, into: &mut Vec<u8>) -> Result<(), FormatError> {
        into.clear();
        match &thread.pieces[piece] {
            EventSource::Block(index) => {
                let block = &self.blocks[*index];
                let (header, stored) = (&block.header, self.stored(block));
                // Into the caller's buffer, without a new allocation for each block.
                let found = crc32fast::hash(stored);
                if found != header.crc {
                    return Err(FormatError::Checksum { expected: header.crc, found });
                }
                let raw_len = header.raw_len as usize;
                into.resize(raw_len, 0);
                let unpacked = match header.codec {
                    Codec::Stored => {
                        into.copy_from_slice(stored);
                        Ok(raw_len)
                    }
                    Codec::Lz4 => lz4_flex::block::decompress_into(stored, into).map_err(|e| e.to_string()),
                    Codec::Zstd => {
                        zstd::bulk::decompress_to_buffer(stored, into.as_mut_slice()).map_err(|e| e.to_string())
                    }
                };
                match unpacked {
                    Ok(len) if len == raw_len => {}
                    Ok(len) => return Err(FormatError::Unpack(format!("{len} bytes instead of {raw_len}"))),
                    Err(what) => return Err(FormatError::Unpack(what)),
                }
            }
            EventSource::Chunk(range) => {
                into.extend_from_slice(self.buffers.as_ref().and_then(|b| b.get(range.clone())).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Bytes of a piece when unpacked, for counting what could not be.
    pub fn event_bytes(&self, thread: &ThreadEvents, piece: usize) -> u64 {
        match &thread.pieces[piece] {
            EventSource::Block(index) => self.blocks[*index].header.raw_len.into(),
            EventSource::Chunk(range) => range.len() as u64,
        }
    }
}

fn index(bytes: &[u8]) -> (Vec<Block>, Option<CutOff>) {
    let mut blocks = Vec::new();
    let mut at = FILE_HEADER;
    let cut = |blocks: usize, at: usize, why| Some(CutOff::new(blocks, at, bytes.len() - at, why));
    while at < bytes.len() {
        let header = match BlockHeader::decode(&bytes[at..]) {
            Ok(Some(header)) => header,
            Ok(None) => {
                let cut = cut(blocks.len(), at, None);
                return (blocks, cut);
            }
            Err(why) => {
                let cut = cut(blocks.len(), at, Some(why));
                return (blocks, cut);
            }
        };
        let start = at + BLOCK_HEADER;
        if bytes.len() - start < header.stored_len as usize {
            let cut = cut(blocks.len(), at, None);
            return (blocks, cut);
        }
        blocks.push(Block { header, at: start });
        at = start + header.stored_len as usize;
    }
    (blocks, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{self, Event, ObjectHash, encode};
    use crate::file::progress::Stopped;
    use crate::testing::TraceBuilder;
    use et_names::MethodId;

    fn sample() -> Vec<u8> {
        let mut builder = TraceBuilder::new();
        builder.events(1, 5, &[Event::Entry { method: MethodId(1) }]);
        builder.events(2, 6, &[Event::Entry { method: MethodId(2) }]);
        builder.events(1, 7, &[Event::Exit { method: MethodId(1) }]);
        builder.finish()
    }

    #[test]
    fn blocks_are_indexed_by_thread() {
        let file = TraceFile::from_bytes(sample(), None).unwrap();
        assert!(file.cut_off().is_none());
        let threads: Vec<_> = file.threads().iter().map(|t| (t.thread, t.len())).collect();
        assert_eq!(threads, [(1, 2), (2, 1)]);
        let mut bytes = Vec::new();
        file.load_events(&file.threads()[1], 0, &mut bytes).unwrap();
        assert_eq!(event::decode(&bytes).unwrap().unwrap().0, Event::Ticket(Ticket(6)));
    }

    #[test]
    fn every_cut_is_read_to_the_last_whole_block() {
        let bytes = sample();
        let whole = TraceFile::from_bytes(bytes.clone(), None).unwrap();
        for cut in FILE_HEADER..bytes.len() {
            let file = TraceFile::from_bytes(bytes[..cut].to_vec(), None).unwrap();
            let cut_off = file.cut_off().expect("said so");
            assert_eq!(
                cut_off.blocks,
                whole.blocks().iter().filter(|b| b.at + b.header.stored_len as usize <= cut).count()
            );
        }
        assert!(matches!(
            TraceFile::from_bytes(bytes[..8].to_vec(), None),
            Err(ReadError::Format { source: FormatError::FileMagic, .. })
        ));
    }

    #[test]
    fn buffers_complete_a_trace_without_an_end() {
        let mut builder = TraceBuilder::new();
        builder.events(1, 5, &[Event::Entry { method: MethodId(1) }]);
        let trace = builder.without_end();
        let chunk = |state, thread, sequence, ticket: u64| {
            let mut chunk = buffers::ChunkHeader { state, thread, sequence }.encode().to_vec();
            encode(&Event::Ticket(Ticket(ticket)), &mut chunk);
            encode(&Event::EntryOn { method: MethodId(3), receiver: ObjectHash(9) }, &mut chunk);
            chunk.resize(128, 0);
            chunk
        };
        let run = RunId::default();
        let header =
            buffers::FileHeader { chunk_size: 128, chunk_count: 5, pid: 1, ticket: Ticket(9), run, chunks_at: 4096 };
        let mut buf = header.encode().to_vec();
        buf.resize(buffers::JOURNALS_AT, 0);
        buf.extend(chunk(buffers::STATE_OWNED, 1, 8, 9));
        buf.extend(chunk(buffers::STATE_FULL, 1, 7, 6));
        buf.extend(chunk(buffers::STATE_FULL, 1, 6, 5));
        buf.extend(chunk(buffers::STATE_FREE, 1, 9, 11));
        buf.extend(chunk(buffers::STATE_OWNED, 2, 3, 8));
        let file = TraceFile::from_bytes(trace.clone(), Some(buf.clone())).unwrap();
        let read = BufferFile::Read { chunks: 3, records: 0, damaged: 0, overflowed: false };
        assert_eq!(file.cut_off().unwrap().buffer_file, read, "the chunk of ticket 5 is in the trace already");
        let mut tickets = Vec::new();
        let mut bytes = Vec::new();
        for piece in 0..file.threads()[0].len() {
            file.load_events(&file.threads()[0], piece, &mut bytes).unwrap();
            match event::decode(&bytes) {
                Ok(Some((Event::Ticket(ticket), _))) => tickets.push(ticket.0),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(tickets, [5, 6, 9]);
        for cut in 0..buf.len() {
            TraceFile::from_bytes(trace.clone(), Some(buf[..cut].to_vec())).unwrap();
        }
    }

    /// A trace without an end, and a buffer file with one chunk more.
    fn cut_and_buffers(run: RunId, buffers_run: RunId) -> (TraceBuilder, Vec<u8>) {
        let mut builder = TraceBuilder::of_run(run);
        builder.events(1, 5, &[Event::Entry { method: MethodId(1) }]);
        let header = buffers::FileHeader {
            chunk_size: 128,
            chunk_count: 1,
            pid: 1,
            ticket: Ticket(9),
            run: buffers_run,
            chunks_at: 4096,
        };
        let mut buf = header.encode().to_vec();
        buf.resize(buffers::JOURNALS_AT, 0);
        let state = buffers::STATE_OWNED;
        buf.extend(buffers::ChunkHeader { state, thread: 1, sequence: 1 }.encode());
        encode(&Event::Ticket(Ticket(9)), &mut buf);
        buf.resize(buffers::JOURNALS_AT + 128, 0);
        (builder, buf)
    }

    /// What is said of a cut-off trace.
    fn said(trace: Vec<u8>, buffers: Option<Vec<u8>>) -> String {
        TraceFile::from_bytes(trace, buffers).unwrap().cut_off().unwrap().to_string()
    }

    #[test]
    fn only_the_buffers_of_the_same_run_are_taken_and_others_are_told() {
        let (run, other) = (RunId::random(), RunId::random());
        let (mut builder, own) = cut_and_buffers(run, run);
        let trace = builder.without_end();
        let file = TraceFile::from_bytes(trace.clone(), Some(own.clone())).unwrap();
        assert_eq!((file.run(), file.threads()[0].len()), (run, 2));
        for (buffers, words) in [
            (Some(own.clone()), "1 more chunk"),
            (Some(cut_and_buffers(run, other).1), "is of another run"),
            (Some(cut_and_buffers(run, RunId::default()).1), "is of another run"),
            (Some(b"garbage".to_vec()), "cannot be read"),
            (Some(Vec::new()), "cannot be read"),
            (None, "no buffer file"),
        ] {
            let said = said(trace.clone(), buffers);
            assert!(said.contains(words), "{words}: {said}");
            assert_eq!(said.contains("how many is not known"), words != "1 more chunk", "{said}");
        }
    }

    #[test]
    fn chunks_that_cannot_be_read_are_counted() {
        let run = RunId::random();
        let (mut builder, own) = cut_and_buffers(run, run);
        let trace = builder.without_end();
        let mut state = own.clone();
        state[buffers::JOURNALS_AT] = 9;
        let mut no_ticket = own.clone();
        no_ticket.truncate(buffers::JOURNALS_AT + buffers::CHUNK_HEADER);
        encode(&Event::Entry { method: MethodId(1) }, &mut no_ticket);
        no_ticket.resize(own.len(), 0);
        for damaged in [state, no_ticket, own[..own.len() - 1].to_vec()] {
            let file = TraceFile::from_bytes(trace.clone(), Some(damaged)).unwrap();
            assert_eq!(
                file.cut_off().unwrap().buffer_file,
                BufferFile::Read { chunks: 0, records: 0, damaged: 1, overflowed: false }
            );
        }
        assert!(said(trace, Some(own[..buffers::JOURNALS_AT].to_vec())).contains("1 parts that cannot be read"));
    }

    #[test]
    fn a_trace_says_why_it_was_stopped_and_takes_no_buffers_then() {
        let run = RunId::random();
        let (mut builder, buffers) = cut_and_buffers(run, run);
        let why = "cannot write to a.ettrace: no space";
        let stopped = Stopped { why: why.into(), seconds: 3.25, lost_chunks: 2, lost_events: 700 };
        builder.progress(&Progress { blocks: 1, stopped: Some(stopped), ..Progress::default() });
        let trace = builder.without_end();
        let file = TraceFile::from_bytes(trace.clone(), Some(buffers.clone())).unwrap();
        assert_eq!(file.threads()[0].len(), 1);
        let text = said(trace, Some(buffers));
        for words in [why, "3.25 s", "700 events in 2 chunks", "cut off after"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("killed") && !text.contains("buffer file"), "{text}");
    }

    #[test]
    fn the_last_sign_of_life_and_blocks_that_went_missing_are_told() {
        let mut builder = TraceBuilder::new();
        builder.progress(&Progress { seconds: 1.0, blocks: 2, ..Progress::default() });
        builder.progress(&Progress { seconds: 2.5, blocks: 9, ..Progress::default() });
        let trace = builder.without_end();
        let text = said(trace.clone(), None);
        assert!(text.contains("2.50 s") && text.contains("at least 6 more had been written"), "{text}");
        // Caught while it was written over: the one before counts.
        let mut torn = trace;
        *torn.last_mut().unwrap() ^= 1;
        assert!(said(torn, None).contains("1.00 s"));
    }

    #[test]
    fn records_of_the_journals_are_taken_unless_they_were_written() {
        use crate::file::format::{ClassRecord, GcRecord, encode_json};

        let run = RunId::random();
        let mut builder = TraceBuilder::of_run(run);
        // Blocks 1 and 2: what the writer wrote of the batch that begins with block 1.
        builder.class(&ClassRecord { signature: "LOne;".into(), ..ClassRecord::default() }).problem("one", 1);
        let trace = builder.without_end();
        let size = 1024;
        let header = buffers::FileHeader {
            chunk_size: 128,
            chunk_count: 0,
            pid: 1,
            ticket: Ticket(9),
            run,
            chunks_at: (buffers::JOURNALS_AT + buffers::JOURNALS * size) as u32,
        };
        let journal = |first_block: u64, overflowed, entries: &[(BlockKind, Vec<u8>)]| {
            let mut out = Vec::new();
            for (kind, record) in entries {
                out.extend_from_slice(&u32::from(*kind as u8).to_le_bytes());
                out.extend_from_slice(&(record.len() as u32).to_le_bytes());
                out.extend_from_slice(record);
                out.resize(out.len().next_multiple_of(4), 0);
            }
            let mut area = (out.len() as u32).to_le_bytes().to_vec();
            area.extend_from_slice(&u32::from(overflowed).to_le_bytes());
            area.extend_from_slice(&first_block.to_le_bytes());
            area.extend_from_slice(&out);
            area.resize(size, 0);
            area
        };
        let class = |signature: &str| {
            let mut raw = Vec::new();
            ClassRecord { signature: signature.into(), ..ClassRecord::default() }.encode(&mut raw);
            (BlockKind::Classes, raw)
        };
        let problem = |what: &str| (BlockKind::Problem, encode_json(&Problem { what: what.into(), count: 1 }));
        let mut gc = Vec::new();
        GcRecord::default().encode(&mut gc);
        let mut buf = header.encode().to_vec();
        buf.resize(buffers::JOURNALS_AT, 0);
        // What waits comes first in the file, and last in the order.
        let waiting = [problem("three"), class("LTwo;"), (BlockKind::Gcs, vec![1])];
        buf.extend(journal(0, true, &waiting));
        buf.extend(journal(1, false, &[class("LOne;"), problem("one"), problem("two"), (BlockKind::Gcs, gc)]));

        let file = TraceFile::from_bytes(trace.clone(), Some(buf.clone())).unwrap();
        let read = BufferFile::Read { chunks: 0, records: 4, damaged: 1, overflowed: true };
        assert_eq!(file.cut_off().unwrap().buffer_file, read);
        let kinds: Vec<_> = file.records.iter().map(|(kind, _)| *kind).collect();
        use BlockKind::{Classes, Gcs, Problem as Said};
        assert_eq!(kinds, [Said, Gcs, Said, Classes]);
        let problems: Vec<_> = file.problems().unwrap().into_iter().map(|problem| problem.what).collect();
        assert_eq!(problems, ["one", "two", "three"]);
        let trace_of =
            |bytes: Vec<u8>| crate::Trace::from_file(TraceFile::from_bytes(bytes, Some(buf.clone())).unwrap());
        assert_eq!(trace_of(trace.clone()).unwrap().gcs.len(), 1);
        for cut in 0..buf.len() {
            TraceFile::from_bytes(trace.clone(), Some(buf[..cut].to_vec())).unwrap();
        }
    }
}
