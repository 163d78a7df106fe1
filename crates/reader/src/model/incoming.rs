//! Incoming references of objects, without a search of the heap.

use rustc_hash::FxHashMap;

use super::heap::{Heap, Holder};
use super::objects::Node;

/// The slots that refer to each object of a [`Heap`].
///
/// Has to be informed of each store and each freed object. Slots that have changed since are skipped when they are
/// encountered; a list is pruned when its length has doubled, so that the amortized cost of a store does not depend on
/// the number of slots that refer to its target.
#[derive(Debug, Default)]
pub struct Incoming {
    slots: FxHashMap<Node, Slots>,
    /// Number of slots examined so far.
    looked_at: u64,
}

/// Slots that referred to an object when they were stored to: the object (`None` for a static field) and the number.
#[derive(Debug, Default)]
struct Slots {
    all: Vec<(Option<Node>, u32)>,
    /// Length after the last pruning.
    tidy: usize,
}

impl Slots {
    /// Removes slots that no longer refer to the target; returns how many slots were examined.
    fn tidy<T>(&mut self, heap: &Heap<T>, target: Node) -> u64 {
        let looked_at = self.all.len() as u64;
        self.all.sort_unstable();
        self.all.dedup();
        self.all.retain(|&(origin, slot)| heap.held(origin, slot) == Some(target));
        self.tidy = self.all.len();
        looked_at
    }
}

impl Incoming {
    /// Builds the lists from the heap.
    pub fn of<T>(heap: &Heap<T>) -> Self {
        let mut incoming = Self::default();
        heap.holders(
            |_| true,
            |Holder { origin, slot, target }| {
                incoming.slots.entry(target).or_default().all.push((origin, slot));
                incoming.looked_at += 1;
            },
        );
        incoming.slots.values_mut().for_each(|slots| slots.tidy = slots.all.len());
        incoming
    }

    /// Records a store to the slot.
    pub fn stored<T>(&mut self, heap: &Heap<T>, Holder { origin, slot, target }: Holder) {
        /// Shorter lists are not pruned.
        const FEW: usize = 8;
        let slots = self.slots.entry(target).or_default();
        slots.all.push((origin, slot));
        if slots.all.len() > 2 * slots.tidy + FEW {
            self.looked_at += slots.tidy(heap, target);
        }
    }

    /// Records that the object was freed and its place may be reused.
    pub fn freed(&mut self, node: Node) {
        self.slots.remove(&node);
    }

    /// Calls `visit` with each slot that refers to the target, static fields first.
    pub fn holders<T>(&mut self, heap: &Heap<T>, target: Node, mut visit: impl FnMut(Holder)) {
        let Some(slots) = self.slots.get_mut(&target) else { return };
        self.looked_at += slots.tidy(heap, target);
        slots.all.iter().for_each(|&(origin, slot)| visit(Holder { origin, slot, target }));
    }

    /// Number of slots examined so far, a measure of the total cost.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ObjectId, Slot};
    use et_names::FieldId;

    fn holders(incoming: &mut Incoming, heap: &Heap<()>, target: Node) -> Vec<(Option<Node>, u32)> {
        let mut all = Vec::new();
        incoming.holders(heap, target, |holder| all.push((holder.origin, holder.slot)));
        all
    }

    #[test]
    fn slots_that_hold_an_object_are_known_as_they_change() {
        let mut heap = Heap::default();
        let [a, b, c] = [1, 2, 3].map(|id| heap.insert(ObjectId(id), ()));
        let field = |number| Slot::Field(FieldId(number));
        heap.put(ObjectId(1), field(7), ObjectId(2));
        heap.put(ObjectId::NULL, field(9), ObjectId(2));
        let mut incoming = Incoming::of(&heap);
        assert_eq!(holders(&mut incoming, &heap, b), [(None, 9), (Some(a), 7)]);
        heap.put(ObjectId(1), field(7), ObjectId(3));
        incoming.stored(&heap, Holder { origin: Some(a), slot: 7, target: c });
        assert_eq!(holders(&mut incoming, &heap, b), [(None, 9)]);
        assert_eq!(holders(&mut incoming, &heap, c), [(Some(a), 7)]);
        heap.put(ObjectId::NULL, field(9), ObjectId::NULL);
        heap.forget(ObjectId(2));
        heap.free(b);
        incoming.freed(b);
        assert!(holders(&mut incoming, &heap, b).is_empty());
    }

    /// However often a slot is stored to, and however many slots have the same target.
    #[test]
    fn a_store_costs_the_same_on_average() {
        const STORES: u32 = 20_000;
        let mut heap = Heap::default();
        let array = heap.insert(ObjectId(1), ());
        let [one, other] = [2, 3].map(|id| heap.insert(ObjectId(id), ()));
        let mut incoming = Incoming::of(&heap);
        for store in 0..STORES {
            let (index, id, target) = if store % 2 == 0 { (store, 2, one) } else { (0, 3, other) };
            heap.put(ObjectId(1), Slot::Element(index), ObjectId(id));
            incoming.stored(&heap, Holder { origin: Some(array), slot: index, target });
        }
        assert!(incoming.looked_at() < 5 * u64::from(STORES), "{}", incoming.looked_at());
        assert_eq!(holders(&mut incoming, &heap, other), [(Some(array), 0)]);
        assert_eq!(holders(&mut incoming, &heap, one).len(), STORES as usize / 2 - 1);
    }
}
