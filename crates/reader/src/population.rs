//! All objects of a trace, a row each: what analyses are made of that ask what became of objects and not in which order
//! things happened. Who keeps the rows implements [`Groups`].

use std::io;
use std::ops::BitOr;
use std::sync::Arc;

use et_names::SiteId;

use crate::model::{ContextId, Contexts};
use crate::record::{AllocKind, ObjectId, ThreadId};
use crate::resolve::Lost;
use crate::types::{TypeId, Types};

/// Which columns of [`Rows`] are wanted. Each that is not read saves time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns(u32);

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident $bit:literal: $column:ident $ty:ty,)*) => {
        impl Columns {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
            /// Every column.
            pub const ALL: Self = Self(0 $(| 1 << $bit)*);
        }

        /// Columns of some objects. Those that were not asked for are empty, the others have an entry for each object.
        #[derive(Clone, Debug, Default)]
        #[allow(missing_docs)]
        pub struct Rows {
            /// How many objects these are.
            pub len: usize,
            $(pub $column: Vec<$ty>,)*
        }
    };
}

columns! {
    /// `number`: in the order of births, from 0.
    NUMBER 0: number u64,
    /// `object`: object id.
    OBJECT 1: object ObjectId,
    /// `class`.
    CLASS 2: class TypeId,
    /// `kind`: how it came to be.
    KIND 3: kind AllocKind,
    /// `size`: bytes; 0 if not known.
    SIZE 4: size u64,
    /// `length`: elements of an array, 0 of other objects.
    LENGTH 5: length u32,
    /// `site`: 0 if not known.
    SITE 6: site SiteId,
    /// `context`: methods on the stack at allocation.
    CONTEXT 7: context ContextId,
    /// `thread`: who allocated it; 0 if not known.
    THREAD 8: thread ThreadId,
    /// `birth_tick`.
    BIRTH_TICK 9: birth_tick u64,
    /// `birth_bytes`: what was allocated so far, this object included. What was there when tracing began does not count.
    BIRTH_BYTES 10: birth_bytes u64,
    /// `birth_nanos`: since the start of the run; `None` if the trace has no times.
    BIRTH_NANOS 11: birth_nanos Option<u64>,
    /// `last_use_tick`.
    LAST_USE_TICK 12: last_use_tick u64,
    /// `death_tick`; `None`: alive at the end.
    DEATH_TICK 13: death_tick Option<u64>,
    /// `death_bytes`: what was allocated so far.
    DEATH_BYTES 14: death_bytes Option<u64>,
    /// `death_nanos`: since the start of the run.
    DEATH_NANOS 15: death_nanos Option<u64>,
    /// `death_thread`: in which it became unreachable.
    DEATH_THREAD 16: death_thread Option<ThreadId>,
    /// `death_context`: the stack of what made it unreachable.
    DEATH_CONTEXT 17: death_context Option<ContextId>,
    /// `escaped_thread`: another thread mentioned it; `None`: its own is not known.
    ESCAPED_THREAD 18: escaped_thread Option<bool>,
    /// `escaped_frame`: it outlived the method that allocated it; `None`: no method ran.
    ESCAPED_FRAME 19: escaped_frame Option<bool>,
    /// `death_record`: number of the record that made it unreachable, from 1, deaths not counted; `None`: none did.
    DEATH_RECORD 20: death_record Option<u64>,
}

impl Columns {
    /// Whether all of `columns` are among these.
    pub fn has(self, columns: Self) -> bool {
        self.0 & columns.0 == columns.0
    }
}

impl BitOr for Columns {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Rows in groups of some 100,000, which can be read in any order and on several threads.
pub trait Groups: Send + Sync {
    /// How many groups there are. Those that died come first, in the order of their deaths; then those alive at the end, in
    /// the order of their births.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Columns of a group.
    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows>;
}

/// A point in the course of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Of the clock.
    pub tick: u64,
    /// Allocated so far, without what was there when tracing began.
    pub bytes: u64,
    /// Since the start of the run; `None` if the trace has no times.
    pub nanos: Option<u64>,
}

/// All objects of a trace.
#[allow(missing_debug_implementations)]
pub struct Population {
    /// Their rows.
    pub groups: Box<dyn Groups>,
    /// How many there are.
    pub objects: u64,
    /// Calling contexts; callers are before those they call.
    pub contexts: Contexts,
    /// The classes' names.
    pub types: Arc<Types>,
    /// Whether deaths are known: else all objects are alive at the end.
    pub has_deaths: bool,
    /// The end of the trace.
    pub end: Moment,
    /// What the trace lacks.
    pub lost: Lost,
    /// What is not as it should be.
    pub warnings: Vec<String>,
}
