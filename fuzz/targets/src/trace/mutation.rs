//! Mutations of traces. Checksums and lengths are right again afterwards: bytes that are changed at random would nearly all
//! end there, and nothing behind would be fuzzed.

use std::borrow::Cow;
use std::cell::RefCell;

use et_format::event::{Ticket, WORD, any, len_words};
use et_format::{BLOCK_HEADER, BlockHeader, BlockKind, BlockPacker, Codec, FILE_HEADER, NewBlock, Wall};
use et_reader::TraceFile;
use et_reader::file::Block;

use super::split;
use crate::{Plain, Random};

thread_local! {
    /// Packing buffers, which are larger than a small trace.
    static PACKER: RefCell<BlockPacker> = RefCell::default();
}

/// Offset of the packed events, after their length, in the stored bytes of a block without timestamps.
const PACKED_AT: usize = 4;
/// More is not unpacked to be changed.
const MOST: u32 = 1 << 18;

/// A block of the new trace.
#[derive(Clone)]
struct Part<'a> {
    header: BlockHeader,
    wall: Option<Wall>,
    stored: Cow<'a, [u8]>,
    /// Content to pack in place of what is stored.
    raw: Option<Vec<u8>>,
}

/// Changes events, records, or whole blocks.
pub fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let (trace, buffers) = split(data);
    let file = TraceFile::from_bytes(trace.to_vec(), None).ok()?;
    let mut parts: Vec<Part<'_>> = file.blocks().iter().map(|block| Part::of(block, trace)).collect::<Option<_>>()?;
    let rest = file.blocks().last().map_or(FILE_HEADER, |block| block.at + block.header.stored_len as usize);
    let mut buffers = buffers.map(<[u8]>::to_vec);
    for _ in 0..=random.below(3) {
        match &mut buffers {
            Some(buffers) if random.one_in(3) => change_buffers(buffers, random, plain),
            _ if parts.is_empty() => return None,
            _ if random.one_in(6) => change_blocks(&mut parts, random),
            _ => change_content(&mut parts, random, plain)?,
        }
    }
    let mut out = trace.get(..FILE_HEADER)?.to_vec();
    for part in &parts {
        part.write(random, &mut out)?;
    }
    out.extend_from_slice(trace.get(rest..)?);
    out.extend_from_slice(&buffers.unwrap_or_default());
    Some(out)
}

/// Makes the checksums right of all blocks that there still are, and changes nothing else.
pub fn mend(data: &mut [u8]) {
    let mut at = FILE_HEADER;
    while let Some(Ok(Some(mut header))) = data.get(at..).map(BlockHeader::decode) {
        let start = at + BLOCK_HEADER;
        at = start + header.stored_len as usize;
        let Some(stored) = data.get(start..at) else { return };
        header.crc = crc32fast::hash(stored);
        data[start - BLOCK_HEADER..start].copy_from_slice(&header.encode());
    }
}

impl<'a> Part<'a> {
    fn of(block: &Block, trace: &'a [u8]) -> Option<Self> {
        let header = block.header;
        let stored = trace.get(block.at..block.at + header.stored_len as usize)?;
        Some(Self { header, wall: header.wall(stored), stored: Cow::Borrowed(stored), raw: None })
    }

    /// Its content; none if it cannot be unpacked.
    fn content(&self) -> Option<Vec<u8>> {
        match &self.raw {
            Some(raw) => Some(raw.clone()),
            None if self.header.raw_len > MOST => None,
            None => self.header.unpack(&self.stored).ok().map(Cow::into_owned),
        }
    }

    fn write(&self, random: &mut Random, out: &mut Vec<u8>) -> Option<()> {
        let Some(raw) = &self.raw else {
            out.extend_from_slice(&self.header.encode());
            out.extend_from_slice(&self.stored);
            return Some(());
        };
        let BlockHeader { kind, codec, thread, sequence, first_ticket, .. } = self.header;
        // libFuzzer can change what is not packed.
        let codec = if random.one_in(4) { Codec::Stored } else { codec };
        let block = NewBlock { kind, codec, thread, sequence, first_ticket, wall: self.wall };
        PACKER.with_borrow_mut(|packer| packer.write(out, block, raw)).ok()
    }
}

