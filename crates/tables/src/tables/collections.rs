//! Collections.

use et_columns::table;

table! {
    /// One row per garbage collection.
    "collections",
    "the order of the run",
    Some("number"),
    {
        /// Collections in the order of the run, from 0.
        number: i64 as Delta,
        /// Time when it began.
        start_nanos: i64 as Delta,
        /// Time when it ended.
        finish_nanos: i64 as Delta,
        /// Nanoseconds between both.
        pause_nanos: i64 as Dictionary,
        /// Bytes of the heap in use after it; null if not known.
        heap_used_bytes: Option<i64> as Dictionary,
        /// Bytes of the heap that were committed; null if not known.
        heap_committed_bytes: Option<i64> as Dictionary,
    }
}
