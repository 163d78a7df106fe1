//! Merlin (Hertz, Blackburn, Moss, McKinley, Stefanović: "Generating Object Lifetime Traces with Merlin", TOPLAS 2006)
//! over the objects that may still be alive.
//!
//! Each object carries the sequence number of the step that was the last known to keep it: its last mention, or the loss of a
//! reference to it. Now and then the unreachable are looked for; what they are held by is unreachable too, so
//! stamps flow along references among them only, from the latest down, and each ends with the step after which nothing
//! could reach it.

use rustc_hash::FxHashMap;

use super::step::Step;
use crate::model::{Node, Objects, Refs};
use crate::record::{Alloc, ObjectId, Record, Slot, ThreadId};

/// A record that no hook reported, behind the step with that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Extra {
    pub after: u64,
    pub record: Record,
}

/// What a look for the dead found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Deaths and the clearing of weak references, in their order.
    pub extras: Vec<Extra>,
    /// Updates of weak slots whose old target had died before, in order: the slot held null by then.
    pub cleared_before: Vec<u64>,
}

#[derive(Debug)]
struct Object {
    id: ObjectId,
    stamp: u64,
    thread: ThreadId,
    /// More mentions will come, or the VM holds it to the end.
    in_use: bool,
    is_alive: bool,
    refs: Refs,
}

/// A weak slot that was overwritten since the last look.
#[derive(Debug)]
struct WeakDrop {
    step: u64,
    reference: Node,
    slot: Slot,
    target: Node,
}

/// The objects that may be alive, and what they hold.
#[derive(Debug, Default)]
pub struct Graph {
    objects: Objects<Object>,
    statics: FxHashMap<u32, Node>,
    weak: FxHashMap<Node, (Slot, Node)>,
    weak_drops: Vec<WeakDrop>,
    cleared_before: Vec<u64>,
    alive: usize,
    // Room for `collect`, kept.
    marks: Vec<u64>,
    stack: Vec<Node>,
}

impl Graph {
    /// Objects not yet found dead.
    pub fn alive(&self) -> usize {
        self.alive
    }

    fn allocate(&mut self, alloc: &Alloc, step: u64) {
        let object = Object {
            id: alloc.object,
            stamp: step,
            thread: alloc.thread,
            in_use: true,
            is_alive: true,
            refs: Refs::default(),
        };
        self.alive += 1;
        self.objects.insert(alloc.object, object);
    }

    #[inline]
    fn stamp(&mut self, node: Node, step: u64, thread: ThreadId) {
        let object = &mut self.objects[node];
        object.stamp = step;
        object.thread = thread;
    }

    /// The next step, with the bits of its last mentions.
    #[inline]
    pub fn step(&mut self, number: u64, step: &Step, last: u8) {
        if let Step::Record(Record::Alloc(alloc)) = step {
            self.allocate(alloc, number);
        }
        let thread = step.thread();
        for (place, id) in step.mentions().into_iter().enumerate() {
            if let Some(node) = self.objects.node(id) {
                let object = &mut self.objects[node];
                object.stamp = number;
                object.thread = thread;
                object.in_use &= last & 1 << place == 0;
            }
        }
        match *step {
            Step::Record(Record::Update { origin, target, slot, .. }) => {
                let target = self.objects.node(target);
                if let Some(old) = self.put(origin, slot, target) {
                    self.stamp(old, number, thread);
                }
            }
            Step::WeakUpdate { old, origin, target, slot, .. } => self.put_weak(number, old, origin, slot, target),
            Step::Initial { origin, target, slot, weak: false } => {
                let target = self.objects.node(target);
                self.put(origin, slot, target);
            }
            Step::Initial { origin, target, slot, weak: true } => {
                self.put_weak(number, ObjectId::NULL, origin, slot, target);
            }
            _ => {}
        }
    }

    #[inline]
    fn put(&mut self, origin: ObjectId, slot: Slot, target: Option<Node>) -> Option<Node> {
        if origin.is_null() {
            return match target {
                Some(target) => self.statics.insert(slot.number(), target),
                None => self.statics.remove(&slot.number()),
            };
        }
        let origin = self.objects.node(origin)?;
        self.objects[origin].refs.put(slot, target)
    }

    fn put_weak(&mut self, step: u64, old: ObjectId, origin: ObjectId, slot: Slot, target: ObjectId) {
        let Some(reference) = self.objects.node(origin) else { return };
        let held = match self.objects.node(target) {
            Some(target) => self.weak.insert(reference, (slot, target)),
            None => self.weak.remove(&reference),
        };
        match held {
            Some((slot, target)) => self.weak_drops.push(WeakDrop { step, reference, slot, target }),
            None if !old.is_null() => self.cleared_before.push(step),
            None => {}
        }
    }

