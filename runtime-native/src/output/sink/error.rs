//! Why a trace cannot be written completely.

use std::io;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};

use thiserror::Error;

use crate::base::patience::{self, Patience};

/// Why a trace cannot be written.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The file cannot be created.
    #[error("cannot write the trace {path}: {error}", path = .path.display())]
    Create { path: PathBuf, error: io::Error },
    /// The file at this path is not a trace, and is not replaced.
    #[error("{path} exists and is not a {what}: choose another traceFile, or remove it", path = .path.display())]
    Foreign {
        path: PathBuf,
        /// What it should be.
        what: &'static str,
    },
    /// In a folder where all users may create files, another user has placed a file or link: the trace would belong to
    /// them, or go where they want.
    #[error("{path} is a {what} of another user, in a folder that all users may write to: choose another traceFile", path = .path.display())]
    Strange {
        path: PathBuf,
        /// What is there: a link or a file.
        what: &'static str,
    },
    /// The tool that makes the text was not found.
    #[error("format=text needs the program et-trace, and {why}: name it with traceTool")]
    Tool {
        /// The reason.
        why: String,
    },
    /// The command could not be started.
    #[error("cannot start the command of traceFile ({command}): {error}")]
    Spawn { command: String, error: io::Error },
    /// Writing failed: the disk is full, or the command has ended.
    #[error("tracing stops here, the program runs on: cannot write to {to}: {error}")]
    Write {
        /// The file or command.
        to: String,
        error: io::Error,
    },
    /// The file or its folder was removed, so nothing written could be read.
    #[error("tracing stops here, the program runs on: the trace {path} was removed", path = .path.display())]
    Removed { path: PathBuf },
    /// Another process has truncated the file, or written over it: what follows could not be read.
    #[error(
        "tracing stops here, the program runs on: another process has cut {path} short or written over it",
        path = .path.display()
    )]
    Spoilt { path: PathBuf },
    /// Another process has truncated the buffer file, or written over it.
    #[error(
        "tracing stops here, the program runs on: another process has cut the buffer file {0} short or written over it"
    )]
    Buffers(String),
    /// At the program's end, waiting for the reader of the trace is limited.
    #[error("{who} has not ended {after} after the program: it goes on by itself, the program ends (option patience)")]
    Slow {
        /// The command, or the tool that makes the text.
        who: String,
        /// The limit.
        after: String,
    },
    /// The tool that makes the text failed.
    #[error("{tool}, which was to make the text, failed: {status}", tool = .tool.display())]
    Text {
        /// The program.
        tool: PathBuf,
        status: String,
    },
    /// The command failed.
    #[error("the command of traceFile ({command}) failed: {status}")]
    Status { command: String, status: String },
}

/// Beginning of messages, which is omitted in the trace.
const STOPS: &str = "tracing stops here, the program runs on: ";

impl SinkError {
    /// The cause, without the consequences.
    pub fn cause(&self) -> String {
        match self {
            Self::Write { to, error } => format!("cannot write to {to}: {error}"),
            other => {
                let text = other.to_string();
                text.strip_prefix(STOPS).map_or(text.clone(), str::to_owned)
            }
        }
    }
}

/// Waits for the end of a command whose input is complete.
pub fn ended(child: &mut Child, command: &str, patience: &Patience) -> Result<(), SinkError> {
    match patience.reap(child) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(None) => Err(slow(format!("the command of traceFile ({command})"), patience)),
        status => Err(SinkError::Status { command: command.to_owned(), status: how(status) }),
    }
}

/// The error for a reader that has exceeded its time.
pub fn slow(who: String, patience: &Patience) -> SinkError {
    SinkError::Slow { who, after: patience::shown(patience.limit()) }
}

/// How a process ended: its exit status or signal.
pub fn how(ended: io::Result<Option<ExitStatus>>) -> String {
    match ended {
        Ok(status) => status.map_or_else(String::new, |status| status.to_string()),
        Err(error) => error.to_string(),
    }
}
