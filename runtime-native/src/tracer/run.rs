//! Which run is traced, and its clock.

use std::time::Instant;

use et_format::Nanos;
use et_format::progress::RunId;

/// A run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The same in the trace and in the file of its buffers.
    pub id: RunId,
    /// The process. A forked child is another, with a copy of all this.
    pub pid: u32,
    /// When the runtime began to work; times in the trace count from here.
    pub start: Instant,
}

impl Run {
    /// A run of the current process that begins now.
    pub fn begin() -> Self {
        Self { id: RunId::random(), pid: std::process::id(), start: Instant::now() }
    }

    /// The time since the start, at least 1: 0 means in a chunk that no time was taken.
    pub fn nanos(&self) -> Nanos {
        Nanos((self.start.elapsed().as_nanos() as u64).max(1))
    }
}
