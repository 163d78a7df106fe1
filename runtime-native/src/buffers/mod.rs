//! The event buffers: chunks of a shared file mapping, which survive the process (`docs/inside/trace-file.md`).
//!
//! A chunk is free, owned by one thread, or full and on its way to the trace. If the writers lag, threads pack full
//! chunks themselves, or wait: memory stays bounded and no event is dropped. A thread may keep its chunk for as long
//! as it lives, so waiting is allowed only while the writer holds some chunks; otherwise the file grows. `pool` tracks
//! the owners.
#![allow(unsafe_code, reason = "shared memory, written by Java code through raw addresses")]

pub mod file;
pub mod journal;
mod memory;
pub mod pool;

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use et_format::buffers::{
    CHUNK_BEGIN_AT, CHUNK_COUNT_AT, CHUNK_END_AT, CHUNK_SEQUENCE_AT, CHUNK_STATE_AT, CHUNK_THREAD_AT, FileHeader,
    JOURNALS_AT, MAGIC, STATE_FREE, STATE_FULL, STATE_OWNED,
};
use et_format::event::{self, Ticket};
use et_format::progress::RunId;
use et_format::{Nanos, Wall};

use crate::base::signals;
use crate::buffers::file::{BufferError, BufferFile, Place};
use crate::buffers::journal::Journal;
use crate::buffers::memory::{CHUNKS_AT, JOURNAL_BYTES, Memory, allocate};
use crate::buffers::pool::{Pool, Taken};

pub use crate::buffers::pool::{CutChunk, FullChunk, NoChunk, ThreadIndex};

/// Room at the end of a chunk for the longest event with its ticket, so that one comparison is enough.
pub const SLACK: usize = (event::MAX_WORDS + 2) * event::WORD;
/// Number of chunks held by the writer from which threads wait instead of getting new ones.
const MIN_CHUNKS: usize = 8;
/// Memory for the longest event.
static NOWHERE: [AtomicU64; SLACK.div_ceil(8)] = [const { AtomicU64::new(0) }; SLACK.div_ceil(8)];

/// Address at which threads without a chunk write their events, each over the last. It is never read.
pub fn nowhere() -> usize {
    NOWHERE.as_ptr() as usize
}

const SMALLEST_CHUNK: usize = 8 << 10;
const LARGEST_CHUNK: usize = 256 << 10;

/// The buffer file, its mapping, and the owners of chunks.
#[derive(Debug)]
pub struct Buffers {
    memory: Memory,
    file: BufferFile,
    pool: Pool,
    index: Index,
}

/// What chunks of counts have behind the room for events: where to find a count again. The slots have 4 bytes, and are only read by the
/// thread that has the chunk; they are zero when it gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Bytes from the end of the room for events.
    pub offset: usize,
    /// Number of slots, a power of two; 0: there is no index.
    slots: usize,
}

impl Index {
    const SLOT: usize = 16;

    fn bytes(self) -> usize {
        self.slots * Self::SLOT
    }

    /// How far a hash of 32 bits is shifted to become the number of a slot.
    pub fn shift(self) -> u32 {
        u32::BITS - self.slots.max(1).ilog2()
    }
}

impl Buffers {
    /// Creates the buffer file of a run, with `bytes` for chunks.
    pub fn create(place: &Place, bytes: usize, run: RunId) -> Result<Self, BufferError> {
        let chunk_size = (bytes / 32).next_power_of_two().clamp(SMALLEST_CHUNK, LARGEST_CHUNK);
        let count = (bytes / chunk_size).max(MIN_CHUNKS);
        let file = BufferFile::create(place, run)?;
        let fail = |error| file.fail(place, error);
        let size = CHUNKS_AT + count * chunk_size;
        let header = FileHeader {
            chunk_size: chunk_size as u32,
            chunk_count: count as u32,
            pid: std::process::id(),
            ticket: Ticket(0),
            run,
            chunks_at: CHUNKS_AT as u32,
        };
        // The header first: even if the rest fails, a later run recognizes the file as one of ours.
        file.file().write_all_at(&header.encode(), 0).map_err(fail)?;
        allocate(file.file(), 0, size).map_err(fail)?;
        let memory = Memory::map(file.file(), size, chunk_size).map_err(fail)?;
        Ok(Self { memory, file, pool: Pool::new(count as u32, (count / 2) as u32), index: Index::default() })
    }

