//! The lives of references: which slot held which object, from when to when, who stored it there, and what ended that.
//!
//! A [`Stay`] is the time during which a slot holds the same stored reference. [`Follower`] finds the stays in the content
//! of a trace, and returns them in an order in which those of a moment are close together; [`Stays`] does so for who follows it
//! already. What keeps them implements [`References`].

mod arranger;
mod follower;
mod slots;
mod stays;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::RangeInclusive;

pub use arranger::{Arranger, Group, Lasts};
pub use follower::Follower;
use slots::Slots;
pub use stays::Stays;

use crate::model::{ContextId, Contexts};
use crate::record::{Slot, ThreadId};
use crate::resolve::ExtraField;
use et_names::FieldId;

/// A point in the course of a trace, and who was at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Number of the record, from 1, deaths and clearings not counted; 0: before the first.
    pub record: u64,
    /// The clock before the record.
    pub tick: u64,
    /// Bytes allocated so far, not counting initial objects.
    pub bytes: u64,
    /// Nanoseconds since the start of the run; `None` if the trace has no times.
    pub nanos: Option<u64>,
    /// The thread; 0 if none did it.
    pub thread: ThreadId,
    /// Methods on its stack.
    pub context: ContextId,
}

/// What ends a stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Something was stored over it, or null.
    Overwritten,
    /// A weak reference was cleared because its referent died.
    Cleared,
    /// The object with the slot died.
    OriginDied,
}

impl End {
    pub const ALL: [Self; 3] = [Self::Overwritten, Self::Cleared, Self::OriginDied];

    /// As in tables.
    pub fn text(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten",
            Self::Cleared => "cleared",
            Self::OriginDied => "origin died",
        }
    }
}

/// The stay of a reference in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Number of the object with the slot, in the order of births, from 0; `None` for a static field.
    pub origin: Option<u64>,
    pub slot: Slot,
    /// Number of the object that the slot holds.
    pub target: u64,
    /// When it was stored and by whom. Record 0: it was there when tracing began.
    pub from: Mark,
    /// When it ended and by what; `None`: it lasts to the end of the trace. Of a death, thread and context are not told:
    /// the object's row has them.
    pub to: Option<(Mark, End)>,
}

impl Stay {
    /// Whether the slot holds the reference after all records that begin before the clock is at that tick, and after what
    /// died of them. That is what [`heap --at`](crate::population::Moment) shows.
    pub fn is_at(&self, tick: u64) -> bool {
        (self.from.record == 0 || self.from.tick < tick) && self.to.is_none_or(|(to, _)| to.tick >= tick)
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Number of the object with the slot; `None` for a static field.
    pub origin: Option<u64>,
    pub slot: Slot,
    /// Number of the object that the slot holds.
    pub target: u64,
}

/// Which stays are asked for. Conditions that are `None` hold for all.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Stays that hold at this tick ([`Stay::is_at`]).
    pub at: Option<u64>,
    /// Stays that overlap the ticks from the first to the last.
    pub within: Option<RangeInclusive<u64>>,
    /// In a slot of one of these objects, or holding one of them. Sorted.
    pub of: Option<Vec<u64>>,
    /// In one of these fields. Sorted.
    pub fields: Option<Vec<u32>>,
}

/// The references of a trace that has none.
#[derive(Debug, Default)]
pub struct NoReferences(Contexts);

impl References for NoReferences {
    fn len(&self) -> u64 {
        0
    }

    fn contexts(&self) -> &Contexts {
        &self.0
    }

    fn fields(&self) -> &[(FieldId, u64)] {
        &[]
    }

    fn extra_fields(&self) -> &[ExtraField] {
        &[]
    }

    fn for_each(&self, _: &Wanted, _: &mut dyn FnMut(&Stay)) -> io::Result<()> {
        Ok(())
    }
}

/// All stays of a trace, wherever they are kept.
pub trait References: Send + Sync {
    /// Number of stays.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calling contexts of the marks. Those of the rows of objects are among them, by the same numbers.
    fn contexts(&self) -> &Contexts;

    /// The fields that held something, each with its number of stays, in order.
    fn fields(&self) -> &[(FieldId, u64)];

    /// The fields that no names table has: number [`ID_LIMIT`](et_names::ID_LIMIT) is the first of them.
    fn extra_fields(&self) -> &[ExtraField];

    /// Calls `visit` with all stays that are wanted, in the order in which they are kept. Reads only the groups that may have some.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is damaged.
    fn for_each(&self, wanted: &Wanted, visit: &mut dyn FnMut(&Stay)) -> io::Result<()>;

    /// Calls `visit` with what all slots hold at a tick ([`Stay::is_at`]), in the order in which it is kept: the object with the slot, the slot,
    /// and what it holds. That takes fewer columns than [`for_each`](Self::for_each).
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is damaged.
    fn held_at(&self, tick: u64, visit: &mut dyn FnMut(Holding)) -> io::Result<()> {
        let wanted = Wanted { at: Some(tick), ..Wanted::default() };
        self.for_each(&wanted, &mut |stay| {
            visit(Holding { origin: stay.origin, slot: stay.slot, target: stay.target });
        })
    }
}
