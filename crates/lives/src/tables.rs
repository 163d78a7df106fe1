//! The tables of a life table. Ids that have 64 bits are unsigned, and stand in columns as signed numbers of the same bits.

use et_columns::Table;
use xxhash_rust::xxh3::Xxh3;

/// All of them.
pub const ALL: [&Table; 10] = [
    &objects::TABLE,
    &clearings::TABLE,
    &held::TABLE,
    &walks::TABLE,
    &fates::TABLE,
    &classes::TABLE,
    &sites::TABLE,
    &contexts::TABLE,
    &methods::TABLE,
    &threads::TABLE,
];

/// XXH3 of the schemas of tables: it changes with each column that is added, removed or renamed.
pub(crate) fn schemas(tables: &[&Table]) -> u64 {
    let mut hash = Xxh3::new();
    tables.iter().for_each(|table| hash.update(table.message().as_bytes()));
    hash.digest()
}

/// Objects.
pub mod objects {
    use et_columns::Word;

    et_columns::table! {
        /// One row per object.
        "lives",
        "those that died, in the order of their deaths, but for a few that come behind the others; then those alive at the end, in the order of their births",
        None,
        {
            /// Objects in the order of their births, from 0.
            number: i64 as Delta,
            /// Object id.
            object: i64 as Plain,
            /// Its class.
            class: i64 as Dictionary,
            /// Letter of its record: `A I N P V`.
            kind: Word as Dictionary,
            /// Bytes.
            size: i64 as Dictionary,
            /// Elements of an array.
            length: i64 as Dictionary,
            /// Allocation site; 0: not known.
            site: i64 as Dictionary,
            /// Methods on the stack at its allocation.
            context: i64 as Dictionary,
            /// The allocating thread; 0: not known.
            thread: i64 as Dictionary,
            /// The clock when it was allocated.
            birth_tick: i64 as Delta,
            /// Bytes allocated so far, this object included.
            birth_bytes: i64 as Delta,
            /// Wall time when it was allocated.
            birth_nanos: Option<i64> as Delta,
            /// The clock at the last record that used it: as receiver, exception, or owner of a slot that changed, or an `R`. Being stored somewhere is no use.
            last_use_tick: i64 as Delta,
            /// The clock when it died; null: alive at the end.
            death_tick: Option<i64> as Delta,
            /// Bytes allocated before its death.
            death_bytes: Option<i64> as Delta,
            /// Wall time when it died.
            death_nanos: Option<i64> as Delta,
            /// Number of the step that made it unreachable, counting what the VM holds. Needed to replay deaths.
            death_step: Option<i64> as Delta,
            /// The thread whose action made it unreachable.
            death_thread: Option<i64> as Dictionary,
            /// Methods on the stack of that thread then.
            death_context: Option<i64> as Dictionary,
            /// Number of the record that made it unreachable, from 1, without computed records (deaths and clearings); null: the VM released it.
            death_record: Option<i64> as Delta,
            /// Letter of that record.
            death_kind: Option<Word> as Dictionary,
            /// Whether a record of another thread mentioned it; null: the allocating thread is not known.
            escaped_thread: Option<bool> as Dictionary,
            /// Whether it outlived the method that allocated it; null: no method was running.
            escaped_frame: Option<bool> as Dictionary,
        }
    }
}

/// Weak references.
pub mod clearings {
    et_columns::table! {
        /// One row per weak reference that was cleared, and per store into a weak slot that held null by then. Needed to replay deaths.
        "clearings", "by step", None, {
            /// Number of the step.
            step: i64 as Delta,
            /// Whether the step itself stores into a slot that held null by then; else a record stands behind the step.
            is_step: bool as Dictionary,
            /// The referent.
            old: i64 as Plain,
            /// The reference.
            origin: i64 as Plain,
            /// The field.
            slot: i64 as Dictionary,
            /// The thread of the record.
            thread: i64 as Dictionary,
        }
    }
}

