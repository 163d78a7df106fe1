//! Objects: the life table.

use et_columns::{Word, table};

table! {
    /// One row per object, with its birth, its last use and its death.
    "objects",
    "those that died, in the order of their deaths; then those alive at the end, in the order of their births",
    Some("death_tick"),
    {
        /// Objects in the order of their births, from 0.
        number: i64 as Delta,
        /// Object id, unique in the run.
        object: i64 as Delta,
        /// Its class.
        class: i64 as Dictionary,
        /// How it came to be, the letter of its record: `N` by `new`, `A` array, `V` by the VM or native code, `I` there when tracing began, `P` found later.
        kind: Word as Dictionary,
        /// Bytes; 0 if not known.
        size: i64 as Dictionary,
        /// Elements of an array; 0 for other objects.
        length: i64 as Dictionary,
        /// Where it was allocated: a site or, from 2^32 on, the method that ran and how it allocated.
        site: Option<i64> as Dictionary,
        /// Methods on the stack at its allocation.
        context: i64 as Dictionary,
        /// The thread that allocated it; null if not known.
        thread: Option<i64> as Delta,
        /// The clock at its birth.
        birth_tick: i64 as Delta,
        /// Bytes allocated so far, this object included.
        birth_bytes: i64 as Delta,
        /// Time of its birth.
        birth_nanos: Option<i64> as Delta,
        /// The clock at the last record that used it; null if the trace has no calls.
        last_use_tick: Option<i64> as Delta,
        /// The clock at its death; null if it is alive at the end, or deaths are not known.
        death_tick: Option<i64> as Delta,
        /// Bytes allocated before its death.
        death_bytes: Option<i64> as Delta,
        /// Time of its death.
        death_nanos: Option<i64> as Delta,
        /// The thread whose action made it unreachable; null if none did.
        death_thread: Option<i64> as Delta,
        /// Methods on the stack of that thread then.
        death_context: Option<i64> as Dictionary,
        /// Number of the record that made it unreachable: objects with the same number died together. Null if no record did.
        death_record: Option<i64> as Delta,
        /// Whether a thread other than its own mentioned it; null if its own is not known, or the trace has no calls.
        escaped_thread: Option<bool> as Dictionary,
        /// Whether it outlived the method that allocated it; null if no method was running, or deaths are not known.
        escaped_frame: Option<bool> as Dictionary,
        /// Number of collections that it certainly survived, where walks through the heap tell and deaths are not known; null elsewhere, and if no walk came after it.
        survived_collections: Option<i64> as Dictionary,
        /// The most that it can have survived: walks do not look at all collections.
        survived_at_most: Option<i64> as Dictionary,
        /// Bytes allocated when the last walk began that found it; if none did, at its birth.
        gone_after_bytes: Option<i64> as Dictionary,
        /// Bytes allocated when the next walk had ended, which did not find it; null if it was there at the last.
        gone_by_bytes: Option<i64> as Dictionary,
        /// Time of the former; null if no walk found it and the trace has no times.
        gone_after_nanos: Option<i64> as Dictionary,
        /// Time of the latter.
        gone_by_nanos: Option<i64> as Dictionary,
        /// Whether walks say what does not fit, or may say it of another object with the same id.
        survival_uncertain: Option<bool> as Dictionary,
    }
}
