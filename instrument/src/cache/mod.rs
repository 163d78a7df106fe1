//! The cache of `et-instrument run`: instrumented JDKs and programs, shared by all runs of a user.
//!
//! ```text
//! jdks/NAME-KEY/       an instrumented copy of a JDK
//! programs/KEY/        rewritten jars and folders, for one version of this tool and one set of options
//! …/KEY.use            locked, shared, by every run that uses it; alone by who removes it
//! …/KEY.update         locked by who writes
//! jdks/…KEY.seals      sizes and times of the files of a JDK: one that was damaged is made anew
//! digests/             digests of files that are known already
//! ```
//!
//! Keys are digests of all that decides the outcome: content of the JDK, this program, the runtime, options.

pub mod digests;
pub mod entry;
mod error;
pub mod list;
pub mod program;
pub mod seals;
pub mod stamp;

use std::fs;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::files::{FileError, absolute, write_beside};
use digests::Digests;
use entry::CacheEntry;
pub use error::CacheError;

/// The folder's name below the user's cache folder.
const NAME: &str = "elephant-tracks";

/// Tells backups and the like that all of this can be made again (<https://bford.info/cachedir/>).
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by et-instrument run; see et-instrument cache\n";

/// What is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Instrumented JDKs.
    Jdk,
    /// Jars and folders of programs.
    Program,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::Jdk, Kind::Program];

    fn folder(self) -> &'static str {
        match self {
            Kind::Jdk => "jdks",
            Kind::Program => "programs",
        }
    }
}

/// A cache folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The folder given, else `elephant-tracks` in the user's cache folder (`XDG_CACHE_HOME`, or `~/.cache`).
    pub fn find(given: Option<&Path>) -> Result<Self, CacheError> {
        let root = match given {
            Some(folder) => folder.to_owned(),
            None => match etcetera::base_strategy::Xdg::new() {
                Ok(xdg) => xdg.cache_dir().join(NAME),
                Err(_) => return Err(CacheError::NoFolder),
            },
        };
        Ok(Self { root: absolute(&root)? })
    }

    /// Where it is, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder if it is not there.
    pub fn create(&self) -> Result<(), CacheError> {
        for folder in Kind::ALL.map(Kind::folder).into_iter().chain(["digests"]) {
            let folder = self.root.join(folder);
            fs::create_dir_all(&folder).map_err(FileError::at("create the cache folder", &folder))?;
        }
        let tag = self.root.join("CACHEDIR.TAG");
        if !tag.exists() {
            write_beside(&tag, TAG.as_bytes())?;
        }
        Ok(())
    }

    /// What is kept under a key, and is kept from being removed as long as the entry lives.
    pub fn entry(&self, kind: Kind, key: &str) -> Result<CacheEntry, FileError> {
        CacheEntry::open(&self.root.join(kind.folder()), key)
    }

    /// What is remembered of the files below a folder.
    pub fn digests(&self, folder: &Path) -> Digests {
        let name = stamp::Digest::of(folder.as_os_str().as_encoded_bytes());
        Digests::open(self.root.join("digests").join(format!("{name}.json")))
    }
}

/// A file beside an entry's folder that has to do with it: `KEY.use`, `KEY.seals`.
fn beside(folder: &Path, end: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    name.into()
}
