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

/// Why a JDK could not be instrumented.
#[derive(Debug, Error)]
pub enum JdkError {
    /// The given home is not a JDK of a supported kind.
    #[error("no JDK at {home}: {why}")]
    Home {
        /// Path as given by the user.
        home: PathBuf,
        why: String,
    },
    /// A module that is to be patched.
    #[error("{home} has no module {module}: see java --list-modules")]
    NoModule {
        /// Path as given by the user.
        home: PathBuf,
        /// Name as given by the user.
        module: String,
    },
    /// Which code runs before there are threads is not known of it.
    #[error("{home} is a JDK 8, which has no stacks: use --events without stacks, or a JDK 11 or later")]
    NoStacks {
        /// Path as given by the user.
        home: PathBuf,
    },
    /// A `lib/modules` that cannot be read.
    #[error("{path}: {source}")]
    Image {
        /// Path of the image.
        path: PathBuf,
        source: ImageError,
    },
    /// A jar of the JDK or of the runtime that cannot be read.
    #[error("{path}: {source}")]
    Zip {
        /// Path of the jar.
        path: PathBuf,
        source: ZipError,
    },
    /// The runtime's parts are missing.
    #[error("no Elephant Tracks runtime at {folder}: {missing} is missing; pass --runtime-dir or set ET_RUNTIME_DIR")]
    NoRuntime {
        /// Where it was searched for.
        folder: PathBuf,
        /// The missing file.
        missing: String,
    },
    /// They are there, and are of no use.
    #[error("{path}: {why}")]
    Runtime {
        /// Path of the jar.
        path: PathBuf,
        why: String,
    },
    /// The rewritten JDK could not dump its archive.
    #[error("the instrumented JDK did not dump its CDS archive: {why}; use --no-cds to do without it")]
    Cds {
        /// Its error message.
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
    /// An input could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Interrupted by Ctrl-C.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl JdkError {
    /// Whether what was asked for makes no sense.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoModule { .. })
    }
}
