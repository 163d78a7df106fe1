//! A life table that is not kept: its rows are in temporary files without names.

use std::fs::File;
use std::io;
use std::sync::Arc;

use et_columns::TableReader;
use et_reader::blocks::Late;
use et_reader::lifetimes::{Earlier, HeldByStack};
use et_reader::model::Contexts;
use et_reader::population::{Moment, Population};
use et_reader::resolve::Lost;
use et_reader::source::{Reading, Source};
use et_reader::survival::Survival;

use crate::known;
use crate::maker::{Follows, Made};
use crate::object_table::{HeldRows, ObjectTable, warnings};
use crate::without_uses::{tells_uses, with_uses};

/// The rows, and what is known with them.
#[derive(Debug)]
pub struct Passing {
    lives: File,
    clearings: File,
    /// What walks say, and the table of fates.
    survival: Option<(Arc<Survival>, File)>,
    contexts: Contexts,
    objects: u64,
    end: Moment,
    held_by_stacks: Vec<HeldByStack>,
    lost: Lost,
    late: Late,
    follows: Follows,
}

impl Passing {
    pub fn of(made: Made, held_by_stacks: Vec<HeldByStack>, lost: Lost) -> Self {
        let Made { lives, clearings, contexts, objects, used: _, end, late, follows, survival } = made;
        let survival = survival.map(|made| (made.survival, made.fates.file));
        let (lives, clearings) = (lives.file, clearings.file);
        Self { lives, clearings, survival, contexts, objects, end, held_by_stacks, lost, late, follows }
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
    pub fn population(&self, source: &Source, reading: Reading) -> io::Result<Population> {
        let held = HeldRows::Known(self.held_by_stacks.clone());
        let fates = self.survival.as_ref().map(|(_, file)| TableReader::open(file.try_clone()?)).transpose()?;
        let table = ObjectTable::open(self.lives.try_clone()?, held, self.late.rows.clone())?.with_fates(fates);
        let has_uses = tells_uses(source.events());
        Ok(Population {
            groups: with_uses(Box::new(table), has_uses),
            has_uses,
            objects: self.objects,
            contexts: self.contexts.plain(),
            types: source.types(),
            has_deaths: self.follows == Follows::Lives,
            survival: self.survival.as_ref().map(|(survival, _)| survival.clone()),
            end: self.end,
            lost: self.lost,
            warnings: warnings(source, reading),
        })
    }
}
