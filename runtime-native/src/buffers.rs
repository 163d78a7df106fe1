//! The event buffers: chunks of a shared file mapping, which survive the process (`docs/inside/trace-file.md`).
//!
//! A chunk is free, owned by one thread, or full and on its way to the writer. Threads wait for a free one when
//! the writer lags: memory stays bounded and no event is dropped. What a thread owns it may keep for as long as it
//! lives, so waiting is only allowed while the writer holds some; otherwise the file grows. Who has which is `pool`'s part.
#![allow(unsafe_code, reason = "shared memory, written by Java code through raw addresses")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use et_trace::event::{self, Ticket};
use et_trace::file::format::buffers::{
    CHUNK_COUNT_AT, CHUNK_HEADER, CHUNK_SEQUENCE_AT, CHUNK_STATE_AT, CHUNK_THREAD_AT, FileHeader, JOURNALS,
    JOURNALS_AT, STATE_FREE, STATE_FULL, STATE_OWNED, TICKET_AT,
};
use et_trace::file::progress::RunId;
use memmap2::{Advice, MmapOptions, MmapRaw};
use thiserror::Error;

use crate::journal::Journal;
use crate::pool::{Pool, Taken};

pub use crate::pool::{FullChunk, NoChunk, ThreadIndex};

/// Room at the end of a chunk for the longest event with its ticket, so that one comparison is enough.
pub const SLACK: usize = (event::MAX_WORDS + 2) * event::WORD;
/// Chunks that the writer may hold before threads wait for it instead of getting new ones.
const MIN_CHUNKS: usize = 8;
const SMALLEST_CHUNK: usize = 8 << 10;
const LARGEST_CHUNK: usize = 256 << 10;
/// Bytes of a journal of records.
const JOURNAL_BYTES: usize = 256 << 10;
/// Where the first chunk starts.
const CHUNKS_AT: usize = JOURNALS_AT + JOURNALS * JOURNAL_BYTES;
/// Address space for chunks: what is not used costs nothing.
const RESERVED: [usize; 3] = [4 << 30, 1 << 30, 256 << 20];

/// Why there are no buffers.
#[derive(Debug, Error)]
#[error("cannot make the event buffers {path}: {error}", path = .path.display())]
pub struct BufferError {
    path: PathBuf,
    error: io::Error,
}

/// All chunks.
#[derive(Debug)]
pub struct Buffers {
    map: Arc<MmapRaw>,
    file: File,
    path: PathBuf,
    chunk_size: usize,
    pool: Pool,
}

