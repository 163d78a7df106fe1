//! Numbers and texts within chunks.

use thiserror::Error;

/// Why bytes are not what they should be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    #[error("{what} ends after {has} of {wants} bytes")]
    Short { what: &'static str, wants: usize, has: usize },
    #[error("{what} has {extra} bytes too many")]
    Long { what: &'static str, extra: usize },
    #[error("{what} cannot be {value}")]
    Value { what: &'static str, value: u64 },
    #[error("{what} has {has} allocation units where it says {says}")]
    Units { what: &'static str, says: u32, has: u64 },
    #[error("{what} of {length} bytes: at most {limit} are accepted")]
    TooLong { what: &'static str, length: u64, limit: usize },
    #[error("{what} cannot be decompressed")]
    Compressed { what: &'static str },
}

/// Decodes fields from bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    what: &'static str,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// `what`: what messages call the bytes.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, bytes }
    }

    /// Reads `count` bytes. Like all methods below, fails if too few are left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        match self.bytes.split_at_checked(count) {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(taken)
            }
            None => Err(Malformed::Short { what: self.what, wants: count, has: self.bytes.len() }),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Reads a one-byte number.
    pub fn u1(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads a two-byte number.
    pub fn u2(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads a four-byte number.
    pub fn u4(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads an eight-byte number.
    pub fn u8(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a byte and returns whether it is not 0.
    pub fn flag(&mut self) -> Result<bool, Malformed> {
        self.u1().map(|byte| byte != 0)
    }

    /// Reads a count of items of at least `least` bytes each. Fails if the rest is too short for them, so that memory
    /// can be allocated safely.
    pub fn count(&mut self, least: usize) -> Result<usize, Malformed> {
        let count = self.u4()?;
        self.fits(u64::from(count), least)
    }

    /// Fails if the rest is too short for this number of items of at least `least` bytes each.
    pub fn fits(&self, count: u64, least: usize) -> Result<usize, Malformed> {
        let wants = count.saturating_mul(least.max(1) as u64);
        let short = || Malformed::Short { what: self.what, wants: wants as usize, has: self.bytes.len() };
        if wants > self.bytes.len() as u64 { Err(short()) } else { usize::try_from(count).map_err(|_| short()) }
    }

    /// Reads a text with this number of UTF-16 units.
    pub fn units(&mut self, units: u32) -> Result<String, Malformed> {
        let units = self.fits(u64::from(units), 2)?;
        let units = self.take(units * 2)?.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
        Ok(char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }

    /// Reads a text preceded by its length.
    pub fn text(&mut self) -> Result<String, Malformed> {
        let units = self.u4()?;
        self.units(units)
    }

    /// Reads all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Number of bytes left.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Fails if there are bytes left.
    pub fn end(&self) -> Result<(), Malformed> {
        match self.bytes.len() {
            0 => Ok(()),
            extra => Err(Malformed::Long { what: self.what, extra }),
        }
    }

    /// Reads a byte that is an index into `all`.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> Result<T, Malformed> {
        let number = self.u1()?;
        all.get(usize::from(number)).copied().map_or_else(|| self.wrong(number), Ok)
    }

    /// A value that has no meaning.
    pub fn wrong<T>(&self, value: impl Into<u64>) -> Result<T, Malformed> {
        Err(Malformed::Value { what: self.what, value: value.into() })
    }
}

/// Encodes fields. Cannot fail.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends a one-byte number.
    pub fn u1(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    /// Appends a two-byte number.
    pub fn u2(&mut self, value: u16) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends a four-byte number.
    pub fn u4(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends an eight-byte number.
    pub fn u8(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A number of things; there cannot be more in memory than four bytes count.
    pub fn count(&mut self, count: usize) -> &mut Self {
        self.u4(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Appends bytes unchanged.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// The units of a text, without its length.
    pub fn units(&mut self, text: &str) -> &mut Self {
        text.encode_utf16().for_each(|unit| self.bytes.extend_from_slice(&unit.to_be_bytes()));
        self
    }

    /// Appends a text preceded by its length.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.count(text.encode_utf16().count()).units(text)
    }

    /// Returns the encoded bytes.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pair_is_replaced() {
        let bytes = [0, 0, 0, 3, 0, b'a', 0xd8, 0x3d, 0, b'b'];
        assert_eq!(Reader::new("a text", &bytes).text().unwrap(), "a\u{fffd}b");
    }

    #[test]
    fn lengths_are_believed_only_as_far_as_there_are_bytes() {
        let bytes = [0xff; 8];
        let error = Reader::new("a text", &bytes).text().unwrap_err();
        assert_eq!(error, Malformed::Short { what: "a text", wants: 8_589_934_590, has: 4 });
        assert!(Reader::new("a list", &bytes).count(0).is_err());
    }
}
