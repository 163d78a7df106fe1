//! The content of a report: where objects were allocated, what was alive when, how long it lived, what retains it, and
//! suspected problems. Takes two passes over the rows of all objects, and one for each moment at which the heap was kept with the life table;
//! where it was not, the records are read. Memory depends on the number of classes, sites and contexts, and the output has a few thousand rows, however
//! many objects there were.

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
mod totals;
mod uses;

use std::io;

use et_names::{FieldId, MethodId};
use et_reader::attribution::{Callers, NONE};
use et_reader::blocks::glimpse::Glimpses;
use et_reader::made_in::MadeIn;
use et_reader::model::ContextId;
use et_reader::observed::Observed;
use et_reader::owners::{Origin, Owners};
use et_reader::population::Population;
use et_reader::source::{Reading, Source, SourceError};
use et_reader::types::{TypeId, for_people};
use rustc_hash::FxHashMap;
use thiserror::Error;

pub use data::{
    Alive, ArrayLine, Axis, AxisUnit, CollectionLine, ExceptionLine, Finding, Flames, Glance, Growth, Held, Histogram,
    Holder, Holding, Idle, Lack, LackKind, LifeLine, Lifetimes, Moment, Page, Piece, Report, Retained, RetainedLine,
    RootLine, Series, Suspects, Top, Way, Weight, Words,
};

use crate::flame::{self, FrameKind, FrameName};
use crate::heap::HeapError;
use crate::named;
use crate::summary::Summary;
use flames::Label;
use holders::{Heaps, Makers, PeakAt};
use moments::Courses;
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
    let courses = Courses::of(population, source.naming(), &totals)?;
    let mut told = Told::new(source, population);
    let callers = lines::callers(&totals, &mut told);
    let makers = Makers::of(&totals, &callers);
    let of_selected = (!has_all).then(|| uses::of_selected(source, population, reading)).transpose()?;
    let uses = Uses::of(of_selected.as_ref().unwrap_or(&observed.usage), population.has_uses);
    // Of some of the objects there are no heaps: others hold them.
    let heaps = match has_all && population.has_deaths {
        true => {
            let peak = summary.peak.as_ref().filter(|peak| peak.live.bytes > peak.at_the_end.bytes);
            let peak =
                peak.map(|peak| PeakAt { tick: peak.tick, made_bytes: peak.made_bytes, live_bytes: peak.live.bytes });
            Some(Heaps::read(population, reading, peak, glimpses, &makers, &mut told)?)
        }
        false => None,
    };
    let axes = totals.axes();
    let has_stacks = source.trace().is_some_and(|trace| !trace.stacks.is_empty());
    let mut report = Report {
        initial: totals.initial,
        flames: flames(&totals, population, &mut told),
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
            Some(heaps) => heaps.tell(population, &mut report, &keys, &makers, &mut told),
            // Objects of a range that has ended always are fewer in the end than in its middle.
            None => report.suspects.growing.clear(),
        }
    }
    report.axes = axes;
    report.summary = Summary { held_by_running_methods: Vec::new(), ..summary.cut(TOP) };
    findings::add(&mut report);
    Ok(report)
}

fn flames(totals: &Totals, population: &Population, told: &mut Told<'_>) -> Flames {
    let contexts = &population.contexts;
    let source = told.source;
    let by_context = flames::by_context(&totals.places, contexts, |label| told.frame(label));
    let by_site =
        flames::by_site(&totals.places, contexts, |place| place.method(source.naming()), |label| told.frame(label));
    Flames { by_context, by_site, limits: LIMITS.to_vec(), folded_below: 1000.0 / flame::SEEN as f64 }
}

/// Display names of ids, and on whose behalf contexts run.
pub(crate) struct Told<'a> {
    source: &'a Source,
    population: &'a Population,
    owners: Owners<'a>,
    /// On whose behalf each context runs.
    callers: Vec<Callers>,
    classes: FxHashMap<TypeId, String>,
    /// Whether fields are of code outside the JDK.
    fields: FxHashMap<FieldId, bool>,
}

impl<'a> Told<'a> {
    pub(crate) fn new(source: &'a Source, population: &'a Population) -> Self {
        let mut owners = Owners::of(source);
        let callers = Callers::of_contexts(&population.contexts, &mut owners);
        Self { source, population, owners, callers, classes: FxHashMap::default(), fields: FxHashMap::default() }
    }

    fn class(&mut self, class: TypeId) -> String {
        let types = &self.population.types;
        self.classes.entry(class).or_insert_with(|| for_people(types.descriptor(class))).clone()
    }

    fn method(&self, method: MethodId) -> String {
        self.source.naming().method(method)
    }

    fn place(&self, place: MadeIn) -> String {
        place.text(self.source.naming())
    }

    fn origin_of_place(&mut self, place: MadeIn) -> Option<Origin> {
        let method = place.method(self.source.naming())?;
        Some(self.owners.origin(method))
    }

    /// Whether a field is of a class of the program's or a library's.
    fn is_outside_jdk(&mut self, field: FieldId) -> bool {
        if let Some(&known) = self.fields.get(&field) {
            return known;
        }
        let text = self.source.naming().field(field);
        let is_outside = text
            .rsplit_once('.')
            .is_some_and(|(class, _)| self.owners.origin_of_class(&class.replace('.', "/")) != Origin::Jdk);
        self.fields.insert(field, is_outside);
        is_outside
    }

    fn outside(&self, context: ContextId) -> Option<MethodId> {
        self.callers.get(context.0 as usize).map(|callers| callers.outside).filter(|&method| method != NONE)
    }

    /// The methods of a context, innermost first.
    fn context(&self, context: ContextId, most: usize) -> Vec<String> {
        let frames = self.population.contexts.frames(context).take(most);
        frames.map(|frame| named::frame(self.source.naming(), frame.method, frame.at)).collect()
    }

    pub(crate) fn frame(&mut self, label: Label) -> FrameName {
        match label {
            Label::Root => flame::root(),
            Label::Method(method, at) => FrameName {
                name: named::frame(self.source.naming(), method, at),
                kind: self.owners.place(method).into(),
            },
            Label::Class(class) => FrameName { name: self.class(class), kind: FrameKind::Class },
            Label::Site(place, class) => {
                FrameName { name: format!("{}  {}", self.class(class), self.place(place)), kind: FrameKind::Site }
            }
        }
    }
}