impl Buffers {
    /// Makes the buffer file `path` of a run, with `bytes` for chunks.
    pub fn create(path: &Path, bytes: usize, run: RunId) -> Result<Self, BufferError> {
        let fail = |error| BufferError { path: path.to_owned(), error };
        let chunk_size = (bytes / 32).next_power_of_two().clamp(SMALLEST_CHUNK, LARGEST_CHUNK);
        let count = (bytes / chunk_size).max(MIN_CHUNKS);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).map_err(fail)?;
        let removed_on_failure = RemoveOnDrop(Some(path));
        let size = CHUNKS_AT + count * chunk_size;
        allocate(&file, 0, size).map_err(fail)?;
        let header = FileHeader {
            chunk_size: chunk_size as u32,
            chunk_count: count as u32,
            pid: std::process::id(),
            ticket: Ticket(0),
            run,
            chunks_at: CHUNKS_AT as u32,
        };
        file.write_all_at(&header.encode(), 0).map_err(fail)?;
        let map = map(&file, size).map_err(fail)?;
        // Else the system reads ahead at the first touch: megabytes of zeros for a page, that a short run never comes to.
        let _ = map.advise(Advice::Random);
        removed_on_failure.keep();
        Ok(Self {
            map: Arc::new(map),
            file,
            path: path.to_owned(),
            chunk_size,
            pool: Pool::new(count as u32, (count / 2) as u32),
        })
    }

    /// Bytes from a chunk's first event to where the next one no longer surely fits.
    pub fn room(&self) -> usize {
        self.chunk_size - CHUNK_HEADER - SLACK
    }

    /// The counter that gives out tickets; it lies in the mapping, so that a crash does not lose it.
    pub fn counter(&self) -> &AtomicU64 {
        // SAFETY: inside the mapping, which lives as long as `self`; 8-byte aligned; only ever used atomically, by
        // Java code too.
        unsafe { &*self.map.as_mut_ptr().add(TICKET_AT).cast::<AtomicU64>() }
    }

    /// Where records are kept on their way to the writer. To be taken once.
    pub fn journal(&self) -> Option<Journal> {
        Journal::new(Arc::clone(&self.map), JOURNALS_AT, JOURNAL_BYTES)
    }

    /// The last ticket that was given out.
    pub fn last_ticket(&self) -> Ticket {
        Ticket(self.counter().load(Ordering::Acquire))
    }

    /// The next ticket.
    pub fn next_ticket(&self) -> Ticket {
        Ticket(self.counter().fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// A free chunk for `thread`: the address of its first event. Waits while the writer lags.
    pub fn take(&self, thread: ThreadIndex) -> Result<usize, NoChunk> {
        let Taken { index, sequence } = self.pool.take(thread, |index| self.grow(index))?;
        self.sequence_of(index).store(sequence, Ordering::Relaxed);
        self.header_word(index, CHUNK_THREAD_AT).store(thread.0, Ordering::Relaxed);
        self.header_word(index, CHUNK_STATE_AT).store(STATE_OWNED, Ordering::Release);
        Ok(self.events_at(index) as usize)
    }

    /// Takes the chunk back that its thread has written up to the address `end`, and does `give` with it, which hands it to
    /// the writer. False if it was taken already.
    pub fn hand_in(&self, end: usize, give: impl FnOnce(FullChunk)) -> bool {
        let Some(offset) = end.checked_sub(self.map.as_mut_ptr() as usize + CHUNKS_AT) else { return false };
        let index = (offset / self.chunk_size) as u32;
        let Some(len) = (offset % self.chunk_size).checked_sub(CHUNK_HEADER) else { return false };
        self.pool.hand_in(index, |thread| {
            self.mark_full(index);
            give(FullChunk { index, len, thread });
        })
    }

    /// Ends it: takes all chunks back, in the state that their threads have just reached. Nobody gets one anymore.
    pub fn hand_in_all(&self) -> Vec<FullChunk> {
        let taken = self.pool.hand_in_all(|index| self.mark_full(index)).into_iter();
        taken.map(|(index, thread)| FullChunk { index, len: event::used_bytes(self.chunk(index)), thread }).collect()
    }

    /// Whether so much waits for the writer that it should hurry. Threads wait only when twice as much does.
    pub fn is_short(&self) -> bool {
        self.pool.is_short()
    }

    /// Nobody gets a chunk anymore, and who waits goes away.
    pub fn stop(&self) {
        self.pool.stop();
    }

    /// The events of a chunk.
    pub fn events(&self, chunk: &FullChunk) -> &[u8] {
        &self.chunk(chunk.index)[..chunk.len]
    }

    /// Empties a chunk and makes it free.
    pub fn release(&self, chunk: FullChunk) {
        // Readers stop at the first zero word, so all that was written must go. A thread that was stopped in the
        // middle of an event may have left a little behind its end.
        let used = (chunk.len + SLACK).min(self.chunk_size - CHUNK_HEADER);
        // SAFETY: inside the chunk; its thread has handed it in.
        unsafe { self.events_at(chunk.index).write_bytes(0, used) };
        self.header_word(chunk.index, CHUNK_STATE_AT).store(STATE_FREE, Ordering::Release);
        self.pool.release(chunk.index);
    }

    /// Removes the file. The memory stays: late threads may still write to it.
    pub fn remove_file(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn mark_full(&self, index: u32) {
        self.header_word(index, CHUNK_STATE_AT).store(STATE_FULL, Ordering::Release);
    }

    fn grow(&self, index: u32) -> bool {
        let start = CHUNKS_AT + index as usize * self.chunk_size;
        if start + self.chunk_size > self.map.len() || allocate(&self.file, start, self.chunk_size).is_err() {
            return false;
        }
        self.word(CHUNK_COUNT_AT).store(index + 1, Ordering::Release);
        true
    }

    fn events_at(&self, index: u32) -> *mut u8 {
        // SAFETY: chunks that have an index lie inside the mapping.
        unsafe { self.map.as_mut_ptr().add(CHUNKS_AT + index as usize * self.chunk_size + CHUNK_HEADER) }
    }

    fn chunk(&self, index: u32) -> &[u8] {
        // SAFETY: inside the mapping and the file. Of a chunk that is handed in nobody writes what is read here; at
        // the very end a late thread may add an event behind the last one, whose first word it stores last and
        // whole, so what is read is the event or its absence.
        unsafe { std::slice::from_raw_parts(self.events_at(index), self.chunk_size - CHUNK_HEADER) }
    }

    fn header_word(&self, index: u32, at: usize) -> &AtomicU32 {
        self.word(CHUNKS_AT + index as usize * self.chunk_size + at)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned, only ever used atomically.
        unsafe { &*self.map.as_mut_ptr().add(at).cast::<AtomicU32>() }
    }

    fn sequence_of(&self, index: u32) -> &AtomicU64 {
        let at = CHUNKS_AT + index as usize * self.chunk_size + CHUNK_SEQUENCE_AT;
        // SAFETY: as above; the offset is a multiple of 8.
        unsafe { &*self.map.as_mut_ptr().add(at).cast::<AtomicU64>() }
    }
}

/// Disk space first: a store to a page that a full disk has no room for would kill the process.
fn allocate(file: &File, start: usize, len: usize) -> io::Result<()> {
    // SAFETY: a plain system call on an open file.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), start as libc::off_t, len as libc::off_t) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Maps more than the file has, so that it can grow without moving. A limit on address space (`ulimit -v`) may
/// forbid that; then there is less room to grow.
fn map(file: &File, size: usize) -> io::Result<MmapRaw> {
    let mut error = None;
    for len in RESERVED.into_iter().filter(|len| *len >= size).chain([size]) {
        match MmapOptions::new().len(len).map_raw(file) {
            Ok(map) => return Ok(map),
            Err(e) => error = Some(e),
        }
    }
    Err(error.unwrap_or_else(|| io::ErrorKind::OutOfMemory.into()))
}

struct RemoveOnDrop<'a>(Option<&'a Path>);

impl RemoveOnDrop<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ONE: ThreadIndex = ThreadIndex(1);

    fn buffers(bytes: usize) -> (tempfile::TempDir, Buffers) {
        let folder = tempfile::tempdir().unwrap();
        let buffers = Buffers::create(&folder.path().join("t.buf"), bytes, RunId::default()).unwrap();
        (folder, buffers)
    }

    fn hand_in(buffers: &Buffers, end: usize) -> Option<FullChunk> {
        let mut full = None;
        buffers.hand_in(end, |chunk| full = Some(chunk)).then_some(())?;
        full
    }

    fn write(at: usize, words: &[u32]) -> usize {
        for (index, word) in words.iter().enumerate() {
            // SAFETY: tests write into chunks they own.
            unsafe { (at as *mut u32).add(index).write(*word) };
        }
        at + words.len() * 4
    }

    #[test]
    fn a_chunk_goes_round() {
        let (_folder, buffers) = buffers(64 << 10);
        let at = buffers.take(ONE).unwrap();
        let end = write(at, &[4, 8, 12]);
        let chunk = hand_in(&buffers, end).unwrap();
        assert_eq!(buffers.events(&chunk).len(), 12);
        assert_eq!(chunk.thread, ONE);
        assert!(hand_in(&buffers, end).is_none(), "it is no longer the thread's");
        buffers.release(chunk);
        assert_eq!(buffers.take(ONE).unwrap(), at, "the last one freed is taken first");
        let all = buffers.hand_in_all();
        assert_eq!(all.len(), 1);
        assert_eq!(buffers.events(&all[0]).len(), 0, "it was emptied");
    }

    #[test]
    fn chunks_are_short_before_threads_wait_for_them() {
        let (_folder, buffers) = buffers(64 << 10);
        let mut full: Vec<_> = std::iter::repeat_with(|| {
            let at = buffers.take(ONE).unwrap();
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
        let a = buffers.take(ONE).unwrap();
        let b = buffers.take(ThreadIndex(2)).unwrap();
        write(a, &[4, 8, 0, 12]);
        write(b, &[6, 99, 1]);
        let mut all = buffers.hand_in_all();
        all.sort_by_key(|chunk| chunk.thread.0);
        assert_eq!(all.iter().map(|chunk| buffers.events(chunk).len()).collect::<Vec<_>>(), [8, 12]);
        assert_eq!(buffers.take(ONE), Err(NoChunk::Stopped));
    }

    #[test]
    fn more_threads_than_chunks_make_the_file_grow() {
        let (folder, buffers) = buffers(64 << 10);
        let before = std::fs::metadata(folder.path().join("t.buf")).unwrap().len();
        let mut taken: Vec<_> = (1..=100).map(|thread| buffers.take(ThreadIndex(thread)).unwrap()).collect();
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
            let at = buffers.take(ONE).unwrap();
            full.push(hand_in(&buffers, at).unwrap());
        }
        let waiting = std::thread::spawn({
            let buffers = Arc::clone(&buffers);
            move || buffers.take(ONE)
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waiting.is_finished());
        buffers.release(full.pop().unwrap());
        assert!(waiting.join().unwrap().is_ok());
        let stopped = std::thread::spawn({
            let buffers = Arc::clone(&buffers);
            move || buffers.take(ONE)
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

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error =
            Buffers::create(Path::new("/no/such/folder/t.buf"), 1 << 20, RunId::default()).unwrap_err().to_string();
        assert!(error.contains("/no/such/folder/t.buf"), "{error}");
    }
}
