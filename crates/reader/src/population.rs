//! All objects of a trace as rows, for analyses that need to know what happened to objects but not in which order.
//! Sources of rows implement [`Groups`].

use std::io;
use std::ops::{BitOr, Range, RangeInclusive};
use std::sync::Arc;

use et_names::SiteId;

use crate::axis::Span;
use crate::lifetimes::HeldByStack;
use crate::model::{ContextId, Contexts};
pub use crate::moment::Moment;
use crate::record::{AllocKind, ObjectId, RecordKind, ThreadId};
use crate::resolve::Lost;
use crate::survival::{Fate, Survival};
use crate::types::{TypeId, Types};

/// A set of columns of [`Rows`]. Columns that are not read save time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns(u32);

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $column:ident $ty:ty,)*) => {
        /// The bit of each column: its position in the declaration.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names of the constants")]
        enum Bit { $($name,)* }

        impl Columns {
            $($(#[$doc])* pub const $name: Self = Self(1 << Bit::$name as u32);)*
            /// All columns.
            pub const ALL: Self = Self(0 $(| Self::$name.0)*);
        }

        /// Rows of some objects, column by column. Columns that were not requested are empty, the others have an entry
        /// for each object.
        #[derive(Clone, Debug, Default)]
        pub struct Rows {
            /// Number of rows.
            pub len: usize,
            /// How many objects each row stands for, whose sizes together are its size; empty: for one.
            pub counts: Vec<u64>,
            /// When objects were born, if their births do not tell: each row has that of the first of its objects.
            pub spans: Option<Vec<Span>>,
            $(pub $column: Vec<$ty>,)*
        }

        impl Rows {
            /// Rows of these columns in another order: runs of rows, from here or, if the flag is set, from `others`, which
            /// have all columns.
            #[must_use]
            pub fn arranged(&self, others: &Self, order: &[(bool, Range<usize>)]) -> Self {
                let len = order.iter().map(|(_, run)| run.len()).sum();
                let mut arranged = Self { len, ..Self::default() };
                $(if self.$column.len() == self.len {
                    arranged.$column.reserve_exact(len);
                    for (other, run) in order {
                        let from = if *other { &others.$column } else { &self.$column };
                        arranged.$column.extend_from_slice(&from[run.clone()]);
                    }
                })*
                arranged
            }

            /// Some of the rows, with these columns, as far as they were read.
            #[must_use]
            pub fn only(&self, wanted: &[usize], columns: Columns) -> Self {
                Self {
                    len: wanted.len(),
                    counts: if self.counts.is_empty() { Vec::new() } else { wanted.iter().map(|&row| self.counts[row]).collect() },
                    spans: None,
                    $($column: match columns.has(Columns::$name) && self.$column.len() == self.len {
                        true => wanted.iter().map(|&row| self.$column[row]).collect(),
                        false => Vec::new(),
                    },)*
                }
            }

            /// The same rows with further columns, which were read apart.
            #[must_use]
            pub fn with(self, others: Self) -> Self {
                Self {
                    len: self.len,
                    counts: self.counts,
                    spans: self.spans,
                    $($column: if self.$column.is_empty() { others.$column } else { self.$column },)*
                }
            }

            /// How many objects a row stands for.
            pub fn objects(&self, row: usize) -> u64 {
                self.counts.get(row).copied().unwrap_or(1)
            }

            /// Appends rows of the same columns, which stand for one object each or have counts like these.
            pub fn append(&mut self, mut others: Self) {
                self.len += others.len;
                self.counts.append(&mut others.counts);
                $(self.$column.append(&mut others.$column);)*
            }
        }
    };
}

columns! {
    /// `number`: in the order of births, from 0.
    NUMBER: number u64,
    /// `object`: object id.
    OBJECT: object ObjectId,
    /// `class`.
    CLASS: class TypeId,
    /// `kind`: how it came to be.
    KIND: kind AllocKind,
    /// `size`: bytes; 0 if not known.
    SIZE: size u64,
    /// `length`: elements of an array, 0 of other objects.
    LENGTH: length u32,
    /// `site`: 0 if not known.
    SITE: site SiteId,
    /// `context`: methods on the stack at allocation.
    CONTEXT: context ContextId,
    /// `thread`: who allocated it; 0 if not known.
    THREAD: thread ThreadId,
    /// `birth_tick`.
    BIRTH_TICK: birth_tick u64,
    /// `birth_bytes`: what was allocated so far, this object included. What was there when tracing began does not count.
    BIRTH_BYTES: birth_bytes u64,
    /// `birth_nanos`: since the start of the run; `None` if the trace has no times.
    BIRTH_NANOS: birth_nanos Option<u64>,
    /// `last_use_tick`.
    LAST_USE_TICK: last_use_tick u64,
    /// `death_tick`; `None`: alive at the end.
    DEATH_TICK: death_tick Option<u64>,
    /// `death_bytes`: what was allocated so far.
    DEATH_BYTES: death_bytes Option<u64>,
    /// `death_nanos`: since the start of the run.
    DEATH_NANOS: death_nanos Option<u64>,
    /// `death_thread`: in which it became unreachable.
    DEATH_THREAD: death_thread Option<ThreadId>,
    /// `death_context`: the stack of what made it unreachable.
    DEATH_CONTEXT: death_context Option<ContextId>,
    /// `escaped_thread`: another thread mentioned it; `None`: its own is not known.
    ESCAPED_THREAD: escaped_thread Option<bool>,
    /// `escaped_frame`: it outlived the method that allocated it; `None`: no method ran.
    ESCAPED_FRAME: escaped_frame Option<bool>,
    /// `death_record`: number of the record that made it unreachable, from 1, deaths not counted; `None`: none did.
    DEATH_RECORD: death_record Option<u64>,
    /// `death_kind`: kind of that record.
    DEATH_KIND: death_kind Option<RecordKind>,
    /// Which collections it survived, where walks through the heap tell; `None`: no walk came after it.
    FATE: fate Option<Fate>,
}

impl Columns {
    /// Whether the set contains all of `columns`.
    pub fn has(self, columns: Self) -> bool {
        self.0 & columns.0 == columns.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether the set contains one of `columns`.
    pub fn has_any(self, columns: Self) -> bool {
        self.0 & columns.0 != 0
    }

    /// This set but for others.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

impl BitOr for Columns {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.and(other)
    }
}

/// A column by whose smallest and largest values groups can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Number,
    BirthTick,
    DeathTick,
    DeathRecord,
}

/// Reads columns of a group for sums; fails as [`Groups::read`].
pub type Joined<'a> = Box<dyn Fn(usize, Columns) -> io::Result<Rows> + Send + Sync + 'a>;

/// Rows in groups of about 100,000, which can be read in any order and on several threads.
pub trait Groups: Send + Sync {
    /// Number of groups. Objects that died come first, in the order of their deaths; then those alive at the end, in
    /// the order of their births.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a group may have an object that is alive at a tick, as far as that is known without reading it.
    ///
    /// # Errors
    /// The file is damaged.
    fn may_have(&self, _group: usize, _tick: u64) -> io::Result<bool> {
        Ok(true)
    }

    /// The smallest and the largest value that a group has in a column, as far as that is known without reading it. It may be wider
    /// than what the group has, and is empty if no object of it has a value.
    ///
    /// # Errors
    /// The file is damaged.
    fn range(&self, _group: usize, _key: Key) -> io::Result<RangeInclusive<u64>> {
        Ok(0..=u64::MAX)
    }

    /// Reads columns of a group. Fails if the file cannot be read or is damaged.
    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows>;

    /// Returns what reads groups for sums: all of them have to be read by the same. Objects that differ only in their ids, sizes and births may
    /// share a row there, which then stands for several ([`Rows::counts`]) and has the number and the birth of the first of them. All are
    /// born in the same [half](crate::axis::middle) of the trace; when exactly is beside the rows ([`Rows::spans`]).
    fn joined(&self) -> Joined<'_> {
        Box::new(|group, columns| self.read(group, columns))
    }

    /// What is alive at the end only because methods that have not returned hold it; empty if that is unknown.
    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>>;
}

/// In place of the tick of a last use that is not known: no use was before it.
pub const UNKNOWN_USE: u64 = u64::MAX;

/// All objects of a trace.
#[allow(missing_debug_implementations)]
pub struct Population {
    pub groups: Box<dyn Groups>,
    /// Number of objects.
    pub objects: u64,
    /// Calling contexts; callers precede callees.
    pub contexts: Contexts,
    /// Descriptors of the classes.
    pub types: Arc<Types>,
    /// Whether deaths are known; if not, all objects are alive at the end.
    pub has_deaths: bool,
    /// Whether uses are known. If not, because the trace has no calls, the last use of each row is [`UNKNOWN_USE`].
    pub has_uses: bool,
    /// What walks through the heap say of the objects, if deaths are not known and there were walks.
    pub survival: Option<Arc<Survival>>,
    /// The end of the trace.
    pub end: Moment,
    /// What is missing from the trace.
    pub lost: Lost,
    /// Warnings for users about anything unusual.
    pub warnings: Vec<String>,
}
