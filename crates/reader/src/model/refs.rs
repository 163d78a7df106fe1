//! The references of one object.

use rustc_hash::FxHashMap;

use super::objects::Node;
use crate::record::Slot;

/// What is kept of a slot that is not null.
pub trait Kept: Copy {
    /// Stands for null in an array.
    const NOTHING: Self;

    fn is_nothing(self) -> bool;
}

impl Kept for Node {
    const NOTHING: Self = Node(u32::MAX);

    #[inline]
    fn is_nothing(self) -> bool {
        self == Self::NOTHING
    }
}

/// The references of an object, by slot. Optimized for objects with few fields and arrays that are filled from the
/// start.
#[derive(Debug, Default)]
pub enum Refs<T = Node> {
    /// All slots are null.
    #[default]
    None,
    /// Fields, unordered.
    Few(Vec<(u32, T)>),
    /// Array elements; [`Kept::NOTHING`] stands for null.
    Elements(Vec<T>),
    /// Many scattered slots.
    Many(Box<FxHashMap<u32, T>>),
}

/// Maximum length of a linear search.
const FEW: usize = 32;
/// An array is not stored as one if it would be longer than twice the number of its filled elements plus this.
const GAP: usize = 64;

impl<T: Kept> Refs<T> {
    /// Stores to a slot and returns the old target.
    pub fn put(&mut self, slot: Slot, target: Option<T>) -> Option<T> {
        let number = slot.number();
        match self {
            Self::None => {
                let target = target?;
                *self = match slot {
                    Slot::Element(index) if (index as usize) < GAP => {
                        let mut elements = vec![T::NOTHING; index as usize + 1];
                        elements[index as usize] = target;
                        Self::Elements(elements)
                    }
                    _ => Self::Few(vec![(number, target)]),
                };
                None
            }
            Self::Few(few) => match (few.iter().position(|&(known, _)| known == number), target) {
                (Some(at), Some(target)) => Some(std::mem::replace(&mut few[at].1, target)),
                (Some(at), None) => Some(few.swap_remove(at).1),
                (None, None) => None,
                (None, Some(target)) if few.len() < FEW => {
                    few.push((number, target));
                    None
                }
                (None, Some(target)) => {
                    let mut many: FxHashMap<u32, T> = few.drain(..).collect();
                    many.insert(number, target);
                    *self = Self::Many(Box::new(many));
                    None
                }
            },
            Self::Elements(elements) => {
                let index = number as usize;
                if let Some(place) = elements.get_mut(index) {
                    let old = std::mem::replace(place, target.unwrap_or(T::NOTHING));
                    return (!old.is_nothing()).then_some(old);
                }
                let target = target?;
                // Filled elements are counted only when the vector has to grow.
                let filled = |elements: &[T]| elements.iter().filter(|held| !held.is_nothing()).count();
                if index < elements.capacity() || index < 2 * filled(elements) + GAP {
                    elements.resize(index + 1, T::NOTHING);
                    elements[index] = target;
                } else {
                    let filled = (0..).zip(elements.iter().copied()).filter(|(_, held)| !held.is_nothing());
                    let mut many: FxHashMap<u32, T> = filled.collect();
                    many.insert(number, target);
                    *self = Self::Many(Box::new(many));
                }
                None
            }
            Self::Many(many) => match target {
                Some(target) => many.insert(number, target),
                None => many.remove(&number),
            },
        }
    }

    /// Target of a slot.
    pub fn get(&self, slot: u32) -> Option<T> {
        match self {
            Self::None => None,
            Self::Few(few) => few.iter().find(|&&(known, _)| known == slot).map(|&(_, held)| held),
            Self::Elements(elements) => elements.get(slot as usize).copied().filter(|held| !held.is_nothing()),
            Self::Many(many) => many.get(&slot).copied(),
        }
    }

    /// Calls `visit` with the target of every slot; targets may repeat.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(T)) {
        self.for_each_slot(|_, target| visit(target));
    }

    /// Calls `visit` with the number and target of every slot that is not null.
    #[inline]
    pub fn for_each_slot(&self, mut visit: impl FnMut(u32, T)) {
        match self {
            Self::None => {}
            Self::Few(few) => few.iter().for_each(|&(slot, target)| visit(slot, target)),
            Self::Elements(elements) => {
                let filled = (0..).zip(elements).filter(|(_, held)| !held.is_nothing());
                filled.for_each(|(slot, &target)| visit(slot, target));
            }
            Self::Many(many) => many.iter().for_each(|(&slot, &target)| visit(slot, target)),
        }
    }
}

impl Refs {
    /// Whether some slot refers to the target.
    pub fn holds(&self, target: Node) -> bool {
        match self {
            Self::None => false,
            Self::Few(few) => few.iter().any(|&(_, held)| held == target),
            Self::Elements(elements) => elements.contains(&target),
            Self::Many(many) => many.values().any(|&held| held == target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_names::FieldId;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map(
            are_elements: bool,
            puts in prop::collection::vec((prop_oneof![0..6u32, 0..200u32, any::<u32>()], 0..4u32), 0..300),
        ) {
            let (mut refs, mut model) = (Refs::default(), BTreeMap::new());
            for (number, target) in puts {
                let slot = if are_elements { Slot::Element(number) } else { Slot::Field(FieldId(number)) };
                let target = target.checked_sub(1).map(Node);
                let old = match target {
                    Some(target) => model.insert(number, target),
                    None => model.remove(&number),
                };
                prop_assert_eq!(refs.get(number), old);
                prop_assert_eq!(refs.put(slot, target), old);
                prop_assert_eq!(refs.get(number), target);
            }
            let (mut held, mut by_slot) = (Vec::new(), Vec::new());
            refs.for_each(|node| held.push(node.0));
            refs.for_each_slot(|slot, node| by_slot.push((slot, node)));
            held.sort_unstable();
            by_slot.sort_unstable_by_key(|&(slot, _)| slot);
            let mut expected: Vec<_> = model.values().map(|node| node.0).collect();
            expected.sort_unstable();
            prop_assert_eq!(held, expected);
            prop_assert_eq!(by_slot, model.into_iter().collect::<Vec<_>>());
        }
    }
    /// Each store goes as far as the array could grow if its length counted instead of its filled elements.
    #[test]
    fn room_is_for_what_is_stored() {
        let (mut refs, mut index) = (Refs::default(), 0);
        let mut room = 0;
        for store in 0..26 {
            refs.put(Slot::Element(index), Some(Node(store)));
            index = index.saturating_mul(2) + GAP as u32 - 1;
            if let Refs::Elements(elements) = &refs {
                room = room.max(elements.capacity());
            }
        }
        assert!(room <= 4 * GAP, "room for {room} elements");
        let mut held = 0;
        refs.for_each(|_| held += 1);
        assert_eq!(held, 26);
    }

    #[test]
    fn an_array_that_is_filled_in_order_stays_one() {
        let mut refs = Refs::default();
        (0..10_000).for_each(|index| _ = refs.put(Slot::Element(index), Some(Node(index))));
        assert!(matches!(refs, Refs::Elements(elements) if elements.len() == 10_000));
    }
}
