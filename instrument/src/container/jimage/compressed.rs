//! Compressed resources, as `jlink --compress` makes them: `zip` and `compact-cp`, one inside the other.

use flate2::{Decompress, FlushDecompress, Status};

use super::ImageError;
use super::words::{Strings, word};

const MAGIC: u32 = 0xcafe_fafa;
/// Magic, compressed and uncompressed size (8 bytes each), offsets of name and configuration, last flag.
const HEADER: usize = 29;
/// Larger than any class or resource of a JDK: limits what a damaged size can make us allocate.
const MAX_SIZE: u64 = 1 << 30;
/// Deflate cannot do better than 1032:1, so a larger claim is false.
const MAX_RATIO: usize = 1032;
/// `compact-cp` turns at least two bytes into a string, which a class file bounds.
const MAX_SHARED: usize = 1 << 15;
/// jlink makes two layers at most; a content that unpacks to ever new ones was made to.
const MAX_LAYERS: usize = 4;

/// Undoes all layers of compression.
pub fn decompress(strings: Strings<'_>, big_endian: bool, raw: &[u8], name: &str) -> Result<Vec<u8>, ImageError> {
    let fail = |what| ImageError::Resource { name: name.to_owned(), what };
    let mut content = raw.to_vec();
    let mut layers = 0;
    while word(&content, 0, big_endian) == Some(MAGIC) {
        layers += 1;
        if layers > MAX_LAYERS {
            return Err(fail("it is compressed too many times"));
        }
        let long = |at: usize| -> Option<u64> {
            let bytes = content.get(at..at + 8)?.try_into().ok()?;
            Some(if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
        };
        let cut = || fail("its compressed content is cut off");
        let stored = long(4).and_then(|size| usize::try_from(size).ok()).ok_or_else(cut)?;
        let size = long(12).filter(|size| *size <= MAX_SIZE).ok_or_else(cut)? as usize;
        let plugin = word(&content, 5, big_endian).ok_or_else(cut)?;
        let rest = content.get(HEADER..).and_then(|rest| rest.get(..stored)).ok_or_else(cut)?;
        content = match strings.text(plugin.into())? {
            "zip" => inflate(rest, size).ok_or_else(|| fail("its compressed content is damaged"))?,
            "compact-cp" => expand(strings, rest, size).ok_or_else(|| fail("its shared strings are damaged"))?,
            other => return Err(ImageError::Compression { name: name.to_owned(), plugin: other.to_owned() }),
        };
    }
    Ok(content)
}

fn inflate(data: &[u8], size: usize) -> Option<Vec<u8>> {
    if size / MAX_RATIO > data.len() {
        return None;
    }
    let mut content = Vec::with_capacity(size + 1);
    let status = Decompress::new(true).decompress_vec(data, &mut content, FlushDecompress::Finish);
    (matches!(status, Ok(Status::StreamEnd)) && content.len() == size).then_some(content)
}

/// Constant pool tags that `compact-cp` puts in the place of Utf8 entries.
const SHARED_STRING: u8 = 23;
const SHARED_DESCRIPTOR: u8 = 25;

/// Puts the strings of a class back into its constant pool.
fn expand(strings: Strings<'_>, data: &[u8], size: usize) -> Option<Vec<u8>> {
    if size / MAX_SHARED > data.len() {
        return None;
    }
    let mut out = Vec::with_capacity(size.min(1 << 20));
    let mut input = Cursor { data, at: 0 };
    out.extend_from_slice(input.take(8)?);
    let count = input.take(2)?;
    out.extend_from_slice(count);
    let count = u16::from_be_bytes([count[0], count[1]]);
    let mut index = 1;
    while index < count {
        let tag = input.byte()?;
        index += 1;
        if out.len() > size {
            return None;
        }
        match tag {
            SHARED_STRING => {
                utf8(&mut out, strings.bytes(input.int()?).ok()?)?;
            }
            SHARED_DESCRIPTOR => {
                let template = strings.bytes(input.int()?).ok()?;
                let length = usize::try_from(input.int()?).ok()?;
                let mut indexes = Cursor { data: input.take(length)?, at: 0 };
                if length == 0 {
                    utf8(&mut out, template)?;
                    continue;
                }
                // Each L of the template is followed by a package and a class name.
                let mut text = Vec::new();
                for byte in template {
                    text.push(*byte);
                    if *byte == b'L' {
                        let package = strings.bytes(indexes.int()?).ok()?;
                        if !package.is_empty() {
                            text.extend_from_slice(package);
                            text.push(b'/');
                        }
                        text.extend_from_slice(strings.bytes(indexes.int()?).ok()?);
                    }
                }
                utf8(&mut out, &text)?;
            }
            1 => {
                let length = input.take(2)?;
                out.push(tag);
                out.extend_from_slice(length);
                out.extend_from_slice(input.take(usize::from(u16::from_be_bytes([length[0], length[1]])))?);
            }
            _ => {
                // JVMS table 4.4-A.
                let size = match tag {
                    3 | 4 | 9..=12 | 17 | 18 => 4,
                    5 | 6 => 8,
                    7 | 8 | 16 | 19 | 20 => 2,
                    15 => 3,
                    _ => return None,
                };
                out.push(tag);
                out.extend_from_slice(input.take(size)?);
                index += u16::from(size == 8);
            }
        }
    }
    out.extend_from_slice(&input.data[input.at..]);
    (out.len() == size).then_some(out)
}

fn utf8(out: &mut Vec<u8>, text: &[u8]) -> Option<()> {
    out.push(1);
    out.extend_from_slice(&u16::try_from(text.len()).ok()?.to_be_bytes());
    out.extend_from_slice(text);
    Some(())
}

struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let bytes = self.data.get(self.at..)?.get(..count)?;
        self.at += count;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// Compressed: high bit set, then two bits of length (1 to 4 bytes), and the value big-endian in the rest.
    /// Otherwise a plain big-endian word.
    fn int(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first & 0x80 == 0 {
            let rest = self.take(3)?;
            return Some(rest.iter().fold(u64::from(first), |value, byte| value << 8 | u64::from(*byte)));
        }
        let length = usize::from(first >> 5 & 3);
        let rest = self.take(length.checked_sub(1)?)?;
        Some(rest.iter().fold(u64::from(first & 0x1f), |value, byte| value << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_size_is_refused_before_memory_is_taken_for_it() {
        assert_eq!(inflate(&[1; 100], 1 << 30), None);
        assert_eq!(expand(Strings(&[]), &[0; 100], 1 << 30), None);
    }
}
