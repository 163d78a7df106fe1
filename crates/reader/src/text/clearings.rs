//! Finds the updates in a text with deaths that are clearings of weak references: there they look like stores.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use crate::lifetimes::{Special, WeakSlots};
use crate::record::{ObjectId, Record};

/// Delays records until it is known whether they are clearings. A clearing directly precedes the deaths that it belongs
/// to, one of which is that of the referent. If the program itself clears a weak reference, no referent dies of it,
/// unless the reference dies at that moment and held the referent in another field as well: then the reference dies
/// first.
#[derive(Debug)]
pub(super) struct Clearings {
    weak: WeakSlots,
    /// Updates that may be clearings, and the deaths after them.
    waiting: Vec<Record>,
    deaths: usize,
}

impl Clearings {
    /// Creates an instance for a text with these fields and types.
    pub fn new(special: &Special) -> Self {
        Self { weak: WeakSlots::new(special), waiting: Vec::new(), deaths: 0 }
    }

    /// Receives the next record. `give` is called with each record in turn, and whether it is a clearing.
    #[inline]
    pub fn record(
        &mut self,
        record: &Record,
        mut give: impl FnMut(Record, bool) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match *record {
            Record::Alloc(ref alloc) => self.weak.saw(alloc),
            Record::Update { old, origin, target, slot, .. }
                if self.weak.put(origin, slot, target) && target.is_null() && !old.is_null() =>
            {
                if self.deaths > 0 {
                    self.settle(&mut give)?;
                }
                self.waiting.push(*record);
                return ControlFlow::Continue(());
            }
            Record::Death { .. } if !self.waiting.is_empty() => {
                self.deaths += 1;
                self.waiting.push(*record);
                return ControlFlow::Continue(());
            }
            _ => {}
        }
        self.settle(&mut give)?;
        give(*record, false)
    }

    /// What comes next is not a death that belongs to them.
    #[inline]
    pub fn settle(&mut self, give: impl FnMut(Record, bool) -> ControlFlow<()>) -> ControlFlow<()> {
        if self.waiting.is_empty() { ControlFlow::Continue(()) } else { self.tell_apart(give) }
    }

    #[cold]
    fn tell_apart(&mut self, mut give: impl FnMut(Record, bool) -> ControlFlow<()>) -> ControlFlow<()> {
        let updates = self.waiting.len() - std::mem::take(&mut self.deaths);
        let died: FxHashMap<ObjectId, usize> = (0..)
            .zip(&self.waiting[updates..])
            .filter_map(|(at, record)| match *record {
                Record::Death { object, .. } => Some((object, at)),
                _ => None,
            })
            .collect();
        let is_clearing = |record: &&Record| match **record {
            Record::Update { old, origin, .. } => {
                died.get(&old).is_some_and(|at| died.get(&origin).is_none_or(|reference| reference > at))
            }
            _ => false,
        };
        // A store ends the clearings: they belong to the deaths after it.
        let first = updates - self.waiting[..updates].iter().rev().take_while(is_clearing).count();
        (0..).zip(self.waiting.drain(..)).try_for_each(|(at, record)| give(record, (first..updates).contains(&at)))
    }
}

#[cfg(test)]
mod tests {
    use et_names::FieldId;

    use super::*;
    use crate::record::{Slot, ThreadId};

    const REFERENT: FieldId = FieldId(7);

    fn clear(old: u64, origin: u64) -> Record {
        let slot = Slot::Field(REFERENT);
        let (old, origin, target) = (ObjectId(old), ObjectId(origin), ObjectId::NULL);
        Record::Update { old, origin, target, slot, thread: ThreadId(1) }
    }

    fn dies(object: u64) -> Record {
        Record::Death { object: ObjectId(object), thread: ThreadId(1) }
    }

    const USE: Record = Record::Use { object: ObjectId(9), thread: ThreadId(1) };

    /// For each record, whether it is a clearing.
    fn found(records: &[Record]) -> Vec<bool> {
        let special = Special { referent: Some(REFERENT), ..Special::default() };
        let (mut clearings, mut given, mut found) = (Clearings::new(&special), Vec::new(), Vec::new());
        let mut give = |record, is_clearing| {
            given.push(record);
            found.push(is_clearing);
            ControlFlow::Continue(())
        };
        for record in records {
            assert!(clearings.record(record, &mut give).is_continue());
        }
        assert!(clearings.settle(&mut give).is_continue());
        assert_eq!(given, records, "all of them, in their order");
        found
    }

    #[test]
    fn clearings_stand_before_the_deaths_of_referents() {
        assert_eq!(found(&[USE, clear(1, 5), dies(1), USE]), [false, true, false, false]);
        // Two references, and what the referent held.
        assert_eq!(found(&[clear(1, 5), clear(1, 6), dies(1), dies(2)]), [true, true, false, false]);
        // One after the other.
        assert_eq!(found(&[clear(1, 5), dies(1), clear(2, 6), dies(2)]), [true, false, true, false]);
        // The reference dies with the next record, which a text may leave out.
        assert_eq!(found(&[clear(1, 5), dies(1), dies(5)]), [true, false, false]);
    }

    #[test]
    fn what_the_program_clears_is_a_store() {
        assert_eq!(found(&[clear(1, 5), USE, dies(1)]), [false, false, false]);
        assert_eq!(found(&[clear(1, 5), clear(2, 6), dies(2)]), [false, true, false]);
        // The reference holds the referent and is dropped.
        assert_eq!(found(&[clear(1, 5), dies(5), dies(1)]), [false, false, false]);
        assert_eq!(found(&[clear(1, 4), clear(2, 5), dies(5), dies(1), dies(2)]), [false; 5]);
        // The collector clears a reference that is already null.
        assert_eq!(found(&[clear(0, 5), dies(1)]), [false, false]);
    }
}