    /// With half of each chunk for an index of counts: there are somewhat more slots than events.
    #[must_use]
    pub fn with_index(self) -> Self {
        let slots = self.memory.chunk_bytes().next_power_of_two() / 2 / Index::SLOT;
        Self { index: Index { offset: SLACK, slots }, ..self }
    }

    /// The index of each chunk.
    pub fn index(&self) -> Index {
        self.index
    }

    /// From now on the program survives if another process truncates the file; [`are_whole`](Self::are_whole) reports
    /// that.
    pub fn guard(&self) {
        let mapped = self.memory.range();
        signals::guard(mapped.start, mapped.len());
    }

    /// Whether the buffers are intact. If not, another process has truncated the file, and tracing is over.
    pub fn are_whole(&self) -> bool {
        let enough = self.memory.file_range(self.pool.count() as u32).start;
        // After truncation to 0, the file may have been extended again.
        let mut start = [0; 8];
        let mut starts_well = || self.file.file().read_exact_at(&mut start, 0).is_ok_and(|()| start == MAGIC);
        !signals::memory_was_lost()
            && self.file.file().metadata().is_ok_and(|meta| meta.len() >= enough as u64)
            && starts_well()
    }

    /// The name of the file for messages.
    pub fn name(&self) -> String {
        self.file.name()
    }

    /// The file, for a process that inherits it.
    pub fn file(&self) -> io::Result<File> {
        self.file.file().try_clone()
    }

    /// Bytes from a chunk's first event up to where the next event may not fit.
    pub fn room(&self) -> usize {
        self.memory.chunk_bytes() - SLACK - self.index.bytes()
    }

    /// The ticket counter.
    pub fn counter(&self) -> &AtomicU64 {
        self.memory.counter()
    }

    /// The journal of records; returned once.
    pub fn journal(&self) -> Option<Journal> {
        Journal::new(self.memory.shared(), JOURNALS_AT, JOURNAL_BYTES)
    }

    /// The last ticket that was given out.
    pub fn last_ticket(&self) -> Ticket {
        Ticket(self.counter().load(Ordering::Acquire))
    }