/// What is alive at the end only because methods that have not returned hold it.
pub mod held {
    et_columns::table! {
        /// One row per object that is alive at the end only because a method that has not returned holds it.
        "held", "a holder's objects together", None, {
            /// The object.
            object: i64 as Plain,
            /// What the method holds it by: its receiver, or an exception in flight.
            holder: i64 as Dictionary,
            /// The thread whose stack has the method.
            thread: i64 as Dictionary,
            /// The method.
            method: i64 as Dictionary,
            /// Whether `holder` is an exception that may leave the method.
            is_in_flight: bool as Dictionary,
        }
    }
}

/// Walks through the heap.
pub mod walks {
    et_columns::table! {
        /// One row per walk through the heap, in traces that do not tell when objects die.
        "walks", "in order", Some("walk"), {
            /// Its number, from 0.
            walk: i64 as Delta,
            /// When it began, in nanoseconds since the start of the run.
            start_nanos: i64 as Delta,
            /// How long it took.
            duration_nanos: i64 as Plain,
            /// Number of collections that were over.
            collections: i64 as Delta,
            /// Number of objects that it found, including those that the trace does not tell of.
            found: i64 as Plain,
            /// Whether it is the one at the end of the trace.
            at_the_end: bool as Dictionary,
            /// Whether it found what could be reached and nothing else.
            is_exact: bool as Dictionary,
            /// Number of objects that certainly existed when it began.
            born: i64 as Delta,
            /// The ticket taken before it.
            begin_ticket: i64 as Delta,
            /// The clock, the bytes allocated and the wall time then.
            begin_tick: i64 as Delta,
            /// Bytes allocated by then.
            begin_bytes: i64 as Delta,
            /// Wall time then; null if the trace has no times.
            begin_nanos: Option<i64> as Delta,
            /// The ticket taken after it.
            end_ticket: i64 as Delta,
            /// The clock then.
            end_tick: i64 as Delta,
            /// Bytes allocated by then.
            end_bytes: i64 as Delta,
            /// Wall time then.
            end_nanos: Option<i64> as Delta,
        }
    }
}

/// What walks say of objects.
pub mod fates {
    et_columns::table! {
        /// One row per object of a trace that does not tell when objects die, but has walks through the heap. Null if no walk came after it.
        "fates", "as the rows of objects", None, {
            /// The object, in the order of births.
            number: i64 as Delta,
            /// Number of collections that it certainly survived.
            survived_collections: Option<i64> as Dictionary,
            /// The most that it can have survived: walks do not look at all collections.
            survived_at_most: Option<i64> as Dictionary,
            /// The first walk after its birth.
            first_walk: Option<i64> as Dictionary,
            /// The last walk that found it; null: none did.
            seen_walk: Option<i64> as Dictionary,
            /// The first walk after that, by whose end it was gone; null: it was there at the last walk.
            missed_walk: Option<i64> as Dictionary,
            /// Whether walks contradict each other, or may have found another object with the same id.
            survival_uncertain: Option<bool> as Dictionary,
        }
    }
}

/// Rows for sums of a trace that tells only how objects are made.
pub mod births {
    use et_columns::Word;

    et_columns::table! {
        /// One row for objects that are alike.
        "births", "in the order of the first of them", None, {
            /// The first of them, in the order of births.
            number: i64 as Delta,
            /// Their class.
            class: i64 as Dictionary,
            /// Letter of their records.
            kind: Word as Dictionary,
            /// How many they are.
            objects: i64 as Delta,
            /// Bytes of all.
            size: i64 as Delta,
            /// Allocation site; 0: not known.
            site: i64 as Dictionary,
            /// Methods on the stack at their allocation.
            context: i64 as Delta,
            /// The allocating thread; 0: not known.
            thread: i64 as Dictionary,
            /// The clock when the first was allocated.
            birth_tick: i64 as Delta,
            /// Bytes allocated by then, that object included.
            birth_bytes: i64 as Delta,
            /// Wall time then.
            birth_nanos: Option<i64> as Delta,
        }
    }
}

