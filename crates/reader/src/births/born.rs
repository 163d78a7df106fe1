//! Objects in the order of their births, and rows of them.

use et_format::Nanos;

use super::made::Made;
use crate::model::ContextId;
use crate::population::{Columns, Rows, UNKNOWN_USE};
use crate::record::{ObjectId, ThreadId};

/// An object of a group.
#[derive(Clone, Copy)]
pub struct Born {
    pub number: u64,
    pub object: ObjectId,
    pub made: Made,
    pub thread: ThreadId,
    pub context: ContextId,
    /// Bytes allocated before it, and with it.
    pub before: u64,
    pub bytes: u64,
    pub time: Option<Nanos>,
}

/// Adds a row for an object, but for what differs from object to object: its id, size and length.
#[inline]
pub fn push(rows: &mut Rows, columns: Columns, born: &Born) {
    let &Born { number, object: _, made, thread, context, before, bytes, time } = born;
    rows.len += 1;
    macro_rules! put {
        ($($name:ident: $column:ident = $value:expr;)*) => {
            $(if columns.has(Columns::$name) {
                rows.$column.push($value);
            })*
        };
    }
    put! {
        NUMBER: number = number;
        CLASS: class = made.ty;
        KIND: kind = made.kind;
        SITE: site = made.site;
        CONTEXT: context = context;
        THREAD: thread = thread;
        BIRTH_TICK: birth_tick = before;
        BIRTH_BYTES: birth_bytes = bytes;
        BIRTH_NANOS: birth_nanos = time.map(|time| time.0);
    }
}

/// Adds columns of what no event tells: it is the same for all.
pub fn untold(rows: &mut Rows, columns: Columns) {
    macro_rules! fill {
        ($($name:ident: $column:ident = $value:expr;)*) => {
            $(if columns.has(Columns::$name) {
                rows.$column = vec![$value; rows.len];
            })*
        };
    }
    fill! {
        LAST_USE_TICK: last_use_tick = UNKNOWN_USE;
        DEATH_TICK: death_tick = None;
        DEATH_BYTES: death_bytes = None;
        DEATH_NANOS: death_nanos = None;
        DEATH_THREAD: death_thread = None;
        DEATH_CONTEXT: death_context = None;
        ESCAPED_THREAD: escaped_thread = None;
        ESCAPED_FRAME: escaped_frame = None;
        DEATH_RECORD: death_record = None;
        DEATH_KIND: death_kind = None;
    }
}
