//! What only methods hold that were running at the end: certainly, as their receivers or exceptions in flight, or
//! possibly, in local variables (`docs/semantics.md`, "Alive at the end").

use std::io;

use et_names::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Amount, HeldBy};
use crate::place::Spot;
use et_reader::lifetimes::HeldByStack;
use et_reader::made_in::{MadeIn, Means, Places};
use et_reader::observed::Observed;
use et_reader::population::{Columns, Population};
use et_reader::record::{AllocKind, ObjectId};
use et_reader::source::Source;
use et_reader::types::TypeId;

/// Who holds what. Threads that do the same are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holding {
    pub by: HeldBy,
    pub method: MethodId,
    /// Where the object was made that holds the others.
    pub made_in: MadeIn,
    pub ty: TypeId,
}

/// Sums up what is held; `groups` are those with rows of objects that are alive at the end.
pub(super) fn held(
    source: &Source,
    population: &Population,
    observed: &Observed,
    groups: &[usize],
) -> io::Result<FxHashMap<Holding, Amount>> {
    let mut sums: FxHashMap<Holding, Amount> = FxHashMap::default();
    let by_stacks = population.groups.held_by_stacks()?;
    let alive = Alive::of(population, &by_stacks, groups)?;
    let mut places = Places::new(source.naming());
    for HeldByStack { by, objects } in &by_stacks {
        let Some(&(spot, is_initial)) = alive.holders.get(&by.object) else { continue };
        let (made_in, ty) = spot.place(&mut places, population);
        let made_in = if is_initial { MadeIn::Nowhere(Means::Initial) } else { made_in };
        let held_by = if by.is_in_flight { HeldBy::Exception } else { HeldBy::Receiver };
        let sum = sums.entry(Holding { by: held_by, method: by.method, made_in, ty }).or_default();
        objects.iter().filter_map(|object| alive.sizes.get(object)?.as_ref()).for_each(|&size| sum.add(size));
    }
    for local in &observed.held_by_locals {
        let key = Holding { by: HeldBy::Local, method: local.method, made_in: local.made_in, ty: local.ty };
        *sums.entry(key).or_default() += Amount { objects: local.objects, bytes: local.bytes };
    }
    Ok(sums)
}

/// The objects that stacks hold.
#[derive(Default)]
struct Alive {
    /// Their sizes; `None` if one has no row.
    sizes: FxHashMap<ObjectId, Option<u64>>,
    /// Receivers and exceptions: where they were made, and whether they were there when tracing began.
    holders: FxHashMap<ObjectId, (Spot, bool)>,
}

impl Alive {
    fn of(population: &Population, by_stacks: &[HeldByStack], groups: &[usize]) -> io::Result<Self> {
        let mut alive = Self::default();
        if by_stacks.is_empty() {
            return Ok(alive);
        }
        alive.sizes = by_stacks.iter().flat_map(|held| held.objects.iter().map(|&object| (object, None))).collect();
        let holders: FxHashSet<ObjectId> = by_stacks.iter().map(|held| held.by.object).collect();
        let columns = Spot::columns() | Columns::OBJECT | Columns::SIZE | Columns::DEATH_TICK;
        for &group in groups {
            let rows = population.groups.read(group, columns)?;
            for at in (0..rows.len).filter(|&at| rows.death_tick[at].is_none()) {
                let object = rows.object[at];
                if let Some(size) = alive.sizes.get_mut(&object) {
                    *size = Some(rows.size[at]);
                }
                if holders.contains(&object) {
                    alive.holders.insert(object, (Spot::of(&rows, at), rows.kind[at] == AllocKind::Initial));
                }
            }
        }
        Ok(alive)
    }
}
