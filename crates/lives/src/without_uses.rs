//! Rows of a trace without calls, which does not tell when objects were used.

use std::io;
use std::ops::RangeInclusive;

use et_names::EventSet;
use et_reader::lifetimes::HeldByStack;
use et_reader::population::{Columns, Groups, Key, Rows, UNKNOWN_USE};

/// Whether a trace tells when objects are used: mostly as receivers of methods.
pub fn tells_uses(events: EventSet) -> bool {
    events.has(EventSet::METHOD)
}

/// Rows with their last uses, or without if these are not known.
pub fn with_uses(groups: Box<dyn Groups>, are_known: bool) -> Box<dyn Groups> {
    if are_known { groups } else { Box::new(WithoutUses(groups)) }
}

/// Rows whose last use is not known, nor how far objects escape, whatever stores and exceptions say.
struct WithoutUses(Box<dyn Groups>);

impl Groups for WithoutUses {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn may_have(&self, group: usize, tick: u64) -> io::Result<bool> {
        self.0.may_have(group, tick)
    }

    fn range(&self, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
        self.0.range(group, key)
    }

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        let mut rows = self.0.read(group, columns)?;
        rows.last_use_tick.fill(UNKNOWN_USE);
        rows.escaped_thread.fill(None);
        rows.escaped_frame.fill(None);
        Ok(rows)
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        self.0.held_by_stacks()
    }
}
