//! Opens a trace: maps it, indexes its blocks, and unpacks them on demand.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use et_format::event::{self, Event, Ticket};
use et_format::progress::{Progress, RunId};
use et_format::{
    BLOCK_HEADER, BlockHeader, BlockKind, BlockUnpacker, End, FILE_HEADER, FormatError, Meta, Problem, Wall, buffers,
};
use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;

use super::buffer_file::{self, Beside, BufferFile};
use super::bytes::Bytes;
use super::cut_off::CutOff;
use super::stream;
use crate::watch::{Unit, Watcher};

/// Reason in the end block of a cut-off trace that was recovered.
pub const RECOVERED: &str = "Recovered";

/// Why a trace cannot be read at all. A cut-off trace can.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system reported an error.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is not a trace, or of an unsupported version.
    #[error("{path}: {source}", path = path.display())]
    Format { path: PathBuf, source: FormatError },
    /// An essential block is damaged.
    #[error("{path}: block {sequence} ({kind:?}) is damaged: {source}", path = path.display())]
    Block {
        path: PathBuf,
        /// Sequence number of the block.
        sequence: u64,
        kind: BlockKind,
        source: FormatError,
    },
    /// A names table in the trace is damaged.
    #[error("{path}: names table in block {sequence}: {source}", path = path.display())]
    Names {
        path: PathBuf,
        /// Sequence number of the block.
        sequence: u64,
        source: et_names::DecodeError,
    },
}

thread_local! {
    /// Unpacking buffers, one per OS thread: one for each traced thread would be too many.
    static UNPACKER: RefCell<BlockUnpacker> = RefCell::default();
}

/// A block of the file.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub header: BlockHeader,
    /// Offset of its stored bytes in the file.
    pub at: usize,
}

/// Where a piece of a thread's events is: in a block of the trace or in a chunk of the buffer file.
#[derive(Clone, Debug)]
enum EventSource {
    Block(usize),
    Chunk(Range<usize>, Option<Wall>),
}

/// The events of one thread, in order and divided into pieces.
#[derive(Clone, Debug)]
pub struct ThreadEvents {
    pub thread: u32,
    pieces: Vec<EventSource>,
}

impl ThreadEvents {
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Indexes of the pieces that are in the buffer file.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = usize> {
        let chunks = self.pieces.iter().enumerate().filter(|(_, piece)| matches!(piece, EventSource::Chunk(..)));
        chunks.map(|(piece, _)| piece)
    }

    /// Whether the thread has no events.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// Which records of one kind are in the trace.
enum Written {
    All,
    These(FxHashSet<Vec<u8>>),
}

impl Written {
    fn has(&self, record: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::These(records) => records.contains(record),
        }
    }
}

/// An open trace file. Copies share its bytes.
#[derive(Clone, Debug)]
pub struct TraceFile {
    path: PathBuf,
    bytes: Arc<Bytes>,
    run: RunId,
    blocks: Vec<Block>,
    buffers: Option<Arc<Bytes>>,
    /// Records that are only in the buffer file.
    records: Vec<(BlockKind, Vec<u8>)>,
    threads: Vec<ThreadEvents>,
    /// Index in `threads` by thread index.
    thread_places: FxHashMap<u32, usize>,
    cut_off: Option<CutOff>,
    end: Option<End>,
    meta: Meta,
    watcher: Watcher,
}

