//! Which objects were still in the heap at some moments (`survival=5`): the survivors of the collections so far.

use super::fields::{Fields, put_len, put_u64};
use super::{FormatError, Nanos};
use crate::event::{ObjectHash, Ticket};

/// Maximum number of objects in a block: a walk that found more has several.
const PART: usize = 1 << 23;
const AT_THE_END: u8 = 1;
const IS_EXACT: u8 = 2;

/// A walk through the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapWalk {
    /// Taken before the walk: objects whose event has an earlier ticket were there when it began.
    pub begin: Ticket,
    /// Taken after it: what it did not find was gone by then.
    pub end: Ticket,
    /// When it began.
    pub nanos: Nanos,
    /// How long it took.
    pub duration: Nanos,
    /// Whether it is the one at the end of the trace.
    pub at_the_end: bool,
    /// Whether it found what could be reached and nothing else. Others find what no collection has freed yet as well.
    pub is_exact: bool,
}

/// Some or all of the objects that a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivors {
    /// The walk.
    pub walk: HeapWalk,
    /// Which part of what it found this is, from 0, and how many parts there are.
    pub part: (u32, u32),
    /// Sorted, without repetition. Objects that the trace does not tell of are among them.
    pub objects: Vec<ObjectHash>,
}

impl HeapWalk {
    /// The contents of the `Survivors` blocks for what it found, which is to be sorted and without repetition.
    pub fn encode(self, objects: &[u32]) -> Vec<Vec<u8>> {
        let parts: Vec<&[u32]> = if objects.is_empty() { vec![&[]] } else { objects.chunks(PART).collect() };
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        (0..).zip(parts).map(|(part, objects)| self.encode_part((part, count), objects)).collect()
    }

    fn encode_part(self, (part, parts): (u32, u32), objects: &[u32]) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 3 * objects.len());
        let Self { begin, end, nanos, duration, at_the_end, is_exact } = self;
        [begin.0, end.0, nanos.0, duration.0].into_iter().for_each(|value| put_u64(&mut out, value));
        let flags = [(at_the_end, AT_THE_END), (is_exact, IS_EXACT)].into_iter().filter(|(is_set, _)| *is_set);
        out.push(flags.map(|(_, bit)| bit).sum());
        [part, parts].into_iter().for_each(|value| super::fields::put_u32(&mut out, value));
        put_len(&mut out, objects.len());
        let mut last = 0;
        for &object in objects {
            et_names::varint::put(&mut out, object.wrapping_sub(last));
            last = object;
        }
        out
    }
}

impl Survivors {
    /// The ticket of the walk, which stands in the header of the block as well: readers need it before they unpack
    /// anything.
    pub fn ticket(raw: &[u8]) -> Ticket {
        Ticket(Fields::new(raw).u64().unwrap_or(0))
    }

    /// Decodes a `Survivors` block.
    pub fn decode(raw: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new(raw);
        let (begin, end) = (Ticket(fields.u64()?), Ticket(fields.u64()?));
        let (nanos, duration) = (Nanos(fields.u64()?), Nanos(fields.u64()?));
        let flags = fields.u8()?;
        let part = (fields.u32()?, fields.u32()?);
        if part.0 >= part.1 || begin > end {
            return fields.fail("walk through the heap");
        }
        let count = fields.count(1)?;
        let mut objects = Vec::with_capacity(count);
        let mut last = ObjectHash::NULL;
        for _ in 0..count {
            let object = last.0.checked_add(fields.varint()?).map(ObjectHash::of_word);
            match object.filter(|&object| object > last) {
                Some(object) => objects.push(object),
                None => return fields.fail("survivors are not in order"),
            }
            last = objects[objects.len() - 1];
        }
        if !fields.done() {
            return fields.fail("bytes after the last survivor");
        }
        let walk = HeapWalk {
            begin,
            end,
            nanos,
            duration,
            at_the_end: flags & AT_THE_END != 0,
            is_exact: flags & IS_EXACT != 0,
        };
        Ok(Self { walk, part, objects })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk() -> HeapWalk {
        HeapWalk {
            begin: Ticket(70),
            end: Ticket(75),
            nanos: Nanos(1_000_000),
            duration: Nanos(5_000),
            at_the_end: false,
            is_exact: true,
        }
    }

    #[test]
    fn survivors_are_read_as_they_were_written() {
        for objects in [vec![], vec![1], vec![1, 2, 300, 70_000, 0x7fff_fffe, 0x7fff_ffff]] {
            let blocks = walk().encode(&objects);
            assert_eq!(blocks.len(), 1);
            assert_eq!(Survivors::ticket(&blocks[0]), Ticket(70));
            let hashes = objects.into_iter().map(ObjectHash).collect();
            let expected = Survivors { walk: walk(), part: (0, 1), objects: hashes };
            assert_eq!(Survivors::decode(&blocks[0]).unwrap(), expected);
        }
    }

    #[test]
    fn many_are_in_several_blocks() {
        let objects: Vec<u32> = (1..=PART as u32 + 5).collect();
        let blocks = walk().encode(&objects);
        let read: Vec<Survivors> = blocks.iter().map(|raw| Survivors::decode(raw).unwrap()).collect();
        assert_eq!(read.iter().map(|read| read.part).collect::<Vec<_>>(), [(0, 2), (1, 2)]);
        assert!(read.iter().flat_map(|read| &read.objects).map(|object| object.0).eq(objects));
    }

    #[test]
    fn damage_is_found() {
        let raw = walk().encode(&[5, 9]).remove(0);
        assert!(Survivors::decode(&raw[..raw.len() - 1]).is_err(), "one is missing");
        let mut repeated = raw.clone();
        *repeated.last_mut().unwrap() = 0;
        assert!(Survivors::decode(&repeated).is_err(), "the same twice");
        let mut longer = raw.clone();
        longer.push(1);
        assert!(Survivors::decode(&longer).is_err());
        let too_large = [&raw[..raw.len() - 2], &[0xff, 0xff, 0xff, 0xff, 0xff, 1][..]].concat();
        assert!(Survivors::decode(&too_large).is_err());
        assert_eq!(Survivors::ticket(&[]), Ticket(0));
    }
}
