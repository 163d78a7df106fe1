//! Fields.

use et_columns::table;

table! {
    /// One row per field that was stored into.
    "fields",
    "by number",
    Some("field"),
    {
        /// Its id. Static fields of a class that several class loaders defined share it.
        field: i64 as Delta,
        /// `java.util.HashMap.table`
        name: String as Dictionary,
        /// The class that declares it: `java.util.HashMap`; null if not known.
        class: Option<String> as Dictionary,
        /// Its JVM descriptor; null if not known.
        descriptor: Option<String> as Dictionary,
        /// Whether it is static; null if not known.
        is_static: Option<bool> as Dictionary,
        /// Whether it is final; null if not known.
        is_final: Option<bool> as Dictionary,
    }
}
