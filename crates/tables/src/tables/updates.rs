//! Stores into reference slots.

use et_columns::table;

table! {
    /// One row per `U` record: a reference was stored into a field or an array element. A weak reference that is cleared because its referent dies has a row as well, without a thread.
    "updates",
    "the order of the trace",
    Some("number"),
    {
        /// Updates in the order of the trace, from 0.
        number: i64 as Delta,
        /// The clock.
        tick: i64 as Delta,
        /// Time.
        nanos: Option<i64> as Delta,
        /// The thread that stored; null if no thread did.
        thread: Option<i64> as Delta,
        /// Methods on its stack.
        context: i64 as Dictionary,
        /// The object or array that was stored into; null for a static field.
        object: Option<i64> as Plain,
        /// The field; null for an array element.
        field: Option<i64> as Dictionary,
        /// The index of the array element; null for a field.
        element: Option<i64> as Dictionary,
        /// What the slot held before; null if it held null.
        old_target: Option<i64> as Plain,
        /// What it holds now; null if null was stored.
        new_target: Option<i64> as Plain,
    }
}
