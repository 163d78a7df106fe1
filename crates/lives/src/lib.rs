//! The life table of a trace: what happened to each object, computed once and kept beside the trace as Parquet files,
//! for et-trace and any other reader of Parquet. `docs/inside/lives.md` lists the columns.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut trace = et_reader::source::TraceSource::open("app.ettrace".as_ref())?;
//! let lives = et_lives::attach(&mut trace, None);
//! // Reading deaths from this source now creates the table, or uses it.
//! # Ok(())
//! # }
//! ```

mod added;
mod births;
mod by_blocks;
mod by_time;
mod fates;
mod folder;
mod held;
mod known;
mod late;
mod maker;
mod names;
mod object_table;
mod passing;
mod population;
mod references;
mod rows;
mod stamp;
mod surviving;
pub mod tables;
#[cfg(test)]
mod tests;
mod without_uses;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use et_columns::Written;
use et_names::EventSet;
use et_reader::blocks::glimpse::Glimpses;
use et_reader::blocks::{BlocksError, Late, Passed};
use et_reader::lifetimes::{Earlier, HeldByStack, Keeper, Lives, Played};
use et_reader::population::Population;
use et_reader::record::Clock;
use et_reader::resolve::{Lost, Outcome};
use et_reader::source::TraceSource;
use et_reader::stacks::StackTable;
use et_reader::{Trace, deaths_unknown};

pub use by_time::{by_time, kept_by_time};
use folder::There;
pub use folder::{MANIFEST, Manifest, TableFile};
use maker::{Follows, Made, Maker};
use passing::Passing;
pub use population::{PopulationError, births, observe, observe_rows, population};
pub use references::{kept_references, references, row as reference_row};
use stamp::Stamp;
use without_uses::tells_uses;

/// Environment variable: life tables are made from the records, to compare both ways.
const BY_RECORDS: &str = "ET_LIVES_BY_RECORDS";
/// File name of the table of objects.
pub const OBJECTS: &str = "objects.parquet";
/// File name of the table of cleared weak references, which are needed to replay deaths.
pub const CLEARINGS: &str = "clearings.parquet";
const CONTEXTS: &str = "contexts.parquet";
const CLASSES: &str = "classes.parquet";
const SITES: &str = "sites.parquet";
const METHODS: &str = "methods.parquet";
const THREADS: &str = "threads.parquet";
const HELD: &str = "held.parquet";
/// Walks through the heap, and what they say of each object. Traces that tell when objects die do not have them.
const WALKS: &str = "walks.parquet";
const FATES: &str = "fates.parquet";
/// All tables.
const TABLES: [&str; 10] = [OBJECTS, CLEARINGS, CONTEXTS, CLASSES, SITES, METHODS, THREADS, HELD, WALKS, FATES];

/// File name of the heap at some moments. The number changes with its form.
const GLIMPSES: &str = "heaps-1.bin";

/// File name of the table of references.
const REFERENCES: &str = "references.parquet";
/// Contexts of its rows that the life table does not have.
const REFERENCE_CONTEXTS: &str = "reference-contexts.parquet";
/// The objects in another order, in which those of a moment are close together.
const BY_TIME: &str = "objects-by-time.parquet";
/// Rows for sums of a trace that tells nothing but how objects are made, its contexts, walks through its heap, and what they say of the rows.
const BIRTHS: &str = "births.parquet";
const BIRTH_CONTEXTS: &str = "births-contexts.parquet";
const BIRTH_WALKS: &str = "births-walks.parquet";
const BIRTH_FATES: &str = "births-fates.parquet";
/// Tables that are added when they are first needed.
const ADDED: [&str; 7] = [REFERENCES, REFERENCE_CONTEXTS, BY_TIME, BIRTHS, BIRTH_CONTEXTS, BIRTH_WALKS, BIRTH_FATES];

/// The life table of a trace, which may exist or have yet to be made.
#[derive(Debug)]
pub struct LifeTable {
    /// Where it is kept; `None` if it is for this process only.
    home: Option<Home>,
    /// The clock that was asked for, and the one that its times are ticks of.
    clock: Clock,
    clock_of_trace: Clock,
    /// What its rows say: as much as the trace tells.
    follows: Follows,
    /// The stacks that the trace has of its own.
    stacks: Arc<StackTable>,
    /// The rows, if they were made but are not kept.
    passing: Mutex<Option<Passing>>,
    /// The heap at some moments, if it was made by this process.
    glimpses: Mutex<Option<Arc<Glimpses>>>,
    /// Why there is no table, or why it could not be kept.
    trouble: Mutex<Option<String>>,
    /// Itself, for rows that are kept once all are there.
    me: Weak<Self>,
}

