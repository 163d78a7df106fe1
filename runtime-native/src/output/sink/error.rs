//! Why a trace cannot be written, or not to its end.

use std::io;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};

use thiserror::Error;

use crate::base::patience::{self, Patience};

/// Why a trace cannot be written.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The file cannot be made.
    #[error("cannot write the trace {path}: {error}", path = .path.display())]
    Create {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What is there is no trace.
    #[error("{path} exists and is not a {what}: choose another traceFile, or remove it", path = .path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
    },
    /// Somebody else has put it where everybody may put something: what is written would be his, or go where he wants it.
    #[error("{path} is a {what} of another user's in a folder of everybody's: choose another traceFile", path = .path.display())]
    Strange {
        /// Which.
        path: PathBuf,
        /// A link or a file.
        what: &'static str,
    },
    /// Nothing to make the text.
    #[error("format=text needs the program et-trace, and {why}: name it with traceTool")]
    Tool {
        /// What is wrong.
        why: String,
    },
    /// No shell, no process.
    #[error("cannot start the command of traceFile ({command}): {error}")]
    Spawn {
        /// Which.
        command: String,
        /// Why.
        error: io::Error,
    },
    /// The disk is full, the command is gone.
    #[error("tracing stops here, the program runs on: cannot write to {to}: {error}")]
    Write {
        /// The file or command.
        to: String,
        /// Why.
        error: io::Error,
    },
    /// Somebody has removed the file, or its folder: what is written to it nobody will ever read.
    #[error("tracing stops here, the program runs on: the trace {path} was removed", path = .path.display())]
    Removed {
        /// Which.
        path: PathBuf,
    },
    /// Another process has emptied the file, or written over it: what follows would belong to nothing.
    #[error(
        "tracing stops here, the program runs on: another process has cut {path} short or written over it",
        path = .path.display()
    )]
    Spoilt {
        /// Which.
        path: PathBuf,
    },
    /// As above, of the buffer file.
    #[error(
        "tracing stops here, the program runs on: another process has cut the buffer file {0} short or written over it"
    )]
    Buffers(String),
    /// The program's end does not wait for who reads the trace for ever.
    #[error("{who} has not ended {after} after the program: it goes on by itself, the program ends (option patience)")]
    Slow {
        /// The command, or what makes the text.
        who: String,
        /// So long.
        after: String,
    },
    /// What makes the text ended as it should not.
    #[error("{tool}, which was to make the text, failed: {status}", tool = .tool.display())]
    Text {
        /// Which program.
        tool: PathBuf,
        /// How.
        status: String,
    },
    /// The command came back with a failure.
    #[error("the command of traceFile ({command}) failed: {status}")]
    Status {
        /// Which.
        command: String,
        /// How.
        status: String,
    },
}

/// How messages begin that a trace has no use for.
const STOPS: &str = "tracing stops here, the program runs on: ";

impl SinkError {
    /// Why, without what follows from it.
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

/// Waits for a command that has got all.
pub fn ended(child: &mut Child, command: &str, patience: &Patience) -> Result<(), SinkError> {
    match patience.reap(child) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(None) => Err(slow(format!("the command of traceFile ({command})"), patience)),
        status => Err(SinkError::Status { command: command.to_owned(), status: how(status) }),
    }
}

/// Nobody waits any longer.
pub fn slow(who: String, patience: &Patience) -> SinkError {
    SinkError::Slow { who, after: patience::shown(patience.limit()) }
}

/// How a process ended.
pub fn how(ended: io::Result<Option<ExitStatus>>) -> String {
    match ended {
        Ok(status) => status.map_or_else(String::new, |status| status.to_string()),
        Err(error) => error.to_string(),
    }
}
