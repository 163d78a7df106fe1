//! Usage errors of `et-instrument run`.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::cache::CacheError;
use crate::files::FileError;
use crate::input::InputError;
use crate::interrupt::Interrupted;
use crate::jdk::JdkError;

/// Why a program was not run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The program does not exist.
    #[error("{program} not found: give its path, put it into PATH, or set JAVA_HOME")]
    NotFound {
        /// Name as given by the user.
        program: String,
    },
    /// A class, or a jar, and not what runs it.
    #[error("{program} is not a program: put java before it: et-instrument run -- java {words} …")]
    NoLauncher {
        /// Name as given by the user.
        program: String,
        /// The arguments of `java` that were probably meant.
        words: String,
    },
    /// A path does not exist.
    #[error("cannot run {path}: {source}")]
    NoFile {
        /// Path as given by the user.
        path: PathBuf,
        source: io::Error,
    },
    /// The launcher is a wrapper script.
    #[error("{path} is a script, not the launcher of a JDK: give the java that it starts, such as $JAVA_HOME/bin/java")]
    Script {
        /// Canonical path.
        path: PathBuf,
    },
    /// A program that has nothing to do with Java.
    #[error("{path} is not a JDK launcher: {why}; run takes java …, javac … and similar")]
    NotALauncher {
        /// Canonical path.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// An instrumented JDK without its file of options.
    #[error("{home} is an instrumented JDK without et.args: make it again, with et-instrument jdk")]
    NoArguments {
        /// Path of the JDK.
        home: PathBuf,
    },
    /// An `@file` could not be read.
    #[error("cannot read the argument file {file}: {source}")]
    ArgumentFile {
        /// Path without the `@`.
        file: PathBuf,
        source: io::Error,
    },
    /// The system does not start it.
    #[error("cannot start {path}: {source}")]
    Start {
        /// Path of the launcher.
        path: PathBuf,
        source: io::Error,
    },
    /// The runtime of another version.
    #[error("no JVMPI host at {path}: pass --runtime-dir with the folder that contains it")]
    NoHost {
        /// Where it was searched for.
        path: PathBuf,
    },
    /// Nothing was given, or options of `java` without `java`.
    #[error("{0}")]
    Usage(String),
    /// The JDK cannot be instrumented.
    #[error(transparent)]
    Jdk(#[from] JdkError),
    /// The program cannot be rewritten, or what it is rewritten to cannot be kept.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// An input could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Something that is read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Interrupted by Ctrl-C.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl RunError {
    /// The exit codes of `env` and shells: they distinguish what is not found from what cannot be executed; everything
    /// else is 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Usage(_) => 2,
            RunError::Jdk(_)
            | RunError::Cache(_)
            | RunError::Input(_)
            | RunError::File(_)
            | RunError::NoHost { .. }
            | RunError::Interrupted(_) => 1,
            RunError::NotFound { .. } | RunError::NoLauncher { .. } | RunError::NoFile { .. } => 127,
            _ => 126,
        }
    }
}
