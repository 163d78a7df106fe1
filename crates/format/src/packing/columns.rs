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
    /// before the first one. What decoding ignores in their words is lost.
    pub fn pack_counts(&mut self, raw: &[u8], out: &mut Vec<u8>) -> bool {
        let Self { counts, classes, sizes } = self;
        counts.clear();
        let (mut at, mut before) = (0, 0);
        loop {
            match event::decode(&raw[at..]) {
                Ok(Some((Event::Counted { site, class, objects, units }, len))) => {
                    counts.push(Counted { site: site.0, class: class.0, objects, units });
                    at += len;
                }
                // A ticket, in what the runtime writes.
                Ok(Some((_, len))) if counts.is_empty() && before < MOST_BEFORE => {
                    at += len;
                    before = at;
                }
                Ok(None) if at == raw.len() && !counts.is_empty() => break,
                _ => return false,
            }
        }
        counts.sort_unstable();
        classes.clear();
        classes.extend(counts.iter().map(|count| count.class));
        classes.sort_unstable();
        classes.dedup();
        for count in counts.iter_mut() {
            count.class = classes.binary_search(&count.class).unwrap_or_default() as u32;
        }
        varint::put(out, before as u64);
        out.extend_from_slice(&raw[..before]);
        varint::put(out, counts.len() as u64);
        varint::put(out, classes.len() as u64);
        differences(out, classes.iter().copied());
        differences(out, counts.iter().map(|count| count.site));
        differences(out, counts.iter().map(|count| count.class));
        counts.iter().for_each(|count| varint::put(out, count.objects));
        sizes.clear();
        sizes.resize(classes.len(), 0);
        for count in counts.iter() {
            let size = &mut sizes[count.class as usize];
            varint::put_difference(out, i64::from(count.units).wrapping_sub(expected(count.objects, *size)));
            *size = count.units.checked_div(count.objects).unwrap_or(*size);
        }
        true
    }

    /// Appends the packed form of a block of stacks. Returns false, and appends nothing, if it has other records.
    pub fn pack_stacks(raw: &[u8], out: &mut Vec<u8>) -> bool {
        let (records, rest) = raw.as_chunks::<{ StackRecord::FRAME_LEN }>();
        let is_frame = |record: &[u8; StackRecord::FRAME_LEN]| record[0] == StackRecord::FRAME;
        if !rest.is_empty() || records.is_empty() || !records.iter().all(is_frame) {
            return false;
        }
        let word = |record: &[u8; StackRecord::FRAME_LEN], at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        varint::put(out, records.len() as u64);
        differences(out, records.iter().map(|record| word(record, 1)));
        for record in records {
            varint::put_difference(out, i64::from(word(record, 1)) - i64::from(word(record, 5)));
        }
        differences(out, records.iter().map(|record| word(record, 9)));
        true
    }
}

/// Length in bytes of a count in a block of events.
const COUNTED_LEN: usize = 20;

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

/// Reads columns one after the other.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
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

    fn column<T>(
        &mut self,
        len: usize,
        mut next: impl FnMut(&mut Self) -> Result<T, UnpackError>,
    ) -> Result<Vec<T>, UnpackError> {
        let mut column = Vec::with_capacity(len);
        for _ in 0..len {
            column.push(next(self)?);
        }
        Ok(column)
    }

    fn differences(&mut self, len: usize) -> Result<Vec<u32>, UnpackError> {
        let mut last = 0;
        self.column(len, |cursor| {
            last = value(i64::from(last).wrapping_add(cursor.difference()?))?;
            Ok(last)
        })
    }

    fn end(&self) -> Result<(), UnpackError> {
        if self.0.is_empty() { Ok(()) } else { Err(UnpackError::Length) }
    }
}

fn value(value: i64) -> Result<u32, UnpackError> {
    u32::try_from(value).map_err(|_| UnpackError::Value(value))
}

/// Checks the length of what will be unpacked before anything is allocated for it.
fn ensure_len(found: Option<usize>, raw_len: usize) -> Result<(), UnpackError> {
    if found == Some(raw_len) { Ok(()) } else { Err(UnpackError::Length) }
}

