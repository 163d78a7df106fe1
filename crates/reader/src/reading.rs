//! How a trace is read, in whatever form, and what is known in the end.

use std::ops::ControlFlow;

use et_names::EventSet;

use crate::batch::Filler;
use crate::lifetimes::{Cost, LifetimesError, Limits, Played, Recording, Step};
use crate::record::{Clock, Record};
use crate::resolve::Outcome;
use crate::told::{Hold, Told};
use crate::types::Types;

/// Where `D` records come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deaths {
    /// Worked out from the records; a text that has them keeps its own.
    #[default]
    Trace,
    /// There are none.
    None,
}

/// Deaths cannot be worked out of records that lack any of these: what an object is held by, and when it was used.
const OF_DEATHS: [EventSet; 3] = [EventSet::ALLOC, EventSet::UPDATE, EventSet::METHOD];

/// Why deaths cannot be known, if records are of these events only.
pub fn deaths_unknown(events: EventSet) -> Option<String> {
    if OF_DEATHS.into_iter().all(|needed| events.has(needed)) {
        return None;
    }
    Some(format!("deaths cannot be computed: the classes have hooks for {events} events only"))
}

/// How to read: what is not asked for is not worked out.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Reading {
    pub deaths: Deaths,
    pub clock: Clock,
    pub limits: Limits,
    /// Also tell what holds objects although no record does: whoever takes all of it but the deaths down can work out the
    /// deaths. A text may not know ([`Source::tells_holders`](crate::source::Source::tells_holders)).
    pub holders: bool,
    /// Also say of each record where it stands between threads and in time, if deaths are worked out. Without deaths, and
    /// where they were worked out before, that is known anyway; a text does not have it.
    pub places: bool,
}

/// What is known once all records were seen.
#[derive(Debug, Default)]
pub struct Ending {
    /// Totals and so on, deaths included.
    pub outcome: Outcome,
    /// All types of a text.
    pub text_types: Types,
    /// What the closing comments of a text say, as far as it is not counted again.
    pub text_comments: Vec<String>,
    /// What is not as it should be in a text.
    pub warnings: Vec<String>,
    /// What working out the deaths took.
    pub cost: Option<Cost>,
}

/// Fills in all that was taken down, and the deaths; what holds objects only if that is wanted. What is held to the end is no
/// step of its own. `see` gets what is played before that. Says also whether it was broken off.
pub(crate) fn play(
    recording: &Recording,
    to_the_end: &[(u64, Hold)],
    mut see: impl FnMut(&Played<'_>),
    (filler, holders): (&mut Filler, bool),
) -> Result<(Cost, bool), LifetimesError> {
    let mut to_the_end = to_the_end.iter().peekable();
    let mut stopped = false;
    let cost = recording.replay_steps(|played| {
        see(&played);
        let flow = match played {
            Played::Time(_) => ControlFlow::Continue(()),
            Played::At(place) => {
                filler.at(place);
                ControlFlow::Continue(())
            }
            Played::Found(record) => filler.push_found(*record),
            Played::Step(number, step) => {
                while let Some((_, hold)) = to_the_end.next_if(|(at, _)| *at <= number) {
                    _ = filler.push(Told::Hold(*hold));
                }
                // Each by itself, as `push` says.
                match *step {
                    Step::Record(record) => filler.push(Told::Record(record)),
                    Step::WeakUpdate { old, origin, target, slot, thread } => {
                        filler.push(Told::Record(Record::Update { old, origin, target, slot, thread }))
                    }
                    Step::Held { .. } | Step::Initial { .. } if !holders => ControlFlow::Continue(()),
                    _ => filler.push(step.told()),
                }
            }
        };
        stopped = flow.is_break();
        flow
    })?;
    if !stopped {
        to_the_end.for_each(|(_, hold)| _ = filler.push(Told::Hold(*hold)));
    }
    Ok((cost, stopped))
}