/// The folder of a life table.
#[derive(Debug)]
struct Home {
    folder: PathBuf,
    /// State of the trace file before any of its events were read.
    stamp: Option<Stamp>,
    /// The manifest, once the folder has been examined.
    manifest: Mutex<Option<Manifest>>,
    /// The manifest of a table whose files do not match it.
    damaged: Mutex<Option<Manifest>>,
}

/// Whether events only tell how objects were made.
fn only_births(events: EventSet) -> bool {
    deaths_unknown(events).is_some() && !tells_uses(events)
}

/// The content of a mutex, even if a thread panicked that held it: it is replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes readers of deaths use the life table of the trace, or create it if there is none: in `folder`, or beside the
/// trace. Returns `None` for a cut-off trace, one that is not a regular file, and one that was damaged after its
/// table was made.
pub fn attach(trace: &mut TraceSource, folder: Option<&Path>) -> Option<Arc<LifeTable>> {
    let path = trace.file.path();
    let lacks_events = trace.file.lost_events() > 0 || trace.file.discarded_bytes() > 0;
    if trace.file.end().is_none() || lacks_events || !path.is_file() {
        return None;
    }
    let folder = folder.map_or_else(|| et_system::files::lives_of(path), Path::to_owned);
    let (mut manifest, mut trouble) = (None, None);
    let stamp = Stamp::of(path);
    match folder::look(&folder, &trace.file) {
        There::Fits(there) if !stamp::is_whole(&trace.file, stamp.as_ref(), &folder, &there) => return None,
        There::Fits(there) => manifest = Some(*there),
        There::Other(what) => trouble = Some(format!("{} {what}: nothing is kept", folder.display())),
        There::Nothing | There::Unfit => {}
    }
    // A link is kept, and its target is replaced.
    let folder = folder.canonicalize().unwrap_or(folder);
    let home = Home { folder, stamp, manifest: Mutex::new(manifest), damaged: Mutex::default() };
    Some(LifeTable::new(Some(home), Clock::default(), trouble).of(trace))
}

/// Makes readers of deaths keep the life table of the trace in temporary files, for this process only: a second reading
/// has the deaths from the first. Times in its rows are ticks of `clock`.
pub fn attach_passing(trace: &mut TraceSource, clock: Clock) -> Arc<LifeTable> {
    LifeTable::new(None, clock, None).of(trace)
}

impl LifeTable {
    fn new(home: Option<Home>, clock: Clock, trouble: Option<String>) -> Self {
        let (stacks, passing, glimpses) = (Arc::default(), Mutex::default(), Mutex::default());
        let (follows, trouble) = (Follows::Lives, Mutex::new(trouble));
        Self { home, clock, clock_of_trace: clock, follows, stacks, passing, glimpses, trouble, me: Weak::new() }
    }

    fn of(self, trace: &mut TraceSource) -> Arc<Self> {
        let events = trace.events;
        let clock_of_trace = self.clock.of(events);
        let follows = if only_births(events) { Follows::Births } else { Follows::Lives };
        let stacks = trace.stacks.clone();
        let table = Arc::new_cyclic(|me| Self { stacks, clock_of_trace, follows, me: me.clone(), ..self });
        trace.lives = Some(table.clone());
        table
    }

    /// Where it is kept; `None` if it is for this process only.
    pub fn folder(&self) -> Option<&Path> {
        self.home.as_ref().map(|home| home.folder.as_path())
    }

    /// The manifest, if the table exists and is kept.
    pub fn manifest(&self) -> Option<Manifest> {
        lock(&self.home.as_ref()?.manifest).clone()
    }

