//! Deaths that were worked out before, and who keeps those that are worked out now.

use std::fmt::Debug;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::graph::HeldByStack;
use super::recording::Played;
use super::{LifetimesError, vm};
use crate::place::Place;
use crate::record::{ObjectId, Record};
use crate::resolve::Outcome;
use crate::told::{Hold, Told};
use crate::trace::Trace;

/// What was found when deaths were worked out. Steps are counted from 0: records that are not found, and of what holds objects
/// [`Hold::Initial`] and [`Hold::Until`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The step with that number updates a weak slot whose old target had died: the slot held null.
    Cleared {
        /// The step.
        at: u64,
    },
    /// A record that no hook reported: a death, or the clearing of a weak reference.
    Found {
        /// The step that it stands behind.
        after: u64,
        /// The record.
        record: Record,
    },
}

/// All that was found, in order of its steps.
pub type AllKnown<'a> = Box<dyn Iterator<Item = io::Result<Known>> + 'a>;

/// What an earlier reading came to.
#[allow(missing_debug_implementations)]
pub struct Earlier<'a> {
    /// What it found.
    pub found: AllKnown<'a>,
    /// What only stacks hold at the end.
    pub held_by_stacks: Vec<HeldByStack>,
}

/// What keeps the deaths of a trace from one reading to the next.
pub trait Lives: Debug + Send + Sync {
    /// What was found before; `None` if nothing was kept that can be believed.
    fn earlier(&self) -> Option<Earlier<'_>>;
    /// Takes what is worked out now; `None` if nobody wants it.
    fn keeper(self: Arc<Self>) -> Option<Box<dyn Keeper>>;
}

/// Takes what is worked out.
pub trait Keeper {
    /// What comes next.
    fn played(&mut self, played: &Played<'_>);
    /// That was all of it.
    fn finish(self: Box<Self>, trace: &Trace, outcome: &Outcome, held_by_stacks: &[HeldByStack]);
}

/// Takes what is told, and what is known to have been found between.
pub trait Replay {
    /// What is told next, and where it stands.
    fn told(&mut self, told: Told, place: Place) -> ControlFlow<()>;
    /// A death, or the clearing of a weak reference.
    fn found(&mut self, record: Record, place: Place) -> ControlFlow<()>;
}

/// Gives all that is told and what is known to have been found, until `replay` breaks off or the trace ends.
pub fn replay_known(
    trace: &Trace,
    mut known: AllKnown<'_>,
    mut replay: impl Replay,
) -> Result<Outcome, LifetimesError> {
    let mut next = known.next().transpose().map_err(LifetimesError::Known)?;
    let mut failed = None;
    let mut number = 0;
    let outcome = vm::each(trace, |mut told, place| {
        if matches!(told, Told::Hold(Hold::ToTheEnd { .. })) {
            return replay.told(told, place);
        }
        let mut advance = |next: &mut Option<Known>| match known.next().transpose() {
            Ok(found) => {
                *next = found;
                ControlFlow::Continue(())
            }
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        };
        if next == Some(Known::Cleared { at: number })
            && let Told::Record(Record::Update { old, .. }) = &mut told
        {
            *old = ObjectId::NULL;
            advance(&mut next)?;
        }
        replay.told(told, place)?;
        while let Some(Known::Found { after, record }) = next
            && after == number
        {
            replay.found(record, place)?;
            advance(&mut next)?;
        }
        number += 1;
        ControlFlow::Continue(())
    })?;
    if let Some(error) = failed {
        return Err(LifetimesError::Known(error));
    }
    if outcome.lost.total() > 0 {
        // Tables are made of whole traces only.
        let what = format!("events of the trace were damaged since it was made: {}", outcome.lost);
        return Err(LifetimesError::Known(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    if next.is_some() && !outcome.stopped {
        let what = "it has deaths after records that are not in the trace";
        return Err(LifetimesError::Known(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    Ok(outcome)
}
