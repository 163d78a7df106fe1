//! Writing: entries copied as they are, entries with new content, new entries.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::align::Alignment;
use super::{
    Archive, CENTRAL, DEFLATED, END, END64, END64_LOCATOR, Entry, FLAG_DESCRIPTOR, LOCAL, STORED, ZIP64_EXTRA,
};

const MAX32: u64 = u32::MAX as u64;
const MAX16: u64 = u16::MAX as u64;
/// 4.4.3: version needed for zip64.
const VERSION_ZIP64: u16 = 45;
/// General purpose bit 11: the name is UTF-8.
const FLAG_UTF8: u16 = 1 << 11;
/// 1980-01-01 00:00 in DOS form: our own entries must not depend on the clock.
const EPOCH: u32 = 0x0021_0000;

/// Content in the form in which it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    method: u16,
    crc: u32,
    size: u64,
    data: Vec<u8>,
}

impl Packed {
    /// Compresses by `method`, stored or deflated.
    pub fn new(content: Vec<u8>, method: u16) -> Self {
        let (crc, size) = (crc32fast::hash(&content), content.len() as u64);
        if method == STORED {
            return Self { method, crc, size, data: content };
        }
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(content.len() / 2), Compression::default());
        match encoder.write_all(&content).and_then(|()| encoder.finish()) {
            Ok(data) => Self { method: DEFLATED, crc, size, data },
            // Writing to a vector does not fail.
            Err(_) => Self { method: STORED, crc, size, data: content },
        }
    }
}

/// Writes an archive front to back.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    at: u64,
    shift: u64,
    central: Vec<u8>,
    count: u64,
}

/// Header fields of an entry from any source.
struct Header<'a> {
    name: &'a [u8],
    made_by: u16,
    needed: u16,
    flags: u16,
    method: u16,
    time_and_date: u32,
    crc: u32,
    stored: u64,
    size: u64,
    local_extra: &'a [u8],
    central_extra: &'a [u8],
    comment: &'a [u8],
    internal: u16,
    external: u32,
    alignment: Alignment,
}

impl<W: Write> Writer<W> {
    /// Starts a new archive.
    pub fn new(out: W) -> Self {
        Self { out, at: 0, shift: 0, central: Vec::new(), count: 0 }
    }

    /// A new archive that starts as `archive` (with its bytes `data`) does: launch script, jmod header.
    pub fn like(mut out: W, archive: &Archive, data: &[u8]) -> io::Result<Self> {
        let prefix = &data[archive.prefix.clone()];
        out.write_all(prefix)?;
        Ok(Self { out, at: prefix.len() as u64, shift: archive.shift, central: Vec::new(), count: 0 })
    }

    /// Copies an entry; its data are not touched.
    pub fn copy(&mut self, entry: &Entry, data: &[u8]) -> io::Result<()> {
        self.write(&header(entry, data), &data[entry.data.clone()])
    }

    /// Writes an entry as it was, with other content.
    pub fn replace(&mut self, entry: &Entry, data: &[u8], packed: &Packed) -> io::Result<()> {
        let Packed { method, crc, size, data: content } = packed;
        let stored = content.len() as u64;
        let header = Header { method: *method, crc: *crc, size: *size, stored, ..header(entry, data) };
        self.write(&header, content)
    }

    pub fn add(&mut self, name: &str, packed: &Packed) -> io::Result<()> {
        let header = Header {
            name: name.as_bytes(),
            made_by: 20,
            needed: 20,
            flags: if name.is_ascii() { 0 } else { FLAG_UTF8 },
            method: packed.method,
            time_and_date: EPOCH,
            crc: packed.crc,
            stored: packed.data.len() as u64,
            size: packed.size,
            local_extra: &[],
            central_extra: &[],
            comment: &[],
            internal: 0,
            external: 0,
            alignment: Alignment::NONE,
        };
        self.write(&header, &packed.data)
    }

