//! Exceptions, from where they are thrown to where they are caught.

use et_columns::{Word, table};

table! {
    /// One row per `T` record: an exception was thrown, and caught, or not. One that is thrown again has another row.
    "exceptions",
    "the order in which they ended",
    None,
    {
        /// Exceptions in the order in which they were thrown, from 0.
        number: i64 as Delta,
        /// The exception.
        exception: i64 as Delta,
        /// The thread.
        thread: i64 as Dictionary,
        /// The method that threw it.
        method: i64 as Dictionary,
        /// Its receiver; null for a static method.
        receiver: Option<i64> as Dictionary,
        /// Methods on the stack where it was thrown.
        context: i64 as Dictionary,
        /// The clock where it was thrown.
        tick: i64 as Delta,
        /// Time when it was thrown.
        nanos: Option<i64> as Delta,
        /// What became of it: `caught`, `uncaught` (it left the outermost method), `replaced` (another was thrown before it was caught), `in flight` (at the end of the trace).
        ended: Word as Dictionary,
        /// The method that caught it.
        caught_method: Option<i64> as Dictionary,
        /// Methods on the stack where it was caught.
        caught_context: Option<i64> as Dictionary,
        /// The clock where it ended; null if it was in flight at the end.
        ended_tick: Option<i64> as Delta,
        /// Time when it ended.
        ended_nanos: Option<i64> as Delta,
        /// Methods that it left.
        frames: i64 as Dictionary,
    }
}
