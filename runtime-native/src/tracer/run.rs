//! The identity of the run, and its clock.

use std::time::Instant;

use et_format::Nanos;
use et_format::progress::RunId;

/// A run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Id of the run, the same in the trace and in the buffer file.
    pub id: RunId,
    /// Process id. A forked child has another, with a copy of all this.
    pub pid: u32,
    /// Start of the run; times in the trace are relative to it.
    pub start: Instant,
}

impl Run {
    /// A run of the current process that begins now.
    pub fn begin() -> Self {
        Self { id: RunId::random(), pid: std::process::id(), start: Instant::now() }
    }

    /// Time since the start, at least 1 ns: in a chunk, 0 means that no time was recorded.
    pub fn nanos(&self) -> Nanos {
        Nanos((self.start.elapsed().as_nanos() as u64).max(1))
    }
}
