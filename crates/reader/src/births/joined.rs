//! Rows for sums: each stands for all objects of a group that are alike in what sums tell apart.

use et_names::SiteId;
use rustc_hash::FxHashMap;

use super::born::{Born, push, untold};
use crate::axis::{Spans, middle};
use crate::model::ContextId;
use crate::moment::Moment;
use crate::population::{Columns, Rows};
use crate::record::{AllocKind, ThreadId};
use crate::survival::{AT_ONCE, Fate, InOrder};
use crate::types::TypeId;

/// Columns that differ from object to object: where they are wanted, each object has its row.
pub const NEVER_JOINED: Columns = Columns::OBJECT.and(Columns::LENGTH);

/// What the objects of a row have in common, besides their fate and the half of the trace in which they are born.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alike {
    pub class: TypeId,
    pub site: SiteId,
    pub context: ContextId,
    pub thread: ThreadId,
    pub kind: AllocKind,
}

impl Alike {
    /// Of a row that has these columns.
    pub fn of(rows: &Rows, row: usize) -> Self {
        Self {
            class: rows.class[row],
            site: rows.site[row],
            context: rows.context[row],
            thread: rows.thread[row],
            kind: rows.kind[row],
        }
    }
}

/// Rows that are being made, of objects in the order of their births.
pub(super) struct Joining<'f> {
    rows: Rows,
    columns: Columns,
    fates: Option<InOrder<'f>>,
    spans: Spans,
    /// The last tick of the first half, until it is over.
    middle: Option<u64>,
    /// Objects that are not in a row yet.
    waiting: Vec<Born>,
    /// Rows to which objects can be added: those since the middle and the last change of fates.
    open: FxHashMap<Alike, u32>,
    /// Objects before this number have the same fate, unless they have one of their own.
    same_until: u64,
    fate: Option<Fate>,
}

impl<'f> Joining<'f> {
    pub fn new(columns: Columns, fates: Option<InOrder<'f>>, end: &Moment, bins: usize) -> Self {
        Self {
            rows: Rows::default(),
            columns,
            fates,
            spans: Spans::of(end, bins),
            middle: Some(middle(end)),
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
        if made.kind != AllocKind::Initial {
            let birth = Moment { tick: before, bytes, nanos: time.map(|time| time.0) };
            self.spans.born(birth, made.size);
        }
        if self.middle.is_some_and(|middle| before > middle) {
            self.middle = None;
            self.open.clear();
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
            self.rows.counts[row as usize] += 1;
            self.rows.size[row as usize] += made.size;
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
        let Self { mut rows, columns, spans, .. } = self;
        rows.spans = Some(spans.finish());
        if !columns.has(Columns::SIZE) {
            rows.size = Vec::new();
        }
        untold(&mut rows, columns);
        rows
    }
}
