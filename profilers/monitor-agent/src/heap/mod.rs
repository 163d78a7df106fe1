//! The heap as runs of allocation units.
//!
//! Addresses in the protocol have 32 bits. Those that are sent are relative to the start of the address range reserved
//! for the heap; a heap of more than 4 GB becomes several heaps in the protocol, numbered from [`FIRST`], one for every
//! 4 GB. `ETBA` contains the actual start of each.
//!
//! If addresses cannot be read, or the VM does not reveal the location of its heap (ZGC), the layout is a logical one:
//! objects are adjacent in the order in which the VM visits them, followed by the free memory.

mod levels;
pub mod native;
mod place;
pub mod share;
mod walk;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use et_ddm::segment::{Form, Segment, SegmentWriter, State};
use et_ddm::wire::Writer;
use et_ddm::{Chunk, ChunkType, Message};
use et_jvm::env::Env;
use et_jvm::jvmti::JvmtiError;

use crate::hub::{Line, Note};
use crate::state::Monitor;
use walk::Found;

/// The number of the heap, or of its first 4 GB.
pub const FIRST: u32 = 1;
/// Bytes of an allocation unit.
const UNIT: u8 = 8;
/// Maximum number of runs in a chunk, which take 64 KB.
const MOST_RUNS: usize = 32_000;
const PIECE: u64 = 1 << 32;
/// Where a heap of the protocol really begins: u4 heap, u8 address.
const ETBA: ChunkType = ChunkType(*b"ETBA");
/// How many objects there were when they were last counted.
static OBJECTS: AtomicU64 = AtomicU64::new(0);

/// How many objects there are. With `may_be_old` as many as there were when they were last counted, if walks have had their share of the time.
pub fn count(monitor: &Monitor, may_be_old: bool) -> u64 {
    if !may_be_old || share::is_due() {
        OBJECTS.store(share::walk(|| walk::count(monitor)), Ordering::Relaxed);
    }
    OBJECTS.load(Ordering::Relaxed)
}

/// A stretch of memory of one heap, and what is in it.
#[derive(Debug)]
struct Stretch {
    heap: u32,
    /// Offset from the start of the heap.
    address: u32,
    /// Side by side: an object or a gap, in units.
    units: Vec<(State, u64)>,
}

/// Sends the heap to those connections: with the ends of objects, or without.
pub fn send(monitor: &Monitor, env: Env, to: &[(Arc<Line>, bool)]) -> Result<(), JvmtiError> {
    let (objects, has_addresses) = share::walk(|| walk::objects(monitor, env))?;
    let hotspot = monitor.hotspot.get();
    let reserved = hotspot.and_then(|hotspot| hotspot.heap_reserved()).filter(|_| has_addresses);
    let real = reserved.and_then(|reserved| {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let parts = place::committed(&maps, &reserved);
        Some((reserved.start, by_address(&objects, &parts, reserved.start)?))
    });
    let committed = hotspot.map_or(0, |hotspot| hotspot.heap_use().committed);
    let (base, stretches) = match real {
        Some((base, stretches)) => (Some(base), stretches),
        None => (None, logical(&objects, committed)),
    };
    drop(objects);
    for with_ends in [false, true] {
        let lines: Vec<&Arc<Line>> = to.iter().filter(|(_, ends)| *ends == with_ends).map(|(line, _)| line).collect();
        if !lines.is_empty() {
            let form = if with_ends { Form::Objects } else { Form::Merged };
            tell(monitor, &lines, form, base, &stretches);
        }
    }
    Ok(())
}

fn tell(monitor: &Monitor, lines: &[&Arc<Line>], form: Form, base: Option<u64>, stretches: &[Stretch]) {
    let put = |message: Message| {
        for line in lines {
            if line.has_room() {
                monitor.hub.put(Note::To(Arc::clone(line), message.clone()));
            }
        }
    };
    let heaps = stretches.iter().map(|stretch| stretch.heap).max().unwrap_or(FIRST);
    for heap in FIRST..=heaps {
        put(Message::HeapStart { heap, native: false });
        if let Some(base) = base {
            let real = base + u64::from(heap - FIRST) * PIECE;
            put(Message::Other(Chunk::new(ETBA, Writer::default().u4(heap).u8(real).finish())));
        }
        for stretch in stretches.iter().filter(|stretch| stretch.heap == heap) {
            let mut writer = SegmentWriter::new(form, heap, UNIT, stretch.address, MOST_RUNS);
            for (state, units) in &stretch.units {
                writer.push(*state, *units);
                for segment in writer.take_done() {
                    put(Message::HeapSegment(segment));
                }
            }
            let rest: Vec<Segment> = writer.finish();
            rest.into_iter().for_each(|segment| put(Message::HeapSegment(segment)));
        }
        put(Message::HeapEnd { heap, native: false });
    }
}

