//! Merlin (Hertz, Blackburn, Moss, McKinley, Stefanović: "Generating Object Lifetime Traces with Merlin", TOPLAS 2006)
//! on the objects that may still be alive.
//!
//! Each object has the sequence number of the last step that is known to have kept it alive: its last mention, or the
//! loss of a reference to it. From time to time the unreachable objects are determined. Objects that refer to an
//! unreachable object are unreachable, too, so stamps propagate along references between unreachable objects only, from
//! the latest down, and each object ends up with the step after which nothing could reach it.

use rustc_hash::FxHashMap;

use super::step::Step;
use crate::model::{Heap, Marks, Node, Object, OnStack};
use crate::record::{ObjectId, Record, Slot, ThreadId};

/// A record that no hook reported, to be inserted after the step with that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    pub after: u64,
    pub record: Record,
}

/// Result of a collection.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Deaths and clearings of weak references, in order.
    pub extras: Vec<Extra>,
    /// Updates of weak slots whose old target had died before, in order: the slot was already null.
    pub cleared_before: Vec<u64>,
}

/// Objects that are alive only because of a method that has not returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldByStack {
    /// The object that the method holds: its receiver, or an exception in flight.
    pub by: OnStack,
    /// That object, which is the first, and those reachable from it, except those held by the VM, by a static field or
    /// by a method earlier in the order.
    pub objects: Vec<ObjectId>,
}

/// What only stacks hold: not the VM, not a static field.
pub(crate) fn held_by_stacks<T>(
    heap: &Heap<T>,
    stacks: impl IntoIterator<Item = (OnStack, Node)>,
    by_vm: impl IntoIterator<Item = Node>,
) -> Vec<HeldByStack> {
    let mut marks = heap.reach(by_vm);
    let mut all = Vec::new();
    for (by, node) in stacks {
        let mut objects = Vec::new();
        heap.follow(node, &mut marks, |node| objects.push(heap.get(node).id));
        if !objects.is_empty() {
            all.push(HeldByStack { by, objects });
        }
    }
    all
}

/// Data of an object in the graph.
#[derive(Debug)]
struct Known {
    stamp: u64,
    thread: ThreadId,
    /// Whether there will be more mentions, or the VM holds it to the end.
    in_use: bool,
}

/// A weak slot that was overwritten since the last collection.
#[derive(Debug)]
struct WeakDrop {
    step: u64,
    reference: Node,
    slot: Slot,
    target: Node,
}

/// The objects that may be alive, and the references between them.
#[derive(Debug, Default)]
pub struct Graph {
    heap: Heap<Known>,
    weak: FxHashMap<Node, (Slot, Node)>,
    weak_drops: Vec<WeakDrop>,
    cleared_before: Vec<u64>,
    // Buffer of `collect`, reused.
    living: Marks,
    seen: Marks,
}

impl Graph {
    /// Number of objects not yet found dead.
    pub fn alive(&self) -> usize {
        self.heap.len()
    }

    /// Number of items that take memory until the next collection.
    pub fn pending(&self) -> usize {
        self.heap.len() + self.weak_drops.len() + self.cleared_before.len()
    }

    /// Applies the next step. The bits of `last` say which of its mentions are last mentions.
    #[inline]
    pub fn step(&mut self, number: u64, step: &Step, last: u8) {
        if let Step::Record(Record::Alloc(alloc)) = step {
            self.heap.insert(alloc.object, Known { stamp: number, thread: alloc.thread, in_use: true });
        }
        let thread = step.thread();
        for (place, id) in step.mentions().into_iter().enumerate() {
            if let Some(node) = self.heap.node(id) {
                let known = self.heap.data(node);
                known.stamp = number;
                known.thread = thread;
                known.in_use &= last & 1 << place == 0;
            }
        }
        match *step {
            Step::Record(Record::Update { origin, target, slot, .. }) => {
                if let Some(old) = self.heap.put(origin, slot, target) {
                    let old = self.heap.data(old);
                    (old.stamp, old.thread) = (number, thread);
                }
            }
            Step::WeakUpdate { old, origin, target, slot, .. } => self.put_weak(number, old, origin, slot, target),
            Step::Initial { origin, target, slot, weak: false } => {
                self.heap.put(origin, slot, target);
            }
            Step::Initial { origin, target, slot, weak: true } => {
                self.put_weak(number, ObjectId::NULL, origin, slot, target);
            }
            Step::Record(
                Record::Alloc(_)
                | Record::Entry { .. }
                | Record::Exit { .. }
                | Record::ExitThrow { .. }
                | Record::Throw { .. }
                | Record::Handle { .. }
                | Record::Death { .. }
                | Record::Use { .. },
            )
            | Step::Held { .. } => {}
        }
    }

