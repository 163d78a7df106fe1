//! Why no instrumented copy of a JDK was made.

use std::path::PathBuf;

use thiserror::Error;

use crate::artifact::{AlreadyInstrumented, ArtifactError};
use crate::container::jimage::ImageError;
use crate::container::zip::ZipError;
use crate::files::FileError;
use crate::input::InputError;
use crate::interrupt::Interrupted;
use crate::staging::StagingError;

/// What can go wrong with a JDK.
#[derive(Debug, Error)]
pub enum JdkError {
    /// The home given is no JDK that we know.
    #[error("no JDK at {home}: {why}")]
    Home {
        /// As given.
        home: PathBuf,
        /// What was looked for.
        why: String,
    },
    /// A module that is to be patched.
    #[error("{home} has no module {module}: see java --list-modules")]
    NoModule {
        /// As given.
        home: PathBuf,
        /// As given.
        module: String,
    },
    /// A `lib/modules` that cannot be read.
    #[error("{path}: {source}")]
    Image {
        /// The image.
        path: PathBuf,
        /// The reason.
        source: ImageError,
    },
    /// A jar of the JDK or of the runtime that cannot be read.
    #[error("{path}: {source}")]
    Zip {
        /// The jar.
        path: PathBuf,
        /// The reason.
        source: ZipError,
    },
    /// The runtime's parts are missing.
    #[error("no Elephant Tracks runtime at {folder}: {missing} is missing; pass --runtime-dir or set ET_RUNTIME_DIR")]
    NoRuntime {
        /// Where it was looked for.
        folder: PathBuf,
        /// The file that is not there.
        missing: String,
    },
    /// They are there, and are of no use.
    #[error("{path}: {why}")]
    Runtime {
        /// The jar.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The rewritten JDK could not dump its archive.
    #[error("the instrumented JDK did not dump its CDS archive: {why}; use --no-cds to do without it")]
    Cds {
        /// What it said.
        why: String,
    },
    /// The JDK is a copy that we made.
    #[error(transparent)]
    AlreadyInstrumented(#[from] AlreadyInstrumented),
    /// Its classes cannot be rewritten.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The output cannot be put in its place.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// Something that is read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Something that is written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Ctrl-C.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl JdkError {
    /// Whether what was asked for makes no sense.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoModule { .. })
    }
}
