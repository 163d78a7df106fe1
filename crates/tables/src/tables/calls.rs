//! Calls of methods.

use et_columns::{Word, table};

table! {
    /// One row per `M` record: a method was entered, and left by an `E` or an `X`, or was still running at the end.
    "calls",
    "the order in which they were left; those that were still running at the end come last",
    Some("exit_tick"),
    {
        /// Calls in the order of their entries, from 1.
        call: i64 as Delta,
        /// The call that it was made from; null for the outermost of a thread.
        caller: Option<i64> as Delta,
        /// Its thread.
        thread: i64 as Delta,
        /// The method.
        method: i64 as Dictionary,
        /// The receiver; null for a static method.
        receiver: Option<i64> as Plain,
        /// Methods on the stack, this one included.
        context: i64 as Dictionary,
        /// Frames on the stack, this one included.
        depth: i64 as Delta,
        /// The clock before the entry.
        entry_tick: i64 as Delta,
        /// Time of the entry.
        entry_nanos: Option<i64> as Delta,
        /// The clock before the exit: between both are all calls and returns in it, and those of other threads in the meantime. Null if it was running at the end.
        exit_tick: Option<i64> as Delta,
        /// Time of the exit.
        exit_nanos: Option<i64> as Delta,
        /// How it was left: `E` it returned, `X` by an exception, null if it was running at the end.
        left_by: Option<Word> as Dictionary,
        /// The exception that left it.
        exception: Option<i64> as Dictionary,
        /// Objects that it allocated itself, without those of the methods that it called.
        allocated_objects: i64 as Dictionary,
        /// Their bytes.
        allocated_bytes: i64 as Dictionary,
    }
}
