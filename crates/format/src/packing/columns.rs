//! Columns: records of one kind, field by field, each as its difference from what is expected. For blocks of counts, and of
//! stacks.
//!
//! Counts of one block have no order, so they are sorted: what is close together has almost the same stack.

use et_names::{SiteId, varint};

use super::UnpackError;
use crate::event::{self, Event, ObjectHash};
use crate::stacks::StackRecord;

/// Packs blocks one after the other and reuses its buffers.
#[derive(Debug, Default)]
pub struct ColumnPacker {
    counts: Vec<Counted>,
    classes: Vec<u32>,
    sizes: Vec<u32>,
}

/// Objects of a class that were made on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Counted {
    site: u32,
    class: u32,
    objects: u32,
    units: u32,
}

impl ColumnPacker {
    /// Appends the packed form of a block of events. Returns false, and appends nothing, unless counts are all that follows the events
    /// before the first one.
    pub fn pack_counts(&mut self, raw: &[u8], out: &mut Vec<u8>) -> bool {
        self.counts.clear();
        let (mut at, mut before) = (0, 0);
        loop {
            match event::decode(&raw[at..]) {
                Ok(Some((Event::Counted { site, class, objects, units }, len))) => {
                    self.counts.push(Counted { site: site.0, class: class.0, objects, units });
                    at += len;
                }
                // Tickets.
                Ok(Some((_, len))) if self.counts.is_empty() && before < MOST_BEFORE => {
                    at += len;
                    before = at;
                }
                Ok(None) if at == raw.len() && !self.counts.is_empty() => break,
                _ => return false,
            }
        }
        self.counts.sort_unstable();
        self.classes.clear();
        self.classes.extend(self.counts.iter().map(|count| count.class));
        self.classes.sort_unstable();
        self.classes.dedup();
        varint::put(out, before as u64);
        out.extend_from_slice(&raw[..before]);
        varint::put(out, self.counts.len() as u64);
        varint::put(out, self.classes.len() as u64);
        differences(out, self.classes.iter().copied());
        differences(out, self.counts.iter().map(|count| count.site));
        let Self { counts, classes, sizes } = self;
        let class_of = |count: &Counted| classes.binary_search(&count.class).unwrap_or_default();
        differences(out, counts.iter().map(|count| class_of(count) as u32));
        counts.iter().for_each(|count| varint::put(out, count.objects));
        sizes.clear();
        sizes.resize(classes.len(), 0);
        for count in counts.iter() {
            let size = &mut sizes[class_of(count)];
            varint::put_difference(out, i64::from(count.units).wrapping_sub(expected(count.objects, *size)));
            *size = count.units.checked_div(count.objects).unwrap_or(*size);
        }
        true
    }

    /// Appends the packed form of a block of stacks. Returns false, and appends nothing, if it has other records.
    pub fn pack_stacks(&mut self, raw: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(records) = StackRecord::decode_block(raw) else { return false };
        let is_frame = |record: &StackRecord| matches!(record, StackRecord::Frame { .. });
        if records.is_empty() || !records.iter().all(is_frame) {
            return false;
        }
        let frames = || {
            records.iter().filter_map(|record| match *record {
                StackRecord::Frame { number, caller, site } => Some((number, caller, site)),
                StackRecord::Counts(_) => None,
            })
        };
        varint::put(out, records.len() as u64);
        differences(out, frames().map(|(number, ..)| number));
        frames().for_each(|(number, caller, _)| {
            varint::put_difference(out, i64::from(number) - i64::from(caller));
        });
        differences(out, frames().map(|(.., site)| site));
        true
    }
}

/// Maximum number of bytes of the events before the first count.
const MOST_BEFORE: usize = 1 << 10;

/// Units of that many objects, if each is as large as the last ones of their class.
fn expected(objects: u32, size: u32) -> i64 {
    (u64::from(objects) * u64::from(size)) as i64
}

fn differences(out: &mut Vec<u8>, column: impl Iterator<Item = u32>) {
    let mut last = 0;
    for value in column {
        varint::put_difference(out, i64::from(value) - i64::from(last));
        last = value;
    }
}

/// Columns that are read one after the other.
struct Columns<'a>(&'a [u8]);

impl Columns<'_> {
    fn number(&mut self) -> Result<u64, UnpackError> {
        varint::take(&mut self.0).ok_or(UnpackError::CutOff)
    }

    /// A number of values, each of which takes at least a byte.
    fn len(&mut self) -> Result<usize, UnpackError> {
        let len = self.number()?;
        usize::try_from(len).ok().filter(|len| *len <= self.0.len()).ok_or(UnpackError::CutOff)
    }

    fn difference(&mut self) -> Result<i64, UnpackError> {
        varint::take_difference(&mut self.0).ok_or(UnpackError::CutOff)
    }

    fn differences(&mut self, len: usize) -> Result<Vec<u32>, UnpackError> {
        let mut last = 0;
        let next = |_| {
            last = value(i64::from(last).wrapping_add(self.difference()?))?;
            Ok(last)
        };
        (0..len).map(next).collect()
    }
}

fn value(value: i64) -> Result<u32, UnpackError> {
    u32::try_from(value).map_err(|_| UnpackError::Value(value))
}

