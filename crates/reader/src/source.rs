//! A trace in any form: a trace file, or a text in any dialect.

use std::fs::File;
use std::io::Read;
use std::ops::{ControlFlow, Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use et_format::FILE_MAGIC;
use et_names::EventSet;
use et_system::threads::NoThread;
use thiserror::Error;

use crate::batch::{self, Filler};
use crate::file::{CutOff, ReadError, TraceFile};
use crate::lifetimes::{self, AllKnown, Cost, Earlier, Keeper, LifetimesError, Lives, Played, Replay, WeakFields};
use crate::place::Place;
use crate::reading::play;
use crate::record::{Clock, Record};
use crate::resolve::{self, Context, Visit};
use crate::text::{TextInputError, TextTrace};
use crate::told::{Hold, Told};
use crate::trace::Trace;
use crate::types::Types;
use crate::watch::Watcher;

pub use crate::batch::At;
pub use crate::reading::{Deaths, Ending, Reading, deaths_of_heap, deaths_unknown};

/// Why a trace cannot be read.
#[derive(Debug, Error)]
pub enum SourceError {
    #[error(transparent)]
    Trace(#[from] ReadError),
    #[error(transparent)]
    Text(TextInputError),
    #[error(transparent)]
    Lifetimes(LifetimesError),
    #[error(transparent)]
    Thread(#[from] NoThread),
    /// The records of a trace that has none are asked for.
    #[error(
        "{0} counts allocations and tells of no single objects: summary, report, export and diff read it; \
         record with --events alloc,stacks for objects"
    )]
    Counts(PathBuf),
}

impl From<TextInputError> for SourceError {
    fn from(error: TextInputError) -> Self {
        match error {
            TextInputError::Lifetimes(error) => error.into(),
            error => Self::Text(error),
        }
    }
}

impl From<LifetimesError> for SourceError {
    fn from(error: LifetimesError) -> Self {
        match error {
            LifetimesError::Read(error) => Self::Trace(error),
            LifetimesError::Thread(error) => Self::Thread(error),
            error => Self::Lifetimes(error),
        }
    }
}

/// An open trace.
#[derive(Debug)]
pub enum Source {
    Trace(Box<TraceSource>),
    Text(Box<TextTrace>),
}

/// A trace file, and what keeps the results computed from it.
#[derive(Debug)]
pub struct TraceSource {
    trace: Trace,
    /// Keeps the deaths from one reading to the next, if set.
    pub lives: Option<Arc<dyn Lives>>,
}

impl TraceSource {
    /// Opens a trace file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Trace::open(path).map(Self::from)
    }
}

impl Deref for TraceSource {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.trace
    }
}

impl DerefMut for TraceSource {
    fn deref_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }
}

impl From<Trace> for TraceSource {
    fn from(trace: Trace) -> Self {
        Self { trace, lives: None }
    }
}

impl Source {
    /// Opens a trace; `-` is standard input. `names` is the names file of a text.
    pub fn open(path: &Path, names: Option<&Path>) -> Result<Self, SourceError> {
        let fail = |source| ReadError::Io { path: path.to_owned(), source };
        if path == Path::new("-") {
            return Self::from_stream(Path::new("standard input"), std::io::stdin().lock(), names);
        }
        let mut file = File::open(path).map_err(fail)?;
        let kind = file.metadata().map_err(fail)?.file_type();
        if kind.is_file() {
            let start = start_of(&mut file).map_err(fail)?;
            if is_text(&start) {
                return Ok(Self::Text(Box::new(TextTrace::open(path, names)?)));
            }
        } else if !kind.is_dir() {
            return Self::from_stream(path, file, names);
        }
        Ok(TraceSource::open(path)?.into())
    }

