//! When each object died (`docs/semantics.md`, "Deaths"), for a trace in any form.
//!
//! 1. [`Recorder`] stores, in order, the records and everything else that is known to hold objects. The source is read
//!    once; the steps go to a [spool](spool), which becomes a temporary file when it is large.
//! 2. Going backward through the spool, the [last mention](last_mention) of each object is marked.
//! 3. Going forward again, a [graph] contains what may be alive and determines at intervals what has died, by Merlin.
//!    Following it, the records are read from the spool for the last time and the deaths are inserted.
//!
//! Memory is needed for the objects alive at a time and a few pieces of the spool, however long the trace is. Each step
//! uses two threads: one packs or searches, the other reads or outputs.

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

use et_system::threads::NoThread;
use thiserror::Error;

pub use graph::HeldByStack;
pub(crate) use graph::held_by_stacks;
pub use known::{AllKnown, Earlier, Keeper, Known, Lives, Replay, replay_known};
pub use recorder::Recorder;
pub use recording::{Cost, Played, Recording};
pub use special::{Special, WeakFields};
pub use spool::Limits;
pub use step::Step;
pub(crate) use vm::{Change, Vm, each, special};
pub use vm::{record, record_heap, record_seen};
pub(crate) use weak::WeakSlots;

use crate::file::ReadError;

/// Why deaths could not be computed.
#[derive(Debug, Error)]
pub enum LifetimesError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The spool could not be written or read, for example because the disk is full.
    #[error("cannot keep the records in a temporary file in {folder} (set TMPDIR to use another folder): {0}", folder = std::env::temp_dir().display())]
    Spool(io::Error),
    /// No thread could be started.
    #[error(transparent)]
    Thread(#[from] NoThread),
    /// The results of an earlier reading cannot be read, or belong to another trace.
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