/// Appends to `raw` what [`ColumnPacker::pack_counts`] has packed, in another order.
///
/// # Errors
/// It was not packed so, or is damaged. Something may have been appended.
pub fn unpack_counts(packed: &[u8], raw: &mut Vec<u8>) -> Result<(), UnpackError> {
    let mut columns = Columns(packed);
    let before = columns.len()?;
    let (before, rest) = columns.0.split_at(before);
    raw.extend_from_slice(before);
    columns.0 = rest;
    let (counts, classes) = (columns.len()?, columns.len()?);
    let classes = columns.differences(classes)?;
    let sites = columns.differences(counts)?;
    let class_of = columns.differences(counts)?;
    let objects = (0..counts).map(|_| value(columns.number()? as i64)).collect::<Result<Vec<u32>, _>>()?;
    let mut sizes = vec![0; classes.len()];
    for ((site, class), objects) in sites.into_iter().zip(class_of).zip(objects) {
        let (Some(&hash), Some(size)) = (classes.get(class as usize), sizes.get_mut(class as usize)) else {
            return Err(UnpackError::Value(class.into()));
        };
        let units = value(columns.difference()?.wrapping_add(expected(objects, *size)))?;
        *size = units.checked_div(objects).unwrap_or(*size);
        let count = Event::Counted { site: SiteId(site), class: ObjectHash(hash), objects, units };
        event::encode(&count, raw);
    }
    columns.0.is_empty().then_some(()).ok_or(UnpackError::Length)
}

/// Appends to `raw` what [`ColumnPacker::pack_stacks`] has packed.
///
/// # Errors
/// As [`unpack_counts`].
pub fn unpack_stacks(packed: &[u8], raw: &mut Vec<u8>) -> Result<(), UnpackError> {
    let mut columns = Columns(packed);
    let len = columns.len()?;
    let numbers = columns.differences(len)?;
    let to_callers = (0..len).map(|_| columns.difference()).collect::<Result<Vec<i64>, _>>()?;
    let sites = columns.differences(len)?;
    for ((number, to_caller), site) in numbers.into_iter().zip(to_callers).zip(sites) {
        let caller = value(i64::from(number).wrapping_sub(to_caller))?;
        StackRecord::Frame { number, caller, site }.encode(raw);
    }
    columns.0.is_empty().then_some(()).ok_or(UnpackError::Length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::Ticket;

    fn packed_counts(raw: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        ColumnPacker::default().pack_counts(raw, &mut out).then_some(out)
    }

    fn events(ticket: bool, counts: &[Counted]) -> Vec<u8> {
        let mut raw = Vec::new();
        if ticket {
            event::encode(&Event::Ticket(Ticket(77)), &mut raw);
        }
        for &Counted { site, class, objects, units } in counts {
            let event = Event::Counted { site: SiteId(site), class: ObjectHash(class), objects, units };
            event::encode(&event, &mut raw);
        }
        raw
    }

    /// Numbers of all lengths, small ones more often.
    fn number() -> impl Strategy<Value = u32> {
        (any::<u32>(), 0..32u32).prop_map(|(number, shift)| number >> shift)
    }

    fn counted() -> impl Strategy<Value = Counted> {
        let class = number().prop_map(|class| class & ObjectHash::of_word(u32::MAX).0);
        (number(), class, number(), number()).prop_map(|(site, class, objects, units)| Counted {
            site,
            class,
            objects,
            units,
        })
    }

    proptest! {
        #[test]
        fn counts_are_read_back_in_their_order(
            mut counts in prop::collection::vec(counted(), 1..200), ticket in any::<bool>(), other in any::<[u8; 3]>(),
        ) {
            let packed = packed_counts(&events(ticket, &counts)).unwrap();
            counts.sort_unstable();
            let mut raw = Vec::new();
            unpack_counts(&packed, &mut raw).unwrap();
            prop_assert_eq!(raw, events(ticket, &counts));
            // What is damaged is an error, or something else, but nothing worse.
            let mut damaged = packed.clone();
            let at = usize::from(other[0]) % packed.len();
            damaged[at] = other[1];
            _ = unpack_counts(&damaged, &mut Vec::new());
            damaged.truncate(usize::from(other[2]) % packed.len());
            prop_assert!(unpack_counts(&damaged, &mut Vec::new()).is_err());
        }

        #[test]
        fn stacks_are_read_back(frames in prop::collection::vec((number(), number(), number()), 1..200), other in any::<[u8; 3]>()) {
            let mut raw = Vec::new();
            for &(number, caller, site) in &frames {
                StackRecord::Frame { number, caller, site }.encode(&mut raw);
            }
            let (mut packed, mut found) = (Vec::new(), Vec::new());
            prop_assert!(ColumnPacker::default().pack_stacks(&raw, &mut packed));
            unpack_stacks(&packed, &mut found).unwrap();
            prop_assert_eq!(found, raw);
            let at = usize::from(other[0]) % packed.len();
            packed[at] = other[1];
            _ = unpack_stacks(&packed, &mut Vec::new());
            packed.truncate(usize::from(other[2]) % packed.len());
            prop_assert!(unpack_stacks(&packed, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn blocks_of_other_records_have_no_columns() {
        let count = Counted { site: 1, class: 2, objects: 3, units: 4 };
        let counts = events(true, &[count]);
        let mut later = counts.clone();
        event::encode(&Event::Ticket(Ticket(78)), &mut later);
        for raw in [&[][..], &events(true, &[]), &later, &counts[..counts.len() - 4]] {
            assert_eq!(packed_counts(raw), None, "{raw:?}");
        }
        let mut raw = Vec::new();
        StackRecord::Frame { number: 1, caller: 0, site: 3 }.encode(&mut raw);
        StackRecord::Counts(crate::StackCounts::default()).encode(&mut raw);
        assert!(!ColumnPacker::default().pack_stacks(&raw, &mut Vec::new()));
        assert!(!ColumnPacker::default().pack_stacks(&[], &mut Vec::new()));
    }
}
