//! Reading: the central directory, and the data of an entry.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use flate2::read::DeflateDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::{CENTRAL, DEFLATED, END, END64, END64_LOCATOR, FLAG_ENCRYPTED, LOCAL, STORED, ZIP64_EXTRA, ZipError};

/// Deflate cannot do better than 1032:1, so a larger claim is false.
const MAX_RATIO: u64 = 1032;
const DAMAGED: &str = "the entry's compressed data is damaged";
/// Java's own limit for an entry in memory.
const MAX_ENTRY: u64 = i32::MAX as u64;

/// An archive's directory. It holds ranges, not slices, so that it can be kept beside the bytes it describes.
#[derive(Debug)]
pub struct Archive {
    /// Entries in the order of the central directory.
    pub entries: Vec<Entry>,
    /// Bytes before the first entry.
    pub prefix: Range<usize>,
    /// Difference between offsets in the file and those in the directory.
    pub shift: u64,
    /// Position of the archive's comment.
    pub comment: Range<usize>,
}

/// An entry as the central directory has it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As text, for matching and messages; the bytes are copied from `raw_name`.
    pub name: String,
    pub raw_name: Range<usize>,
    pub made_by: u16,
    pub needed: u16,
    pub flags: u16,
    pub method: u16,
    pub time_and_date: u32,
    pub crc: u32,
    pub size: u64,
    pub local_extra: Range<usize>,
    pub central_extra: Range<usize>,
    pub comment: Range<usize>,
    pub internal: u16,
    pub external: u32,
    /// Position of the stored data.
    pub data: Range<usize>,
}

/// Little-endian numbers with bounds.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u16(self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(at..at.checked_add(2)?)?.try_into().ok()?))
    }
    fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }
    fn u64(self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.0.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }
}

struct End {
    at: usize,
    directory_size: u64,
    directory_offset: u64,
    comment: Range<usize>,
}

impl Archive {
    /// Reads the directory of `data`.
    pub fn read(data: &[u8]) -> Result<Self, ZipError> {
        if data.is_empty() {
            return Err(ZipError::Empty);
        }
        let end = find_end(data)?;
        let outside = ZipError::Directory("its directory lies outside the file");
        let size = usize::try_from(end.directory_size).map_err(|_| ZipError::NoEnd)?;
        // Bytes before the zip shift all offsets; the directory ends where the end record starts.
        let Some(start) = end.at.checked_sub(size) else { return Err(outside) };
        let Some(shift) = (start as u64).checked_sub(end.directory_offset) else { return Err(outside) };

        let mut entries = Vec::new();
        let mut at = start;
        let mut total = 0u64;
        let mut first = start;
        while at < end.at {
            let (entry, local, next) = entry(data, at, end.at, shift)?;
            total += entry.data.len() as u64;
            first = first.min(local);
            entries.push(entry);
            at = next;
        }
        if total > data.len() as u64 {
            return Err(ZipError::Directory("its entries overlap"));
        }
        Ok(Self { entries, prefix: 0..first, shift, comment: end.comment })
    }
}

fn find_end(data: &[u8]) -> Result<End, ZipError> {
    let bytes = Bytes(data);
    let lowest = data.len().saturating_sub(22 + 0xffff);
    let candidates = (lowest..data.len().saturating_sub(21)).rev();
    let at = candidates
        .filter(|at| bytes.u32(*at) == Some(END))
        .find(|at| bytes.u16(at + 20).is_some_and(|length| at + 22 + usize::from(length) == data.len()))
        .ok_or(ZipError::NoEnd)?;
    let size = bytes.u32(at + 12).ok_or(ZipError::NoEnd)?;
    let offset = bytes.u32(at + 16).ok_or(ZipError::NoEnd)?;
    let comment = at + 22..data.len();
    let end64 = at.checked_sub(20).filter(|locator| bytes.u32(*locator) == Some(END64_LOCATOR)).and_then(|locator| {
        // The record directly precedes its locator, unless it has an extensible data sector.
        let declared = usize::try_from(bytes.u64(locator + 8)?).ok()?;
        let places = [Some(declared), locator.checked_sub(56)];
        let at = places.into_iter().flatten().find(|at| *at < locator && bytes.u32(*at) == Some(END64))?;
        Some(End {
            at,
            directory_size: bytes.u64(at + 40)?,
            directory_offset: bytes.u64(at + 48)?,
            comment: comment.clone(),
        })
    });
    Ok(end64.unwrap_or(End { at, directory_size: size.into(), directory_offset: offset.into(), comment }))
}