    /// Opens a trace in memory, in any form.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, SourceError> {
        if is_text(&bytes[..bytes.len().min(START)]) {
            return Self::from_stream(Path::new("text in memory"), bytes.as_slice(), None);
        }
        Ok(Trace::from_file(TraceFile::from_bytes(bytes, None)?)?.into())
    }

    fn from_stream(name: &Path, mut stream: impl Read, names: Option<&Path>) -> Result<Self, SourceError> {
        let start = start_of(&mut stream).map_err(|source| ReadError::Io { path: name.to_owned(), source })?;
        let is_text = is_text(&start);
        let whole = start.chain(stream);
        if is_text {
            return Ok(Self::Text(Box::new(TextTrace::from_stream(name, whole, names)?)));
        }
        Ok(Trace::from_file(TraceFile::from_stream(name, whole)?)?.into())
    }

    /// Sets the watcher that is informed about the progress of reading.
    pub fn watch(&mut self, watcher: &Watcher) {
        match self {
            Self::Trace(trace) => trace.file.watch(watcher),
            Self::Text(text) => text.watch(watcher),
        }
    }

    /// The trace if it is a trace file and not a text.
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Self::Trace(trace) => Some(trace),
            Self::Text(_) => None,
        }
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        match self {
            Self::Trace(trace) => trace.file.path(),
            Self::Text(text) => text.path(),
        }
    }

    /// The events that the classes of the run have hooks for.
    pub fn events(&self) -> EventSet {
        match self {
            Self::Trace(trace) => trace.events,
            Self::Text(text) => text.events(),
        }
    }

    /// Where deaths come from if they are requested; [`Deaths::None`] if they cannot be known. A text may have its own.
    pub fn deaths(&self, asked: Deaths) -> Deaths {
        match self {
            Self::Text(text) if text.has_deaths() => asked,
            // Whatever its classes have hooks for, there are no objects that could die.
            Self::Trace(trace) if trace.only_counts() => Deaths::None,
            _ if deaths_unknown(self.events()).is_some() => Deaths::None,
            _ => asked,
        }
    }

    /// The clock if this one is asked for.
    pub fn clock(&self, asked: Clock) -> Clock {
        asked.of(self.events())
    }

    /// The types of a whole reading: those of a text come as it is read.
    pub fn types_at<'t>(&'t self, ending: &'t Ending) -> &'t Types {
        match self {
            Self::Trace(trace) => &trace.types,
            Self::Text(_) => &ending.text_types,
        }
    }

    /// An error for a trace that counts allocations and tells of no single objects.
    pub fn tells_objects(&self) -> Result<(), SourceError> {
        match self {
            Self::Trace(trace) if trace.only_counts() => Err(SourceError::Counts(trace.file.path().to_owned())),
            Self::Trace(_) | Self::Text(_) => Ok(()),
        }
    }

    /// Whether it says what holds objects although no record does. A text may not.
    pub fn tells_holders(&self) -> bool {
        match self {
            Self::Trace(_) => true,
            Self::Text(text) => text.tells_holders(),
        }
    }

    /// Calls `visit` with each record, in order, until it breaks or the trace ends. If deaths are requested but cannot
    /// be known, there are none, and there is a warning.
    ///
    /// The trace is read on other threads in the meantime.
    pub fn for_each(
        &self,
        reading: Reading,
        mut visit: impl FnMut(&Record, &At<'_>) -> ControlFlow<()>,
    ) -> Result<Ending, SourceError> {
        self.for_each_told(Reading { holders: false, ..reading }, |told, at| match told {
            Told::Record(record) => visit(record, at),
            Told::Hold(_) => ControlFlow::Continue(()),
        })
    }

    /// Like [`for_each`](Self::for_each), including what else holds objects if `reading` requests it.
    pub fn for_each_told(
        &self,
        reading: Reading,
        visit: impl FnMut(&Told, &At<'_>) -> ControlFlow<()>,
    ) -> Result<Ending, SourceError> {
        through(&self.types(), self.clock(reading.clock), |filler| self.fill(reading, filler), visit)
    }

    /// Where a trace file stops if it has no end. For a cut-off text, see [`Ending::warnings`].
    pub fn cut_off(&self) -> Option<&CutOff> {
        match self {
            Self::Trace(trace) => trace.file.cut_off(),
            Self::Text(_) => None,
        }
    }

    /// Which slots do not keep their target alive. Unknown for a text without a names file.
    pub fn weak_fields(&self) -> WeakFields {
        match self {
            Self::Trace(trace) => {
                let special = lifetimes::special(trace);
                let descriptor = |ty| trace.types.descriptor(ty).to_owned();
                let final_references = special.final_references.into_iter().map(descriptor).collect();
                WeakFields { referent: special.referent, final_references }
            }
            Self::Text(text) => text.weak_fields(),
        }
    }

    /// Types that are known before anything is read: all types of a trace file, none of a text.
    pub fn types(&self) -> Arc<Types> {
        match self {
            Self::Trace(trace) => Arc::clone(&trace.types),
            Self::Text(_) => Arc::default(),
        }
    }

    /// Fills batches with everything that is requested.
    pub(crate) fn fill(&self, reading: Reading, filler: Filler) -> Result<Ending, SourceError> {
        match self {
            Self::Trace(trace) => {
                self.tells_objects()?;
                fill(trace, reading, filler)
            }
            Self::Text(text) => Ok(text.fill(reading, filler)?),
        }
    }
}

fn through(
    types: &Arc<Types>,
    clock: Clock,
    fill: impl FnOnce(Filler) -> Result<Ending, SourceError> + Send,
    visit: impl FnMut(&Told, &At<'_>) -> ControlFlow<()>,
) -> Result<Ending, SourceError> {
    let (ending, stopped) = batch::through(types, clock, fill, visit)?;
    if stopped { Ok(ending_of_stopped(ending)) } else { ending }
}

/// Results of a reading that was stopped: errors in what was only read ahead are ignored.
pub(crate) fn ending_of_stopped(ending: Result<Ending, SourceError>) -> Ending {
    let mut ending = ending.unwrap_or_default();
    ending.outcome.stopped = true;
    ending
}

fn fill(trace: &TraceSource, reading: Reading, mut filler: Filler) -> Result<Ending, SourceError> {
    let mut ending = Ending::default();
    let unknown = deaths_unknown(trace.events).filter(|_| reading.deaths == Deaths::Trace);
    if reading.deaths == Deaths::None || unknown.is_some() {
        ending.warnings.extend(unknown);
        ending.outcome = if reading.holders {
            lifetimes::each(trace, &mut filler)?
        } else {
            resolve::run(trace, OnlyRecords(&mut filler))?
        };
    } else if let Some((known, cost)) = known(trace).or_else(|| made(trace)) {
        ending.cost = Some(cost);
        let replay = Replayed { filler: &mut filler, holders: reading.holders };
        ending.outcome = lifetimes::replay_known(trace, known, replay)?;
    } else {
        let mut to_the_end = Vec::new();
        let (recording, outcome) = lifetimes::record_seen(trace, reading.limits, reading.places, |told, _, step| {
            if reading.holders
                && let Told::Hold(hold @ Hold::ToTheEnd { .. }) = told
            {
                to_the_end.push((step, *hold));
            }
            if filler.is_wanted() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        ending.outcome = outcome;
        let Some(recording) = recording else { return Ok(ending) };
        let mut keeper = Kept::of(trace);
        let (cost, stopped) =
            play(&recording, &to_the_end, |played| keeper.played(played), (&mut filler, reading.holders))?;
        ending.cost = Some(cost);
        // If the reading was stopped, nothing is kept, however much was read ahead.
        ending.outcome.stopped = stopped || (keeper.0.is_some() && !filler.wait_until_taken());
        keeper.finish(trace, &ending);
    }
    if reading.deaths == Deaths::Trace {
        ending.warnings.extend(deaths_of_heap(trace.events));
    }
    ending.outcome.totals = filler.finish();
    Ok(ending)
}

/// Inserts earlier results between the items.
struct Replayed<'a> {
    filler: &'a mut Filler,
    holders: bool,
}

impl Replay for Replayed<'_> {
    #[inline(always)]
    fn told(&mut self, told: Told, place: Place) -> ControlFlow<()> {
        if matches!(told, Told::Hold(_)) && !self.holders {
            return ControlFlow::Continue(());
        }
        self.filler.at(place);
        self.filler.push(told)
    }

    fn found(&mut self, record: Record, place: Place) -> ControlFlow<()> {
        self.filler.at(place);
        self.filler.push_found(record)
    }
}

/// Passes on records only.
struct OnlyRecords<'a>(&'a mut Filler);

impl Visit for OnlyRecords<'_> {
    #[inline(always)]
    fn record(&mut self, record: Record, context: &Context<'_>) -> ControlFlow<()> {
        self.0.at(context.place);
        self.0.push(Told::Record(record))
    }
}

