//! Errors in lines of text.

use std::io;

use thiserror::Error;

/// Why a text cannot be read.
#[derive(Debug, Error)]
pub enum ParseError {
    /// The system reported an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is not a record.
    #[error("line {line}: {what}: {text:?}")]
    Line {
        /// Line number, from 1.
        line: u64,
        what: &'static str,
        /// Beginning of the line.
        text: String,
    },
}

impl ParseError {
    pub(super) fn at(line: u64, what: &'static str, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        Self::Line { line, what, text }
    }
}

/// Error for a line that is longer than any that the tools write.
pub(super) const TOO_LONG: &str = "the line is too long";