    fn write(&mut self, header: &Header<'_>, content: &[u8]) -> io::Result<()> {
        let Header { name, stored, size, .. } = *header;
        let offset = self.at - self.shift;
        let wide = stored >= MAX32 || size >= MAX32;
        // The sizes are known, so they go into the header and no descriptor follows.
        let flags = header.flags & !FLAG_DESCRIPTOR;

        let mut local_extra = without_zip64(header.local_extra);
        if wide {
            local_extra.extend_from_slice(&ZIP64_EXTRA.to_le_bytes());
            local_extra.extend_from_slice(&16u16.to_le_bytes());
            local_extra.extend_from_slice(&size.to_le_bytes());
            local_extra.extend_from_slice(&stored.to_le_bytes());
        }
        header.alignment.pad(&mut local_extra, self.at + 30 + name.len() as u64);
        let mut central64 = Vec::new();
        let (clip_size, clip_stored) = if wide { (MAX32, MAX32) } else { (size, stored) };
        if wide {
            central64.extend_from_slice(&size.to_le_bytes());
            central64.extend_from_slice(&stored.to_le_bytes());
        }
        if offset >= MAX32 {
            central64.extend_from_slice(&offset.to_le_bytes());
        }
        let mut central_extra = without_zip64(header.central_extra);
        if !central64.is_empty() {
            central_extra.extend_from_slice(&ZIP64_EXTRA.to_le_bytes());
            central_extra.extend_from_slice(&(central64.len() as u16).to_le_bytes());
            central_extra.extend_from_slice(&central64);
        }
        let needed = if central64.is_empty() { header.needed } else { header.needed.max(VERSION_ZIP64) };

        let mut local = Vec::with_capacity(30 + name.len() + local_extra.len());
        local.extend_from_slice(&LOCAL.to_le_bytes());
        let shared = |out: &mut Vec<u8>, extra: usize| {
            for value in [needed, flags, header.method] {
                out.extend_from_slice(&value.to_le_bytes());
            }
            for value in [header.time_and_date, header.crc, clip_stored as u32, clip_size as u32] {
                out.extend_from_slice(&value.to_le_bytes());
            }
            for value in [name.len() as u16, extra as u16] {
                out.extend_from_slice(&value.to_le_bytes());
            }
        };
        shared(&mut local, local_extra.len());
        local.extend_from_slice(name);
        local.extend_from_slice(&local_extra);
        self.out.write_all(&local)?;
        self.out.write_all(content)?;
        self.at += local.len() as u64 + stored;

        let central = &mut self.central;
        central.extend_from_slice(&CENTRAL.to_le_bytes());
        central.extend_from_slice(&header.made_by.to_le_bytes());
        shared(central, central_extra.len());
        central.extend_from_slice(&(header.comment.len() as u16).to_le_bytes());
        central.extend_from_slice(&0u16.to_le_bytes()); // disk
        central.extend_from_slice(&header.internal.to_le_bytes());
        central.extend_from_slice(&header.external.to_le_bytes());
        central.extend_from_slice(&(offset.min(MAX32) as u32).to_le_bytes());
        central.extend_from_slice(name);
        central.extend_from_slice(&central_extra);
        central.extend_from_slice(header.comment);
        self.count += 1;
        Ok(())
    }

    /// Writes the directory. Returns the output and its size.
    pub fn finish(mut self, comment: &[u8]) -> io::Result<(W, u64)> {
        let offset = self.at - self.shift;
        let size = self.central.len() as u64;
        let mut end = Vec::new();
        if self.count >= MAX16 || size >= MAX32 || offset >= MAX32 {
            end.extend_from_slice(&END64.to_le_bytes());
            end.extend_from_slice(&44u64.to_le_bytes());
            end.extend_from_slice(&VERSION_ZIP64.to_le_bytes());
            end.extend_from_slice(&VERSION_ZIP64.to_le_bytes());
            end.extend_from_slice(&[0; 8]); // disks
            for value in [self.count, self.count, size, offset] {
                end.extend_from_slice(&value.to_le_bytes());
            }
            end.extend_from_slice(&END64_LOCATOR.to_le_bytes());
            end.extend_from_slice(&[0; 4]);
            end.extend_from_slice(&(offset + size).to_le_bytes());
            end.extend_from_slice(&1u32.to_le_bytes());
        }
        end.extend_from_slice(&END.to_le_bytes());
        end.extend_from_slice(&[0; 4]); // disks
        let count = self.count.min(MAX16) as u16;
        end.extend_from_slice(&count.to_le_bytes());
        end.extend_from_slice(&count.to_le_bytes());
        end.extend_from_slice(&(size.min(MAX32) as u32).to_le_bytes());
        end.extend_from_slice(&(offset.min(MAX32) as u32).to_le_bytes());
        end.extend_from_slice(&(comment.len() as u16).to_le_bytes());
        end.extend_from_slice(comment);
        self.out.write_all(&self.central)?;
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok((self.out, self.at + size + end.len() as u64))
    }
}