    /// The next ticket.
    pub fn next_ticket(&self) -> Ticket {
        Ticket(self.counter().fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// As [`take_or_help`](Self::take_or_help), without helping.
    #[cfg(test)]
    pub fn take(&self, thread: ThreadIndex, now: Nanos) -> Result<usize, NoChunk> {
        self.take_or_help(thread, now, || false)
    }

    /// Takes a free chunk for `thread` and returns the address of its first event. If the writers lag, helps them, or
    /// waits if there is nothing to help with. `now` is the time of the request.
    pub fn take_or_help(
        &self,
        thread: ThreadIndex,
        now: Nanos,
        mut help: impl FnMut() -> bool,
    ) -> Result<usize, NoChunk> {
        let mut waits = false;
        let Taken { index, sequence, used } = loop {
            match self.pool.take(waits, |index| self.grow(index)) {
                Err(NoChunk::Lag) => waits = !help(),
                taken => break taken?,
            }
        };
        // Cleared by the thread that will fill it, which brings it into the right caches, and not by the writers.
        // SAFETY: inside the chunk, which no other thread owns now.
        unsafe { self.memory.events_at(index).write_bytes(0, used) };
        // SAFETY: as above; room, slack and index together are the chunk.
        unsafe { self.memory.events_at(index).add(self.room() + SLACK).write_bytes(0, self.index.bytes()) };
        for (at, value) in [(CHUNK_SEQUENCE_AT, sequence), (CHUNK_BEGIN_AT, now.0), (CHUNK_END_AT, 0)] {
            self.memory.header_long(index, at).store(value, Ordering::Relaxed);
        }
        self.memory.header_word(index, CHUNK_THREAD_AT).store(thread.0, Ordering::Relaxed);
        self.memory.header_word(index, CHUNK_STATE_AT).store(STATE_OWNED, Ordering::Release);
        if !self.pool.own(index, thread) {
            return Err(NoChunk::Stopped);
        }
        Ok(self.memory.events_at(index) as usize)
    }

    /// Takes back a chunk that its thread has written up to the address `end`, until `now`, and calls `give`, which
    /// hands it to the writer. False if it was already taken back.
    pub fn hand_in(&self, end: usize, now: Nanos, give: impl FnOnce(FullChunk)) -> bool {
        let Some((index, len)) = self.memory.place_of(end) else { return false };
        self.pool.hand_in(index, |thread| {
            self.ended(index, now);
            self.mark_full(index);
            give(FullChunk { index, len, thread, is_shared: false });
        })
    }

    /// Ends recording: takes back all chunks with the events written so far; `clock` gives the time. No thread gets a
    /// chunk afterwards.
    pub fn hand_in_all(&self, clock: impl Fn() -> Nanos) -> Vec<FullChunk> {
        let taken = self.pool.hand_in_all(|index| self.mark_full(index)).into_iter();
        taken
            .map(|(index, thread)| {
                let len = self.memory.shared_events(index, 0).len();
                self.ended(index, clock());
                FullChunk { index, len, thread, is_shared: true }
            })
            .collect()
    }

    /// The time range of a chunk's events.
    pub fn wall(&self, chunk: &FullChunk) -> Option<Wall> {
        let [begin, end] = [CHUNK_BEGIN_AT, CHUNK_END_AT].map(|at| self.memory.header_long(chunk.index, at));
        Wall::from_fields(begin.load(Ordering::Relaxed), end.load(Ordering::Relaxed))
    }

    /// Number of events added to a chunk since [`hand_in_all`](Self::hand_in_all) took it.
    pub fn late_events(&self, chunk: CutChunk) -> u64 {
        event::count(&self.memory.shared_events(chunk.index, chunk.len))
    }

    /// Whether enough chunks wait for the writer that it should hurry: half the number at which threads wait.
    pub fn is_short(&self) -> bool {
        self.pool.is_short()
    }

    /// No thread gets a chunk from now on; waiting threads return.
    pub fn stop(&self) {
        self.pool.stop();
    }

    /// The events of a chunk.
    pub fn events(&self, chunk: &FullChunk) -> Cow<'_, [u8]> {
        if chunk.is_shared {
            return Cow::Owned(self.memory.copy(chunk.index, 0..chunk.len));
        }
        // SAFETY: inside the mapping and the file. The thread has handed it in under a lock and has no address of it
        // any more; it does not change until it is released, after its last reader is done.
        Cow::Borrowed(unsafe { std::slice::from_raw_parts(self.memory.events_at(chunk.index), chunk.len) })
    }

    /// Frees a chunk. The next thread that gets it clears it.
    pub fn release(&self, chunk: FullChunk) {
        // Readers stop at the first zero word, so everything written must be cleared. A thread stopped in the middle
        // of an event may have left a partial one after the end. Events added to a chunk that was taken from a running
        // thread are counted, and that chunk is never reused.
        let used = if chunk.is_shared { 0 } else { (chunk.len + SLACK).min(self.memory.chunk_bytes()) };
        self.memory.header_word(chunk.index, CHUNK_STATE_AT).store(STATE_FREE, Ordering::Release);
        self.pool.release(chunk.index, used);
    }

    /// Removes the file. The mapping stays: late threads may still write to it.
    pub fn remove_file(&self) {
        self.file.remove();
    }

    /// Marks the chunk as ended: its thread adds no more events.
    fn ended(&self, index: u32, now: Nanos) {
        self.memory.header_long(index, CHUNK_END_AT).store(now.0, Ordering::Relaxed);
    }

    fn mark_full(&self, index: u32) {
        self.memory.header_word(index, CHUNK_STATE_AT).store(STATE_FULL, Ordering::Release);
    }

    fn grow(&self, index: u32) -> bool {
        let chunk = self.memory.file_range(index);
        if chunk.end > self.memory.range().len() || allocate(self.file.file(), chunk.start, chunk.len()).is_err() {
            return false;
        }
        self.memory.word(CHUNK_COUNT_AT).store(index + 1, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_format::buffers::ChunkHeader;
    use std::fs::{self, OpenOptions};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    const ONE: ThreadIndex = ThreadIndex(1);
    const NOW: Nanos = Nanos(5);
    const LATER: Nanos = Nanos(7);

    fn buffers(bytes: usize) -> (tempfile::TempDir, Buffers) {
        let folder = tempfile::tempdir().unwrap();
        let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), bytes, RunId::default()).unwrap();
        (folder, buffers)
    }

    fn hand_in(buffers: &Buffers, end: usize) -> Option<FullChunk> {
        let mut full = None;
        buffers.hand_in(end, LATER, |chunk| full = Some(chunk)).then_some(())?;
        full
    }

    fn write(at: usize, words: &[u32]) -> usize {
        for (index, word) in words.iter().enumerate() {
            // SAFETY: a test writes to its own chunk.
            unsafe { (at as *mut u32).add(index).write(*word) };
        }
        at + words.len() * 4
    }

    #[test]
    fn a_chunk_goes_round() {
        let (_folder, buffers) = buffers(64 << 10);
        let at = buffers.take(ONE, NOW).unwrap();
        let end = write(at, &[4, 8, 12]);
        let chunk = hand_in(&buffers, end).unwrap();
        assert_eq!(buffers.events(&chunk).len(), 12);
        assert_eq!(chunk.thread, ONE);
        assert!(hand_in(&buffers, end).is_none(), "it is no longer the thread's");
        buffers.release(chunk);
        assert_eq!(buffers.take(ONE, NOW).unwrap(), at, "the last one freed is taken first");
        let all = buffers.hand_in_all(|| LATER);
        assert_eq!(all.len(), 1);
        assert_eq!(buffers.events(&all[0]).len(), 0, "it was emptied");
    }

    #[test]
    fn a_chunk_knows_when_its_thread_had_it() {
        let (folder, buffers) = buffers(64 << 10);
        let wall = |begin, end| Some(Wall { begin, end });
        let in_file = || {
            let bytes = std::fs::read(folder.path().join("t.buf")).unwrap();
            ChunkHeader::decode(&bytes[CHUNKS_AT..]).unwrap().wall
        };
        let at = buffers.take(ONE, NOW).unwrap();
        assert_eq!(in_file(), wall(NOW, None), "all that is known if the program is killed now");
        let chunk = hand_in(&buffers, write(at, &[4])).unwrap();
        assert_eq!((buffers.wall(&chunk), in_file()), (wall(NOW, Some(LATER)), wall(NOW, Some(LATER))));
        buffers.release(chunk);
        buffers.take(ONE, LATER).unwrap();
        assert_eq!(in_file(), wall(LATER, None));
        let all = buffers.hand_in_all(|| Nanos(9));
        assert_eq!(buffers.wall(&all[0]), wall(LATER, Some(Nanos(9))));
    }

    #[test]
    fn chunks_are_short_before_threads_wait_for_them() {
        let (_folder, buffers) = buffers(64 << 10);
        let mut full: Vec<_> = std::iter::repeat_with(|| {
            let at = buffers.take(ONE, NOW).unwrap();
            hand_in(&buffers, at).unwrap()
        })
        .take_while(|_| !buffers.is_short())
        .collect();
        assert!(!full.is_empty() && full.len() < MIN_CHUNKS / 2, "{}", full.len());
        full.drain(..).for_each(|chunk| buffers.release(chunk));
        assert!(!buffers.is_short());
    }

    #[test]
    fn at_the_end_chunks_are_measured_by_their_first_zero_word() {
        let (_folder, buffers) = buffers(64 << 10);
        let a = buffers.take(ONE, NOW).unwrap();
        let b = buffers.take(ThreadIndex(2), NOW).unwrap();
        write(a, &[4, 8, 0, 12]);
        write(b, &[6, 99, 1]);
        let mut all = buffers.hand_in_all(|| LATER);
        all.sort_by_key(|chunk| chunk.thread.0);
        assert_eq!(all.iter().map(|chunk| buffers.events(chunk).len()).collect::<Vec<_>>(), [8, 12]);
        assert_eq!(buffers.take(ONE, NOW), Err(NoChunk::Stopped));
    }

    #[test]
    fn more_threads_than_chunks_make_the_file_grow() {
        let (folder, buffers) = buffers(64 << 10);
        let before = std::fs::metadata(folder.path().join("t.buf")).unwrap().len();
        let mut taken: Vec<_> = (1..=100).map(|thread| buffers.take(ThreadIndex(thread), NOW).unwrap()).collect();
        taken.dedup();
        assert_eq!(taken.len(), 100);
        assert!(std::fs::metadata(folder.path().join("t.buf")).unwrap().len() > before);
        let header = FileHeader::decode(&std::fs::read(folder.path().join("t.buf")).unwrap()).unwrap();
        assert_eq!(header.chunk_count, 100);
    }

    #[test]
    fn threads_wait_for_a_writer_that_lags() {
        let (_folder, buffers) = buffers(64 << 10);
        let buffers = Arc::new(buffers);
        let mut full = Vec::new();
        for _ in 0..MIN_CHUNKS {
            let at = buffers.take(ONE, NOW).unwrap();
            full.push(hand_in(&buffers, at).unwrap());
        }
        let waiting = std::thread::spawn({
            let buffers = Arc::clone(&buffers);
            move || buffers.take(ONE, NOW)
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waiting.is_finished());
        buffers.release(full.pop().unwrap());
        assert!(waiting.join().unwrap().is_ok());
        let stopped = std::thread::spawn({
            let buffers = Arc::clone(&buffers);
            move || buffers.take(ONE, NOW)
        });
        buffers.stop();
        assert_eq!(stopped.join().unwrap(), Err(NoChunk::Stopped));
    }

    #[test]
    fn the_counter_lies_in_the_file() {
        let (folder, buffers) = buffers(64 << 10);
        assert_eq!(buffers.next_ticket(), Ticket(1));
        assert_eq!(buffers.next_ticket(), Ticket(2));
        let bytes = std::fs::read(folder.path().join("t.buf")).unwrap();
        assert_eq!(FileHeader::decode(&bytes).unwrap().ticket, Ticket(2));
        buffers.remove_file();
        assert!(!folder.path().join("t.buf").exists());
    }

    /// Names of the files in the folder.
    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn buffers_for_a_reader_of_our_own_have_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let buffers =
            Buffers::create(&Place::Nameless(folder.path().into()), 64 << 10, RunId::from_bytes([1; 6])).unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
        let mut start = [0; 8];
        buffers.file().unwrap().read_exact_at(&mut start, 0).unwrap();
        assert_eq!(start, MAGIC);
        buffers.remove_file();
        let place = Place::In(folder.path().into());
        let buffers = Buffers::create(&place, 64 << 10, RunId::from_bytes([1; 6])).unwrap();
        assert_eq!(names(folder.path()), ["et-010101010101.buf"]);
        buffers.remove_file();
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn a_file_that_another_process_cuts_short_is_noticed() {
        let (folder, buffers) = buffers(64 << 10);
        let file = OpenOptions::new().write(true).open(folder.path().join("t.buf")).unwrap();
        let whole = file.metadata().unwrap().len();
        assert!(buffers.are_whole());
        file.set_len(whole - 1).unwrap();
        assert!(!buffers.are_whole());
        file.set_len(whole).unwrap();
        assert!(buffers.are_whole(), "the byte was a zero before");
        file.set_len(0).unwrap();
        file.set_len(whole).unwrap();
        assert!(!buffers.are_whole());
    }

    #[test]
    fn what_threads_add_to_chunks_that_were_taken_from_them_is_counted() {
        let (_folder, buffers) = buffers(64 << 10);
        let at = buffers.take(ONE, NOW).unwrap();
        let end = write(at, &[4, 8]);
        let all = buffers.hand_in_all(|| LATER);
        let cut = all[0].cut().unwrap();
        assert_eq!(buffers.late_events(cut), 0);
        write(end, &[12, 16, 20]);
        assert_eq!(&*buffers.events(&all[0]), [4, 0, 0, 0, 8, 0, 0, 0]);
        all.into_iter().for_each(|chunk| buffers.release(chunk));
        assert_eq!(buffers.late_events(cut), 3);
    }
}
