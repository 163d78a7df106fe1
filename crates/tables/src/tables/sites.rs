//! Sites.

use et_columns::table;

table! {
    /// One row per place where objects were allocated: a site or, for those that have none, the method that ran and how it allocated.
    "sites",
    "by number",
    Some("site"),
    {
        /// Its id; from 2^32 on, that of a method instead of a site.
        site: i64 as Delta,
        /// `java.util.HashMap.newNode:1901`; `shop.Page.clone, by clone()`; `(by loading a class)` where no method ran.
        name: String as Dictionary,
        /// The method that it is in; null if not known.
        method: Option<i64> as Dictionary,
        /// The source line; null if not known.
        line: Option<i64> as Dictionary,
        /// What it allocates, as in Java source; null if not known.
        allocates: Option<String> as Dictionary,
    }
}