    /// Why the table could not be kept, in one line. The only consequence is that it will be computed again.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Opens one of its files. Fails if the file does not match the manifest.
    pub fn open(&self, name: &str) -> io::Result<File> {
        match (self.folder(), self.manifest()) {
            (Some(folder), Some(manifest)) => folder::open(folder, &manifest, name),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The heap at some moments, if the table was made by blocks, of a trace with many.
    pub fn glimpses(&self) -> Option<Arc<Glimpses>> {
        if let Some(made) = &*lock(&self.glimpses) {
            return Some(Arc::clone(made));
        }
        Glimpses::from_bytes(&self.kept(GLIMPSES)?).map(Arc::new)
    }

    /// Reads the result kept under that name; `None` if there is none.
    pub fn kept(&self, name: &str) -> Option<Vec<u8>> {
        folder::kept(self.folder()?, &self.manifest()?, name)
    }

    /// Keeps a result that was computed from the trace, if the table exists and is kept.
    pub fn keep(&self, name: &str, body: &[u8]) {
        if let (Some(folder), Some(manifest)) = (self.folder(), self.manifest())
            && let Err(error) = folder::keep(folder, &manifest, name, body)
        {
            self.complain(&error);
        }
    }

    fn complain(&self, error: &io::Error) {
        self.is_not_kept("life table is", error);
    }

    /// Notes that something could not be kept.
    fn is_not_kept(&self, what: &str, error: &io::Error) {
        // If it is not to be kept, whoever needs its rows has the same error.
        if let Some(folder) = self.folder() {
            *lock(&self.trouble) = Some(format!("no {what} kept in {}: {error}", folder.display()));
        }
    }

    /// Marks the table as damaged: its files do not match the manifest.
    fn doubt(&self) {
        if let Some(home) = &self.home {
            let manifest = lock(&home.manifest).take();
            *lock(&home.damaged) = manifest;
        }
    }

    /// A file to write to: where it can be kept, or else for this process only.
    fn file(&self) -> io::Result<File> {
        if let (Some(folder), None) = (self.folder(), self.trouble()) {
            match folder::nameless(folder) {
                Ok(file) => return Ok(file),
                Err(error) => self.complain(&error),
            }
        }
        // Whoever needs the rows will have the same error.
        tempfile::tempfile()
    }

    /// The deaths of a table that is kept, or of one that is not.
    fn deaths(&self) -> io::Result<Option<Earlier<'_>>> {
        if self.follows == Follows::Births {
            return Ok(None);
        }
        if self.manifest().is_none() {
            return lock(&self.passing).as_ref().map_or(Ok(None), Passing::deaths);
        }
        let late = self.manifest().map(|manifest| manifest.late).unwrap_or_default();
        let found = known::all(self.open(OBJECTS)?, self.open(CLEARINGS)?, &late)?;
        Ok(Some(Earlier { found: Box::new(found), held_by_stacks: held::read(self.open(HELD)?)? }))
    }
}

/// Writes the table; belongs to the keeper.
#[derive(Debug)]
struct Making {
    table: Arc<LifeTable>,
    maker: Maker,
}

impl Lives for LifeTable {
    fn earlier(&self) -> Option<Earlier<'_>> {
        // A damaged table is made again.
        self.deaths().inspect_err(|_| self.doubt()).ok()?
    }

    fn make(&self, trace: &Trace) -> bool {
        self.make_by_blocks(trace).is_some()
    }

    fn keeper(self: Arc<Self>) -> Option<Box<dyn Keeper>> {
        let files = [self.file().ok()?, self.file().ok()?];
        let maker = Maker::new(self.stacks.clone(), files, self.clock_of_trace, Follows::Lives);
        Some(Box::new(Making { table: self, maker }))
    }
}

impl Keeper for Making {
    #[inline]
    fn played(&mut self, played: &Played<'_>) {
        self.maker.played(played);
    }

    fn finish(self: Box<Self>, trace: &Trace, outcome: &Outcome, held_by_stacks: &[HeldByStack]) {
        let Self { table, maker } = *self;
        let made = match maker.finish() {
            Ok(made) => made,
            Err(error) => return table.complain(&error),
        };
        table.take(trace, made, held_by_stacks, outcome.lost);
    }
}

