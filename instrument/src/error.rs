//! What can go wrong outside the class rewriter. Each message is one line: what, where, what to do.

use std::io;
use std::path::{Path, PathBuf};

use et_rewriter::rewrite::ClassError;
use thiserror::Error;

use crate::container::jimage::ImageError;
use crate::container::zip::ZipError;
use crate::report::counted;
use crate::run::RunError;
use crate::verify::Finding;

/// Why a command came to nothing.
#[derive(Debug, Error)]
pub enum Error {
    /// The operating system refused something.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// `read`, `write`, `create` …
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// An input that is no class, jar or folder of them.
    #[error("{path}: {why}")]
    Input {
        /// The input.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// A jar that cannot be read.
    #[error("{place}: {source}")]
    Zip {
        /// The jar, and the entry if it lies in another.
        place: String,
        /// The reason.
        source: ZipError,
    },
    /// A `lib/modules` that cannot be read.
    #[error("{path}: {source}")]
    Image {
        /// The image.
        path: PathBuf,
        /// The reason.
        source: ImageError,
    },
    /// A class that cannot be rewritten, where that is fatal.
    #[error("{place}: {source}")]
    Class {
        /// Container and entry.
        place: String,
        /// The reason.
        source: ClassError,
    },
    /// Something was skipped under `--strict`.
    #[error("{place}: {why} (without --strict this is reported, and no failure)")]
    Strict {
        /// Container and entry.
        place: String,
        /// Why it would have been skipped.
        why: String,
    },
    /// An input of ours.
    #[error("{place}: already instrumented: instrument the original instead")]
    AlreadyInstrumented {
        /// Container.
        place: String,
    },
    /// The output is there.
    #[error("{path} exists: choose another -o, or pass --force to replace it")]
    Exists {
        /// The output.
        path: PathBuf,
    },
    /// `--force` would delete a folder that this tool did not make.
    #[error("{path} exists and was not made by et-instrument, so --force does not replace it: remove it first")]
    NotOurs {
        /// The output.
        path: PathBuf,
    },
    /// It was not when this run began.
    #[error("{path} is there now: another run has made it meanwhile, and this one's output was dropped")]
    Overtaken {
        /// The output.
        path: PathBuf,
    },
    /// Output and input are entangled.
    #[error("output {output} {how} input {input}: choose another -o")]
    Entangled {
        /// The output.
        output: PathBuf,
        /// `is the same as`, `lies inside`, `contains`.
        how: &'static str,
        /// The input.
        input: PathBuf,
    },
    /// The id space has no room.
    #[error("{artifact} needs {needed} ids from {base}, and ids end at {limit}: {advice}")]
    Ids {
        /// The artifact.
        artifact: String,
        /// How many.
        needed: u64,
        /// First id.
        base: u32,
        /// Bound.
        limit: u32,
        /// What to do.
        advice: &'static str,
    },
    /// The home given is no JDK that we know.
    #[error("no JDK at {home}: {why}")]
    Jdk {
        /// As given.
        home: PathBuf,
        /// What was looked for.
        why: String,
    },
    /// The runtime's parts are missing.
    #[error("no Elephant Tracks runtime at {folder}: {missing} is missing; pass --runtime-dir or set ET_RUNTIME_DIR")]
    Runtime {
        /// Where it was looked for.
        folder: PathBuf,
        /// The file that is not there.
        missing: String,
    },
    /// The rewritten JDK could not dump its archive.
    #[error("the instrumented JDK did not dump its CDS archive: {why}; --no-cds does without")]
    Cds {
        /// What it said.
        why: String,
    },
    /// `--check` found something.
    #[error("{} in what was to become {output}: nothing was written; please report this, with the input",
        counted(findings.len() as u64, "finding"))]
    Check {
        /// The output.
        output: PathBuf,
        /// What was found.
        findings: Vec<Finding>,
    },
    /// Neither `--cache-dir` nor a home.
    #[error("no folder for the cache: HOME is not set; pass --cache-dir")]
    NoCacheFolder,
    /// `cache remove` of something else.
    #[error("{name}: {why} in {cache}: et-instrument cache list shows them")]
    NoEntry {
        /// As given.
        name: String,
        /// The cache.
        cache: PathBuf,
        /// None, or several.
        why: String,
    },
    /// After many millions of classes.
    #[error("all ids of this cache are taken: et-instrument cache clear")]
    CacheIds,
    /// A program that could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
    /// Ctrl-C.
    #[error("interrupted, nothing was written")]
    Interrupted,
}

impl Error {
    /// Adds the path to an I/O error: `map_err(Error::io("read", path))`.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = path.to_owned();
        move |source| Error::Io { what, path, source }
    }

    /// The process's exit code: 2 for usage, 130 for Ctrl-C as shells have it, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Interrupted => 130,
            Error::Run(error) => error.exit_code(),
            _ => 1,
        }
    }
}
