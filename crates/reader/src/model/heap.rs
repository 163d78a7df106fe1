//! The heap, as allocations, updates and deaths make it.

use rustc_hash::FxHashMap;

use super::objects::{Node, Objects};
use super::refs::Refs;
use crate::record::{ObjectId, Slot};

/// An object. `T` is what else is to be known of it.
#[derive(Debug)]
pub struct Object<T> {
    /// Its id; null where there is none: the place is free.
    pub id: ObjectId,
    /// What whoever keeps the heap wants to know.
    pub data: T,
    refs: Refs,
}

impl<T> Object<T> {
    /// What it holds, by slot.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }
}

/// A slot that holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The object that has the slot; `None`: the slot is a static field.
    pub origin: Option<Node>,
    /// Number of the slot.
    pub slot: u32,
    /// What it holds.
    pub target: Node,
}

/// Objects, found by their ids, with what their slots and static fields hold.
///
/// An object goes in two steps: [`forget`](Self::forget), behind which its id leads nowhere, and [`free`](Self::free), behind
/// which another may take its place. Slots that still hold it then lead to that other one, so whoever frees it sees to it
/// that there are none, or that they go before the next object comes.
///
/// What an object holds is known at once; what holds an object is looked for in the whole heap, unless
/// [`Incoming`](super::Incoming) is kept beside it. Who needs to know how many hold each counts them in `T`: [`put`](Self::put) says what a slot held before.
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
    /// Where the object with that id is, if there is one.
    #[inline]
    pub fn node(&mut self, id: ObjectId) -> Option<Node> {
        self.objects.node(id)
    }

    /// As [`node`](Self::node), for those who look rarely.
    pub fn find(&self, id: ObjectId) -> Option<Node> {
        self.objects.find(id)
    }

    /// What is known of an object.
    #[inline]
    pub fn get(&self, node: Node) -> &Object<T> {
        &self.objects[node]
    }

    /// What whoever keeps the heap knows of it.
    #[inline]
    pub fn data(&mut self, node: Node) -> &mut T {
        &mut self.objects[node].data
    }

    /// An object comes to be; its slots hold nothing.
    pub fn insert(&mut self, id: ObjectId, data: T) -> Node {
        self.objects.insert(id, Object { id, data, refs: Refs::default() })
    }

    /// Stores into a slot of an object, or into a static field if the origin is null; what it held. Where an object is not known
    /// there is nothing to store, or nowhere to.
    #[inline]
    pub fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> Option<Node> {
        let target = self.node(target);
        if origin.is_null() {
            return match target {
                Some(target) => self.statics.insert(slot.number(), target),
                None => self.statics.remove(&slot.number()),
            };
        }
        let origin = self.node(origin)?;
        self.objects[origin].refs.put(slot, target)
    }

    /// The id leads nowhere any more. The object stays where it is, with what it holds.
    pub fn forget(&mut self, id: ObjectId) -> Option<Node> {
        self.objects.forget(id)
    }

    /// An object that was forgotten holds nothing any more; what it held.
    pub fn take_refs(&mut self, node: Node) -> Refs {
        std::mem::take(&mut self.objects[node].refs)
    }

    /// Frees the place of an object that was forgotten. What was known of it stays until another takes its place.
    pub fn free(&mut self, node: Node) {
        let object = &mut self.objects[node];
        object.id = ObjectId::NULL;
        object.refs = Refs::None;
        self.objects.free(node);
    }

    /// How many objects there are, those included that are forgotten and not freed.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects, those included that are forgotten and not freed.
    pub fn iter(&self) -> impl Iterator<Item = (Node, &Object<T>)> {
        self.objects.iter().filter(|(_, object)| !object.id.is_null())
    }

    /// Static fields that hold something, by number, in no order.
    pub fn statics(&self) -> impl Iterator<Item = (u32, Node)> {
        self.statics.iter().map(|(&field, &node)| (field, node))
    }

    /// What a slot holds, of an object or of a static field.
    pub fn held(&self, origin: Option<Node>, slot: u32) -> Option<Node> {
        match origin {
            Some(origin) => self.objects[origin].refs.get(slot),
            None => self.statics.get(&slot).copied(),
        }
    }

    /// Calls `visit` with each slot that holds one of the wanted objects, static fields first. Goes through the whole heap.
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

    /// The objects that hold one, in order of their places. Goes through the heap as far as is asked.
    pub fn holders_of(&self, target: Node) -> impl Iterator<Item = (Node, &Object<T>)> {
        self.iter().filter(move |(_, object)| object.refs.holds(target))
    }

    /// No marks, with room for all objects; `marks` are those of before, whose room is used again.
    pub fn unmark(&self, marks: &mut Marks) {
        marks.words.clear();
        marks.words.resize(self.objects.places().div_ceil(64), 0);
    }

    /// Marks an object and all that it leads to and that is not marked yet; calls `visit` with each of them.
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

    /// What can be reached from static fields and these objects.
    pub fn reach(&self, roots: impl IntoIterator<Item = Node>) -> Marks {
        let mut marks = Marks::default();
        self.unmark(&mut marks);
        for root in self.statics.values().copied().chain(roots) {
            self.follow(root, &mut marks, |_| {});
        }
        marks
    }
}

/// A set of objects of a [`Heap`], for as long as no object comes.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    words: Vec<u64>,
    /// Room to follow references, kept.
    stack: Vec<Node>,
}

impl Marks {
    /// Whether an object is marked.
    #[inline]
    pub fn contains(&self, node: Node) -> bool {
        self.words[node.0 as usize / 64] & 1 << (node.0 % 64) != 0
    }

    /// Marks it; whether that is new.
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

    /// What is done to a heap; objects by number, 0 is null.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        New,
        Put {
            origin: u64,
            slot: Slot,
            target: u64,
        },
        /// What nothing but these two lead to dies, and so do they.
        Collect {
            roots: [u64; 2],
        },
        /// One dies that others may hold.
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

    /// The same by definition. Objects that were forgotten have ids that nobody asks for.
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

    /// Ids that share a place in the list of those looked up lately.
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
                        // Its place is not used again as long as anything leads to it.
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
