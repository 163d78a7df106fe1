//! The heap as it results from allocations, updates and deaths.

use rustc_hash::FxHashMap;

use super::objects::{Node, Objects};
use super::refs::Refs;
use crate::record::{ObjectId, Slot};

/// An object. `T` is data of the heap's user.
#[derive(Debug)]
pub struct Object<T> {
    /// Its id; null if the place is free.
    pub id: ObjectId,
    /// Data of the heap's user.
    pub data: T,
    refs: Refs,
}

impl<T> Object<T> {
    /// Its references, by slot.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }
}

/// A slot with the reference that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The object that has the slot; `None` for a static field.
    pub origin: Option<Node>,
    pub slot: u32,
    pub target: Node,
}

/// Objects, found by id, and the references in their slots and in static fields.
///
/// An object is removed in two steps: after [`forget`](Self::forget) its id is unknown, and after [`free`](Self::free)
/// another object may take its place. Slots that still refer to it would then refer to the new object, so the caller
/// has to ensure that there are none, or that they are gone before the next object is inserted.
///
/// The references of an object are found at once; finding the references to an object takes a search of the whole heap,
/// unless [`Incoming`](super::Incoming) is maintained. To know only how many there are, count them in `T`:
/// [`put`](Self::put) returns the old target of a slot.
#[derive(Debug)]
pub struct Heap<T> {
    objects: Objects<Object<T>>,
    statics: FxHashMap<u32, Node>,
}

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self { objects: Objects::default(), statics: FxHashMap::default() }
    }
}

impl<T> Heap<T> {
    /// The object with that id, if there is one. Caches lookups.
    #[inline]
    pub fn node(&mut self, id: ObjectId) -> Option<Node> {
        self.objects.node(id)
    }

    /// Like [`node`](Self::node), but without the cache, for occasional lookups.
    pub fn find(&self, id: ObjectId) -> Option<Node> {
        self.objects.find(id)
    }

    #[inline]
    pub fn get(&self, node: Node) -> &Object<T> {
        &self.objects[node]
    }

    /// Data of the heap's user for an object.
    #[inline]
    pub fn data(&mut self, node: Node) -> &mut T {
        &mut self.objects[node].data
    }

    /// Adds an object with empty slots.
    pub fn insert(&mut self, id: ObjectId, data: T) -> Node {
        self.objects.insert(id, Object { id, data, refs: Refs::default() })
    }

    /// Takes a place for an object, to be put there by [`fill`](Self::fill). `vacant` is data for a place without an
    /// object.
    pub fn reserve(&mut self, vacant: impl FnOnce() -> T) -> Node {
        self.objects.reserve(|| Object { id: ObjectId::NULL, data: vacant(), refs: Refs::default() })
    }

    /// Adds an object with empty slots at a reserved place. [`node`](Self::node) and [`find`](Self::find) do not find
    /// it.
    pub fn fill(&mut self, node: Node, id: ObjectId, data: T) {
        self.objects.fill(node, Object { id, data, refs: Refs::default() });
    }

    /// Stores to a slot of an object, or to a static field if the origin is null, and returns the old target. Ignored
    /// if the origin is unknown; an unknown target counts as null.
    #[inline]
    pub fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> Option<Node> {
        let target = self.node(target);
        if origin.is_null() {
            return self.put_static(slot, target);
        }
        let origin = self.node(origin)?;
        self.put_in(origin, slot, target)
    }

    /// Stores to a static field, and returns the old target.
    pub fn put_static(&mut self, slot: Slot, target: Option<Node>) -> Option<Node> {
        match target {
            Some(target) => self.statics.insert(slot.number(), target),
            None => self.statics.remove(&slot.number()),
        }
    }

    /// Stores to a slot of an object, and returns the old target.
    #[inline]
    pub fn put_in(&mut self, origin: Node, slot: Slot, target: Option<Node>) -> Option<Node> {
        self.objects[origin].refs.put(slot, target)
    }

    /// Removes an object's id. The object and its references stay.
    pub fn forget(&mut self, id: ObjectId) -> Option<Node> {
        self.objects.forget(id)
    }

    /// Removes and returns all references of an object that was forgotten.
    pub fn take_refs(&mut self, node: Node) -> Refs {
        std::mem::take(&mut self.objects[node].refs)
    }

    /// Frees the place of an object that was forgotten. Its data stays until another object takes the place.
    pub fn free(&mut self, node: Node) {
        let object = &mut self.objects[node];
        object.id = ObjectId::NULL;
        object.refs = Refs::None;
        self.objects.free(node);
    }

    /// Number of objects, including those that are forgotten but not freed.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects, including those that are forgotten but not freed.
    pub fn iter(&self) -> impl Iterator<Item = (Node, &Object<T>)> {
        self.objects.iter().filter(|(_, object)| !object.id.is_null())
    }