impl From<TraceSource> for Source {
    fn from(trace: TraceSource) -> Self {
        Self::Trace(Box::new(trace))
    }
}

impl From<Trace> for Source {
    fn from(trace: Trace) -> Self {
        TraceSource::from(trace).into()
    }
}

impl From<TextTrace> for Source {
    fn from(text: TextTrace) -> Self {
        Self::Text(Box::new(text))
    }
}

/// Earlier results, if there are any. They cost nothing now.
fn known(trace: &TraceSource) -> Option<(AllKnown<'_>, Cost)> {
    let Earlier { found, held_by_stacks } = trace.lives.as_ref()?.earlier()?;
    Some((found, Cost { held_by_stacks, ..Cost::default() }))
}

/// Results that are worked out without records.
fn made(trace: &TraceSource) -> Option<(AllKnown<'_>, Cost)> {
    if trace.lives.as_ref()?.make(trace) { known(trace) } else { None }
}

/// What keeps the results of this reading, if anything.
struct Kept(Option<Box<dyn Keeper>>);

impl Kept {
    fn of(trace: &TraceSource) -> Self {
        Self(trace.lives.clone().and_then(|lives| lives.keeper()))
    }

    #[inline]
    fn played(&mut self, played: &Played<'_>) {
        if let Some(keeper) = &mut self.0 {
            keeper.played(played);
        }
    }

    /// Completes the results unless the replay was stopped.
    fn finish(self, trace: &Trace, ending: &Ending) {
        let held = ending.cost.as_ref().map_or(&[][..], |cost| &cost.held_by_stacks);
        if let Some(keeper) = self.0.filter(|_| !ending.outcome.stopped) {
            keeper.finish(trace, &ending.outcome, held);
        }
    }
}

/// Number of bytes at the start that are enough to recognize the format.
const START: usize = 64;

fn start_of(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    stream.take(START as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether this is the start of a text; anything unclear is left to the trace reader, which reports the error.
fn is_text(start: &[u8]) -> bool {
    !start.is_empty()
        && !start.starts_with(&FILE_MAGIC)
        && start.iter().all(|byte| matches!(byte, b'\n' | b'\r' | b'\t' | b' '..=b'~') || *byte >= 0x80)
        && std::str::from_utf8(start).map_or_else(|error| error.valid_up_to() + 4 > start.len(), |_| true)
}
