//! What can be wrong with a line.

use std::io;

use thiserror::Error;

/// Why text is no trace.
#[derive(Debug, Error)]
pub enum ParseError {
    /// The system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is no record.
    #[error("line {line}: {what}: {text:?}")]
    Line {
        /// From 1.
        line: u64,
        /// What is wrong.
        what: &'static str,
        /// The line's beginning.
        text: String,
    },
}

impl ParseError {
    pub(super) fn at(line: u64, what: &'static str, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        Self::Line { line, what, text }
    }
}

/// What is wrong with a line that is longer than any that we write.
pub(super) const TOO_LONG: &str = "the line is too long";
