//! Sites.

use crate::row::table;

table! {
    /// One row per allocation site of an object.
    "sites",
    "by number",
    Some("site"),
    {
        /// Its id.
        site: i64 as Delta,
        /// `java.util.HashMap.newNode:1901`
        name: String as Dictionary,
        /// The method that it is in; null if not known.
        method: Option<i64> as Dictionary,
        /// The source line; null if not known.
        line: Option<i64> as Dictionary,
        /// What it allocates, as in Java source; null if not known.
        allocates: Option<String> as Dictionary,
    }
}
