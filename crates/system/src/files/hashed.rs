//! A writer that computes the hash of a file while writing it.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use xxhash_rust::xxh3::Xxh3;

/// A file that is being written, with its hash so far.
pub struct Hashed {
    file: BufWriter<File>,
    hash: Box<Xxh3>,
    bytes: u64,
}

impl std::fmt::Debug for Hashed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hashed").field("file", &self.file).field("bytes", &self.bytes).finish()
    }
}

impl Hashed {
    /// Starts with an empty file.
    pub fn new(file: File) -> Self {
        Self { file: BufWriter::with_capacity(1 << 18, file), hash: Box::new(Xxh3::new()), bytes: 0 }
    }

    /// Completes the file and returns it with its length in bytes and its XXH3.
    pub fn finish(self) -> io::Result<(File, u64, u64)> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok((file, self.bytes, self.hash.digest()))
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn the_hash_is_that_of_the_file() {
        let mut hashed = Hashed::new(tempfile::tempfile().unwrap());
        for part in [&b"one"[..], b"", b" and two"] {
            hashed.write_all(part).unwrap();
        }
        let (mut file, bytes, hash) = hashed.finish().unwrap();
        let mut text = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut text).unwrap();
        assert_eq!((text.as_slice(), bytes, hash), (&b"one and two"[..], 11, xxh3_64(b"one and two")));
    }
}
