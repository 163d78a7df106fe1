//! How a part uses objects ([`crate::observed::usage`]): of those made in it everything is known; of others, what happened to them, to be
//! applied in order.

use et_names::FieldId;
use rustc_hash::FxHashSet;

use super::walk::{NONE, Part, Put};
use crate::observed::usage::{ForArrays, InUse, Kind, Kinds, Tally};
use crate::record::{Alloc, Slot};
use crate::trace::Trace;
use crate::types::TypeId;

/// What usage depends on, as it is asked for: which fields are for arrays, and of what kind classes are.
#[derive(Debug)]
pub struct Known<'a> {
    trace: &'a Trace,
    for_arrays: ForArrays,
    kinds: Kinds,
}

impl<'a> Known<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        Self { trace, for_arrays: ForArrays::default(), kinds: Kinds::default() }
    }

    pub fn kind(&mut self, ty: TypeId) -> Kind {
        self.kinds.of(ty, &self.trace.types)
    }

    /// Number of elements that may hold references.
    pub fn length(&mut self, alloc: &Alloc) -> u32 {
        self.kinds.length(alloc, &self.trace.types)
    }

    pub fn are_for_arrays(&mut self, field: FieldId) -> bool {
        self.for_arrays.has(field, self.trace.naming())
    }
}

/// What a slot held before a store.
#[derive(Clone, Copy, Debug)]
pub enum Old {
    /// Something, or nothing.
    Known(bool),
    /// What it held before the part. The store may be none, if that was its target.
    First { is_certain: bool },
}

/// A store to an element of an array that is older than the part.
#[derive(Clone, Copy, Debug)]
pub struct ElementStore {
    pub origin: u32,
    /// Whether the element held something; `None`: what it held before the part.
    pub held: Option<bool>,
    pub holds: bool,
}

/// A store to a field, which names both objects unless it turns out to be none.
#[derive(Clone, Copy, Debug)]
pub struct FieldStore {
    pub step: u32,
    pub origin: u32,
    pub target: u32,
    pub field: FieldId,
}

/// The field that an object was stored into last, and when.
#[derive(Clone, Copy, Debug)]
pub struct LastOwner {
    pub step: u32,
    pub field: FieldId,
}

impl LastOwner {
    /// It was stored into no field.
    pub const NONE: Self = Self { step: NONE, field: FieldId(0) };

    /// Another store.
    pub fn stored(&mut self, step: u32, field: FieldId) {
        if self.step == NONE || self.step < step {
            *self = Self { step, field };
        }
    }

    pub fn field(self) -> Option<FieldId> {
        (self.step != NONE).then_some(self.field)
    }
}

/// What only the order of the parts tells of their stores.
#[derive(Debug, Default)]
pub struct InOrder {
    /// Whether elements of older arrays held something before the part, in the order of its first stores to them.
    pub held: Vec<bool>,
    /// Stores to fields that may be weak.
    pub weak: Vec<FieldStore>,
}

/// How a part uses objects.
#[derive(Debug, Default)]
pub struct PartUsage {
    /// Of the objects made in the part, by number.
    pub made: Vec<InUse>,
    /// Of all objects, by number.
    pub owners: Vec<LastOwner>,
    /// How many elements may hold references, of the arrays made in the part, by number.
    lengths: Vec<u32>,
    /// Stores to elements of older arrays, in order.
    pub elements: Vec<ElementStore>,
    /// Stores to fields that may be none.
    pub uncertain: Vec<FieldStore>,
    /// Stores to fields for arrays, of which origin or target is older.
    pub arrays: Vec<FieldStore>,
    /// What has died in the part.
    pub dead: Tally,
    /// What has, too, but older objects tell whether it kept arrays.
    pub died_later: Vec<u32>,
}

impl PartUsage {
    pub fn for_part(part: &Part, known: &mut Known<'_>) -> Self {
        let count = part.named.len();
        let mut usage = Self {
            made: vec![InUse::default(); count],
            owners: vec![LastOwner::NONE; count],
            lengths: vec![0; count],
            ..Self::default()
        };
        for (number, named) in part.named.iter().enumerate().filter(|(_, named)| named.birth != NONE) {
            usage.lengths[number] = known.length(&part.births[named.birth as usize].alloc);
            usage.made[number].making = usage.made[number].making.after(named.making);
        }
        usage
    }

    /// A store that is one, unless what it replaces says otherwise.
    pub fn put(&mut self, part: &Part, put: &Put, old: Old, known: &mut Known<'_>) {
        // Only if deaths are wanted.
        if self.owners.is_empty() {
            return;
        }
        let is_new = |number: u32| part.named[number as usize].birth != NONE;
        let &Put { origin, target, slot, .. } = put;
        match slot {
            Slot::Element(_) if origin != NONE => {
                let held = match old {
                    Old::Known(held) => Some(held),
                    Old::First { .. } => None,
                };
                let holds = target != NONE;
                match held.filter(|_| is_new(origin)) {
                    Some(held) => self.made[origin as usize].element(self.lengths[origin as usize], !held, !holds),
                    None => self.elements.push(ElementStore { origin, held, holds }),
                }
            }
            Slot::Field(field) if target != NONE => {
                let store = FieldStore { step: put.at.step, origin, target, field };
                if matches!(old, Old::First { is_certain: false }) {
                    return self.uncertain.push(store);
                }
                self.owners[target as usize].stored(store.step, field);
                let may_be_array = !is_new(target) || self.lengths[target as usize] > 0;
                if origin != NONE && may_be_array && known.are_for_arrays(field) {
                    match is_new(origin) && is_new(target) {
                        true => self.made[origin as usize].keeps = true,
                        false => self.arrays.push(store),
                    }
                }
            }
            Slot::Element(_) | Slot::Field(_) => {}
        }
    }

    /// Adds up what has died in the part.
    pub fn died(&mut self, part: &Part, dead: impl Iterator<Item = u32>, known: &mut Known<'_>) {
        if self.owners.is_empty() {
            return;
        }
        let by_older = self.arrays.iter().map(|store| store.origin);
        let by_older: FxHashSet<u32> = by_older.filter(|&origin| part.named[origin as usize].birth != NONE).collect();
        for dead in dead {
            if by_older.contains(&dead) {
                self.died_later.push(dead);
                continue;
            }
            let number = dead as usize;
            let state = self.made[number].held_by(self.owners[number].field());
            let alloc = &part.births[part.named[number].birth as usize].alloc;
            self.dead.over(alloc, known.kind(alloc.ty), &state);
        }
    }
}
