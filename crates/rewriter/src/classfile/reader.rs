//! Big-endian reading with the offset in every error.

use super::Malformed;

/// A position in the bytes of a class file or of a part of it.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of `bytes[0]` in the class file, for errors.
    base: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the start of a class file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::part(bytes, 0)
    }

    /// Reads a part that begins at byte `base` of the class file.
    pub fn part(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }

    /// Offset in the class file.
    pub fn offset(&self) -> usize {
        self.base + self.at
    }

    /// Whether all is read.
    pub fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// What was read since the class file offset `start`.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start - self.base..self.at]
    }

    /// The next `count` bytes.
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

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        let taken = self.take(2)?;
        Ok(u16::from_be_bytes([taken[0], taken[1]]))
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        let taken = self.take(4)?;
        Ok(u32::from_be_bytes([taken[0], taken[1], taken[2], taken[3]]))
    }
}