    fn put_weak(&mut self, step: u64, old: ObjectId, origin: ObjectId, slot: Slot, target: ObjectId) {
        let Some(reference) = self.heap.node(origin) else { return };
        let held = match self.heap.node(target) {
            Some(target) => self.weak.insert(reference, (slot, target)),
            None => self.weak.remove(&reference),
        };
        match held {
            Some((slot, target)) => self.weak_drops.push(WeakDrop { step, reference, slot, target }),
            None if !old.is_null() => self.cleared_before.push(step),
            None => {}
        }
    }

    /// Determines the objects that have died so far, computes their deaths, and removes them.
    pub fn collect(&mut self) -> Found {
        let Self { heap, living, seen, .. } = self;
        heap.unmark(living);
        let in_use = heap.iter().filter(|(_, object)| object.data.in_use).map(|(node, _)| node);
        for root in heap.statics().map(|(_, held)| held).chain(in_use) {
            heap.follow(root, living, |_| {});
        }
        let mut dead: Vec<Node> = heap.iter().map(|(node, _)| node).filter(|&node| !living.contains(node)).collect();
        // Latest first; ids only make the order deterministic.
        dead.sort_unstable_by_key(|&node| {
            let object = heap.get(node);
            (std::cmp::Reverse(object.data.stamp), object.id)
        });
        let mut deaths = Vec::with_capacity(dead.len());
        seen.clone_from(living);
        for &first in &dead {
            let found = deaths.len();
            heap.follow(first, seen, |node| deaths.push(node));
            let Known { stamp, thread, .. } = heap.get(first).data;
            for &node in &deaths[found..] {
                let known = heap.data(node);
                (known.stamp, known.thread) = (stamp, thread);
            }
        }
        let (clearings, cleared_before) = self.clear_weak();
        let death = |&node: &Node| {
            let Object { id, data: Known { stamp, thread, .. }, .. } = *self.heap.get(node);
            Extra { after: stamp, record: Record::Death { object: id, thread } }
        };
        let mut extras: Vec<Extra> = clearings.into_iter().chain(deaths.iter().map(death)).collect();
        // Stable: an object stays before those that it holds.
        extras.sort_by_key(|extra| (extra.after, matches!(extra.record, Record::Death { .. })));
        for node in deaths {
            self.heap.forget(self.heap.get(node).id);
            self.heap.free(node);
        }
        Found { extras, cleared_before }
    }

    /// What only stacks hold after the last step. An object reachable from several methods is attributed to the first
    /// one.
    pub fn held_by(&self, stacks: &[OnStack], by_vm: &[ObjectId]) -> Vec<HeldByStack> {
        let stacks = stacks.iter().filter_map(|by| Some((*by, self.heap.find(by.object)?)));
        held_by_stacks(&self.heap, stacks, by_vm.iter().filter_map(|&id| self.heap.find(id)))
    }

    /// A weak reference is cleared right before the referent dies; a later store of null has no effect.
    fn clear_weak(&mut self) -> (Vec<Extra>, Vec<u64>) {
        let mut clearings = Vec::new();
        let mut cleared_before = std::mem::take(&mut self.cleared_before);
        let Self { heap, living, weak, weak_drops, .. } = self;
        let dead = |node: Node| (!living.contains(node)).then(|| heap.get(node));
        let mut clearing = |reference: Node, slot: Slot, target: &Object<Known>| {
            clearings.push(Extra {
                after: target.data.stamp,
                record: Record::Update {
                    old: target.id,
                    origin: heap.get(reference).id,
                    target: ObjectId::NULL,
                    slot,
                    thread: target.data.thread,
                },
            });
        };
        for drop in weak_drops.drain(..) {
            if let Some(target) = dead(drop.target).filter(|target| target.data.stamp < drop.step) {
                clearing(drop.reference, drop.slot, target);
                cleared_before.push(drop.step);
            }
        }
        weak.retain(|&reference, &mut (slot, target)| {
            let target = dead(target);
            match (dead(reference), target) {
                (Some(reference), Some(target)) if reference.data.stamp <= target.data.stamp => {}
                (_, Some(target)) => clearing(reference, slot, target),
                _ => {}
            }
            target.is_none() && dead(reference).is_none()
        });
        clearings.sort_by_key(|extra| (extra.after, extra.record.objects()));
        cleared_before.sort_unstable();
        (clearings, cleared_before)
    }
}
