//! Rows for sums: each stands for all objects of a group that are alike in what sums tell apart.

use et_format::Nanos;
use et_names::SiteId;
use rustc_hash::FxHashMap;

use super::born::{Born, push, untold};
use crate::axis::Borders;
use crate::model::ContextId;
use crate::population::{Columns, Rows};
use crate::record::{AllocKind, ThreadId};
use crate::survival::{AT_ONCE, Fate, InOrder};
use crate::types::TypeId;

/// Columns that differ from object to object: where they are wanted, each object has its row.
pub const NEVER: Columns = Columns::OBJECT.and(Columns::LENGTH);

/// What the objects of a row have in common, besides their fate and the bins in which they are born.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Alike {
    class: TypeId,
    site: SiteId,
    context: ContextId,
    thread: ThreadId,
    kind: AllocKind,
}

/// Rows that are being made, of objects in the order of their births.
pub(super) struct Joining<'f> {
    rows: Rows,
    columns: Columns,
    fates: Option<InOrder<'f>>,
    borders: Borders,
    /// What has been allocated until the next border, and the bin of the latest time.
    border: u64,
    time: Option<Nanos>,
    of_time: Option<u64>,
    /// Objects that are not in a row yet.
    waiting: Vec<Born>,
    /// Rows to which objects can be added: those since the last border and the last change of fates.
    open: FxHashMap<Alike, u32>,
    /// Objects before this number have the same fate, unless they have one of their own.
    same_until: u64,
    fate: Option<Fate>,
}

impl<'f> Joining<'f> {
    pub fn new(columns: Columns, fates: Option<InOrder<'f>>, borders: Borders) -> Self {
        Self {
            rows: Rows::default(),
            columns,
            fates,
            borders,
            border: 0,
            time: None,
            of_time: None,
            waiting: Vec::with_capacity(AT_ONCE),
            open: FxHashMap::default(),
            same_until: 0,
            fate: None,
        }
    }

    #[inline]
    pub fn add(&mut self, born: &Born) {
        self.waiting.push(*born);
        if self.waiting.len() == AT_ONCE {
            self.join();
        }
    }

    #[inline(never)]
    fn join(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        if let Some(fates) = &self.fates {
            fates.touch(waiting.iter().map(|born| born.object));
        }
        for born in waiting.drain(..) {
            self.join_one(&born);
        }
        self.waiting = waiting;
    }

    #[inline]
    fn join_one(&mut self, born: &Born) {
        let &Born { number, object, made, thread, context, before, bytes, time } = born;
        // One in whose bytes there is a border has a row of its own.
        if bytes >= self.border {
            self.open.clear();
            if before >= self.border {
                self.border = self.borders.after(before);
            }
        }
        if time != self.time {
            let of_time = time.map(|time| self.borders.of_time(time.0));
            if of_time != self.of_time {
                self.open.clear();
            }
            (self.time, self.of_time) = (time, of_time);
        }
        if let Some(fates) = &mut self.fates {
            if fates.may_differ(object) {
                let fate = fates.of(number, object);
                self.begin(born, fate);
                return;
            }
            if number >= self.same_until {
                (self.fate, self.same_until) = fates.shared(number, object);
                self.open.clear();
            }
        }
        let alike = Alike { class: made.ty, site: made.site, context, thread, kind: made.kind };
        if let Some(&row) = self.open.get(&alike) {
            let (rows, row) = (&mut self.rows, row as usize);
            rows.counts[row] += 1;
            rows.size[row] += made.size;
            let last = [(&mut rows.birth_tick, before), (&mut rows.birth_bytes, bytes)];
            last.into_iter().for_each(|(column, value)| _ = column.get_mut(row).map(|there| *there = value));
            if let Some(there) = rows.birth_nanos.get_mut(row) {
                *there = time.map(|time| time.0);
            }
            return;
        }
        self.open.insert(alike, self.rows.len as u32);
        self.begin(born, self.fate);
    }

    /// Begins a row.
    fn begin(&mut self, born: &Born, fate: Option<Fate>) {
        let Self { rows, columns, .. } = self;
        push(rows, *columns, born);
        rows.counts.push(1);
        // Sizes are summed up whether or not they are wanted.
        rows.size.push(born.made.size);
        if columns.has(Columns::FATE) {
            rows.fate.push(fate);
        }
    }

    pub fn finish(mut self) -> Rows {
        self.join();
        let Self { mut rows, columns, .. } = self;
        if !columns.has(Columns::SIZE) {
            rows.size = Vec::new();
        }
        untold(&mut rows, columns);
        rows
    }
}
