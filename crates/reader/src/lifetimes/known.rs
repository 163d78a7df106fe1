//! Reuse of deaths that were computed before, and recording of deaths that are computed now.

use std::fmt::Debug;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::graph::HeldByStack;
use super::recording::Played;
use super::vm::Listen;
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

/// Inserts known results in what is told.
struct Inserting<'k, 'f, R> {
    known: AllKnown<'k>,
    next: Option<Known>,
    /// The step that the next result belongs to; the maximum if there is none.
    next_at: u64,
    /// The number of the next step.
    step: u64,
    failed: &'f mut Option<io::Error>,
    replay: R,
}

impl<R: Replay> Inserting<'_, '_, R> {
    fn advance(&mut self) -> ControlFlow<()> {
        match self.known.next().transpose() {
            Ok(next) => {
                self.next = next;
                self.next_at = match next {
                    Some(Known::Cleared { at: step } | Known::Found { after: step, .. }) => step,
                    None => u64::MAX,
                };
                ControlFlow::Continue(())
            }
            Err(error) => {
                *self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// The next result belongs to this step, or to an earlier one, which is damage.
    #[inline(never)]
    fn told_with_results(&mut self, mut told: Told, place: Place) -> ControlFlow<()> {
        let step = self.step;
        self.step += 1;
        if self.next == Some(Known::Cleared { at: step })
            && let Told::Record(Record::Update { old, .. }) = &mut told
        {
            *old = ObjectId::NULL;
            self.advance()?;
        }
        self.replay.told(told, place)?;
        while let Some(Known::Found { after, record }) = self.next
            && after == step
        {
            self.replay.found(record, place)?;
            self.advance()?;
        }
        ControlFlow::Continue(())
    }
}

impl<R: Replay> Listen for &mut Inserting<'_, '_, R> {
    // Inlined, so that the item is constructed where it goes: copying what was just written in smaller parts stalls.
    #[inline(always)]
    fn told(&mut self, told: Told, place: Place) -> ControlFlow<()> {
        if matches!(told, Told::Hold(Hold::ToTheEnd { .. })) {
            return self.replay.told(told, place);
        }
        if self.step >= self.next_at {
            return self.told_with_results(told, place);
        }
        self.step += 1;
        self.replay.told(told, place)
    }
}

/// Replays a trace with the known results inserted, until `replay` breaks or the trace ends.
pub fn replay_known(trace: &Trace, known: AllKnown<'_>, replay: impl Replay) -> Result<Outcome, LifetimesError> {
    let mut failed = None;
    let mut inserting = Inserting { known, next: None, next_at: 0, step: 0, failed: &mut failed, replay };
    let outcome = match inserting.advance() {
        ControlFlow::Continue(()) => vm::each(trace, &mut inserting)?,
        ControlFlow::Break(()) => Outcome::default(),
    };
    let next = inserting.next;
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
