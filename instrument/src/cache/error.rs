//! Why the cache is of no use.

use std::path::PathBuf;

use thiserror::Error;

use crate::app::AppError;
use crate::artifact::ArtifactError;
use crate::container::zip::ZipError;
use crate::files::FileError;
use crate::input::InputError;

/// What can go wrong with the cache, and with the programs in it.
#[derive(Debug, Error)]
pub enum CacheError {
    /// Neither `--cache-dir` nor a variable nor a home.
    #[error("no folder for the cache: neither XDG_CACHE_HOME nor HOME is set; pass --cache-dir")]
    NoFolder,
    /// What is in it may be of anybody.
    #[error("{path} {why}, and files in the cache are executed: choose a folder of your own with --cache-dir")]
    Untrusted {
        /// The cache, or a folder that it lies in.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It cannot be made where it should be.
    #[error(
        "the cache {cache} is read-only here and has no copy of {what}: its owner can make one with et-instrument prepare"
    )]
    NotThere {
        /// The cache.
        cache: PathBuf,
        /// What is missing.
        what: String,
    },
    /// `cache remove` of something else.
    #[error("{name}: {why} in {cache}: et-instrument cache list shows them")]
    NoEntry {
        /// As given.
        name: String,
        /// The cache.
        cache: PathBuf,
        /// None, or several.
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
        /// The reason.
        source: ZipError,
    },
    /// A jar of the program cannot be rewritten.
    #[error(transparent)]
    App(#[from] AppError),
    /// A class of the program cannot be rewritten.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// Something that is read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Something that is read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
