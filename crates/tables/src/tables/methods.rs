//! Methods.

use et_columns::table;

table! {
    /// One row per method of a context, a site or an exception.
    "methods",
    "by number",
    Some("method"),
    {
        /// Its id.
        method: i64 as Delta,
        /// `java.util.HashMap.put`
        name: String as Dictionary,
        /// `java.util.HashMap`; null if not known.
        class: Option<String> as Dictionary,
        /// Its JVM descriptor; null if not known.
        descriptor: Option<String> as Dictionary,
        /// `java/util/HashMap.java`; null if not known.
        file: Option<String> as Dictionary,
        /// The first line of its code; null if not known.
        line: Option<i64> as Dictionary,
        /// Whether it is static; null if not known.
        is_static: Option<bool> as Dictionary,
        /// The instrumented jar, folder or JDK; null if not known.
        artifact: Option<String> as Dictionary,
    }
}