/// Takes a block away, doubles or moves one, cuts one in two, or has its header say something else.
fn change_blocks(parts: &mut Vec<Part<'_>>, random: &mut Random) {
    let (at, other) = (random.below(parts.len()), random.below(parts.len()));
    let like = parts[other].header;
    let part = &mut parts[at];
    match random.below(10) {
        0 => drop(parts.remove(at)),
        1 => {
            let double = part.clone();
            parts.insert(other, double);
        }
        2 => parts.swap(at, other),
        3 => part.header.thread = if random.one_in(2) { like.thread } else { random.below(5) as u32 },
        4 => {
            part.header.first_ticket = match random.below(3) {
                0 => like.first_ticket,
                1 => Ticket(random.below(12) as u64),
                _ => Ticket(extreme(random).into()),
            };
        }
        5 => {
            part.raw = part.content();
            part.wall = Wall::from_fields(random.below(3) as u64 * 1_000_000, random.below(4) as u64 * 700_000);
        }
        6 => {
            part.raw = part.content();
            part.header.codec = [Codec::Stored, Codec::Zstd, Codec::Packed][random.below(3)];
        }
        7 => part.header.kind = like.kind,
        8 => part.header.sequence = like.sequence,
        _ => {
            let Some(raw) = part.content() else { return };
            let mut events = events_of(&raw);
            let behind = events.split_off(random.below(events.len() + 1));
            let mut second = part.clone();
            (part.raw, second.raw) = (Some(bytes_of(&events)), Some(bytes_of(&behind)));
            parts.insert(at + 1, second);
        }
    }
}