    #[inline]
    fn mark(&mut self, node: Node) -> bool {
        let word = &mut self.marks[node.0 as usize / 64];
        let bit = 1 << (node.0 % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    #[inline]
    fn is_marked(&self, node: Node) -> bool {
        self.marks[node.0 as usize / 64] & 1 << (node.0 % 64) != 0
    }

    /// Calls `visit` for `from` and all that it leads to and that is not yet marked.
    #[inline]
    fn follow(&mut self, from: Node, mut visit: impl FnMut(&mut Object, Node)) {
        if !self.mark(from) {
            return;
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.push(from);
        while let Some(node) = stack.pop() {
            visit(&mut self.objects[node], node);
            let (objects, marks) = (&self.objects, &mut self.marks);
            objects[node].refs.for_each(|target| {
                let word = &mut marks[target.0 as usize / 64];
                let bit = 1 << (target.0 % 64);
                if *word & bit == 0 {
                    *word |= bit;
                    stack.push(target);
                }
            });
        }
        self.stack = stack;
    }

    /// Finds those that died up to now, gives each its death, and forgets them.
    pub fn collect(&mut self) -> Found {
        self.marks.clear();
        self.marks.resize(self.objects.places().div_ceil(64), 0);
        let statics: Vec<Node> = self.statics.values().copied().collect();
        for node in statics {
            self.follow(node, |_, _| {});
        }
        for node in (0..self.objects.places() as u32).map(Node) {
            if self.objects[node].is_alive && self.objects[node].in_use {
                self.follow(node, |_, _| {});
            }
        }
        let unmarked = |(node, object): (Node, &Object)| (object.is_alive && !self.is_marked(node)).then_some(node);
        let mut dead: Vec<Node> = self.objects.iter().filter_map(unmarked).collect();
        // From the latest down; the ids only make it the same every time.
        dead.sort_unstable_by_key(|node| {
            let object = &self.objects[*node];
            (std::cmp::Reverse(object.stamp), object.id)
        });
        let mut deaths = Vec::with_capacity(dead.len());
        for &first in &dead {
            let Object { stamp, thread, .. } = self.objects[first];
            self.follow(first, |object, node| {
                object.stamp = stamp;
                object.thread = thread;
                object.is_alive = false;
                deaths.push(node);
            });
        }
        let (clearings, cleared_before) = self.clear_weak();
        let death = |&node: &Node| {
            let object = &self.objects[node];
            Extra { after: object.stamp, record: Record::Death { object: object.id, thread: object.thread } }
        };
        let mut extras: Vec<Extra> = clearings.into_iter().chain(deaths.iter().map(death)).collect();
        // Stable: holders stay before what they hold.
        extras.sort_by_key(|extra| (extra.after, matches!(extra.record, Record::Death { .. })));
        self.forget(&deaths);
        Found { extras, cleared_before }
    }

    /// Weak references are cleared right before their referents die; whatever clears them later clears nothing.
    fn clear_weak(&mut self) -> (Vec<Extra>, Vec<u64>) {
        let mut clearings = Vec::new();
        let mut cleared_before = std::mem::take(&mut self.cleared_before);
        let objects = &self.objects;
        let dead = |node: Node| Some(&objects[node]).filter(|object| !object.is_alive);
        let mut clearing = |reference: Node, slot: Slot, target: &Object| {
            clearings.push(Extra {
                after: target.stamp,
                record: Record::Update {
                    old: target.id,
                    origin: objects[reference].id,
                    target: ObjectId::NULL,
                    slot,
                    thread: target.thread,
                },
            });
        };
        for drop in self.weak_drops.drain(..) {
            if let Some(target) = dead(drop.target).filter(|target| target.stamp < drop.step) {
                clearing(drop.reference, drop.slot, target);
                cleared_before.push(drop.step);
            }
        }
        self.weak.retain(|&reference, &mut (slot, target)| {
            let target = dead(target);
            match (dead(reference), target) {
                (Some(reference), Some(target)) if reference.stamp <= target.stamp => {}
                (_, Some(target)) => clearing(reference, slot, target),
                _ => {}
            }
            target.is_none() && dead(reference).is_none()
        });
        clearings.sort_by_key(|extra| (extra.after, extra.record.objects()));
        cleared_before.sort_unstable();
        (clearings, cleared_before)
    }

    fn forget(&mut self, dead: &[Node]) {
        for &node in dead {
            let object = &mut self.objects[node];
            object.refs = Refs::default();
            let id = object.id;
            self.objects.forget(id);
        }
        self.alive -= dead.len();
    }
}
