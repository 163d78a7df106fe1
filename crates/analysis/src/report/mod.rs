//! The content of a report: where objects were allocated, what was alive when, how long it lived, what retains it, and
//! suspected problems. Takes two passes over the rows of all objects and, at the same time as the second, one for each
//! moment at which the heap was kept with the life table; where it was not, the records are read. Memory depends on the
//! number of classes, sites and contexts, and the output has a few thousand rows, however many objects there were.

mod bins;
mod data;
mod findings;
pub(crate) mod flames;
mod holders;
mod lines;
mod moments;
mod rows;
#[cfg(test)]
mod tests;
mod told;
mod totals;
mod uses;

use std::io;

use et_reader::blocks::glimpse::Glimpses;
use et_reader::observed::Observed;
use et_reader::population::Population;
use et_reader::source::{Reading, Source, SourceError};
use et_system::threads::at_once;
use thiserror::Error;

pub use data::{
    Alive, ArrayLine, Axis, AxisUnit, CollectionLine, ExceptionLine, Finding, Flames, Glance, Growth, Held, Histogram,
    Holder, Holding, Idle, Lack, LackKind, LifeLine, Lifetimes, Moment, Page, Piece, Report, Retained, RetainedLine,
    RootLine, Series, Suspects, Top, Way, Weight, Words,
};

use crate::flame;
use crate::heap::HeapError;
use crate::summary::Summary;
use holders::{Heaps, Makers, PeakAt};
use moments::Courses;
pub(crate) use told::Names;
use told::Told;
use totals::{LIMITS, Totals};
use uses::Uses;

/// Why there is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    #[error(transparent)]
    Read(#[from] SourceError),
    #[error("cannot read the rows of the life table: {0}")]
    Rows(#[from] io::Error),
    #[error(transparent)]
    Heap(#[from] HeapError),
}

/// Entries of the summary's lists.
const TOP: usize = 100;

/// Works out all that a report shows. The summary and what was observed are those of the same trace, with the same reading. `has_all` says
/// whether the population has all objects of the trace; `glimpses` are those that were kept with its life table.
///
/// # Errors
/// The trace or the rows cannot be read.
pub fn report(
    source: &Source,
    summary: Summary,
    population: &Population,
    observed: &Observed,
    glimpses: Option<&Glimpses>,
    has_all: bool,
    reading: Reading,
) -> Result<Report, ReportError> {
    let mut totals = Totals::of(population, source.naming())?;
    let axes = totals.axes();
    let mut told = Told::new(source, population);
    let callers = lines::callers(&totals, &mut told);
    let makers = Makers::of(&totals, &callers);
    let of_selected = (!has_all).then(|| uses::of_selected(source, population, reading)).transpose()?;
    let uses = Uses::of(of_selected.as_ref().unwrap_or(&observed.usage), population.has_uses);
    // Of some of the objects there are no heaps: others hold them.
    let has_heaps = has_all && population.has_deaths;
    let heaps = || {
        let peak = summary.peak.as_ref().filter(|peak| peak.live.bytes > peak.at_the_end.bytes);
        let peak =
            peak.map(|peak| PeakAt { tick: peak.tick, made_bytes: peak.made_bytes, live_bytes: peak.live.bytes });
        Heaps::read(population, reading, peak, glimpses, &makers, &mut told)
    };
    // Each heap is mostly one thread's work: the others do the rest meanwhile.
    let others = || {
        Courses::of(population, source.naming(), &totals).map(|courses| (courses, flames(&totals, source, population)))
    };
    let (heaps, others) = at_once(|| has_heaps.then(heaps).transpose(), others);
    let (heaps, (courses, flames)) = (heaps?, others?);
    let has_stacks = source.trace().is_some_and(|trace| !trace.stacks.is_empty());
    let mut report = Report {
        initial: totals.initial,
        flames,
        // Threads that ran before tracing began have frames even where calls have no events.
        has_contexts: population.contexts.len() > 1 && (population.has_uses || has_stacks),
        has_deaths: population.has_deaths,
        has_uses: population.has_uses,
        has_witnesses: uses.usage.has_witnesses,
        lifetimes: lines::lifetimes(&totals, &courses, &uses, &callers, &mut told),
        ..Report::default()
    };
    if population.has_deaths {
        report.alive = Some(lines::alive(&courses, &axes, &mut told));
        let (suspects, keys) = lines::suspects(&totals, &courses, &uses, &callers, &mut told);
        report.suspects = suspects;
        match heaps {
            Some(heaps) => heaps.tell(population, &mut report, &keys, &mut told),
            // Objects of a range that has ended always are fewer in the end than in its middle.
            None => report.suspects.growing.clear(),
        }
    }
    report.axes = axes;
    report.summary = Summary { held_by_running_methods: Vec::new(), ..summary.cut(TOP) };
    findings::add(&mut report);
    Ok(report)
}

fn flames(totals: &Totals, source: &Source, population: &Population) -> Flames {
    let mut names = Names::new(source, population);
    let contexts = &population.contexts;
    let by_context = flames::by_context(&totals.places, contexts, &mut names);
    let by_site = flames::by_site(&totals.places, contexts, &mut names);
    Flames { by_context, by_site, limits: LIMITS.to_vec(), folded_below: 1000.0 / flame::SEEN as f64 }
}