/// Cuts parts at every 4 GB from the base.
fn cut(parts: &[Range<u64>], base: u64) -> Vec<Range<u64>> {
    let mut cut = Vec::new();
    for part in parts {
        let mut start = part.start;
        while start < part.end {
            let end = part.end.min(base + ((start - base) / PIECE + 1) * PIECE);
            cut.push(start..end);
            start = end;
        }
    }
    cut
}

/// Objects by address, in the parts that contain them. `None` if one is elsewhere.
fn by_address(objects: &[Found], parts: &[Range<u64>], base: u64) -> Option<Vec<Stretch>> {
    let (mut objects, mut stretches) = (objects.iter().peekable(), Vec::new());
    // The rest of an object that continues in the next part.
    let mut rest: Option<(State, u64)> = None;
    for part in cut(parts, base) {
        let mut units = Vec::new();
        let mut at = part.start;
        let mut push = |at: &mut u64, state: State, count: u64| -> Option<(State, u64)> {
            let fits = count.min((part.end - *at) / 8);
            if fits > 0 {
                units.push((state, fits));
                *at += fits * 8;
            }
            (count > fits).then_some((state, count - fits))
        };
        if let Some((state, count)) = rest.take() {
            rest = push(&mut at, state, count);
        }
        while let Some(object) = objects.next_if(|object| object.address < part.end) {
            // Before the part, or inside the object before.
            if object.address < at || rest.is_some() {
                return None;
            }
            let gap = (object.address - at) / 8;
            push(&mut at, State::FREE, gap);
            rest = push(&mut at, object.state, u64::from(object.units));
        }
        let gap = (part.end - at) / 8;
        push(&mut at, State::FREE, gap);
        let from_base = part.start - base;
        stretches.push(Stretch { heap: FIRST + (from_base / PIECE) as u32, address: from_base as u32, units });
    }
    (objects.peek().is_none() && rest.is_none()).then_some(stretches)
}

/// Adjacent objects, followed by the free part of `committed` bytes.
fn logical(objects: &[Found], committed: u64) -> Vec<Stretch> {
    let mut stretches = vec![Stretch { heap: FIRST, address: 0, units: Vec::new() }];
    let mut room = PIECE / 8;
    let mut push = |state: State, mut count: u64| {
        while count > 0 {
            if room == 0 {
                let heap = FIRST + stretches.len() as u32;
                stretches.push(Stretch { heap, address: 0, units: Vec::new() });
                room = PIECE / 8;
            }
            let fits = count.min(room);
            if let Some(last) = stretches.last_mut() {
                last.units.push((state, fits));
            }
            room -= fits;
            count -= fits;
        }
    };
    let mut used = 0;
    for object in objects {
        used += u64::from(object.units);
        push(object.state, object.units.into());
    }
    push(State::FREE, (committed / 8).saturating_sub(used));
    stretches
}

#[cfg(test)]
mod tests {
    use et_ddm::segment::{Kind, Solidity};

    use super::*;

    const HARD: State = State { solidity: Solidity::Hard, kind: Kind::Object };
    const BASE: u64 = 0x7_0000_0000;

    fn found(offset: u64, units: u32) -> Found {
        Found { address: BASE + offset, units, state: HARD }
    }

    #[test]
    fn what_lies_between_objects_is_free() {
        let parts = [BASE..BASE + 0x100, BASE + 0x1000..BASE + 0x1080];
        let stretches = by_address(&[found(0x10, 2), found(0x20, 3), found(0x1000, 16)], &parts, BASE).unwrap();
        assert_eq!(stretches[0].units, [(State::FREE, 2), (HARD, 2), (HARD, 3), (State::FREE, 25)]);
        assert_eq!((stretches[1].address, &stretches[1].units[..]), (0x1000, &[(HARD, 16)][..]));
        assert!(by_address(&[found(0x800, 1)], &parts, BASE).is_none(), "outside");
        assert!(by_address(&[found(0, 4), found(8, 1)], &parts, BASE).is_none(), "one inside the other");
    }

    #[test]
    fn four_gigabytes_are_a_heap() {
        let part = BASE + PIECE - 16..BASE + PIECE + 32;
        let stretches = by_address(&[found(PIECE - 8, 3)], std::slice::from_ref(&part), BASE).unwrap();
        let heaps: Vec<_> = stretches.iter().map(|it| (it.heap, it.address, it.units.clone())).collect();
        let first = (FIRST, (PIECE - 16) as u32, vec![(State::FREE, 1), (HARD, 1)]);
        assert_eq!(heaps, [first, (FIRST + 1, 0, vec![(HARD, 2), (State::FREE, 2)])]);
    }

    #[test]
    fn a_logical_layout_has_the_same_totals() {
        let stretches = logical(&[found(0, 4), found(900, 6)], 160);
        assert_eq!(stretches.len(), 1);
        assert_eq!(stretches[0].units, [(HARD, 4), (HARD, 6), (State::FREE, 10)]);
        let huge = logical(&[found(0, 1)], PIECE + 64);
        assert_eq!(huge[1].units, [(State::FREE, 8)]);
    }
}