impl TraceFile {
    /// Opens a trace; `-` is standard input. A file that cannot be mapped (a pipe) is first copied to a temporary file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        if path == Path::new("-") {
            return Self::from_stream(Path::new("standard input"), io::stdin().lock());
        }
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(io(io::Error::other("it is a folder, not a trace")));
        }
        if !metadata.is_file() {
            return Self::from_stream(path, file);
        }
        let bytes = Bytes::of_file(&file).map_err(io)?;
        // The runtime holds a lock while it writes.
        let still_runs = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let _ = file.unlock();
        let mut trace = Self::new(path.to_owned(), bytes, |run| Beside::open(path, run))?;
        if let Some(cut_off) = &mut trace.cut_off {
            cut_off.still_runs = still_runs;
        }
        Ok(trace)
    }

    /// Reads a trace from a stream after copying it to a temporary file. `name` is used in messages.
    pub fn from_stream(name: &Path, stream: impl Read) -> Result<Self, ReadError> {
        let bytes = Bytes::of_stream(|out| stream::copy(stream, out));
        let bytes = bytes.map_err(|source| ReadError::Io { path: name.to_owned(), source })?;
        let bytes = bytes.map_err(|source| ReadError::Format { path: name.to_owned(), source })?;
        Self::new(name.to_owned(), bytes, |_| Beside::Nothing)
    }

    /// Reads a trace in memory, with a buffer file if there is one.
    pub fn from_bytes(bytes: Vec<u8>, buffer_file: Option<Vec<u8>>) -> Result<Self, ReadError> {
        let beside = buffer_file.map_or(Beside::Nothing, |bytes| Beside::File(Bytes::Owned(bytes)));
        Self::new(PathBuf::from("memory"), Bytes::Owned(bytes), |_| beside)
    }

    fn new(path: PathBuf, bytes: Bytes, beside: impl FnOnce(RunId) -> Beside) -> Result<Self, ReadError> {
        let run =
            et_format::check_file_header(&bytes).map_err(|source| ReadError::Format { path: path.clone(), source })?;
        let (blocks, mut cut_off) = index(&bytes);
        let mut file = Self {
            path,
            bytes: Arc::new(bytes),
            run,
            blocks,
            buffers: None,
            records: Vec::new(),
            threads: Vec::new(),
            thread_places: FxHashMap::default(),
            cut_off: None,
            end: None,
            meta: Meta::default(),
            watcher: Watcher::default(),
        };
        file.meta = file.first_json(BlockKind::Meta)?.unwrap_or_default();
        file.end = file.first_json(BlockKind::End)?;
        for index in 0..file.blocks.len() {
            let BlockHeader { kind, thread, .. } = file.blocks[index].header;
            if kind == BlockKind::Events {
                file.add_events(thread, EventSource::Block(index));
            }
        }
        if file.end.is_none() {
            let offset = file.bytes.len();
            let cut_off = cut_off.get_or_insert(CutOff::new(file.blocks.len(), offset, 0, None));
            cut_off.progress = file.last_progress();
            cut_off.buffer_file = match &cut_off.progress {
                Some(Progress { stopped: Some(_), .. }) => BufferFile::GivenUp,
                _ => match file.recover(beside(run)) {
                    // The buffer file of a trace from a pipe is elsewhere, if it is on this machine at all.
                    BufferFile::Absent => match file.recover(Beside::of_pipe(run)) {
                        BufferFile::OtherRun | BufferFile::Damaged(_) => BufferFile::Absent,
                        found => found,
                    },
                    found => found,
                },
            };
            let meta = file.recovered(BlockKind::Meta).find_map(|raw| et_format::decode_json(raw).ok());
            file.meta = meta.unwrap_or(file.meta);
        }
        file.cut_off = cut_off;
        Ok(file)
    }

    /// The last intact one: the progress block may have been truncated while it was overwritten.
    fn last_progress(&self) -> Option<Progress> {
        let blocks: Vec<&Block> = self.of_kind(BlockKind::Progress).collect();
        blocks.into_iter().rev().find_map(|block| self.json(block).ok())
    }

    fn add_events(&mut self, thread: u32, piece: EventSource) {
        let place = *self.thread_places.entry(thread).or_insert_with(|| {
            self.threads.push(ThreadEvents { thread, pieces: Vec::new() });
            self.threads.len() - 1
        });
        self.threads[place].pieces.push(piece);
    }

    /// Adds the chunks that the runtime had not yet written to the trace.
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
            let mut written = FxHashMap::default();
            for (kind, record) in journal.entries {
                let kind = u8::try_from(kind).ok().and_then(BlockKind::from_u8);
                match kind.filter(|&kind| buffer_file::is_whole(kind, record)) {
                    None => damaged += 1,
                    Some(kind)
                        if journal.first_block > 0
                            && written
                                .entry(kind as u8)
                                .or_insert_with(|| self.written(kind, journal.first_block))
                                .has(record) => {}
                    Some(kind) => records.push((kind, record.to_vec())),
                }
            }
        }
        self.records = records;
        let chunks = found.len();
        for chunk in found {
            self.add_events(chunk.thread, EventSource::Chunk(chunk.events, chunk.wall));
        }
        self.buffers = Some(Arc::new(bytes));
        BufferFile::Read { chunks, records: self.records.len(), damaged, overflowed }
    }

    /// Which records of a journal are already in the trace, given the first block that the writer put them in.
    fn written(&self, kind: BlockKind, first_block: u64) -> Written {
        let mut blocks = self.of_kind(kind).filter(|block| block.header.sequence >= first_block);
        if buffer_file::is_merged(kind) {
            return if blocks.next().is_some() { Written::All } else { Written::These(FxHashSet::default()) };
        }
        Written::These(blocks.filter_map(|block| self.unpack(block).ok().map(Cow::into_owned)).collect())
    }

    /// Records that are only in the buffer file.
    pub(crate) fn records(&self) -> &[(BlockKind, Vec<u8>)] {
        &self.records
    }

    /// Those of one kind.
    pub(crate) fn recovered(&self, kind: BlockKind) -> impl Iterator<Item = &[u8]> {
        self.records.iter().filter(move |(of, _)| *of == kind).map(|(_, record)| record.as_slice())
    }

    pub fn run(&self) -> RunId {
        self.run
    }

    /// Path of the file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Sets the watcher that is informed about the progress of reading events.
    pub fn watch(&mut self, watcher: &Watcher) {
        self.watcher = watcher.clone();
    }

    /// The watcher set by [`watch`](Self::watch).
    pub fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    /// Reports that all events are about to be read once.
    pub(crate) fn begin_events(&self, what: &'static str) {
        let events = self.of_kind(BlockKind::Events).map(|block| u64::from(block.header.stored_len));
        let chunks = self.threads.iter().flat_map(|thread| &thread.pieces).map(|piece| match piece {
            EventSource::Chunk(range, _) => range.len() as u64,
            EventSource::Block(_) => 0,
        });
        self.watcher.begin(what, Unit::Bytes, events.chain(chunks).sum());
    }

    /// All complete blocks, in file order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// How the trace was made.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How the run ended; `None` if the trace is cut off.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether the trace was cut off and recovered later: what was missing is still missing.
    pub fn is_recovered(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.reason == RECOVERED)
    }

    /// The last known state of a run whose end is not in the trace.
    pub fn last_known(&self) -> Option<&Progress> {
        self.cut_off.as_ref().filter(|_| self.end.is_none()).and_then(|cut| cut.progress.as_ref())
    }

    /// Number of events known to be lost because no buffer was available.
    pub fn lost_events(&self) -> u64 {
        match &self.end {
            Some(end) => end.lost_events,
            None => self.last_known().map_or(0, |progress| progress.lost_events),
        }
    }

    /// Bytes of events that the runtime discarded because the options asked for it. At least 1 if events were
    /// discarded, even in a cut-off trace, which does not say how many.
    pub fn discarded_bytes(&self) -> u64 {
        let is_asked_for = self.meta.options.get("discard").is_some_and(|value| value == "on");
        let known = self.end.as_ref().and_then(|end| end.discarded_bytes).unwrap_or_default();
        known.max(is_asked_for.into())
    }

    /// Where the trace stops if it has no end; otherwise `None`.
    pub fn cut_off(&self) -> Option<&CutOff> {
        self.cut_off.as_ref()
    }

    /// Bytes of all event blocks after packing, before zstd.
    pub fn packed_event_bytes(&self) -> u64 {
        let events = self.of_kind(BlockKind::Events);
        events.map(|block| u64::from(et_format::packed_len(&block.header, self.stored(block)))).sum()
    }

    /// The threads with events.
    pub fn threads(&self) -> &[ThreadEvents] {
        &self.threads
    }

    /// The events of a thread; `None` if it has none.
    pub fn thread(&self, index: u32) -> Option<&ThreadEvents> {
        self.thread_places.get(&index).map(|&place| &self.threads[place])
    }

    /// First ticket of a thread's events; 0 if they do not begin with one.
    pub fn first_ticket(&self, thread: &ThreadEvents) -> Ticket {
        match thread.pieces.first() {
            Some(EventSource::Block(index)) => self.blocks[*index].header.first_ticket,
            Some(EventSource::Chunk(range, _)) => {
                match event::decode(self.buffers.as_ref().and_then(|b| b.get(range.clone())).unwrap_or_default()) {
                    Ok(Some((Event::Ticket(first), _))) => first,
                    _ => Ticket(0),
                }
            }
            None => Ticket(0),
        }
    }

    /// Blocks of one kind, in file order.
    pub fn of_kind(&self, kind: BlockKind) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| block.header.kind == kind)
    }

    /// The stored bytes of a block.
    pub(crate) fn stored(&self, block: &Block) -> &[u8] {
        &self.bytes[block.at..block.at + block.header.stored_len as usize]
    }

    /// Verifies and unpacks a block. Fails if it is damaged.
    pub fn unpack(&self, block: &Block) -> Result<Cow<'_, [u8]>, ReadError> {
        block.header.unpack(self.stored(block)).map_err(|source| self.block_error(block, source))
    }

    /// Whether the checksums of all blocks are right. Reads all blocks without unpacking them.
    pub fn is_whole(&self) -> bool {
        self.watcher.begin("checking the trace", Unit::Bytes, self.size());
        self.blocks.iter().all(|block| {
            let stored = self.stored(block);
            let is_whole = block.header.is_whole(stored);
            self.watcher.add(stored.len() as u64);
            self.bytes.used(stored.len());
            is_whole
        })
    }

    /// Adds the path and the block to an error in its content.
    pub fn block_error(&self, block: &Block, source: FormatError) -> ReadError {
        let header = &block.header;
        ReadError::Block { path: self.path.clone(), sequence: header.sequence, kind: header.kind, source }
    }

    fn json<T: for<'de> serde::Deserialize<'de>>(&self, block: &Block) -> Result<T, ReadError> {
        et_format::decode_json(&self.unpack(block)?).map_err(|source| self.block_error(block, source))
    }

    fn first_json<T: for<'de> serde::Deserialize<'de>>(&self, kind: BlockKind) -> Result<Option<T>, ReadError> {
        self.of_kind(kind).next().map(|block| self.json(block)).transpose()
    }

    /// The problems that the runtime recorded.
    pub fn problems(&self) -> Result<Vec<Problem>, ReadError> {
        let recovered = self.recovered(BlockKind::Problem).filter_map(|raw| et_format::decode_json(raw).ok()).map(Ok);
        self.of_kind(BlockKind::Problem).map(|block| self.json(block)).chain(recovered).collect()
    }

    /// Unpacks a piece of a thread's events into `into`.
    pub fn load_events(&self, thread: &ThreadEvents, piece: usize, into: &mut Vec<u8>) -> Result<(), FormatError> {
        into.clear();
        match &thread.pieces[piece] {
            EventSource::Block(index) => {
                let block = &self.blocks[*index];
                self.watcher.add(block.header.stored_len.into());
                UNPACKER.with_borrow_mut(|unpacker| unpacker.unpack(&block.header, self.stored(block), into))?;
                self.bytes.used(block.header.stored_len as usize);
            }
            EventSource::Chunk(range, _) => {
                self.watcher.add(range.len() as u64);
                into.extend_from_slice(self.buffers.as_ref().and_then(|b| b.get(range.clone())).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Passes words of a piece of a thread's events to `visit` among which are all objects that it names and that
    /// are not new in it. See [`BlockUnpacker::literals`]. Returns false if only the events tell.
    pub(crate) fn literals(
        &self,
        thread: &ThreadEvents,
        piece: usize,
        visit: impl FnMut(u32),
    ) -> Result<bool, FormatError> {
        match &thread.pieces[piece] {
            EventSource::Block(index) => {
                let block = &self.blocks[*index];
                let told =
                    UNPACKER.with_borrow_mut(|unpacker| unpacker.literals(&block.header, self.stored(block), visit));
                // If only the events tell, they are about to be read.
                if !matches!(told, Ok(false)) {
                    self.watcher.add(block.header.stored_len.into());
                }
                told
            }
            EventSource::Chunk(..) => Ok(false),
        }
    }

    /// The order in which pieces were filled, for sorting.
    pub(crate) fn filled(&self, thread: &ThreadEvents, piece: usize) -> u64 {
        match &thread.pieces[piece] {
            EventSource::Block(index) => *index as u64,
            EventSource::Chunk(range, _) => (1 << 62) + range.start as u64,
        }
    }

    /// First ticket of a piece of a thread's events, as far as its header says it.
    pub(crate) fn first_ticket_of(&self, thread: &ThreadEvents, piece: usize) -> Ticket {
        match &thread.pieces[piece] {
            EventSource::Block(index) => self.blocks[*index].header.first_ticket,
            EventSource::Chunk(..) => self.first_ticket(thread),
        }
    }

    /// When the events of a piece happened; `None` if the trace does not say, as in format version 1. Time 0 is
    /// [`Meta::start_unix_millis`].
    pub fn wall(&self, thread: &ThreadEvents, piece: usize) -> Option<Wall> {
        match &thread.pieces[piece] {
            EventSource::Block(index) => {
                let block = &self.blocks[*index];
                block.header.wall(self.stored(block))
            }
            EventSource::Chunk(_, wall) => *wall,
        }
    }

    /// Unpacked length of a piece in bytes, to count what could not be unpacked.
    pub fn event_bytes(&self, thread: &ThreadEvents, piece: usize) -> u64 {
        match &thread.pieces[piece] {
            EventSource::Block(index) => self.blocks[*index].header.raw_len.into(),
            EventSource::Chunk(range, _) => range.len() as u64,
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
