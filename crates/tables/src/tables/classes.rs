//! Classes.

use et_columns::table;

table! {
    /// One row per class of an object, or class that the run prepared. Classes of the same name by several class loaders are one row.
    "classes",
    "by number",
    Some("class"),
    {
        /// Its number, in this run only: join runs by `name`.
        class: i64 as Delta,
        /// As in Java source: `java.util.Map$Entry`, `int[]`.
        name: String as Dictionary,
        /// Its package; empty for arrays and classes without one.
        package: String as Dictionary,
        /// Its JVM descriptor.
        descriptor: String as Dictionary,
        /// Its superclass; null if there is none, or it is not known.
        superclass: Option<i64> as Dictionary,
        /// Whether it is an array.
        is_array: bool as Dictionary,
        /// Whether it is a hidden class, such as that of a lambda.
        is_hidden: bool as Dictionary,
        /// Bytes of an instance; null for arrays and interfaces, or if not known.
        instance_bytes: Option<i64> as Dictionary,
        /// How many class loaders defined it; 0 if the run did not prepare it.
        loaders: i64 as Dictionary,
    }
}