/// Reads the entry at offset `at` of the directory; returns also the offsets of its local header and of the next entry.
fn entry(data: &[u8], at: usize, end: usize, shift: u64) -> Result<(Entry, usize, usize), ZipError> {
    let bytes = Bytes(data);
    let cut = || ZipError::Directory("its directory is cut off");
    if bytes.u32(at) != Some(CENTRAL) {
        return Err(ZipError::Directory("its directory contains something other than entries"));
    }
    let u16 = |offset| bytes.u16(at + offset).ok_or_else(cut);
    let u32 = |offset| bytes.u32(at + offset).ok_or_else(cut);
    let raw_name = at + 46..at + 46 + usize::from(u16(28)?);
    let central_extra = raw_name.end..raw_name.end + usize::from(u16(30)?);
    let comment = central_extra.end..central_extra.end + usize::from(u16(32)?);
    let next = comment.end;
    if next > end {
        return Err(cut());
    }
    let name = String::from_utf8_lossy(&data[raw_name.clone()]).into_owned();
    let fail = |what| ZipError::Entry { name: name.clone(), what };

    // 4.5.3: the zip64 field holds, in this order, those values that do not fit.
    let (mut stored, mut size, mut offset) = (u64::from(u32(20)?), u64::from(u32(24)?), u64::from(u32(42)?));
    if let Some(field) = extra_field(&data[central_extra.clone()], ZIP64_EXTRA) {
        let mut at = 0;
        for value in [&mut size, &mut stored, &mut offset] {
            if *value == u64::from(u32::MAX) {
                *value = Bytes(field).u64(at).ok_or_else(|| fail("its zip64 field is too short"))?;
                at += 8;
            }
        }
    }

    let local = offset.checked_add(shift).and_then(|local| usize::try_from(local).ok());
    let local = local.filter(|local| bytes.u32(*local) == Some(LOCAL));
    let local = local.ok_or_else(|| fail("its header is not where the directory says"))?;
    let outside = || fail("its data lies outside the file");
    let name_length = bytes.u16(local + 26).ok_or_else(outside)?;
    let extra_length = bytes.u16(local + 28).ok_or_else(outside)?;
    let extra_start = local + 30 + usize::from(name_length);
    let start = extra_start + usize::from(extra_length);
    let stop = usize::try_from(stored).ok().and_then(|stored| start.checked_add(stored)).ok_or_else(outside)?;
    if stop > data.len() {
        return Err(outside());
    }
    let entry = Entry {
        raw_name,
        made_by: u16(4)?,
        needed: u16(6)?,
        flags: u16(8)?,
        method: u16(10)?,
        time_and_date: u32(12)?,
        crc: u32(16)?,
        size,
        local_extra: extra_start..start,
        central_extra,
        comment,
        internal: u16(36)?,
        external: u32(38)?,
        data: start..stop,
        name,
    };
    Ok((entry, local, next))
}

/// The content of the extra field with this id.
pub(super) fn extra_field(extra: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        let id = Bytes(extra).u16(at)?;
        let length = usize::from(Bytes(extra).u16(at + 2)?);
        let content = extra.get(at + 4..at + 4 + length)?;
        if id == wanted {
            return Some(content);
        }
        at += 4 + length;
    }
}

impl Entry {
    /// Memory that the content takes in bytes: 0 if it is stored uncompressed.
    pub fn unpacked(&self) -> u64 {
        if self.method == STORED { 0 } else { self.size }
    }

