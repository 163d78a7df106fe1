//! Reuse of deaths that were computed before, and recording of deaths that are computed now.

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

/// A result of computing deaths. Steps are numbered from 0: they are the records except computed ones, and the holds
/// [`Hold::Initial`] and [`Hold::Until`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The step updates a weak slot whose old target had died, so the slot was null.
    Cleared { at: u64 },
    /// A record that no hook reported: a death, or the clearing of a weak reference.
    Found {
        /// The step after which it is inserted.
        after: u64,
        record: Record,
    },
}

/// All results, in order of their steps.
pub type AllKnown<'a> = Box<dyn Iterator<Item = io::Result<Known>> + 'a>;

/// The results of an earlier reading.
#[allow(missing_debug_implementations)]
pub struct Earlier<'a> {
    pub found: AllKnown<'a>,
    /// What only stacks hold at the end.
    pub held_by_stacks: Vec<HeldByStack>,
}

/// Keeps the deaths of a trace from one reading to the next.
pub trait Lives: Debug + Send + Sync {
    /// The results of an earlier reading; `None` if there are none that are valid.
    fn earlier(&self) -> Option<Earlier<'_>>;
    /// Works out the results from the trace itself, if that can be done without its records. Then
    /// [`earlier`](Self::earlier) has them.
    fn make(&self, _trace: &Trace) -> bool {
        false
    }
    /// Returns the keeper of the results of this reading; `None` if they are not to be kept.
    fn keeper(self: Arc<Self>) -> Option<Box<dyn Keeper>>;
}

/// Receives the results of a reading as they are computed.
pub trait Keeper {
    /// Receives the next item.
    fn played(&mut self, played: &Played<'_>);
    /// Completes the results.
    fn finish(self: Box<Self>, trace: &Trace, outcome: &Outcome, held_by_stacks: &[HeldByStack]);
}

/// Receives the content of a trace with the known results inserted.
pub trait Replay {
    /// Receives the next item and its place.
    fn told(&mut self, told: Told, place: Place) -> ControlFlow<()>;
    /// Receives a death, or the clearing of a weak reference.
    fn found(&mut self, record: Record, place: Place) -> ControlFlow<()>;
}

/// Replays a trace with the known results inserted, until `replay` breaks or the trace ends.
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
        // Results are only kept for intact traces.
        let what = format!("events of the trace were damaged since it was made: {}", outcome.lost);
        return Err(LifetimesError::Known(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    if next.is_some() && !outcome.stopped {
        let what = "it has deaths after records that are not in the trace";
        return Err(LifetimesError::Known(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    Ok(outcome)
}
