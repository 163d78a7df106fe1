//! The bytes of a file, mapped or in memory.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a mapping that are read before they are released from memory: what was read is seldom read again.
const RESIDENT: usize = 16 << 20;

/// The bytes of a file, mapped or in memory.
#[derive(Debug)]
pub enum Bytes {
    /// A mapping, with the number of bytes read since memory was last released.
    Mapped(memmap2::Mmap, AtomicUsize),
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map, _) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Bytes {
    /// Maps a file into memory.
    pub fn of_file(file: &File) -> io::Result<Self> {
        // An empty file cannot be mapped.
        if file.metadata()?.len() == 0 { Ok(Self::Owned(Vec::new())) } else { map(file) }
    }

    /// Copies a stream that cannot be mapped (a pipe) to a temporary file, unless `copy` rejects it.
    pub fn of_stream<E>(copy: impl FnOnce(&mut Kept) -> io::Result<Result<(), E>>) -> io::Result<Result<Self, E>> {
        let mut out = Kept(BufWriter::with_capacity(1 << 16, tempfile::tempfile().map_err(no_room)?));
        if let Err(wrong) = copy(&mut out)? {
            return Ok(Err(wrong));
        }
        let mut file = out.0.into_inner().map_err(|error| no_room(error.into_error()))?;
        file.rewind()?;
        Self::of_file(&file).map(Ok)
    }

    /// Reports that bytes were read. Pages of a mapping that were read are released now and then: otherwise a large
    /// trace fills the memory of the process with pages that are also in the page cache.
    pub fn used(&self, bytes: usize) {
        if let Self::Mapped(map, read) = self
            && read.fetch_add(bytes, Ordering::Relaxed) + bytes >= RESIDENT
        {
            read.store(0, Ordering::Relaxed);
            let_go(map);
        }
    }
}

/// A temporary file for a copy. Its write errors are marked, so that they are not attributed to the source.
#[derive(Debug)]
pub struct Kept(BufWriter<File>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(no_room)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(no_room)
    }
}

fn no_room(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let why =
        format!("no space in a temporary file in {} (set TMPDIR to use another folder): {error}", folder.display());
    io::Error::new(error.kind(), why)
}

#[allow(unsafe_code)]
fn let_go(map: &memmap2::Mmap) {
    // SAFETY: the mapping is private and never written to: a released page is read from the file again. It is advice
    // only, so failure has no effect.
    let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Bytes> {
    // SAFETY: the mapping is private and only read. Truncating the trace while it is read causes a bus error, as with
    // every mapping; appending to it (a run in progress) is harmless.
    unsafe { memmap2::MmapOptions::new().map_copy_read_only(file) }.map(|map| Bytes::Mapped(map, AtomicUsize::new(0)))
}