    /// Whether the data are the content.
    pub fn is_stored(&self) -> bool {
        self.method == STORED && self.flags & FLAG_ENCRYPTED == 0
    }

    /// The first `length` bytes of the content, or fewer if it is shorter. Unpacks no more than that.
    pub fn start(&self, data: &[u8], length: usize) -> Result<Vec<u8>, ZipError> {
        let mut start = Vec::with_capacity(length);
        self.pieces(data, &mut |piece| {
            start.extend_from_slice(&piece[..piece.len().min(length - start.len())]);
            start.len() < length
        })?;
        Ok(start)
    }

    /// The last `length` bytes of the content, or fewer if it is shorter. Unpacks everything but keeps only these in
    /// memory.
    pub fn tail(&self, data: &[u8], length: usize) -> Result<Vec<u8>, ZipError> {
        let mut tail = Vec::new();
        self.pieces(data, &mut |piece| {
            tail.extend_from_slice(piece);
            let surplus = tail.len().saturating_sub(length);
            tail.drain(..surplus);
            true
        })?;
        Ok(tail)
    }

    /// Hands on the content piece by piece, as long as more is wanted.
    fn pieces(&self, data: &[u8], wants_more: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), ZipError> {
        if self.flags & FLAG_ENCRYPTED != 0 {
            return Err(ZipError::Unreadable("the entry is encrypted"));
        }
        let stored = &data[self.data.clone()];
        match self.method {
            STORED => _ = wants_more(stored),
            DEFLATED => {
                let mut reader = DeflateDecoder::new(stored).take(self.size.saturating_add(1));
                let mut piece = [0; 1 << 13];
                loop {
                    let read = reader.read(&mut piece).map_err(|_| ZipError::Unreadable(DAMAGED))?;
                    if read == 0 || !wants_more(&piece[..read]) {
                        break;
                    }
                }
            }
            method => return Err(ZipError::Method(method)),
        }
        Ok(())
    }

    /// The content, unless it is larger than that.
    pub fn content_within<'a>(&self, data: &'a [u8], most: u64) -> Result<Cow<'a, [u8]>, ZipError> {
        if self.unpacked() > most {
            return Err(ZipError::Unreadable("the entry is too large to be unpacked"));
        }
        self.content(data)
    }

    /// The content, decompressed and with its checksum verified. Takes [`unpacked`](Self::unpacked) bytes of memory,
    /// which have to be claimed first.
    pub fn content<'a>(&self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, ZipError> {
        if self.flags & FLAG_ENCRYPTED != 0 {
            return Err(ZipError::Unreadable("the entry is encrypted"));
        }
        let stored = &data[self.data.clone()];
        let content = match self.method {
            STORED => Cow::Borrowed(stored),
            DEFLATED => Cow::Owned(self.inflate(stored)?),
            method => return Err(ZipError::Method(method)),
        };
        if content.len() as u64 != self.size {
            return Err(ZipError::Unreadable("the size of the entry's data differs from the directory"));
        }
        if crc32fast::hash(&content) != self.crc {
            return Err(ZipError::Unreadable("the entry's checksum is wrong"));
        }
        Ok(content)
    }

    fn inflate(&self, stored: &[u8]) -> Result<Vec<u8>, ZipError> {
        // The claim decides how much is allocated, so it must be possible.
        if self.size > MAX_ENTRY || self.size > (stored.len() as u64).saturating_mul(MAX_RATIO) + 64 {
            return Err(ZipError::Unreadable("the entry claims a size that its data cannot have"));
        }
        let mut content = Vec::with_capacity(self.size as usize + 1);
        let status = Decompress::new(false).decompress_vec(stored, &mut content, FlushDecompress::Finish);
        match status {
            Ok(Status::StreamEnd) => Ok(content),
            _ => Err(ZipError::Unreadable(DAMAGED)),
        }
    }

    /// Whether it is a folder, whose name ends with a slash.
    pub fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }
}
