//! Errors of the cache.

use std::path::PathBuf;

use thiserror::Error;

use crate::app::AppError;
use crate::artifact::ArtifactError;
use crate::container::zip::ZipError;
use crate::files::FileError;
use crate::input::InputError;

/// Why the cache, or a program in it, cannot be used.
#[derive(Debug, Error)]
pub enum CacheError {
    /// Neither `--cache-dir` nor a variable nor a home.
    #[error("no folder for the cache: neither XDG_CACHE_HOME nor HOME is set; pass --cache-dir")]
    NoFolder,
    /// Other users may have changed its content.
    #[error("{path} {why}, and files in the cache are executed: choose a folder of your own with --cache-dir")]
    Untrusted {
        /// The cache, or a folder that contains it.
        path: PathBuf,
        why: String,
    },
    /// It cannot be made where it should be.
    #[error(
        "the cache {cache} is read-only here and has no copy of {what}: its owner can make one with et-instrument prepare"
    )]
    NotThere {
        cache: PathBuf,
        /// What is missing.
        what: String,
    },
    /// `cache remove` of something else.
    #[error("{name}: {why} in {cache}: et-instrument cache list shows them")]
    NoEntry {
        /// Name as given by the user.
        name: String,
        cache: PathBuf,
        /// Whether there is none or more than one.
        why: &'static str,
    },
    /// After many millions of classes.
    #[error("all ids of this cache are used up: run et-instrument cache clear")]
    NoIds,
    /// A copy that was just made cannot be read.
    #[error("{path}: {source}")]
    Zip {
        /// The copy.
        path: PathBuf,
        source: ZipError,
    },
    /// A jar of the program cannot be rewritten.
    #[error(transparent)]
    App(#[from] AppError),
    /// A class of the program cannot be rewritten.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// An input could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Something that is read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
