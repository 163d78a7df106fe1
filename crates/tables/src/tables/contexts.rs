//! Calling contexts.

use et_columns::table;

table! {
    /// One row per calling context: a tree with a node for each chain of callers that rows of other tables name. Context 0 is the empty stack.
    "contexts",
    "by number: callers before those that they call",
    Some("context"),
    {
        /// Its number, in this run only.
        context: i64 as Delta,
        /// The context of the caller; null for context 0.
        caller: Option<i64> as Delta,
        /// The method on top; null for context 0.
        method: Option<i64> as Dictionary,
        /// Methods on the stack.
        depth: i64 as Dictionary,
        /// The line at which the method on top is, where it calls another one; null: not known, as in traces without stacks, or it calls nothing.
        line: Option<i64> as Dictionary,
    }
}
