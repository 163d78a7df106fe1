//! Slots that do not keep their targets alive.

use et_names::FieldId;
use rustc_hash::FxHashSet;

use super::special::Special;
use crate::record::{Alloc, ObjectId, Slot};
use crate::types::TypeId;

/// Tracks which slots do not keep their targets alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct WeakSlots {
    referent: Option<FieldId>,
    final_types: FxHashSet<TypeId>,
    /// References that hold their referent until it is cleared.
    final_references: FxHashSet<ObjectId>,
}

impl WeakSlots {
    pub fn new(special: &Special) -> Self {
        let (referent, final_types) = (special.referent, special.final_references.clone());
        Self { referent, final_types, final_references: FxHashSet::default() }
    }

    #[inline]
    pub fn saw(&mut self, alloc: &Alloc) {
        if self.final_types.contains(&alloc.ty) {
            self.final_references.insert(alloc.object);
        }
    }

    /// Whether that slot does not keep its target alive.
    #[inline]
    pub fn is_weak(&self, origin: ObjectId, slot: Slot) -> bool {
        matches!((slot, self.referent), (Slot::Field(field), Some(referent)) if field == referent)
            && !self.final_references.contains(&origin)
    }

    /// The same for a slot that is stored to.
    #[inline]
    pub fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> bool {
        let is_weak = self.is_weak(origin, slot);
        if target.is_null()
            && !is_weak
            && matches!((slot, self.referent), (Slot::Field(field), Some(referent)) if field == referent)
        {
            self.final_references.remove(&origin);
        }
        is_weak
    }

    /// Number of known references that hold their referent.
    #[cfg(test)]
    pub fn final_references(&self) -> usize {
        self.final_references.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{AllocKind, ThreadId};
    use et_names::SiteId;

    #[test]
    fn final_references_are_forgotten_when_they_are_cleared() {
        let (referent, other) = (Slot::Field(FieldId(1)), Slot::Field(FieldId(2)));
        let special = Special {
            referent: Some(FieldId(1)),
            final_references: FxHashSet::from_iter([TypeId(3)]),
            ..Special::default()
        };
        let mut slots = WeakSlots::new(&special);
        for id in 1..1000 {
            let (origin, target) = (ObjectId(id), ObjectId(5000));
            let alloc = |ty| Alloc {
                kind: AllocKind::New,
                object: origin,
                size: 40,
                ty,
                site: SiteId(0),
                length: 0,
                stack: Default::default(),
                thread: ThreadId(1),
            };
            let is_final = id % 2 == 0;
            slots.saw(&alloc(TypeId(if is_final { 3 } else { 4 })));
            assert_eq!(slots.put(origin, referent, target), !is_final);
            assert!(!slots.put(origin, other, target) && !slots.put(origin, other, ObjectId::NULL));
            assert_eq!(slots.put(origin, referent, target), !is_final);
            assert_eq!(slots.put(origin, referent, ObjectId::NULL), !is_final);
            assert_eq!(slots.final_references(), 0);
        }
    }
}
