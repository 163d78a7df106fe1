//! A zip archive as Java sees it: its directory, and whether the local headers agree with it.
//!
//! Independent of `container::zip`, which writes archives.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use flate2::read::DeflateDecoder;

use super::Content;
use crate::container::class_file;

/// General purpose flags: encrypted; sizes after the data.
const ENCRYPTED: u16 = 1;
const DESCRIPTOR: u16 = 8;
const ALL_ONES: u64 = u32::MAX as u64;

/// A file in an archive.
#[derive(Debug)]
pub(super) struct File {
    pub name: String,
    method: u16,
    flags: u16,
    crc: u32,
    size: u64,
    data: Range<usize>,
}

/// The content of an archive, and its problems: entry name and fault.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub files: Vec<File>,
    pub faults: Vec<(String, String)>,
}

fn number(data: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = data.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

struct Directory {
    start: usize,
    end: usize,
    count: u64,
    /// Length in bytes of what precedes the archive: a launch script, the header of a jmod.
    shift: u64,
}

/// Lists an archive. Fails if there is no directory.
pub(super) fn list(data: &[u8]) -> Result<Listing, String> {
    let directory = find(data).ok_or("it has no zip directory")?;
    let mut listing = Listing::default();
    let mut at = directory.start;
    let mut count = 0;
    while at < directory.end {
        let (file, next) = entry(data, at, directory.shift, &mut listing.faults)
            .ok_or_else(|| format!("its directory is damaged at entry {count}"))?;
        listing.files.extend(file);
        at = next;
        count += 1;
    }
    // Without zip64 the count has 16 bits; some writers let it overflow.
    if count != directory.count && count & 0xffff != directory.count {
        listing.faults.push((String::new(), format!("it claims {} entries and has {count}", directory.count)));
    }
    if at != directory.end {
        listing.faults.push((String::new(), "its directory is longer than its recorded size".into()));
    }
    overlaps(&mut listing, directory.start);
    Ok(listing)
}

fn find(data: &[u8]) -> Option<Directory> {
    let lowest = data.len().saturating_sub(22 + 0xffff);
    let end = (lowest..=data.len().checked_sub(22)?).rev().find(|at| {
        data[*at..].starts_with(b"PK\x05\x06") && number(data, at + 20, 2) == Some((data.len() - at - 22) as u64)
    })?;
    let wide = end.checked_sub(20).filter(|locator| data[*locator..].starts_with(b"PK\x06\x07")).and_then(|locator| {
        let before = locator.checked_sub(56).filter(|at| data[*at..].starts_with(b"PK\x06\x06"))?;
        Some((before, number(data, before + 32, 8)?, number(data, before + 40, 8)?, number(data, before + 48, 8)?))
    });
    let (end, count, size, offset) = match wide {
        Some(wide) => wide,
        None => (end, number(data, end + 10, 2)?, number(data, end + 12, 4)?, number(data, end + 16, 4)?),
    };
    let start = end.checked_sub(usize::try_from(size).ok()?)?;
    Some(Directory { start, end, count, shift: (start as u64).checked_sub(offset)? })
}

/// The entry at `at`, and the offset of the next one; no entry if its data are out of range.
fn entry(data: &[u8], at: usize, shift: u64, faults: &mut Vec<(String, String)>) -> Option<(Option<File>, usize)> {
    if !data[at..].starts_with(b"PK\x01\x02") {
        return None;
    }
    let field = |offset, length| number(data, at + offset, length);
    let short = |offset| field(offset, 2).map(|value| value as usize);
    let (name_length, extra_length, comment_length) = (short(28)?, short(30)?, short(32)?);
    let raw_name = data.get(at + 46..at + 46 + name_length)?;
    let extra = data.get(at + 46 + name_length..at + 46 + name_length + extra_length)?;
    let next = at + 46 + name_length + extra_length + comment_length;
    let name = String::from_utf8_lossy(raw_name).into_owned();
    let mut fault = |what: &str| faults.push((name.clone(), what.to_owned()));

    let (mut size, mut stored, mut offset) = (field(24, 4)?, field(20, 4)?, field(42, 4)?);
    if !widen(extra, [&mut size, &mut stored, &mut offset]) {
        fault("its zip64 field is incomplete");
        return Some((None, next));
    }
    let (flags, method) = (field(8, 2)? as u16, field(10, 2)? as u16);
    let crc = field(16, 4)? as u32;
    let Some(local) = offset.checked_add(shift).and_then(|local| usize::try_from(local).ok()) else {
        fault("its header lies outside the file");
        return Some((None, next));
    };
    if !data.get(local..).is_some_and(|rest| rest.starts_with(b"PK\x03\x04")) {
        fault("its local header is not where the directory says");
        return Some((None, next));
    }
    let header = |offset, length| number(data, local + offset, length);
    let local_name = header(26, 2)? as usize;
    let local_extra = header(28, 2)? as usize;
    let start = local + 30 + local_name + local_extra;
    let Some(bytes) = usize::try_from(stored).ok().and_then(|stored| start.checked_add(stored)) else {
        fault("its data lies outside the file");
        return Some((None, next));
    };
    if data.get(start..bytes).is_none() {
        fault("its data lies outside the file");
        return Some((None, next));
    }
    if data.get(local + 30..local + 30 + local_name) != Some(raw_name) {
        fault("its local header has a different name");
    }
    if header(6, 2)? as u16 != flags || header(8, 2)? as u16 != method {
        fault("its local header has a different method or different flags");
    }
    if flags & DESCRIPTOR == 0 {
        let (mut local_size, mut local_stored, mut none) = (header(22, 4)?, header(18, 4)?, 0);
        let extra = data.get(local + 30 + local_name..start)?;
        if !widen(extra, [&mut local_size, &mut local_stored, &mut none])
            || (local_size, local_stored, header(14, 4)? as u32) != (size, stored, crc)
        {
            fault("its local header has a different size or checksum");
        }
    }
    Some((Some(File { name, method, flags, crc, size, data: start..bytes }), next))
}

/// Puts the values of the zip64 field in place of those that are all ones.
fn widen(extra: &[u8], values: [&mut u64; 3]) -> bool {
    let wanted = values.iter().any(|value| **value == ALL_ONES);
    let mut at = 0;
    while let (true, Some(id), Some(length)) = (wanted, number(extra, at, 2), number(extra, at + 2, 2)) {
        if id == 1 {
            let mut from = at + 4;
            for value in values {
                if *value == ALL_ONES {
                    let Some(wide) = number(extra, from, 8).filter(|_| from + 8 <= at + 4 + length as usize) else {
                        return false;
                    };
                    *value = wide;
                    from += 8;
                }
            }
            return true;
        }
        at += 4 + length as usize;
    }
    // 4 GB less one byte is a size, too.
    true
}

fn overlaps(listing: &mut Listing, directory: usize) {
    let mut order: Vec<&File> = listing.files.iter().collect();
    order.sort_by_key(|file| file.data.start);
    let mut faults = Vec::new();
    for pair in order.windows(2) {
        if pair[0].data.end > pair[1].data.start {
            faults.push((pair[1].name.clone(), format!("its data overlaps that of {}", pair[0].name)));
        }
    }
    if let Some(last) = order.last().filter(|last| last.data.end > directory) {
        faults.push((last.name.clone(), "its data overlaps the directory".into()));
    }
    listing.faults.extend(faults);
}

impl File {
    /// Memory that the content takes in bytes: 0 if it is stored uncompressed.
    pub(super) fn unpacked(&self) -> u64 {
        if self.method == 0 { 0 } else { self.size }
    }

    /// The first `length` bytes of the content, or fewer if it is shorter.
    pub(super) fn start(&self, data: &[u8], length: u64) -> Result<Vec<u8>, String> {
        let stored = &data[self.data.clone()];
        let mut start = Vec::new();
        let mut reader: Box<dyn Read + '_> = match self.method {
            _ if self.flags & ENCRYPTED != 0 => return Ok(start),
            0 => Box::new(stored.take(length)),
            8 => Box::new(DeflateDecoder::new(stored).take(length)),
            _ => return Ok(start),
        };
        reader.read_to_end(&mut start).map_err(|_| "its compressed data are damaged")?;
        Ok(start)
    }

    pub(super) fn starts_as_class(&self, data: &[u8]) -> bool {
        self.start(data, class_file::MAGIC.len() as u64).is_ok_and(|start| class_file::is_class(&start))
    }

    /// The content if it starts as a class file does.
    pub(super) fn class<'a>(&self, data: &'a [u8]) -> Result<Content<'a>, String> {
        let start = self.start(data, class_file::MAGIC.len() as u64)?;
        if !class_file::is_class(&start) {
            let is_unknown = self.flags & ENCRYPTED != 0 || !matches!(self.method, 0 | 8);
            return self.check(data).map(|()| if is_unknown { Content::Unknown } else { Content::NoClass(start) });
        }
        Ok(self.content(data)?.map_or(Content::Unknown, Content::Class))
    }

    pub(super) fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }

    /// The content, after verifying its size and checksum; `None` if it is encrypted, or compressed with a method that
    /// Java does not support.
    pub(super) fn content<'a>(&self, data: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, String> {
        let stored = &data[self.data.clone()];
        if self.flags & ENCRYPTED != 0 {
            return Ok(None);
        }
        let content = match self.method {
            0 => Cow::Borrowed(stored),
            8 => {
                let mut content = Vec::with_capacity(stored.len().saturating_mul(3).min(1 << 24));
                // One byte more than promised is enough to see that the promise is wrong.
                let mut reader = DeflateDecoder::new(stored).take(self.size.saturating_add(1));
                reader.read_to_end(&mut content).map_err(|_| "its compressed data are damaged")?;
                Cow::Owned(content)
            }
            _ => return Ok(None),
        };
        self.compare(content.len() as u64, crc32fast::hash(&content))?;
        Ok(Some(content))
    }

    /// The same of what need not be looked into: it may be larger than memory.
    pub(super) fn check(&self, data: &[u8]) -> Result<(), String> {
        let stored = &data[self.data.clone()];
        if self.flags & ENCRYPTED != 0 {
            return Ok(());
        }
        let mut reader: Box<dyn Read + '_> = match self.method {
            0 => Box::new(stored),
            8 => Box::new(DeflateDecoder::new(stored).take(self.size.saturating_add(1))),
            _ => return Ok(()),
        };
        let (mut size, mut crc, mut piece) = (0, crc32fast::Hasher::new(), vec![0; 1 << 16]);
        loop {
            let read = reader.read(&mut piece).map_err(|_| "its compressed data are damaged")?;
            if read == 0 {
                return self.compare(size, crc.finalize());
            }
            size += read as u64;
            crc.update(&piece[..read]);
        }
    }

    fn compare(&self, size: u64, crc: u32) -> Result<(), String> {
        if size != self.size {
            return Err(format!("its size is not {}, the size in the directory", self.size));
        }
        if crc == self.crc { Ok(()) } else { Err("its checksum is wrong".into()) }
    }
}
