//! An allocation profile: where objects were allocated, by calling context, site and class, with what became of them.

use std::cmp::Reverse;
use std::hash::Hash;
use std::io;

use et_names::SiteId;
use et_reader::made_in::{Made, MadeIn, Places};
use et_reader::model::ContextId;
use et_reader::naming::Naming;
use et_reader::population::{Columns, Population, Rows};
use et_reader::record::AllocKind;
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;

use crate::drag;
use crate::fold::fold;
use et_reader::amount::Amount;

/// Where objects were allocated, and what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The stack at the allocation.
    pub context: ContextId,
    /// Site, or by what means it was made in the method on top.
    pub place: MadeIn,
    pub class: TypeId,
    /// They were there when tracing began.
    pub is_initial: bool,
}

/// Statistics of the objects with one origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Allocated while tracing was on.
    pub allocated: Amount,
    /// Alive at the end, those included that were there when tracing began.
    pub alive: Amount,
    /// Objects that died before the requested number of bytes was allocated after them.
    pub young: Amount,
    /// Allocated while tracing was on; survived at least one collection, as far as walks through the heap tell.
    pub survived: Amount,
    /// Bytes times thousands of ticks between the last use and the death of those allocated.
    pub drag: u64,
}

impl Cell {
    /// Adds the statistics of another origin.
    pub fn merge(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.alive += other.alive;
        self.young += other.young;
        self.survived += other.survived;
        self.drag = self.drag.saturating_add(other.drag);
    }
}

/// All objects of a trace by origin.
#[derive(Clone, Debug)]
pub struct Profile {
    /// By bytes allocated, most first.
    pub cells: Vec<(Origin, Cell)>,
    /// Their sum.
    pub total: Cell,
}

/// The columns of a row that determine its origin.
pub(crate) type Row = (ContextId, SiteId, TypeId, AllocKind);

/// Cells under construction.
pub(crate) struct Cells<K> {
    /// Drag in bytes times ticks.
    cells: FxHashMap<K, (Cell, u128)>,
    /// Objects that die before this much is allocated die young.
    young: u64,
}

impl<K: Eq + Hash> Cells<K> {
    /// The columns that [`Cells::add`] reads.
    pub const COLUMNS: Columns = Columns::CLASS
        .and(Columns::KIND)
        .and(Columns::SIZE)
        .and(Columns::SITE)
        .and(Columns::CONTEXT)
        .and(Columns::BIRTH_BYTES)
        .and(Columns::LAST_USE_TICK)
        .and(Columns::DEATH_TICK)
        .and(Columns::DEATH_BYTES)
        .and(Columns::FATE);

    pub fn new(young: u64) -> Self {
        Self { cells: FxHashMap::default(), young }
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Adds an object.
    pub fn add(&mut self, key: K, rows: &Rows, row: usize) {
        let is_initial = rows.kind[row] == AllocKind::Initial;
        let (cell, sum) = self.cells.entry(key).or_default();
        let (amount, size) = (Amount::of(rows, row), rows.size[row]);
        if !is_initial {
            cell.allocated += amount;
        }
        let fate = rows.fate.get(row).copied().flatten();
        if !is_initial && fate.is_some_and(|fate| fate.survived > 0) {
            cell.survived += amount;
        }
        match rows.death_bytes[row] {
            None if fate.is_some_and(|fate| fate.missed.is_some()) => {}
            None => cell.alive += amount,
            Some(died) if !is_initial && died.saturating_sub(rows.birth_bytes[row]) < self.young => {
                cell.young.add(size);
            }
            Some(_) => {}
        }
        let ticks = drag::ticks(is_initial, rows.last_use_tick[row], rows.death_tick[row]);
        *sum += u128::from(size) * u128::from(ticks.unwrap_or(0));
    }

    /// Adds those of others, whose keys may become equal.
    pub fn merge<J>(&mut self, others: Cells<J>, mut key: impl FnMut(J) -> K) {
        for (other, (cell, drag)) in others.cells {
            let sum = self.cells.entry(key(other)).or_default();
            sum.0.merge(&cell);
            sum.1 += drag;
        }
    }

    /// The cells, in no particular order, with drag in its unit.
    pub fn finish(self) -> impl Iterator<Item = (K, Cell)> {
        self.cells.into_iter().map(|(key, (cell, drag))| {
            let drag = u64::try_from(drag / 1000).unwrap_or(u64::MAX);
            (key, Cell { drag, ..cell })
        })
    }
}

/// Where the object of a row was allocated.
pub(crate) fn row(rows: &Rows, row: usize) -> Row {
    (rows.context[row], rows.site[row], rows.class[row], rows.kind[row])
}

/// Its origin.
pub(crate) fn origin((context, site, class, kind): Row, places: &mut Places<'_>, population: &Population) -> Origin {
    let made = Made { kind, site, ty: class };
    let place = places.in_context(made, context, &population.contexts, &population.types);
    Origin { context, place, class, is_initial: kind == AllocKind::Initial }
}

/// Computes the profile. Objects that die before `young` bytes were allocated after them die young.
pub fn profile(population: &Population, naming: Naming<'_>, young: u64) -> io::Result<Profile> {
    let each = |cells: &mut Cells<Row>, rows: &Rows| {
        for at in 0..rows.len {
            cells.add(row(rows, at), rows, at);
        }
    };
    let merge = |mut one: Cells<Row>, other| {
        one.merge(other, |row| row);
        one
    };
    let by_row = fold(population, Cells::<Row>::COLUMNS, || Cells::new(young), each, merge)?;
    Ok(by_origin(by_row, population, naming))
}

/// The profile of objects that were summed up by what their rows say.
pub(crate) fn by_origin(by_row: Cells<Row>, population: &Population, naming: Naming<'_>) -> Profile {
    let mut places = Places::new(naming);
    let mut cells = Cells::new(by_row.young);
    cells.merge(by_row, |row| origin(row, &mut places, population));
    let mut cells: Vec<(Origin, Cell)> = cells.finish().collect();
    let mut total = Cell::default();
    cells.iter().for_each(|(_, cell)| total.merge(cell));
    cells.sort_unstable_by_key(|(origin, cell)| (Reverse((cell.allocated.bytes, cell.alive.bytes)), *origin));
    Profile { cells, total }
}
