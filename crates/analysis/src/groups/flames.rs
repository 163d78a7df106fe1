//! Flame graphs of the objects of a place in the tree.

use std::io;

use et_reader::made_in::Places;
use et_reader::model::ContextId;
use rustc_hash::FxHashMap;

use super::keys::Keys;
use super::{Query, Subject, Wanted, What, each};
use crate::flame::{Flame, Parts};
use crate::fold::add_all;
use crate::place::Spot;
use crate::profile::{self, Cells, Profile, Row};
use crate::report::{Names, flames};
use et_reader::amount::Amount;

/// What is at the bottom of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// The outermost methods; classes are on top.
    Callers,
    /// The sites; their callers are above them.
    Sites,
}

impl Parts for Amount {
    fn all(&self) -> impl Iterator<Item = Amount> {
        std::iter::once(*self)
    }
}

/// The allocation profile of the opened group, for other tools. Objects that die before `young` bytes were allocated after them die young.
///
/// # Errors
/// The life table cannot be read.
pub fn profile(subject: Subject<'_>, what: What<'_, '_>, query: &Query, young: u64) -> io::Result<Profile> {
    let wanted = Wanted::new(subject, query, Keys::new(subject, what, query));
    let cells = each(
        what,
        &wanted,
        Cells::<Row>::COLUMNS,
        || Cells::new(young),
        |cells, (_, row), rows| cells.add(profile::row(rows, row), rows, row),
        |mut one, other| {
            one.merge(other, |row| row);
            one
        },
    )?;
    Ok(profile::by_origin(cells, subject.population, subject.source.naming()))
}

/// The flame graph of the opened group, by objects and bytes.
///
/// # Errors
/// The life table cannot be read.
pub fn flame(subject: Subject<'_>, what: What<'_, '_>, query: &Query, down: Down) -> io::Result<Flame> {
    let wanted = Wanted::new(subject, query, Keys::new(subject, what, query));
    let sums = each(
        what,
        &wanted,
        Spot::columns(),
        FxHashMap::<(ContextId, Spot), Amount>::default,
        |sums, (_, row), rows| {
            *sums.entry((rows.context[row], Spot::of(rows, row))).or_default() += Amount::of(rows, row);
        },
        |mut one, other| {
            add_all(&mut one, other);
            one
        },
    )?;
    let Subject { source, population, .. } = subject;
    let mut places = Places::new(source.naming());
    let mut by_place: FxHashMap<_, Amount> = FxHashMap::default();
    for ((context, spot), amount) in sums {
        let (place, class) = spot.place(&mut places, population);
        *by_place.entry((context, place, class)).or_default() += amount;
    }
    let mut names = Names::new(source, population);
    let contexts = &population.contexts;
    Ok(match down {
        Down::Callers => flames::by_context(&by_place, contexts, &mut names),
        Down::Sites => flames::by_site(&by_place, contexts, &mut names),
    })
}
