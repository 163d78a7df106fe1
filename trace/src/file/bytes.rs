//! The bytes of a file, however it is to be had.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Deref;

/// The bytes of a file, mapped or in memory.
#[derive(Debug)]
pub enum Bytes {
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Bytes {
    /// Maps a file.
    pub fn of_file(file: &File) -> io::Result<Self> {
        // An empty file cannot be mapped.
        if file.metadata()?.len() == 0 { Ok(Self::Owned(Vec::new())) } else { map(file) }
    }

    /// Copies what cannot be mapped (a pipe) to a temporary file.
    pub fn of_stream(mut stream: impl Read) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        io::copy(&mut stream, &mut file)?;
        file.rewind()?;
        Self::of_file(&file)
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Bytes> {
    // SAFETY: the mapping is private and only read. Whoever truncates a trace while it is being read gets a
    // bus error, as with every mapping; growing it (a run that still goes on) is harmless.
    unsafe { memmap2::MmapOptions::new().map_copy_read_only(file) }.map(Bytes::Mapped)
}
