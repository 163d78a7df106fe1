//! What is wrong with a class file, and where.

use std::borrow::Cow;

use thiserror::Error;

/// A breach of the class file format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {offset}: {what}")]
pub struct Malformed {
    /// Offset in the class file.
    pub offset: usize,
    /// What is wrong there.
    pub what: Cow<'static, str>,
}

/// Stands for "not known yet" until [`Malformed::or_at`] fills it in.
const UNKNOWN: usize = usize::MAX;

impl Malformed {
    /// An error at a known offset of the class file.
    pub fn at(offset: usize, what: impl Into<Cow<'static, str>>) -> Self {
        Self { offset, what: what.into() }
    }

    /// An error whose offset the caller knows better: see [`or_at`](Self::or_at).
    pub fn somewhere(what: impl Into<Cow<'static, str>>) -> Self {
        Self { offset: UNKNOWN, what: what.into() }
    }

    /// Puts the error at `offset` unless it already knows its own.
    pub fn or_at(mut self, offset: usize) -> Self {
        if self.offset == UNKNOWN {
            self.offset = offset;
        }
        self
    }
}
