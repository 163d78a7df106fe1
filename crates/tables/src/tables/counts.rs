//! Counts of allocations, of traces that only have these.

use et_columns::{Word, table};

table! {
    /// One row per span of time, thread, class, site and context, of a trace that counts allocations (`--mode counts`); empty for others, whose
    /// objects have rows of their own.
    "counts",
    "by span of time",
    Some("nanos"),
    {
        /// Beginning of the span; null if the trace has no times.
        nanos: Option<i64> as Delta,
        /// The allocating thread; null if it is not known.
        thread: Option<i64> as Dictionary,
        /// Class of the objects.
        class: i64 as Dictionary,
        /// Where they were made.
        site: i64 as Dictionary,
        /// Methods on the stack when they were made.
        context: i64 as Dictionary,
        /// Letter of the record that each would have: `A`, `N` or `V`.
        kind: Word as Dictionary,
        /// Objects.
        objects: i64 as Dictionary,
        /// Their bytes.
        bytes: i64 as Dictionary,
    }
}