    /// Static fields that are not null, by number, in no particular order.
    pub fn statics(&self) -> impl Iterator<Item = (u32, Node)> {
        self.statics.iter().map(|(&field, &node)| (field, node))
    }

    /// Target of a slot of an object or of a static field.
    pub fn held(&self, origin: Option<Node>, slot: u32) -> Option<Node> {
        match origin {
            Some(origin) => self.objects[origin].refs.get(slot),
            None => self.statics.get(&slot).copied(),
        }
    }

    /// Calls `visit` with each slot that refers to one of the wanted objects, static fields first. Searches the whole
    /// heap.
    pub fn holders(&self, is_wanted: impl Fn(Node) -> bool, mut visit: impl FnMut(Holder)) {
        let mut visit = |origin, slot, target| {
            if is_wanted(target) {
                visit(Holder { origin, slot, target });
            }
        };
        self.statics().for_each(|(slot, target)| visit(None, slot, target));
        for (node, object) in self.iter() {
            object.refs.for_each_slot(|slot, target| visit(Some(node), slot, target));
        }
    }

    /// Objects that refer to `target`, in order of their places. Searches the heap lazily.
    pub fn holders_of(&self, target: Node) -> impl Iterator<Item = (Node, &Object<T>)> {
        self.iter().filter(move |(_, object)| object.refs.holds(target))
    }

    /// Clears `marks` and makes room for all objects.
    pub fn unmark(&self, marks: &mut Marks) {
        marks.words.clear();
        marks.words.resize(self.objects.places().div_ceil(64), 0);
    }

    /// Marks an object and all unmarked objects reachable from it; calls `visit` with each of them.
    #[inline]
    pub fn follow(&self, from: Node, marks: &mut Marks, mut visit: impl FnMut(Node)) {
        if !marks.insert(from) {
            return;
        }
        let mut stack = std::mem::take(&mut marks.stack);
        stack.push(from);
        while let Some(node) = stack.pop() {
            visit(node);
            self.objects[node].refs.for_each(|target| {
                if marks.insert(target) {
                    stack.push(target);
                }
            });
        }
        marks.stack = stack;
    }

    /// Marks everything reachable from static fields and these objects.
    pub fn reach(&self, roots: impl IntoIterator<Item = Node>) -> Marks {
        let mut marks = Marks::default();
        self.unmark(&mut marks);
        for root in self.statics.values().copied().chain(roots) {
            self.follow(root, &mut marks, |_| {});
        }
        marks
    }
}

/// A set of objects of a [`Heap`]; valid until an object is inserted.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    words: Vec<u64>,
    /// Worklist buffer, reused.
    stack: Vec<Node>,
}

impl Marks {
    /// Whether an object is marked.
    #[inline]
    pub fn contains(&self, node: Node) -> bool {
        self.words[node.0 as usize / 64] & 1 << (node.0 % 64) != 0
    }