/// Appends to `raw` the `raw_len` bytes that [`ColumnPacker::pack_counts`] has packed, in another order.
///
/// # Errors
/// It was not packed so, or is damaged. Something may have been appended.
pub fn unpack_counts(packed: &[u8], raw_len: usize, raw: &mut Vec<u8>) -> Result<(), UnpackError> {
    let mut cursor = Cursor(packed);
    let before = cursor.len()?;
    let (before, rest) = cursor.0.split_at(before);
    cursor.0 = rest;
    let (counts, classes) = (cursor.len()?, cursor.len()?);
    ensure_len(counts.checked_mul(COUNTED_LEN).and_then(|len| len.checked_add(before.len())), raw_len)?;
    if classes > counts {
        return Err(UnpackError::Length);
    }
    raw.reserve_exact(raw_len);
    raw.extend_from_slice(before);
    let classes = cursor.differences(classes)?;
    let sites = cursor.differences(counts)?;
    let class_of = cursor.differences(counts)?;
    let objects = cursor.column(counts, |cursor| value(cursor.number()? as i64))?;
    let mut sizes = vec![0; classes.len()];
    for ((site, class), objects) in sites.into_iter().zip(class_of).zip(objects) {
        let (Some(&hash), Some(size)) = (classes.get(class as usize), sizes.get_mut(class as usize)) else {
            return Err(UnpackError::Value(class.into()));
        };
        let units = value(cursor.difference()?.wrapping_add(expected(objects, *size)))?;
        *size = units.checked_div(objects).unwrap_or(*size);
        let count = Event::Counted { site: SiteId(site), class: ObjectHash(hash), objects, units };
        event::encode(&count, raw);
    }
    cursor.end()
}

/// Appends to `raw` the `raw_len` bytes that [`ColumnPacker::pack_stacks`] has packed.
///
/// # Errors
/// As [`unpack_counts`].
pub fn unpack_stacks(packed: &[u8], raw_len: usize, raw: &mut Vec<u8>) -> Result<(), UnpackError> {
    let mut cursor = Cursor(packed);
    let len = cursor.len()?;
    ensure_len(len.checked_mul(StackRecord::FRAME_LEN), raw_len)?;
    raw.reserve_exact(raw_len);
    let numbers = cursor.differences(len)?;
    let to_callers = cursor.column(len, Cursor::difference)?;
    let sites = cursor.differences(len)?;
    for ((number, to_caller), site) in numbers.into_iter().zip(to_callers).zip(sites) {
        let caller = value(i64::from(number).wrapping_sub(to_caller))?;
        StackRecord::Frame { number, caller, site }.encode(raw);
    }
    cursor.end()
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
        fn counts_are_read_back_sorted(
            mut counts in prop::collection::vec(counted(), 1..200), ticket in any::<bool>(), other in any::<[u8; 3]>(),
        ) {
            let packed = packed_counts(&events(ticket, &counts)).unwrap();
            counts.sort_unstable();
            let mut raw = Vec::new();
            let expected = events(ticket, &counts);
            unpack_counts(&packed, expected.len(), &mut raw).unwrap();
            prop_assert_eq!(&raw, &expected);
            prop_assert!(unpack_counts(&packed, expected.len() + 4, &mut raw).is_err());
            // What is damaged is an error, or something else, but nothing worse.
            let mut damaged = packed.clone();
            let at = usize::from(other[0]) % packed.len();
            damaged[at] = other[1];
            _ = unpack_counts(&damaged, expected.len(), &mut Vec::new());
            damaged.truncate(usize::from(other[2]) % packed.len());
            prop_assert!(unpack_counts(&damaged, expected.len(), &mut Vec::new()).is_err());
        }

        #[test]
        fn stacks_are_read_back(frames in prop::collection::vec((number(), number(), number()), 1..200), other in any::<[u8; 3]>()) {
            let mut raw = Vec::new();
            for &(number, caller, site) in &frames {
                StackRecord::Frame { number, caller, site }.encode(&mut raw);
            }
            let (mut packed, mut found) = (Vec::new(), Vec::new());
            prop_assert!(ColumnPacker::pack_stacks(&raw, &mut packed));
            unpack_stacks(&packed, raw.len(), &mut found).unwrap();
            prop_assert_eq!(&found, &raw);
            let at = usize::from(other[0]) % packed.len();
            packed[at] = other[1];
            _ = unpack_stacks(&packed, raw.len(), &mut Vec::new());
            packed.truncate(usize::from(other[2]) % packed.len());
            prop_assert!(unpack_stacks(&packed, raw.len(), &mut Vec::new()).is_err());
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
        assert!(!ColumnPacker::pack_stacks(&raw, &mut Vec::new()));
        assert!(!ColumnPacker::pack_stacks(&[], &mut Vec::new()));
    }
}