fn change_content(parts: &mut [Part<'_>], random: &mut Random, plain: Plain<'_>) -> Option<()> {
    let (at, other) = (random.below(parts.len()), random.below(parts.len()));
    let header = parts[at].header;
    if matches!(header.codec, Codec::Packed | Codec::Columns)
        && parts[at].raw.is_none()
        && !header.is_timed
        && random.one_in(3)
    {
        return change_packed(&mut parts[at], plain);
    }
    let mut raw = parts[at].content()?;
    match header.kind {
        BlockKind::Names => raw = crate::names::mutate(&raw, random, plain)?,
        BlockKind::Events if !random.one_in(8) => {
            let mut events = events_of(&raw);
            let other = Some(&parts[other]).filter(|part| part.header.kind == BlockKind::Events);
            let donor = other.and_then(Part::content).map_or_else(|| events.clone(), |raw| events_of(&raw));
            change_events(&mut events, &donor, random);
            raw = bytes_of(&events);
        }
        BlockKind::Meta | BlockKind::Problem | BlockKind::Progress | BlockKind::End if random.one_in(2) => {
            change_number(&mut raw, random);
        }
        BlockKind::Events | BlockKind::Meta | BlockKind::Problem | BlockKind::Progress | BlockKind::End => {
            plain(&mut raw);
        }
        _ if raw.len() >= WORD && random.one_in(2) => {
            // Ids may be anywhere.
            let (to, from) = (random.below(raw.len() - WORD + 1), random.below(raw.len() - WORD + 1));
            let value = match random.below(3) {
                0 => u32::from_le_bytes(raw[from..from + WORD].try_into().ok()?),
                1 => random.below(48) as u32,
                _ => extreme(random),
            };
            raw[to..to + WORD].copy_from_slice(&value.to_le_bytes());
        }
        _ => plain(&mut raw),
    }
    parts[at].raw = Some(raw);
    Some(())
}

/// Changes what packing made of events or stacks, which is compressed.
fn change_packed(part: &mut Part<'_>, plain: Plain<'_>) -> Option<()> {
    let (len, frame) = part.stored.split_at_checked(PACKED_AT)?;
    let len = u32::from_le_bytes(len.try_into().ok()?).min(MOST);
    let mut packed = zstd::bulk::decompress(frame, len as usize).ok()?;
    plain(&mut packed);
    let mut stored = (packed.len() as u32).to_le_bytes().to_vec();
    stored.extend(zstd::bulk::compress(&packed, 1).ok()?);
    (part.header.stored_len, part.header.crc) = (stored.len() as u32, crc32fast::hash(&stored));
    part.stored = Cow::Owned(stored);
    Some(())
}

/// Events as words; an incomplete event at the end is included as one.
fn events_of(raw: &[u8]) -> Vec<Vec<u32>> {
    let words: Vec<u32> = raw.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
    let mut events = Vec::new();
    let mut rest = words.as_slice();
    while let Some(&first) = rest.first() {
        let len = len_words(first).unwrap_or(rest.len()).min(rest.len());
        events.push(rest[..len].to_vec());
        rest = &rest[len..];
    }
    events
}

fn bytes_of(events: &[Vec<u32>]) -> Vec<u8> {
    events.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

/// Numbers at the ends of what fields can hold.
fn extreme(random: &mut Random) -> u32 {
    let near = random.below(3) as u32;
    [near, u32::MAX - near, (1 << 31) + near - 1, (1 << 30) + near - 1, 1 << random.below(32)][random.below(5)]
}

/// Takes events away, repeats, moves or makes some, or has one name what another names.
fn change_events(events: &mut Vec<Vec<u32>>, donor: &[Vec<u32>], random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(events.len());
        let some = |of: &[Vec<u32>], random: &mut Random| {
            let from = random.below(of.len());
            let to = (from + 1 + random.below(4)).min(of.len());
            of.get(from..to).unwrap_or_default().to_vec()
        };
        match random.below(9) {
            0 => {
                let to = (at + 1 + random.below(4)).min(events.len());
                drop(events.drain(at.min(to)..to));
            }
            1 => {
                let repeated = some(events, random);
                drop(events.splice(at..at, repeated));
            }
            2 => {
                let taken = some(donor, random);
                drop(events.splice(at..at, taken));
            }
            3 if !events.is_empty() => {
                let other = random.below(events.len());
                events.swap(at, other);
            }
            4 | 5 => events.insert(at, new_event(donor, random)),
            _ => {
                let value = value(donor, random);
                let Some(event) = events.get_mut(at) else { continue };
                let word = random.below(event.len());
                event[word] = match word {
                    // The kind stays: another would take other words.
                    0 if event[0] & 3 == 3 => event[0] & 0xff | value << 8,
                    0 => event[0] & 3 | value << 2,
                    _ => value,
                };
                fit(event);
            }
        }
    }
}

/// A word that the trace has somewhere, or one near it, a small one, or one at an end.
fn value(donor: &[Vec<u32>], random: &mut Random) -> u32 {
    let known = random.pick(donor).and_then(|event| random.pick(event)).copied().unwrap_or_default();
    match random.below(8) {
        0 => random.below(48) as u32,
        1 => extreme(random),
        2 => known.wrapping_add(1),
        3 => known >> 2,
        _ => known,
    }
}

/// An event of any kind about what the trace has somewhere.
fn new_event(donor: &[Vec<u32>], random: &mut Random) -> Vec<u32> {
    let mut event = any::words(|| value(donor, random));
    if random.one_in(4) {
        // Parts of the payload that no version has written yet, and small ones.
        let payload = if random.one_in(2) { 1 + random.below(4) as u32 } else { value(donor, random) };
        event[0] = match event[0] & 3 {
            3 => event[0] & 0xff | payload << 8,
            // Most methods are those of such events.
            form => form | random.pick(donor).map_or(1 << 2, |event| event[0]) & !3,
        };
    }
    fit(&mut event);
    event
}

/// Events that are longer or shorter than their first words say would have all that follow misread.
fn fit(event: &mut Vec<u32>) {
    if let Some(len) = len_words(event[0]) {
        event.resize(len, 0);
    }
}

/// Puts another number in place of one.
fn change_number(json: &mut Vec<u8>, random: &mut Random) {
    let starts: Vec<usize> = (1..json.len())
        .filter(|&at| json[at].is_ascii_digit() && matches!(json[at - 1], b':' | b'[' | b',' | b' '))
        .collect();
    let Some(&start) = random.pick(&starts) else { return };
    let digits = json[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = ["0", "1", "-1", "1e300", "4294967295", "18446744073709551615", "9223372036854775807", "17", "null"];
    let number = number[random.below(number.len())].bytes();
    drop(json.splice(start..start + digits, number));
}

/// Changes some bytes at one place of a buffer file, and as a rule leaves all others where they were: everything there has its place.
fn change_buffers(buffers: &mut Vec<u8>, random: &mut Random, plain: Plain<'_>) {
    // Most of it is empty.
    let used: Vec<usize> =
        (0..buffers.len()).step_by(WORD).filter(|&at| buffers[at..].iter().take(WORD).any(|&byte| byte != 0)).collect();
    let Some(&at) = random.pick(&used) else { return };
    let end = (at + [WORD, 2 * WORD, 64][random.below(3)]).min(buffers.len());
    if random.one_in(2) {
        let from = used[random.below(used.len())];
        let value = match random.below(3) {
            0 => buffers[from..].iter().copied().take(WORD).collect(),
            1 => (random.below(48) as u32).to_le_bytes().to_vec(),
            _ => extreme(random).to_le_bytes().to_vec(),
        };
        buffers[at..].iter_mut().zip(value).for_each(|(byte, new)| *byte = new);
        return;
    }
    let mut part = buffers[at..end].to_vec();
    plain(&mut part);
    if !random.one_in(8) {
        part.resize(end - at, 0);
    }
    drop(buffers.splice(at..end, part));
}
