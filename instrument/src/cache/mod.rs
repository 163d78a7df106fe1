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
pub mod list;
pub mod program;
pub mod seals;
pub mod stamp;

use std::path::{Path, PathBuf};
use std::{fs, io};

use etcetera::BaseStrategy;

use crate::error::Error;
use crate::staging::absolute;
use digests::Digests;
use entry::Entry;

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
    pub fn find(given: Option<&Path>) -> Result<Self, Error> {
        let root = match given {
            Some(folder) => folder.to_owned(),
            None => match etcetera::base_strategy::Xdg::new() {
                Ok(xdg) => xdg.cache_dir().join(NAME),
                Err(_) => return Err(Error::NoCacheFolder),
            },
        };
        Ok(Self { root: absolute(&root)? })
    }

    /// Where it is, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder if it is not there.
    pub fn create(&self) -> Result<(), Error> {
        for folder in Kind::ALL.map(Kind::folder).into_iter().chain(["digests"]) {
            let folder = self.root.join(folder);
            fs::create_dir_all(&folder).map_err(Error::io("create the cache folder", &folder))?;
        }
        let tag = self.root.join("CACHEDIR.TAG");
        if tag.exists() { Ok(()) } else { write_beside(&tag, TAG.as_bytes()) }
    }

    /// What is kept under a key, and is kept from being removed as long as the entry lives.
    pub fn entry(&self, kind: Kind, key: &str) -> Result<Entry, Error> {
        Entry::open(&self.root.join(kind.folder()), key)
    }

    /// What is remembered of the files below a folder.
    pub fn digests(&self, folder: &Path) -> Digests {
        let name = stamp::Digest::of(folder.as_os_str().as_encoded_bytes());
        Digests::open(self.root.join("digests").join(format!("{name}.json")))
    }
}

/// Writes a file so that others see all of it or nothing.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, |part| fs::write(part, bytes))
}

/// The same with `write`, which makes the file under another name.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".part-{}", std::process::id()));
    let part = PathBuf::from(part);
    write(&part).and_then(|()| fs::rename(&part, path)).map_err(|error| {
        let _ = fs::remove_file(&part);
        Error::io("write", path)(error)
    })
}

/// Removes whatever lies at a path; a link, not what it leads to.
pub(crate) fn remove_any(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}
