//! Opens a trace: maps it, indexes its blocks, unpacks them when they are asked for.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use thiserror::Error;

use super::bytes::Bytes;
use super::format::{
    self, BLOCK_HEADER, BlockHeader, BlockKind, Codec, End, FILE_HEADER, FormatError, Meta, Problem, buffers,
};
use crate::event::{self, Event, Ticket};

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

/// Where a trace stops before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// Whole blocks before.
    pub blocks: usize,
    /// First byte that is not part of a whole block.
    pub offset: usize,
    /// Bytes from there on.
    pub bytes_left: usize,
    /// What is wrong there; `None` if the file simply ends between two blocks.
    pub why: Option<FormatError>,
    /// Chunks of events taken from the buffer file beside the trace.
    pub recovered_chunks: usize,
}

impl std::fmt::Display for CutOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trace is cut off after {} blocks", self.blocks)?;
        match &self.why {
            Some(why) => write!(f, ", at byte {} ({why})", self.offset)?,
            None if self.bytes_left > 0 => {
                write!(f, ", at byte {} (a block lacks its last part)", self.offset)?;
            }
            None => f.write_str(" (it has no end block: the program was killed, or still runs)")?,
        }
        if self.recovered_chunks > 0 {
            write!(f, "; the buffer file beside it held {} more chunks of events", self.recovered_chunks)?;
        }
        Ok(())
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
    blocks: Vec<Block>,
    buffers: Option<Bytes>,
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
        let mut buffer_path = path.as_os_str().to_owned();
        buffer_path.push(".buf");
        let buffers = match File::open(&buffer_path) {
            Ok(file) => {
                Some(Bytes::of_file(&file).map_err(|source| ReadError::Io { path: buffer_path.into(), source })?)
            }
            Err(_) => None,
        };
        Self::new(path.to_owned(), bytes, buffers)
    }

    /// Reads a trace from a stream.
    pub fn from_stream(name: &Path, stream: impl Read) -> Result<Self, ReadError> {
        let bytes = Bytes::of_stream(stream).map_err(|source| ReadError::Io { path: name.to_owned(), source })?;
        Self::new(name.to_owned(), bytes, None)
    }

    /// Reads a trace that is in memory, with the buffer file if there is one.
    pub fn from_bytes(bytes: Vec<u8>, buffer_file: Option<Vec<u8>>) -> Result<Self, ReadError> {
        Self::new(PathBuf::from("memory"), Bytes::Owned(bytes), buffer_file.map(Bytes::Owned))
    }

    fn new(path: PathBuf, bytes: Bytes, buffers: Option<Bytes>) -> Result<Self, ReadError> {
        format::check_file_header(&bytes).map_err(|source| ReadError::Format { path: path.clone(), source })?;
        let (blocks, mut cut_off) = index(&bytes);
        let mut file = Self {
            path,
            bytes,
            blocks,
            buffers: None,
            threads: Vec::new(),
            cut_off: None,
            end: None,
            meta: Meta::default(),
        };
        file.meta = file.first_json(BlockKind::Meta)?.unwrap_or_default();
        file.end = file.first_json(BlockKind::End)?;
        file.threads = file.threads_of_blocks();
        if file.end.is_none() {
            let cut_off = cut_off.get_or_insert(CutOff {
                blocks: file.blocks.len(),
                offset: file.bytes.len(),
                bytes_left: 0,
                why: None,
                recovered_chunks: 0,
            });
            if let Some(buffers) = buffers {
                cut_off.recovered_chunks = file.recover(&buffers);
                file.buffers = Some(buffers);
            }
        }
        file.cut_off = cut_off;
        Ok(file)
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

    /// Appends the chunks that the runtime had not written yet; returns how many.
    fn recover(&mut self, bytes: &[u8]) -> usize {
        let Ok(header) = buffers::FileHeader::decode(bytes) else { return 0 };
        let written: FxHashSet<(u32, Ticket)> =
            self.of_kind(BlockKind::Events).map(|block| (block.header.thread, block.header.first_ticket)).collect();
        let mut found = Vec::new();
        let chunk_size = header.chunk_size as usize;
        let chunks = bytes.get(buffers::CHUNKS_AT..).unwrap_or_default().chunks_exact(chunk_size);
        for (index, chunk) in chunks.enumerate().take(header.chunk_count as usize) {
            let Some(chunk_header) = buffers::ChunkHeader::decode(chunk) else { continue };
            if !matches!(chunk_header.state, buffers::STATE_OWNED | buffers::STATE_FULL) {
                continue;
            }
            let events = &chunk[buffers::CHUNK_HEADER..];
            let used = event::used_bytes(events);
            let Ok(Some((Event::Ticket(first), _))) = event::decode(&events[..used]) else { continue };
            if written.contains(&(chunk_header.thread, first)) {
                continue;
            }
            let at = buffers::CHUNKS_AT + index * chunk_size + buffers::CHUNK_HEADER;
            found.push((chunk_header.thread, chunk_header.sequence, at..at + used));
        }
        found.sort_by_key(|&(thread, sequence, _)| (thread, sequence));
        let count = found.len();
        for (thread, _, range) in found {
            let at = self.threads.iter().position(|t| t.thread == thread).unwrap_or_else(|| {
                self.threads.push(ThreadEvents { thread, pieces: Vec::new() });
                self.threads.len() - 1
            });
            self.threads[at].pieces.push(EventSource::Chunk(range));
        }
        count
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
    fn stored(&self, block: &Block) -> &[u8] {
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
        self.of_kind(BlockKind::Problem).map(|block| self.json(block)).collect()
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
    let cut = |blocks: usize, at: usize, why| {
        Some(CutOff { blocks, offset: at, bytes_left: bytes.len() - at, why, recovered_chunks: 0 })
    };
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
    use crate::event::{ObjectHash, encode};
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
        let header = buffers::FileHeader { chunk_size: 128, chunk_count: 5, pid: 1, ticket: Ticket(9) };
        let mut buf = header.encode().to_vec();
        buf.resize(buffers::CHUNKS_AT, 0);
        buf.extend(chunk(buffers::STATE_OWNED, 1, 8, 9));
        buf.extend(chunk(buffers::STATE_FULL, 1, 7, 6));
        buf.extend(chunk(buffers::STATE_FULL, 1, 6, 5));
        buf.extend(chunk(buffers::STATE_FREE, 1, 9, 11));
        buf.extend(chunk(buffers::STATE_OWNED, 2, 3, 8));
        let file = TraceFile::from_bytes(trace.clone(), Some(buf.clone())).unwrap();
        assert_eq!(file.cut_off().unwrap().recovered_chunks, 3, "the chunk of ticket 5 is in the trace already");
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
}
