//! Threads.

use et_columns::table;

table! {
    /// One row per thread of the run; of virtual threads only those that allocated, ran a method, or made an object unreachable.
    "threads",
    "by number",
    Some("thread"),
    {
        /// Its number in the order of first sight; from 2147483648 up, virtual threads.
        thread: i64 as Delta,
        /// Its name when it started; null if not known.
        name: Option<String> as Dictionary,
        /// Whether it is a daemon thread.
        is_daemon: bool as Dictionary,
        /// Whether it is a virtual thread.
        is_virtual: bool as Dictionary,
        /// Whether it ran before tracing began; null if not known.
        ran_before: Option<bool> as Dictionary,
        /// Whether it ended before the trace did; null if not known.
        has_ended: Option<bool> as Dictionary,
        /// Objects that it allocated.
        allocated_objects: i64 as Dictionary,
        /// Their bytes.
        allocated_bytes: i64 as Dictionary,
    }
}