    /// Marks an object; returns whether it was unmarked.
    #[inline]
    pub fn insert(&mut self, node: Node) -> bool {
        let word = &mut self.words[node.0 as usize / 64];
        let bit = 1 << (node.0 % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_names::FieldId;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// An operation on a heap; objects are numbered, 0 is null.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        New,
        Put {
            origin: u64,
            slot: Slot,
            target: u64,
        },
        /// Everything unreachable from these two dies, and so do they.
        Collect {
            roots: [u64; 2],
        },
        /// An object dies although others may refer to it.
        Forget(u64),
    }

    fn act() -> impl Strategy<Value = Act> {
        let slot =
            prop_oneof![(0..3u32).prop_map(|field| Slot::Field(FieldId(field))), (0..100u32).prop_map(Slot::Element)];
        prop_oneof![
            4 => Just(Act::New),
            8 => (0..40u64, slot, 0..40u64).prop_map(|(origin, slot, target)| Act::Put { origin, slot, target }),
            1 => (1..40u64, 1..40u64).prop_map(|(one, other)| Act::Collect { roots: [one, other] }),
            1 => (1..40u64).prop_map(Act::Forget),
        ]
    }

    /// The same by definition. The ids of forgotten objects are never looked up.
    #[derive(Default)]
    struct Model {
        alive: BTreeSet<u64>,
        forgotten: BTreeSet<u64>,
        slots: BTreeMap<(u64, u32), u64>,
    }

    impl Model {
        fn put(&mut self, origin: u64, slot: u32, target: u64) -> Option<u64> {
            if origin != 0 && !self.alive.contains(&origin) {
                return None;
            }
            match self.alive.contains(&target) {
                true => self.slots.insert((origin, slot), target),
                false => self.slots.remove(&(origin, slot)),
            }
        }

        fn reach(&self, roots: &[u64]) -> BTreeSet<u64> {
            let statics = self.slots.range((0, 0)..(1, 0)).map(|(_, &target)| target);
            let mut reached: BTreeSet<u64> = statics.chain(roots.iter().copied()).collect();
            loop {
                let held =
                    self.slots.iter().filter(|((origin, _), _)| reached.contains(origin)).map(|(_, &target)| target);
                let more: Vec<u64> = held.filter(|target| !reached.contains(target)).collect();
                if more.is_empty() {
                    return reached;
                }
                reached.extend(more);
            }
        }
    }

    /// Ids that share an entry in the cache of recent lookups.
    fn id(number: u64) -> ObjectId {
        ObjectId(if number.is_multiple_of(3) { number << 12 } else { number })
    }

    fn check(heap: &Heap<u64>, model: &Model) -> Result<(), TestCaseError> {
        let number = |node: Node| heap.get(node).data;
        let there: BTreeSet<u64> = heap.iter().map(|(node, _)| number(node)).collect();
        prop_assert_eq!(&there, &model.alive.union(&model.forgotten).copied().collect());
        prop_assert_eq!(heap.len(), there.len());
        let mut slots = BTreeMap::new();
        heap.holders(
            |_| true,
            |holder| {
                slots.insert((holder.origin.map_or(0, number), holder.slot), number(holder.target));
            },
        );
        prop_assert_eq!(&slots, &model.slots);
        for &target in &there {
            let node = heap.iter().find(|&(node, _)| number(node) == target).map(|(node, _)| node).unwrap();
            prop_assert_eq!(heap.find(id(target)), model.alive.contains(&target).then_some(node));
            let holders: BTreeSet<u64> = heap.holders_of(node).map(|(_, object)| object.data).collect();
            let held_by = model.slots.iter().filter(|&(&(origin, _), &held)| held == target && origin != 0);
            prop_assert_eq!(holders, held_by.map(|(&(origin, _), _)| origin).collect());
            let marks = heap.reach([node]);
            let reached: BTreeSet<u64> =
                heap.iter().filter(|&(node, _)| marks.contains(node)).map(|(node, _)| number(node)).collect();
            prop_assert_eq!(reached, model.reach(&[target]));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn it_is_what_slots_hold(acts in prop::collection::vec(act(), 1..120)) {
            let (mut heap, mut model, mut last) = (Heap::default(), Model::default(), 0);
            for act in acts {
                match act {
                    Act::New => {
                        last += 1;
                        let node = heap.insert(id(last), last);
                        prop_assert_eq!(heap.node(id(last)), Some(node));
                        model.alive.insert(last);
                    }
                    Act::Put { origin, slot, target } => {
                        let old = heap.put(id(origin), slot, id(target)).map(|node| heap.get(node).data);
                        prop_assert_eq!(old, model.put(origin, slot.number(), target));
                    }
                    Act::Collect { roots } => {
                        let forgotten = model.forgotten.iter().copied();
                        let roots: Vec<u64> = roots.into_iter().filter(|root| model.alive.contains(root)).chain(forgotten).collect();
                        let nodes: Vec<Node> =
                            heap.iter().filter(|(_, object)| roots.contains(&object.data)).map(|(node, _)| node).collect();
                        let marks = heap.reach(nodes);
                        let dead: Vec<(Node, ObjectId)> = heap
                            .iter()
                            .filter(|&(node, _)| !marks.contains(node))
                            .map(|(node, object)| (node, object.id))
                            .collect();
                        for (node, id) in dead {
                            prop_assert_eq!(heap.forget(id), Some(node));
                            prop_assert_eq!(heap.node(id), None);
                            heap.free(node);
                        }
                        let reached = model.reach(&roots);
                        model.alive.retain(|object| reached.contains(object));
                        model.slots.retain(|(origin, _), _| *origin == 0 || reached.contains(origin));
                    }
                    Act::Forget(object) => {
                        let node = heap.forget(id(object));
                        prop_assert_eq!(node.is_some(), model.alive.remove(&object));
                        let Some(node) = node else { continue };
                        let mut held = BTreeMap::new();
                        heap.take_refs(node).for_each_slot(|slot, target| _ = held.insert((object, slot), heap.get(target).data));
                        let expected = model.slots.range((object, 0)..(object + 1, 0)).map(|(&slot, &target)| (slot, target));
                        prop_assert_eq!(held, expected.collect());
                        model.slots.retain(|(origin, _), _| *origin != object);
                        // Its place is not reused while something refers to it.
                        if model.slots.values().any(|&target| target == object) {
                            model.forgotten.insert(object);
                        } else {
                            heap.free(node);
                        }
                    }
                }
            }
            check(&heap, &model)?;
        }
    }
}
