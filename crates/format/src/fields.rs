//! Reading and writing little-endian fields.

use super::FormatError;
use crate::event::ObjectHash;

/// Exclusive upper limit for thread indexes. Readers use the numbers from here on for threads of their own.
pub const THREAD_LIMIT: u32 = 1 << 30;

/// Reads little-endian fields in order.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn fail<T>(&self, what: &'static str) -> Result<T, FormatError> {
        Err(FormatError::Record { offset: self.at, what })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => self.fail("it ends early"),
        }
    }

    pub(super) fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    pub(super) fn u64(&mut self) -> Result<u64, FormatError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a thread index, which must be below [`THREAD_LIMIT`].
    pub(super) fn thread(&mut self) -> Result<u32, FormatError> {
        let thread = self.u32()?;
        if thread < THREAD_LIMIT { Ok(thread) } else { self.fail("thread index") }
    }

    pub(crate) fn object(&mut self) -> Result<ObjectHash, FormatError> {
        Ok(ObjectHash::of_word(self.u32()?))
    }

    pub(super) fn string(&mut self) -> Result<String, FormatError> {
        let offset = self.at;
        let len = self.u32()? as usize;
        match std::str::from_utf8(self.take(len)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(FormatError::Record { offset, what: "string is not UTF-8" }),
        }
    }

    /// Reads what [`et_names::varint::put`] has written.
    pub(super) fn varint(&mut self) -> Result<u32, FormatError> {
        let mut rest = self.bytes.get(self.at..).unwrap_or_default();
        let value = et_names::varint::take(&mut rest).and_then(|value| u32::try_from(value).ok());
        match value {
            Some(value) => {
                self.at = self.bytes.len() - rest.len();
                Ok(value)
            }
            None => self.fail("a number of variable length"),
        }
    }

    /// Reads a count of items of at least `min` bytes each. Fails if the rest is too short for that many.
    pub(super) fn count(&mut self, min: usize) -> Result<usize, FormatError> {
        let count = self.u32()? as usize;
        if count > (self.bytes.len() - self.at) / min { self.fail("count out of bounds") } else { Ok(count) }
    }
}

pub(super) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a length or a count of the items that follow. A value that needs more than 32 bits is written as `u32::MAX`:
/// that much content makes the block too large to be written, see [`BlockPacker::write`](super::BlockPacker::write).
pub(crate) fn put_len(out: &mut Vec<u8>, len: usize) {
    put_u32(out, u32::try_from(len).unwrap_or(u32::MAX));
}

pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    put_len(out, text.len());
    out.extend_from_slice(text.as_bytes());
}
