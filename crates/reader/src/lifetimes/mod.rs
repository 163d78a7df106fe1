//! When each object died (`docs/semantics.md`, "Deaths"), for a trace of whatever kind.
//!
//! 1. [`Recorder`] takes down, in order, the records and what else is known to hold objects. The source is read
//!    once; the steps go to a [spool](spool), which is a temporary file when they are many.
//! 2. Backward through the spool each object's [last mention](last_mention) is marked.
//! 3. Forward again, a [graph] keeps what may be alive, and every so often finds those that died, by Merlin. Behind it
//!    the records are read from the spool for the last time, and the deaths put between them.
//!
//! Memory holds the objects alive at a time and a few pieces of the spool, however long the trace. Steps 1 and 3 use two
//! threads each, one that packs or finds and one that reads or gives out, and so does step 2.

mod graph;
mod known;
mod last_mention;
mod places;
mod recorder;
mod recording;
mod special;
mod spool;
mod step;
#[cfg(test)]
mod tests;
mod times;
mod vm;
mod weak;

use std::io;

use et_threads::NoThread;
use thiserror::Error;

pub use graph::HeldByStack;
pub use known::{AllKnown, Earlier, Keeper, Known, Lives, Replay, replay_known};
pub use recorder::Recorder;
pub use recording::{Cost, Played, Recording};
pub use special::{Special, WeakFields};
pub use spool::Limits;
pub use step::Step;
pub(crate) use vm::{each, special};
pub use vm::{record, record_seen};
pub(crate) use weak::WeakSlots;

use crate::file::ReadError;

/// Why deaths could not be worked out.
#[derive(Debug, Error)]
pub enum LifetimesError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The disk is full, or worse.
    #[error("cannot keep the records in a temporary file in {folder} (set TMPDIR to use another folder): {0}", folder = std::env::temp_dir().display())]
    Spool(io::Error),
    /// The system gives no thread.
    #[error(transparent)]
    Thread(#[from] NoThread),
    /// What was kept of deaths cannot be read, or is of another trace.
    #[error("cannot read the life table: {0} (--no-lives does without it)")]
    Known(io::Error),
}

impl From<io::Error> for LifetimesError {
    fn from(error: io::Error) -> Self {
        match error.downcast() {
            Ok(no_thread) => Self::Thread(no_thread),
            Err(error) => Self::Spool(error),
        }
    }
}
