//! The cache of `et-instrument run`: instrumented JDKs and programs, shared by all runs of a user.
//!
//! ```text
//! jdks/NAME-KEY/       an instrumented copy of a JDK
//! programs/KEY/        instrumented jars and folders, for one version of this tool and one set of options
//! …/KEY.use            lock: shared by every run that uses the entry, exclusive for removing it
//! …/KEY.update         lock of the process that writes the entry
//! jdks/…KEY.seals      digests of the files of a JDK: a damaged copy is made again
//! digests/             remembered digests of files
//! ```
//!
//! Keys are digests of everything that affects the result: content of the JDK, this program, the runtime, options.

pub mod digests;
pub mod entry;
mod error;
pub mod list;
pub mod program;
pub mod seals;
pub mod stamp;
mod trust;

use std::env;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::files::{FileError, absolute, write_beside};
use digests::Digests;
use entry::CacheEntry;
pub use error::CacheError;
use trust::Right;

/// The folder's name below the user's cache folder.
const NAME: &str = "elephant-tracks";

/// Tells backup programs that the content can be recreated (<https://bford.info/cachedir/>).
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by et-instrument run; see et-instrument cache\n";

/// The subfolders.
const FOLDERS: [&str; 3] = [Kind::Jdk.folder(), Kind::Program.folder(), DIGESTS];
const DIGESTS: &str = "digests";

/// Kind of cache entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An instrumented JDK.
    Jdk,
    /// Jars and folders of programs.
    Program,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::Jdk, Kind::Program];

    const fn folder(self) -> &'static str {
        match self {
            Kind::Jdk => "jdks",
            Kind::Program => "programs",
        }
    }
}

/// The folder of a cache.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    right: Right,
}

impl Cache {
    /// The folder given, else `elephant-tracks` in the user's cache folder (`XDG_CACHE_HOME`, or `~/.cache`).
    pub fn find(given: Option<&Path>) -> Result<Self, CacheError> {
        let root = match given {
            Some(folder) => folder.to_owned(),
            None => caches().ok_or(CacheError::NoFolder)?.join(NAME),
        };
        let root = absolute(&root)?;
        Ok(Self { right: Right::of(&root), root })
    }

    /// Absolute path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the folder if necessary. Fails if other users may have changed its content.
    pub fn create(&self) -> Result<(), CacheError> {
        self.check()?;
        if self.is_read_only() {
            return Ok(());
        }
        for folder in FOLDERS {
            let folder = self.root.join(folder);
            let made = DirBuilder::new().recursive(true).mode(0o755).create(&folder);
            made.map_err(FileError::at("create the cache folder", &folder))?;
        }
        let tag = self.root.join("CACHEDIR.TAG");
        if !tag.exists() {
            write_beside(&tag, TAG.as_bytes())?;
        }
        // Another process may have created it first.
        self.check()
    }

    /// Refuses a cache in which others may have put what they like.
    pub fn check(&self) -> Result<(), CacheError> {
        trust::check(&self.root, &FOLDERS)
    }

    /// Whether it is used as it is, without locks.
    pub fn is_read_only(&self) -> bool {
        self.right == Right::Read
    }

    /// Opens the entry with this key, which cannot be removed during the lifetime of the returned value. `say` is
    /// called with a message before waiting for others.
    pub fn entry(&self, kind: Kind, key: &str, say: &dyn Fn(&str)) -> Result<CacheEntry, FileError> {
        let parent = self.root.join(kind.folder());
        match self.right {
            Right::Own => CacheEntry::open(&parent, key, say),
            Right::Read => Ok(CacheEntry::read_only(&parent, key)),
        }
    }

    /// Error for what is missing in a read-only cache.
    pub fn not_there(&self, what: impl Into<String>) -> CacheError {
        CacheError::NotThere { cache: self.root.clone(), what: what.into() }
    }

    /// Remembered digests of the files below a folder.
    pub fn digests(&self, folder: &Path) -> Digests {
        let name = stamp::Digest::of(folder.as_os_str().as_encoded_bytes());
        Digests::open(self.root.join(DIGESTS).join(format!("{name}.json")), !self.is_read_only())
    }
}

/// The folder for the user's caches. May exist even if the user has no home.
fn caches() -> Option<PathBuf> {
    let given = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| etcetera::home_dir().ok().map(|home| home.join(".cache")))
}

/// A file beside an entry's folder that belongs to it: `KEY.use`, `KEY.seals`.
fn beside(folder: &Path, end: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    name.into()
}
