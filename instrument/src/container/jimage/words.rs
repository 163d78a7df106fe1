//! Four-byte words and strings in an image.

use super::ImageError;

/// The word at an index, counted in words.
pub(super) fn word(bytes: &[u8], index: usize, big_endian: bool) -> Option<u32> {
    let bytes = bytes.get(index.checked_mul(4)?..index.checked_mul(4)?.checked_add(4)?)?.try_into().ok()?;
    Some(if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

/// The table of all strings, each terminated by a zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strings<'a>(pub &'a [u8]);

impl<'a> Strings<'a> {
    /// The name at an offset. JDK names are ASCII, for which modified UTF-8 is UTF-8.
    pub fn text(self, at: u64) -> Result<&'a str, ImageError> {
        std::str::from_utf8(self.bytes(at)?).map_err(|_| ImageError::Damaged("a name is not UTF-8"))
    }

    /// The string at an offset, in modified UTF-8: shared strings of constant pools may hold anything.
    pub fn bytes(self, at: u64) -> Result<&'a [u8], ImageError> {
        let rest = usize::try_from(at).ok().and_then(|at| self.0.get(at..));
        let rest = rest.ok_or(ImageError::Damaged("a name lies outside the strings"))?;
        let end = rest.iter().position(|byte| *byte == 0).ok_or(ImageError::Damaged("a string has no end"))?;
        Ok(&rest[..end])
    }
}
