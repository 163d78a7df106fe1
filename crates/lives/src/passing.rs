//! A life table that is not kept: its rows are in temporary files without names.

use std::fs::File;
use std::io;

use et_reader::blocks::Late;
use et_reader::deaths_of_heap;
use et_reader::lifetimes::{Earlier, HeldByStack};
use et_reader::model::Contexts;
use et_reader::population::{Moment, Population};
use et_reader::resolve::Lost;
use et_reader::source::Source;

use crate::known;
use crate::maker::Made;
use crate::population::{HeldRows, Table};
use crate::without_uses::{tells_uses, with_uses};

/// The rows, and what is known with them.
#[derive(Debug)]
pub struct Passing {
    lives: File,
    clearings: File,
    contexts: Contexts,
    objects: u64,
    end: Moment,
    held_by_stacks: Vec<HeldByStack>,
    lost: Lost,
    late: Late,
}

impl Passing {
    pub fn of(made: Made, held_by_stacks: Vec<HeldByStack>, lost: Lost) -> Self {
        let Made { lives, clearings, contexts, objects, used: _, end, late } = made;
        Self { lives: lives.file, clearings: clearings.file, contexts, objects, end, held_by_stacks, lost, late }
    }

    /// The deaths, for another reading; `None` if events were lost, so that it may not be the same.
    pub fn deaths<'a>(&self) -> io::Result<Option<Earlier<'a>>> {
        if self.lost.total() > 0 {
            return Ok(None);
        }
        let found = known::all(self.lives.try_clone()?, self.clearings.try_clone()?, &self.late)?;
        Ok(Some(Earlier { found: Box::new(found), held_by_stacks: self.held_by_stacks.clone() }))
    }

    /// The rows.
    pub fn population(&self, source: &Source) -> io::Result<Population> {
        let held = HeldRows::Known(self.held_by_stacks.clone());
        let has_uses = tells_uses(source);
        Ok(Population {
            groups: with_uses(Box::new(Table::open(self.lives.try_clone()?, held, self.late.rows.clone())?), has_uses),
            has_uses,
            objects: self.objects,
            contexts: self.contexts.plain(),
            types: source.types(),
            has_deaths: true,
            survival: None,
            end: self.end,
            lost: self.lost,
            warnings: deaths_of_heap(source.events()).into_iter().collect(),
        })
    }
}
