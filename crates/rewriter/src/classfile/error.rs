//! Format errors in class files.

use std::borrow::Cow;

use thiserror::Error;

/// A violation of the class file format, with its location.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {offset}: {what}")]
pub struct Malformed {
    /// Offset in the class file, in bytes.
    pub offset: usize,
    /// The violation, as part of an error message.
    pub what: Cow<'static, str>,
}

/// Placeholder for an unknown offset, which [`Malformed::or_at`] replaces.
const UNKNOWN: usize = usize::MAX;

impl Malformed {
    /// Creates an error at an offset of the class file.
    pub fn at(offset: usize, what: impl Into<Cow<'static, str>>) -> Self {
        Self { offset, what: what.into() }
    }

    /// Creates an error without an offset, for callers that add it with [`or_at`](Self::or_at).
    pub fn somewhere(what: impl Into<Cow<'static, str>>) -> Self {
        Self { offset: UNKNOWN, what: what.into() }
    }

    /// Sets the offset unless the error already has one.
    pub fn or_at(mut self, offset: usize) -> Self {
        if self.offset == UNKNOWN {
            self.offset = offset;
        }
        self
    }
}
