//! A trace that is open, and what has been worked out about it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use et_analysis::Excerpt;
use et_analysis::groups::{At, Course, Subject, Timeline, What, by_bytes, timeline};
use et_analysis::heap::{Dominance, Resident, dominance, resident};
use et_analysis::report::Report;
use et_reader::population::{Groups, Population};
use et_reader::record::Clock;
use et_reader::references::References;
use et_reader::source::Source;
use serde::Serialize;

use crate::params::Refused;

/// Works out the report, or reads the one that was kept; or says why there is none.
pub type MakeReport = Box<dyn Fn(&Source) -> Result<Report, String> + Send + Sync>;

/// Finds the line of a site, by the name of the site.
pub type FindSource = Box<dyn Fn(&str) -> Option<Excerpt> + Send + Sync>;

/// A query that is offered.
#[derive(Clone, Debug, Serialize)]
pub struct SqlQuery {
    pub name: &'static str,
    pub question: String,
    pub text: &'static str,
}

/// What a statement in SQL answers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SqlRows {
    pub columns: Vec<String>,
    /// As text; null is empty.
    pub rows: Vec<Vec<String>>,
    /// Whether there are more rows.
    pub is_cut: bool,
    /// What answered, with its version.
    pub engine: String,
}

/// Runs a statement in SQL, within limits of time and size; or says in a sentence why not.
pub type AskSql = Box<dyn Fn(&str) -> Result<SqlRows, String> + Send + Sync>;

/// Tables of the trace in SQL.
#[allow(missing_debug_implementations)]
pub struct Sql {
    /// Path of the folder, as in commands.
    pub folder: String,
    /// Whether the folder has no other runs.
    pub is_of_one_run: bool,
    pub queries: Vec<SqlQuery>,
    pub ask: AskSql,
}

/// What is needed of a trace.
#[allow(missing_debug_implementations)]
pub struct Parts {
    /// Its path, as in commands.
    pub path: String,
    pub source: Source,
    pub population: Population,
    /// Its objects in the order of time; `None`: they are not kept in it.
    pub objects: Option<Box<dyn Groups>>,
    pub references: Box<dyn References>,
    pub report: MakeReport,
    /// Tells lines of source, if it is known where sources are.
    pub find_source: Option<FindSource>,
    /// Its tables, if it is known where they are.
    pub sql: Option<Sql>,
    /// Why deaths are not known, and what to do, if they are not: then there are only allocations to look at.
    pub without_deaths: Option<String>,
}

/// A moment with what was alive.
pub(crate) struct Moment {
    pub tick: u64,
    objects: &'static dyn Groups,
    pub resident: Resident<'static>,
    pub dominance: Dominance,
}

impl Moment {
    pub fn what(&self) -> What<'_, 'static> {
        let Self { tick, objects, resident, dominance } = self;
        What::Alive(At { tick: *tick, objects: *objects, resident, dominance })
    }
}

/// The first that is asked for it works it out; the others wait.
type Cell<T> = Arc<OnceLock<Result<Arc<T>, String>>>;

/// Moments that are kept, the latest first.
const MOMENTS: usize = 6;
/// Objects of all of them together; the one that was asked for last is kept however many it has.
const OBJECTS: usize = 3_000_000;

/// An open trace.
#[allow(missing_debug_implementations)]
pub struct Opened {
    parts: Parts,
    /// The trace has no calls: its clock counts bytes.
    is_by_bytes: bool,
    moments: Mutex<VecDeque<(u64, Cell<Moment>)>>,
    course: Cell<Course>,
    line: Cell<Timeline>,
    report: Cell<Report>,
}

