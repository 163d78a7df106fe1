//! The heap at some moments of a reading by blocks: what the rows of a life table do not tell of it, in few bytes.
//!
//! A glimpse is taken between two parts. Objects are numbered in the order of their births. It may have objects that were dead by then, as
//! far as that was not known yet: the rows tell which.

use et_names::{MethodId, varint};
use serde::{Deserialize, Serialize};

use crate::record::ThreadId;
use crate::resolve::ExtraField;

/// Thousandths of the run at about which glimpses are taken.
pub const SHARES: [u64; 3] = [500, 750, 875];

/// Why a glimpse was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// It is the one closest to so many thousandths of the calls and returns.
    Share(u64),
    /// Of all moments at which dead objects were looked for, most was alive then.
    Peak,
    /// Nothing follows.
    #[default]
    End,
}

/// The heap at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Glimpse {
    pub when: When,
    /// Number of objects made by then, and of records.
    pub births: u64,
    pub records: u64,
    pub tick: u64,
    /// Bytes allocated by then.
    pub bytes: u64,
    /// Nanoseconds since the start of the run, if known.
    pub nanos: Option<u64>,
    /// The ticket of the last events.
    pub ticket: u64,
    /// Bytes of the objects that were alive, as far as was known.
    pub live_bytes: u64,
    pub stacks: Vec<StackThen>,
    /// Objects that the VM holds to the end.
    pub held: Vec<u64>,
    /// Static fields, by number, and what they hold.
    pub statics: Vec<(u32, u64)>,
    /// What slots hold, by [`Packer`].
    #[serde(skip)]
    pub(super) packed: Vec<u8>,
}

/// The stack of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StackThen {
    pub thread: ThreadId,
    /// Methods and their receivers, outermost first.
    pub frames: Vec<(MethodId, Option<u64>)>,
    pub in_flight: Option<u64>,
}

impl Glimpse {
    /// Number of bytes that tell what slots hold.
    pub(super) fn packed_len(&self) -> usize {
        self.packed.len()
    }

    /// Calls `visit` with each object that holds something, in the order of births, the number of the slot, and what it holds. `None` if
    /// the bytes are damaged.
    pub fn each_reference(&self, mut visit: impl FnMut(u64, u32, u64)) -> Option<()> {
        let (mut rest, mut origin) = (self.packed.as_slice(), 0u64);
        while !rest.is_empty() {
            origin = origin.checked_add(varint::take(&mut rest)?)?;
            for _ in 0..varint::take(&mut rest)? {
                let slot = u32::try_from(varint::take(&mut rest)?).ok()?;
                let distance = varint::take_difference(&mut rest)?;
                visit(origin, slot, origin.wrapping_add_signed(distance));
            }
        }
        Some(())
    }
}

/// Packs what slots hold: of each object that holds something the distance from the one before, the number of its slots, and of each its number and the
/// distance to what it holds, as LEB128.
#[derive(Debug, Default)]
pub(super) struct Packer {
    pub(super) packed: Vec<u8>,
    last: u64,
}

impl Packer {
    /// Adds the slots of an object, which come in the order of births.
    pub fn add(&mut self, origin: u64, slots: &[(u32, u64)]) {
        if slots.is_empty() {
            return;
        }
        self.pack(origin - self.last);
        self.last = origin;
        self.pack(slots.len() as u64);
        for &(slot, target) in slots {
            self.pack(slot.into());
            varint::put_difference(&mut self.packed, target.wrapping_sub(origin) as i64);
        }
    }

    fn pack(&mut self, value: u64) {
        varint::put(&mut self.packed, value);
    }

    pub fn into(self, glimpse: Glimpse) -> Glimpse {
        Glimpse { packed: self.packed, ..glimpse }
    }
}

/// The glimpses of a reading, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Glimpses {
    pub all: Vec<Glimpse>,
    /// Fields that no names table has.
    pub extra_fields: Vec<ExtraField>,
}

/// What precedes the slots in bytes that are kept.
#[derive(Serialize, Deserialize)]
struct Head<'g> {
    glimpses: std::borrow::Cow<'g, Glimpses>,
    lengths: Vec<usize>,
}

impl Glimpses {
    /// As bytes, to be kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let lengths = self.all.iter().map(|glimpse| glimpse.packed.len()).collect();
        let head = Head { glimpses: std::borrow::Cow::Borrowed(self), lengths };
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        self.all.iter().for_each(|glimpse| bytes.extend_from_slice(&glimpse.packed));
        bytes
    }

    /// From such bytes; `None` if they are no such.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        let Head { glimpses, lengths } = serde_json::from_slice(&bytes[..end]).ok()?;
        let (mut glimpses, mut rest) = (glimpses.into_owned(), &bytes[end + 1..]);
        for (glimpse, len) in glimpses.all.iter_mut().zip(lengths) {
            let (packed, behind) = rest.split_at_checked(len)?;
            glimpse.packed = packed.to_vec();
            rest = behind;
        }
        rest.is_empty().then_some(glimpses)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glimpse() -> Glimpse {
        Glimpse {
            when: When::Share(500),
            births: 9,
            records: 8,
            tick: 7,
            bytes: 6,
            nanos: Some(5),
            ticket: 4,
            live_bytes: 3,
            stacks: vec![StackThen { thread: ThreadId(1), frames: vec![(MethodId(2), None)], in_flight: Some(3) }],
            held: vec![1, 2],
            statics: vec![(1, 2)],
            packed: Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn slots_are_what_was_packed(
            objects in prop::collection::btree_map(any::<u32>(), prop::collection::vec((any::<u32>(), any::<u64>()), 0..4), 0..6),
        ) {
            let mut packer = Packer::default();
            objects.iter().for_each(|(&origin, slots)| packer.add(origin.into(), slots));
            let glimpses = Glimpses { all: vec![glimpse(), packer.into(glimpse()), glimpse()], ..Glimpses::default() };
            let again = Glimpses::from_bytes(&glimpses.to_bytes()).unwrap();
            prop_assert_eq!(&again, &glimpses);
            let mut found = Vec::new();
            again.all[1].each_reference(|origin, slot, target| found.push((origin, slot, target))).unwrap();
            let expected = objects.iter().flat_map(|(&origin, slots)| slots.iter().map(move |&(slot, target)| (origin.into(), slot, target)));
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }

        #[test]
        fn damaged_bytes_are_no_panic(
            numbers in prop::collection::vec(prop_oneof![0..4u64, any::<u64>(), Just(u64::MAX)], 0..12),
            cut in any::<prop::sample::Index>(),
            changed in any::<u8>(),
        ) {
            let mut packer = Packer::default();
            numbers.iter().for_each(|&number| packer.pack(number));
            let damaged = packer.into(glimpse());
            let _ = damaged.each_reference(|_, _, _| {});
            let mut bytes = Glimpses { all: vec![damaged], ..Glimpses::default() }.to_bytes();
            let at = cut.index(bytes.len());
            prop_assert!(Glimpses::from_bytes(&bytes[..at]).is_none(), "a part of it");
            bytes[at] ^= changed;
            if let Some(read) = Glimpses::from_bytes(&bytes) {
                read.all.iter().for_each(|glimpse| _ = glimpse.each_reference(|_, _, _| {}));
            }
        }
    }
}
