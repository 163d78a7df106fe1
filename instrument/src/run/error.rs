//! What a user can do wrong with `et-instrument run`.

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
    /// No such program.
    #[error("{program} not found: give its path, put it into PATH, or set JAVA_HOME")]
    NotFound {
        /// As given.
        program: String,
    },
    /// A class, or a jar, and not what runs it.
    #[error("{program} is not a program: put java before it: et-instrument run -- java {words} …")]
    NoLauncher {
        /// As given.
        program: String,
        /// What stands behind `java`.
        words: String,
    },
    /// A path that leads nowhere.
    #[error("cannot run {path}: {source}")]
    NoFile {
        /// As given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A wrapper.
    #[error("{path} is a script, not the launcher of a JDK: give the java that it starts, such as $JAVA_HOME/bin/java")]
    Script {
        /// Links resolved.
        path: PathBuf,
    },
    /// A program that has nothing to do with Java.
    #[error("{path} is not a JDK launcher: {why}; run takes java …, javac … and similar")]
    NotALauncher {
        /// Links resolved.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A JDK of ours whose other half is missing.
    #[error("{home} is an instrumented JDK without et.args: make it again, with et-instrument jdk")]
    NoArguments {
        /// The home.
        home: PathBuf,
    },
    /// `@file` that is not there.
    #[error("cannot read the argument file {file}: {source}")]
    ArgumentFile {
        /// Without the `@`.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system does not start it.
    #[error("cannot start {path}: {source}")]
    Start {
        /// The launcher.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The runtime of another version.
    #[error("no JVMPI host at {path}: pass --runtime-dir with the folder that contains it")]
    NoHost {
        /// Where it was looked for.
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
    /// Something that is read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Something that is read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Ctrl-C.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl RunError {
    /// As `env` and shells have it: what is not found is told from what cannot be run, and 1 is all else.
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