impl LifeTable {
    /// Keeps a table that was made, in its place or for this process.
    fn take(&self, trace: &Trace, made: Made, held_by_stacks: &[HeldByStack], lost: Lost) {
        // What is missing may be available another time, in a file of the same length.
        let can_be_kept = lost.total() == 0 && self.trouble().is_none();
        if let Some(home) = self.home.as_ref().filter(|_| can_be_kept) {
            match home.publish(trace, &made, held_by_stacks) {
                Ok(()) => return,
                Err(error) => self.complain(&error),
            }
        }
        *lock(&self.passing) = Some(Passing::of(made, held_by_stacks.to_vec(), lost));
    }

    /// Makes room for results of a trace whose rows are not kept.
    fn keep_results(&self, trace: &Trace, population: &Population) {
        if let Some(home) = self.home.as_ref().filter(|_| self.manifest().is_none() && self.trouble().is_none())
            && let Err(error) = home.publish_results(trace, population)
        {
            self.complain(&error);
        }
    }

    /// Makes the table without making records. `None` if that cannot be done: then it is made from the records.
    fn make_by_blocks(&self, trace: &Trace) -> Option<Passed> {
        if self.clock != Clock::default() || std::env::var_os(BY_RECORDS).is_some() {
            return None;
        }
        let (made, mut passed) = match by_blocks::make(trace, self.follows, || self.file()) {
            Ok(made) => made,
            Err(error) => {
                // Any error is reported by whoever makes it from the records, which nobody does of births.
                if let (Follows::Births, BlocksError::Files(error)) = (self.follows, &error) {
                    self.complain(error);
                }
                return None;
            }
        };
        self.take(trace, made, &passed.held_by_stacks, passed.outcome.lost);
        let glimpses = std::mem::take(&mut passed.glimpses);
        if !glimpses.all.is_empty() {
            self.keep(GLIMPSES, &glimpses.to_bytes());
            *lock(&self.glimpses) = Some(Arc::new(glimpses));
        }
        Some(passed)
    }
}

impl Home {
    /// Puts the table in place.
    fn publish(&self, trace: &Trace, made: &Made, held_by_stacks: &[HeldByStack]) -> io::Result<()> {
        let damaged = lock(&self.damaged).take();
        self.is_in_place(publish(&self.folder, trace, made, held_by_stacks, damaged.as_ref())?);
        Ok(())
    }

    /// Puts a folder in place that has no tables.
    fn publish_results(&self, trace: &Trace, population: &Population) -> io::Result<()> {
        let Population { objects, contexts, end, .. } = population;
        let manifest = Manifest::of(&trace.file, *objects, contexts.cut(), *end, Late::default(), Vec::new());
        let damaged = lock(&self.damaged).take();
        self.is_in_place(folder::publish(&self.folder, &trace.file, manifest, &[], damaged.as_ref())?);
        Ok(())
    }

    fn is_in_place(&self, manifest: Manifest) {
        // Everything was read and nothing was lost.
        if let Some(stamp) = &self.stamp {
            stamp.keep(&self.folder, &manifest);
        }
        *lock(&self.manifest) = Some(manifest);
    }
}

fn publish(
    folder: &Path,
    trace: &Trace,
    made: &Made,
    held_by_stacks: &[HeldByStack],
    damaged: Option<&Manifest>,
) -> io::Result<Manifest> {
    let file = || folder::nameless(folder);
    let tables = [
        (CONTEXTS, names::contexts(file()?, &made.contexts, 0)?),
        (CLASSES, names::classes(file()?, trace, &made.used)?),
        (SITES, names::sites(file()?, trace, &made.used)?),
        (METHODS, names::methods(file()?, trace, &made.contexts, &made.used)?),
        (THREADS, names::threads(file()?, trace, &made.used)?),
        (HELD, held::write(file()?, held_by_stacks)?),
    ];
    let of_walks = made.survival.iter().flat_map(|made| [(WALKS, &made.walks), (FATES, &made.fates)]);
    let all: Vec<(&str, &Written)> = [(OBJECTS, &made.lives), (CLEARINGS, &made.clearings)]
        .into_iter()
        .chain(of_walks)
        .chain(tables.iter().map(|(name, table)| (*name, table)))
        .collect();
    let entries = all.iter().map(|(name, table)| folder::entry(name, table)).collect();
    let manifest = Manifest::of(&trace.file, made.objects, made.contexts.cut(), made.end, made.late.clone(), entries);
    folder::publish(folder, &trace.file, manifest, &all, damaged)
}
