//! Encoding of numbers and strings in a table's body.

use super::DecodeError;
use crate::strings::length;
use crate::table::{Artifact, ArtifactKind};
pub(super) use crate::varint::put as varint;
use crate::{EventSet, Str};

/// Appends a string, preceded by its length.
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    varint(out, length(text.len()));
    out.extend_from_slice(text.as_bytes());
}

/// Appends an artifact without its events, which are in the file header.
pub(super) fn artifact(out: &mut Vec<u8>, artifact: &Artifact) {
    out.extend_from_slice(&artifact.hash.to_le_bytes());
    varint(out, artifact.base);
    out.push(match artifact.kind {
        ArtifactKind::Jdk => 0,
        ArtifactKind::Application => 1,
        ArtifactKind::Dynamic => 2,
        ArtifactKind::Redefined => 3,
    });
    string(out, &artifact.name);
}

/// Decodes what the functions above encoded, and validates every value.
pub(super) struct Body<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    /// Exclusive upper limit for string handles.
    pub strings: u32,
}

impl<'a> Body<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, strings: 0 }
    }

    pub fn fail<T>(&self, what: &'static str) -> Result<T, DecodeError> {
        Err(DecodeError::Body { offset: self.at, what })
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => self.fail("it ends early"),
        }
    }

    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1)?[0])
    }

    pub fn varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.fail("number longer than 32 bits")
    }

    /// Reads a count of items of at least one byte each. Fails if the rest is too short for that many.
    pub fn count(&mut self) -> Result<usize, DecodeError> {
        let count = self.varint()? as usize;
        if count > self.bytes.len() - self.at { self.fail("count out of bounds") } else { Ok(count) }
    }

    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        let offset = self.at;
        let count = self.count()?;
        std::str::from_utf8(self.take(count)?).map_err(|_| DecodeError::Body { offset, what: "string is not UTF-8" })
    }

    pub fn str(&mut self) -> Result<Str, DecodeError> {
        let handle = self.varint()?;
        if handle < self.strings { Ok(Str(handle)) } else { self.fail("string handle out of bounds") }
    }

    pub fn below(&mut self, bound: usize, what: &'static str) -> Result<u32, DecodeError> {
        let value = self.varint()?;
        if (value as usize) < bound { Ok(value) } else { self.fail(what) }
    }

    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(self.below(1 << 16, "number longer than 16 bits")? as u16)
    }

    pub fn artifact(&mut self, events: EventSet) -> Result<Artifact, DecodeError> {
        let (hash, base, kind) = (self.hash()?, self.varint()?, self.kind()?);
        Ok(Artifact { hash, base, name: self.text()?.to_owned(), kind, events })
    }

    fn hash(&mut self) -> Result<u64, DecodeError> {
        let mut hash = [0; 8];
        hash.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(hash))
    }

    fn kind(&mut self) -> Result<ArtifactKind, DecodeError> {
        match self.byte()? {
            0 => Ok(ArtifactKind::Jdk),
            1 => Ok(ArtifactKind::Application),
            2 => Ok(ArtifactKind::Dynamic),
            3 => Ok(ArtifactKind::Redefined),
            _ => self.fail("unknown kind of artifact"),
        }
    }
}
