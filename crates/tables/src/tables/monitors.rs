//! Contention for monitors, and waits.

use et_columns::{Word, table};

table! {
    /// One row each time a thread had to wait for a monitor, or called `wait`, in runs with `-Det.monitors=on`.
    "monitors",
    "in the order in which they began",
    Some("number"),
    {
        /// In the order in which they began, from 0.
        number: i64 as Delta,
        /// `contended` or `wait`.
        kind: Word as Dictionary,
        /// The thread.
        thread: i64 as Dictionary,
        /// The thread that held the monitor; null for waits, and if the owner could not be determined.
        owner: Option<i64> as Dictionary,
        /// The object whose monitor it is, as its id is in events; ids may be used again after two billion objects.
        object: i64 as Dictionary,
        /// Class of the object.
        class: String as Dictionary,
        /// Where the thread was: class, method and line.
        site: String as Dictionary,
        /// Time when it began.
        begin_nanos: i64 as Delta,
        /// Time when it ended; null if the trace ended first.
        end_nanos: Option<i64> as Delta,
        /// The timeout of `wait`; 0 if it has none. Null for contention.
        timeout_millis: Option<i64> as Dictionary,
        /// Whether the timeout expired before a notification; null for contention.
        is_timed_out: Option<bool> as Dictionary,
    }
}
