//! Rows with what walks through the heap say of their objects.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use et_reader::lifetimes::HeldByStack;
use et_reader::population::{Columns, Groups, Key, Rows};
use et_reader::survival::Fates;

/// Adds the column of fates to rows, which follows from two others.
pub struct Surviving {
    groups: Box<dyn Groups>,
    fates: Arc<Fates>,
}

impl Surviving {
    /// The rows of a trace with these walks.
    pub fn of(groups: Box<dyn Groups>, fates: Arc<Fates>) -> Self {
        Self { groups, fates }
    }
}

impl Groups for Surviving {
    fn len(&self) -> usize {
        self.groups.len()
    }

    fn may_have(&self, group: usize, tick: u64) -> io::Result<bool> {
        self.groups.may_have(group, tick)
    }

    fn range(&self, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
        self.groups.range(group, key)
    }

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        if !columns.has(Columns::FATE) {
            return self.groups.read(group, columns);
        }
        let from = Columns::NUMBER | Columns::OBJECT;
        let mut rows = self.groups.read(group, columns | from)?;
        let objects = rows.number.iter().zip(&rows.object);
        rows.fate = objects.map(|(number, object)| self.fates.of(*number, *object)).collect();
        if !columns.has(Columns::NUMBER) {
            rows.number.clear();
        }
        if !columns.has(Columns::OBJECT) {
            rows.object.clear();
        }
        Ok(rows)
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        self.groups.held_by_stacks()
    }
}
