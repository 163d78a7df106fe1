//! Points in the course of a trace.

use serde::Serialize;

/// A point in the course of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Value of the clock.
    pub tick: u64,
    /// Bytes allocated so far, not counting initial objects.
    pub bytes: u64,
    /// Nanoseconds since the start of the run; `None` if the trace has no times.
    pub nanos: Option<u64>,
}