impl Opened {
    pub fn new(parts: Parts) -> Self {
        let (population, is_by_bytes) = by_bytes(parts.population);
        Self {
            parts: Parts { population, ..parts },
            is_by_bytes,
            moments: Mutex::default(),
            course: Cell::default(),
            line: Cell::default(),
            report: Cell::default(),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.parts.path
    }

    pub(crate) fn source(&self) -> &Source {
        &self.parts.source
    }

    pub(crate) fn population(&self) -> &Population {
        &self.parts.population
    }

    pub(crate) fn find_source(&self) -> Option<&FindSource> {
        self.parts.find_source.as_ref()
    }

    pub(crate) fn sql(&self) -> Option<&Sql> {
        self.parts.sql.as_ref()
    }

    /// In the order of time, if they are kept in it.
    pub(crate) fn objects(&self) -> &dyn Groups {
        self.parts.objects.as_deref().unwrap_or(&*self.parts.population.groups)
    }

    /// Whether bytes take the place of a clock that stands still: commands do not know such ticks.
    pub(crate) fn is_by_bytes(&self) -> bool {
        self.is_by_bytes
    }

    /// Whether the clock counts bytes, and not calls.
    pub(crate) fn counts_bytes(&self) -> bool {
        self.is_by_bytes || self.source().clock(Clock::default()) == Clock::Bytes
    }

    /// Why only allocations are known.
    pub(crate) fn without_deaths(&self) -> Option<&str> {
        self.parts.without_deaths.as_deref()
    }

    /// Refuses what takes deaths.
    pub(crate) fn needs_deaths(&self) -> Result<(), Refused> {
        match self.without_deaths() {
            None => Ok(()),
            Some(why) => Err(Refused::Wrong(format!("This needs to know what is alive. {why}"))),
        }
    }

    pub(crate) fn references(&self) -> &dyn References {
        &*self.parts.references
    }

    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { source: self.source(), population: self.population(), objects: self.objects() }
    }

    /// The clock at a moment: no later than the end.
    pub(crate) fn clock(&self, tick: u64) -> u64 {
        tick.min(self.population().end.tick)
    }

    /// What was alive at a tick; `u64::MAX`: at the end.
    pub(crate) fn moment(&'static self, tick: u64) -> Result<Arc<Moment>, Refused> {
        self.needs_deaths()?;
        // All moments behind the last tick are the end.
        let tick = if tick > self.population().end.tick { u64::MAX } else { tick };
        let cell = {
            let mut kept = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
            let found = kept.iter().position(|(known, _)| *known == tick).and_then(|at| kept.remove(at));
            let (tick, cell) = found.unwrap_or_else(|| (tick, Cell::default()));
            kept.push_front((tick, Arc::clone(&cell)));
            let mut objects = 0;
            let mut number = 0;
            kept.retain(|(_, cell)| {
                let of = cell.get().and_then(|moment| moment.as_ref().ok());
                objects += of.map_or(0, |moment| moment.resident.snapshot.len());
                number += 1;
                number == 1 || number <= MOMENTS && objects <= OBJECTS
            });
            cell
        };
        once(&cell, || {
            let objects = self.objects();
            let resident = resident(self.source(), self.population(), objects, self.references(), tick)?;
            let dominance = dominance(&resident.snapshot);
            Ok(Moment { tick, objects, resident, dominance })
        })
    }

    /// How all objects fared over the run.
    pub(crate) fn course(&self) -> Result<Arc<Course>, Refused> {
        once(&self.course, || Course::of(self.population()))
    }

    /// The whole run.
    pub(crate) fn timeline(&self) -> Result<Arc<Timeline>, Refused> {
        once(&self.line, || timeline(self.population(), BUCKETS))
    }

    /// Works out what the first page shows: who asks for it meanwhile waits. What fails, fails again when it is asked for.
    pub(crate) fn prepare(&'static self) {
        let _ = self.timeline();
        let _ = self.moment(u64::MAX);
        let _ = self.course();
    }

    /// The report, if it has been worked out; otherwise this may take a reading of the trace.
    pub(crate) fn report(&self) -> Result<Arc<Report>, Refused> {
        let cell = &self.report;
        let work_out = || (self.parts.report)(self.source()).map(Arc::new);
        cell.get_or_init(work_out).clone().map_err(Refused::Failed)
    }

    /// The report if it has been worked out.
    pub(crate) fn known_report(&self) -> Option<Result<Arc<Report>, String>> {
        self.report.get().cloned()
    }
}

/// Buckets of the timeline.
const BUCKETS: usize = 400;

fn once<T>(cell: &Cell<T>, work_out: impl FnOnce() -> io::Result<T>) -> Result<Arc<T>, Refused> {
    let work_out = || work_out().map(Arc::new).map_err(|error| error.to_string());
    cell.get_or_init(work_out).clone().map_err(|error| Refused::from(io::Error::other(error)))
}
