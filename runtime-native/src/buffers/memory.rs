//! The mapping of the buffer file: its layout, and reads of it while threads write.
#![allow(unsafe_code, reason = "shared memory, written by Java code through raw addresses")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use et_format::buffers::{CHUNK_HEADER, JOURNALS, JOURNALS_AT, TICKET_AT};
use et_format::event;
use memmap2::{Advice, MmapOptions, MmapRaw};

use super::SLACK;

/// Size of a journal area in bytes.
pub const JOURNAL_BYTES: usize = 256 << 10;
/// Offset of the first chunk.
pub const CHUNKS_AT: usize = JOURNALS_AT + JOURNALS * JOURNAL_BYTES;
/// Address space to reserve for chunks, largest first: unused address space costs nothing.
const RESERVED: [usize; 3] = [4 << 30, 1 << 30, 256 << 20];

/// The mapping of the buffer file. It is never unmapped: late threads may store events after the end.
#[derive(Debug)]
pub struct Memory {
    map: Arc<MmapRaw>,
    chunk_size: usize,
}

impl Memory {
    /// Maps the file, which has `size` bytes and may grow.
    pub fn map(file: &File, size: usize, chunk_size: usize) -> io::Result<Self> {
        let map = map_with_room(file, size)?;
        // Otherwise the system reads ahead at the first access: megabytes of zeros that a short run never uses.
        let _ = map.advise(Advice::Random);
        Ok(Self { map: Arc::new(map), chunk_size })
    }

    /// The mapping, for sharing.
    pub fn shared(&self) -> Arc<MmapRaw> {
        Arc::clone(&self.map)
    }

    /// Its address range.
    pub fn range(&self) -> Range<usize> {
        let start = self.map.as_mut_ptr() as usize;
        start..start + self.map.len()
    }

    /// Range in the file of the chunk with this index, which need not exist.
    pub fn file_range(&self, index: u32) -> Range<usize> {
        let start = CHUNKS_AT + index as usize * self.chunk_size;
        start..start + self.chunk_size
    }

    /// Bytes for events per chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_size - CHUNK_HEADER
    }

    /// The chunk whose events contain an address, and the offset there.
    pub fn place_of(&self, address: usize) -> Option<(u32, usize)> {
        let offset = address.checked_sub(self.range().start + CHUNKS_AT)?;
        let len = (offset % self.chunk_size).checked_sub(CHUNK_HEADER)?;
        Some(((offset / self.chunk_size) as u32, len))
    }

    /// The ticket counter; it is in the mapping, so that it survives a crash.
    pub fn counter(&self) -> &AtomicU64 {
        // SAFETY: inside the mapping, which lives as long as `self`; 8-byte aligned; only accessed atomically, also by
        // Java code.
        unsafe { &*self.map.as_mut_ptr().add(TICKET_AT).cast::<AtomicU64>() }
    }

    /// Address of a chunk's events.
    pub fn events_at(&self, index: u32) -> *mut u8 {
        // SAFETY: existing chunks are inside the mapping.
        unsafe { self.map.as_mut_ptr().add(CHUNKS_AT + index as usize * self.chunk_size + CHUNK_HEADER) }
    }

    /// The complete events of a chunk from that offset on, while its thread may be adding events. The thread stores
    /// the first word of an event last and atomically, so a reader sees either the complete event or none.
    pub fn shared_events(&self, index: u32, from: usize) -> Vec<u8> {
        let whole = self.chunk_size - CHUNK_HEADER;
        let mut until = from + SLACK;
        loop {
            until = (from + 4 * (until - from)).min(whole);
            let mut copy = self.copy(index, from..until);
            let used = event::used_bytes(&copy);
            // An event this close to the end of the copy may be incomplete.
            if until == whole || used + SLACK < copy.len() {
                copy.truncate(used);
                return copy;
            }
        }
    }

    /// Copies part of a chunk, each word atomically.
    pub fn copy(&self, index: u32, range: Range<usize>) -> Vec<u8> {
        let at = CHUNKS_AT + index as usize * self.chunk_size + CHUNK_HEADER;
        let words = range.step_by(event::WORD).map(|offset| self.word(at + offset).load(Ordering::Acquire));
        words.flat_map(u32::to_ne_bytes).collect()
    }

    /// A 4-byte field of a chunk's header.
    pub fn header_word(&self, index: u32, at: usize) -> &AtomicU32 {
        self.word(CHUNKS_AT + index as usize * self.chunk_size + at)
    }

    /// The 4 bytes at that offset of the file.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned, and only accessed atomically.
        unsafe { &*self.map.as_mut_ptr().add(at).cast::<AtomicU32>() }
    }

    /// An 8-byte field of a chunk's header.
    pub fn header_long(&self, index: u32, at: usize) -> &AtomicU64 {
        let at = CHUNKS_AT + index as usize * self.chunk_size + at;
        // SAFETY: as above; the offsets of such fields are multiples of 8.
        unsafe { &*self.map.as_mut_ptr().add(at).cast::<AtomicU64>() }
    }
}

/// Allocates disk space first: a store to a page without space on a full disk would kill the process.
pub fn allocate(file: &File, start: usize, len: usize) -> io::Result<()> {
    // SAFETY: a system call on an open file.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), start as libc::off_t, len as libc::off_t) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Maps more than the file's size, so that it can grow in place. A limit on address space (`ulimit -v`) may forbid
/// that; then there is less room to grow.
fn map_with_room(file: &File, size: usize) -> io::Result<MmapRaw> {
    let mut error = None;
    for len in RESERVED.into_iter().filter(|len| *len >= size).chain([size]) {
        match MmapOptions::new().len(len).map_raw(file) {
            Ok(map) => return Ok(map),
            Err(e) => error = Some(e),
        }
    }
    Err(error.unwrap_or_else(|| io::ErrorKind::OutOfMemory.into()))
}