fn header<'a>(entry: &Entry, data: &'a [u8]) -> Header<'a> {
    Header {
        name: &data[entry.raw_name.clone()],
        made_by: entry.made_by,
        needed: entry.needed,
        flags: entry.flags,
        method: entry.method,
        time_and_date: entry.time_and_date,
        crc: entry.crc,
        stored: entry.data.len() as u64,
        size: entry.size,
        local_extra: &data[entry.local_extra.clone()],
        central_extra: &data[entry.central_extra.clone()],
        comment: &data[entry.comment.clone()],
        internal: entry.internal,
        external: entry.external,
        alignment: Alignment::of(entry, data),
    }
}

/// Extra fields except the zip64 one, which is created anew if necessary.
fn without_zip64(extra: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(extra.len());
    let mut rest = extra;
    while let [id0, id1, length0, length1, ..] = *rest {
        let end = 4 + usize::from(u16::from_le_bytes([length0, length1]));
        if end > rest.len() {
            break;
        }
        if u16::from_le_bytes([id0, id1]) != ZIP64_EXTRA {
            out.extend_from_slice(&rest[..end]);
        }
        rest = &rest[end..];
    }
    // Bytes that cannot be parsed are padding by some tool and are kept.
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::zip::read::extra_field;

    #[test]
    fn what_lies_beyond_4_gb_has_its_place_in_64_bits() {
        let far = 5 << 30;
        let mut writer = Writer { at: far, ..Writer::new(Vec::new()) };
        writer.add("a.txt", &Packed::new(b"a".to_vec(), STORED)).unwrap();
        let central = writer.central.clone();
        assert_eq!(&central[42..46], &[0xff; 4]);
        assert_eq!(extra_field(&central[51..], ZIP64_EXTRA), Some(&far.to_le_bytes()[..]));
        assert_eq!(u16::from_le_bytes([central[6], central[7]]), VERSION_ZIP64);
        let start = writer.at;
        let (out, size) = writer.finish(b"").unwrap();
        assert_eq!(size, far + out.len() as u64);
        let end64 = out.len() - 22 - 20 - 56;
        let word = |at: usize| u64::from_le_bytes(out[at..at + 8].try_into().unwrap());
        assert_eq!([24, 32, 40, 48].map(|at| word(end64 + at)), [1, 1, central.len() as u64, start]);
        assert_eq!(word(end64 + 56 + 8), far + end64 as u64, "where the locator says");
        assert_eq!(out[out.len() - 6..out.len() - 2], [0xff; 4]);
    }

    #[test]
    fn sizes_beyond_4_gb_stand_in_both_headers() {
        let mut writer = Writer::new(Vec::new());
        // A damaged entry may claim this much, which must not be allocated.
        let huge = 6 << 30;
        let packed = Packed { method: DEFLATED, crc: 0, size: huge, data: vec![3, 0] };
        writer.add("a", &packed).unwrap();
        let field = [huge.to_le_bytes(), 2u64.to_le_bytes()].concat();
        for (header, sizes, extra) in [(&writer.out, 18, 31), (&writer.central, 20, 47)] {
            assert_eq!(header[sizes..sizes + 8], [0xff; 8]);
            assert_eq!(extra_field(&header[extra..], ZIP64_EXTRA), Some(&field[..]));
        }
    }
}
