//! The runs.

use et_columns::table;

table! {
    /// One row per run: the program, the JVM, and what is missing. A run is complete if it has a row here.
    "trace",
    "one row",
    None,
    {
        /// Name of the trace file.
        file: String as Dictionary,
        /// Its length in bytes.
        trace_bytes: i64 as Dictionary,
        /// The id that the runtime gave to the run; null for a text.
        run_id: Option<String> as Dictionary,
        /// The text of `--label`: a release, a machine, a test.
        label: Option<String> as Dictionary,
        /// The command line of the program.
        program: Option<String> as Dictionary,
        /// Its process id.
        pid: Option<i64> as Dictionary,
        /// When it started: milliseconds since 1970.
        start_unix_millis: Option<i64> as Dictionary,
        /// Seconds that were traced; null if not known.
        seconds: Option<f64> as Dictionary,
        /// Name of the JVM.
        jvm: Option<String> as Dictionary,
        /// Version of the JVM.
        jvm_version: Option<String> as Dictionary,
        /// Home of the JDK.
        java_home: Option<String> as Dictionary,
        /// Options of the run, as JSON.
        options: Option<String> as Dictionary,
        /// What the classes have hooks for: `alloc,update,method,exception`.
        events: String as Dictionary,
        /// Whether deaths are known: if not, `death_…` is null for all objects.
        has_deaths: bool as Dictionary,
        /// Whether times are known: if not, `…_nanos` and `second` are null.
        has_times: bool as Dictionary,
        /// Whether the trace has a proper end.
        is_complete: bool as Dictionary,
        /// Events that were lost, and blocks that could not be decoded.
        lost: i64 as Dictionary,
        /// The clock at the end.
        end_tick: i64 as Dictionary,
        /// Bytes allocated by the end.
        end_bytes: i64 as Dictionary,
        /// Time at the end.
        end_nanos: Option<i64> as Dictionary,
        /// Records of the trace, deaths included; null if the records were not read (`--only`).
        records: Option<i64> as Dictionary,
        /// What is missing, and why tables or columns are empty: `TABLE: reason`, separated by semicolons; empty if nothing is.
        missing: String as Dictionary,
        /// The tables that were written.
        tables: String as Dictionary,
        /// Version of et-trace that wrote them.
        tool: String as Dictionary,
    }
}
