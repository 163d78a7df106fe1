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

use crate::amount::Amount;
use crate::drag;
use crate::fold::fold;

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
    /// Bytes times thousands of ticks between the last use and the death of those allocated.
    pub drag: u64,
}

impl Cell {
    /// Adds the statistics of another origin.
    pub fn merge(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.alive += other.alive;
        self.young += other.young;
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
type Row = (ContextId, SiteId, TypeId, AllocKind);
/// As it is summed up: drag in bytes times ticks.
type Cells<K> = FxHashMap<K, (Cell, u128)>;

fn add<K: Eq + Hash>(cells: &mut Cells<K>, key: K, (cell, drag): &(Cell, u128)) {
    let sum = cells.entry(key).or_default();
    sum.0.merge(cell);
    sum.1 += drag;
}

/// Computes the profile. Objects that die before `young` bytes were allocated after them die young.
pub fn profile(population: &Population, naming: Naming<'_>, young: u64) -> io::Result<Profile> {
    let columns = Columns::CLASS
        | Columns::KIND
        | Columns::SIZE
        | Columns::SITE
        | Columns::CONTEXT
        | Columns::BIRTH_BYTES
        | Columns::LAST_USE_TICK
        | Columns::DEATH_TICK
        | Columns::DEATH_BYTES;
    let each = |cells: &mut Cells<Row>, rows: &Rows| {
        for row in 0..rows.len {
            let is_initial = rows.kind[row] == AllocKind::Initial;
            let key = (rows.context[row], rows.site[row], rows.class[row], rows.kind[row]);
            let (cell, sum) = cells.entry(key).or_default();
            let size = rows.size[row];
            if !is_initial {
                cell.allocated.add(size);
            }
            match rows.death_bytes[row] {
                None => cell.alive.add(size),
                Some(died) if !is_initial && died.saturating_sub(rows.birth_bytes[row]) < young => cell.young.add(size),
                Some(_) => {}
            }
            let ticks = drag::ticks(is_initial, rows.last_use_tick[row], rows.death_tick[row]);
            *sum += u128::from(size) * u128::from(ticks.unwrap_or(0));
        }
    };
    let merge = |mut one: Cells<Row>, other: Cells<Row>| {
        other.into_iter().for_each(|(key, more)| add(&mut one, key, &more));
        one
    };
    let mut places = Places::new(naming);
    let mut cells = Cells::default();
    for ((context, site, class, kind), more) in fold(population, columns, Cells::default, each, merge)? {
        let made = Made { kind, site, ty: class };
        let place = places.in_context(made, context, &population.contexts, &population.types);
        add(&mut cells, Origin { context, place, class, is_initial: kind == AllocKind::Initial }, &more);
    }
    let mut total = Cell::default();
    let whole = |(origin, (cell, drag)): (Origin, (Cell, u128))| {
        let cell = Cell { drag: u64::try_from(drag / 1000).unwrap_or(u64::MAX), ..cell };
        (origin, cell)
    };
    let mut cells: Vec<(Origin, Cell)> = cells.into_iter().map(whole).collect();
    cells.iter().for_each(|(_, cell)| total.merge(cell));
    cells.sort_unstable_by_key(|(origin, cell)| (Reverse((cell.allocated.bytes, cell.alive.bytes)), *origin));
    Ok(Profile { cells, total })
}
