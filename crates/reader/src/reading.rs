//! Options for reading a trace in any form, and the results at the end.

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
    /// Computed from the records; a text with deaths keeps its own.
    #[default]
    Trace,
    /// There are no `D` records.
    None,
}

/// Events without which deaths cannot be computed: objects, and what holds them.
const OF_DEATHS: EventSet = EventSet::ALLOC.or(EventSet::UPDATE);

/// Why deaths cannot be computed from records of these events only; `None` if they can.
pub fn deaths_unknown(events: EventSet) -> Option<String> {
    if events.has(OF_DEATHS) {
        return None;
    }
    Some(format!("deaths cannot be computed: the classes have hooks for {events} events only"))
}

/// What deaths computed from records of these events leave out; `None` if that is nothing.
pub fn deaths_of_heap(events: EventSet) -> Option<String> {
    let what = "deaths are those of the heap: not all classes have hooks for methods, so objects held only by local variables count as dead";
    (deaths_unknown(events).is_none() && !events.has(EventSet::METHOD)).then(|| what.to_owned())
}

/// What to read: what is not requested is not computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    pub deaths: Deaths,
    pub clock: Clock,
    pub limits: Limits,
    /// Whether to include what holds objects although no record says so: deaths can be computed from a copy of the
    /// whole content. Not available for all texts ([`Source::tells_holders`](crate::source::Source::tells_holders)).
    pub holders: bool,
    /// Whether to include the place of each record when deaths are computed. Otherwise places are always included,
    /// except for a text, which has none.
    pub places: bool,
}

/// Results that are available after all records.
#[derive(Debug, Default)]
pub struct Ending {
    /// Totals and other results, including deaths.
    pub outcome: Outcome,
    /// Types that occurred in a text; without meaning for a trace file.
    pub text_types: Types,
    /// Closing comments of a text, except those that are recomputed.
    pub text_comments: Vec<String>,
    /// Warnings about anything unusual in a text.
    pub warnings: Vec<String>,
    /// Cost of computing the deaths; `None` if they were not computed.
    pub cost: Option<Cost>,
}

/// Replays everything that was recorded, with the deaths; includes holds only if requested. Objects held to the end
/// have no step of their own. `see` is called with each item first. Returns also whether the replay was stopped.
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
                // Each is constructed in place, as `push` explains.
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
