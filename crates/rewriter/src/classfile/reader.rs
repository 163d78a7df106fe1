//! Reading of big-endian numbers, with the offset in every error.

use super::Malformed;

/// A position in a class file or in a part of it.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of `bytes[0]` in the class file, for errors.
    base: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader of a whole class file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::part(bytes, 0)
    }

    /// Creates a reader of a part that begins at offset `base` of the class file.
    pub fn part(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }

    /// Current offset in the class file.
    pub fn offset(&self) -> usize {
        self.base + self.at
    }

    /// Whether all bytes have been read.
    pub fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The bytes read since offset `start` of the class file.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start - self.base..self.at]
    }

    /// Reads the next `count` bytes. Like all the methods below, fails if the file ends before.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        match self.bytes[self.at..].get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(Malformed::at(
                self.offset(),
                format!("the class ends early: {count} bytes wanted, {} left", self.bytes.len() - self.at),
            )),
        }
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    /// Reads a two-byte number.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        let taken = self.take(2)?;
        Ok(u16::from_be_bytes([taken[0], taken[1]]))
    }

    /// Reads a four-byte number.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        let taken = self.take(4)?;
        Ok(u32::from_be_bytes([taken[0], taken[1], taken[2], taken[3]]))
    }
}
