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

mod by_blocks;
mod folder;
mod held;
mod known;
mod maker;
mod names;
mod population;
mod stamp;
pub mod tables;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use et_columns::Written;
use et_reader::Trace;
use et_reader::lifetimes::{Earlier, HeldByStack, Keeper, Lives, Played};
use et_reader::resolve::Outcome;
use et_reader::source::TraceSource;

use folder::There;
pub use folder::{MANIFEST, Manifest, TableFile};
pub use by_blocks::population_by_blocks;
use maker::Maker;
pub use population::{PopulationError, population};
use stamp::Stamp;

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
/// All tables.
const TABLES: [&str; 8] = [OBJECTS, CLEARINGS, CONTEXTS, CLASSES, SITES, METHODS, THREADS, HELD];

/// The life table of a trace, which may exist or have yet to be made.
#[derive(Debug)]
pub struct LifeTable {
    folder: PathBuf,
    /// State of the trace file before any of its events were read.
    stamp: Option<Stamp>,
    /// The manifest, once the folder has been examined.
    manifest: Mutex<Option<Manifest>>,
    /// The manifest of a table whose files do not match it.
    damaged: Mutex<Option<Manifest>>,
    /// Why there is no table, or why it could not be kept.
    trouble: Mutex<Option<String>>,
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
        There::Fits(there) => manifest = Some(there),
        There::Other(what) => trouble = Some(format!("{} {what}: nothing is kept", folder.display())),
        There::Nothing | There::Unfit => {}
    }
    // A link is kept, and its target is replaced.
    let folder = folder.canonicalize().unwrap_or(folder);
    let (manifest, trouble) = (Mutex::new(manifest), Mutex::new(trouble));
    let table = Arc::new(LifeTable { folder, stamp, manifest, damaged: Mutex::default(), trouble });
    trace.lives = Some(table.clone());
    Some(table)
}

impl LifeTable {
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The manifest, if the table exists.
    pub fn manifest(&self) -> Option<Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the table could not be kept, in one line. The only consequence is that it will be computed again.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens one of its files. Fails if the file does not match the manifest.
    pub fn open(&self, name: &str) -> io::Result<File> {
        match self.manifest() {
            Some(manifest) => folder::open(&self.folder, &manifest, name),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Reads the result kept under that name; `None` if there is none.
    pub fn kept(&self, name: &str) -> Option<Vec<u8>> {
        self.manifest().and_then(|manifest| folder::kept(&self.folder, &manifest, name))
    }

    /// Keeps a result that was computed from the trace, if the table exists.
    pub fn keep(&self, name: &str, body: &[u8]) {
        if let Some(manifest) = self.manifest()
            && let Err(error) = folder::keep(&self.folder, &manifest, name, body)
        {
            self.complain(&error);
        }
    }

    fn complain(&self, error: &io::Error) {
        let why = format!("no life table is kept in {}: {error}", self.folder.display());
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Marks the table as damaged: its files do not match the manifest.
    fn doubt(&self) {
        let manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner).take();
        *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = manifest;
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
        self.manifest()?;
        let read = || -> io::Result<Earlier<'_>> {
            let found = known::all(self.open(OBJECTS)?, self.open(CLEARINGS)?)?;
            Ok(Earlier { found: Box::new(found), held_by_stacks: held::read(self.open(HELD)?)? })
        };
        // A damaged table is made again.
        read().inspect_err(|_| self.doubt()).ok()
    }

    fn keeper(self: Arc<Self>) -> Option<Box<dyn Keeper>> {
        if self.trouble().is_some() {
            return None;
        }
        let files = folder::nameless(&self.folder).and_then(|lives| Ok((lives, folder::nameless(&self.folder)?)));
        match files {
            Ok((lives, clearings)) => Some(Box::new(Making { table: self, maker: Maker::new(lives, clearings) })),
            Err(error) => {
                self.complain(&error);
                None
            }
        }
    }
}

impl Keeper for Making {
    #[inline]
    fn played(&mut self, played: &Played<'_>) {
        self.maker.played(played);
    }

    fn finish(self: Box<Self>, trace: &Trace, outcome: &Outcome, held_by_stacks: &[HeldByStack]) {
        // What is missing may be available another time, in a file of the same length.
        if outcome.lost.total() > 0 {
            return;
        }
        let Self { table, maker } = *self;
        let damaged = table.damaged.lock().unwrap_or_else(PoisonError::into_inner).take();
        match publish(&table.folder, trace, maker, held_by_stacks, damaged.as_ref()) {
            Ok(manifest) => {
                // Everything was read and nothing was lost.
                if let Some(stamp) = &table.stamp {
                    stamp.keep(&table.folder, &manifest);
                }
                *table.manifest.lock().unwrap_or_else(PoisonError::into_inner) = Some(manifest);
            }
            Err(error) => table.complain(&error),
        }
    }
}

fn publish(
    folder: &Path,
    trace: &Trace,
    maker: Maker,
    held_by_stacks: &[HeldByStack],
    damaged: Option<&Manifest>,
) -> io::Result<Manifest> {
    let made = maker.finish()?;
    let file = || folder::nameless(folder);
    let tables = [
        (CONTEXTS, names::contexts(file()?, &made.contexts)?),
        (CLASSES, names::classes(file()?, trace, &made.used)?),
        (SITES, names::sites(file()?, trace, &made.used)?),
        (METHODS, names::methods(file()?, trace, &made.contexts, &made.used)?),
        (THREADS, names::threads(file()?, trace, &made.used)?),
        (HELD, held::write(file()?, held_by_stacks)?),
    ];
    let all: Vec<(&str, &Written)> = [(OBJECTS, &made.lives), (CLEARINGS, &made.clearings)]
        .into_iter()
        .chain(tables.iter().map(|(name, table)| (*name, table)))
        .collect();
    let entries = all.iter().map(|(name, table)| folder::entry(name, table)).collect();
    let manifest = Manifest::of(&trace.file, made.objects, made.contexts.cut(), made.end, entries);
    folder::publish(folder, &trace.file, manifest, &all, damaged)
}