/// Names of classes.
pub mod classes {
    et_columns::table! {
        /// One row per class.
        "classes", "by number", Some("class"), {
            /// Its number in this table.
            class: i64 as Delta,
            /// Its name.
            name: String as Dictionary,
        }
    }
}

/// Names of sites.
pub mod sites {
    et_columns::table! {
        /// One row per site that allocated an object.
        "sites", "by id", Some("site"), {
            /// Its id.
            site: i64 as Delta,
            /// Its method; null if no names table has it.
            method: Option<i64> as Dictionary,
            /// Its method, line and class.
            name: String as Dictionary,
        }
    }
}

/// The tree of calling contexts.
pub mod contexts {
    et_columns::table! {
        /// One row per calling context; 0 is the empty stack.
        "contexts", "callers before those they call", Some("context"), {
            /// Its number.
            context: i64 as Delta,
            /// The context without the innermost method.
            caller: i64 as Delta,
            /// The innermost method.
            method: i64 as Dictionary,
            /// Methods on the stack.
            depth: i64 as Dictionary,
            /// The call at which the innermost method is, one of those on the line; 0: not known, or it calls nothing.
            at: i64 as Dictionary,
        }
    }
}

/// Names of methods.
pub mod methods {
    et_columns::table! {
        /// One row per method of a site or a context.
        "methods", "by id", Some("method"), {
            /// Its id.
            method: i64 as Delta,
            /// Its class, name and descriptor.
            name: String as Dictionary,
        }
    }
}

/// Names of threads.
pub mod threads {
    et_columns::table! {
        /// One row per thread. From 2^31 up these are virtual threads, of which only those are listed that allocated an object or made one unreachable.
        "threads", "by number", Some("thread"), {
            /// Its number.
            thread: i64 as Delta,
            /// Its name; virtual threads have none.
            name: String as Dictionary,
            /// Whether it is a daemon.
            is_daemon: bool as Dictionary,
        }
    }
}

/// Stays of references in slots.
pub mod references {
    use et_columns::Word;

    et_columns::table! {
        /// One row per stay of a reference: the time during which a slot holds what was stored into it. The name is short because `references` is a keyword of SQL.
        "refs",
        "stays that end are in groups by the time that they span, and those that last to the end follow; in a group, by their beginnings. So a moment's stays are in few groups, which engines find by the smallest and largest ticks of each",
        None,
        {
            /// The object with the slot: its `number` in `objects`; null for a static field.
            origin: Option<i64> as Delta,
            /// The field; null for an array element.
            field: Option<i64> as Dictionary,
            /// The index of the array element; null for a field.
            element: Option<i64> as Dictionary,
            /// The object that the slot holds: its `number` in `objects`.
            target: i64 as Delta,
            /// Number of the record that stored it, from 1, deaths and clearings not counted; 0: it was there when tracing began.
            from_record: i64 as Delta,
            /// The clock before that record.
            from_tick: i64 as Delta,
            /// Bytes allocated by then.
            from_bytes: i64 as Delta,
            /// Wall time then.
            from_nanos: Option<i64> as Delta,
            /// The thread that stored it; null if it was there when tracing began.
            thread: Option<i64> as Dictionary,
            /// Methods on its stack.
            context: i64 as Dictionary,
            /// Number of the record that ended the stay: the next store into the slot, or what made the origin or the referent unreachable. Null: it lasts to the end of the trace.
            to_record: Option<i64> as Delta,
            /// The clock before that record.
            to_tick: Option<i64> as Delta,
            /// Bytes allocated by then.
            to_bytes: Option<i64> as Delta,
            /// Wall time then.
            to_nanos: Option<i64> as Delta,
            /// What ended it: `overwritten`, `cleared` (a weak reference whose referent died) or `origin died`.
            ended: Option<Word> as Dictionary,
            /// The thread that overwrote it.
            end_thread: Option<i64> as Dictionary,
            /// Methods on its stack.
            end_context: Option<i64> as Dictionary,
        }
    }
}
