//! What each thread allocated in each second.

use et_columns::table;

table! {
    /// One row per second and thread that allocated in it. What was there when tracing began does not count.
    "allocations_by_second",
    "by second, then by thread",
    Some("second"),
    {
        /// Seconds since the start of the run; null if the trace has no times.
        second: Option<i64> as Delta,
        /// The thread; null if it is not known.
        thread: Option<i64> as Dictionary,
        /// Objects.
        objects: i64 as Dictionary,
        /// Their bytes.
        bytes: i64 as Dictionary,
    }
}
