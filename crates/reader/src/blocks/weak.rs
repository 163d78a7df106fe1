//! When weak references are cleared: right before what they refer to dies, if they live longer than it.
//!
//! Either of the two may be found dead long after it has died, since it seemed to be named again. What became of the
//! reference is then decided once both are known.

use rustc_hash::FxHashMap;

use crate::lifetimes::Known as KnownStep;
use crate::model::Node;
use crate::record::{ObjectId, Record, Slot, ThreadId};

/// What is known of an object when dead ones have been looked for.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub id: ObjectId,
    /// The last step that is known to have kept it alive, and its thread.
    pub step: u64,
    pub thread: u32,
    pub is_dead: bool,
    /// Whether it certainly lives now. One that is neither dead nor that depends on an object that only seems to be named
    /// again, or on an exception in flight.
    pub is_alive: bool,
}

/// A reference that no longer refers to an object since that step: another object was stored, or the reference itself has
/// died. If the object died before, the reference was cleared.
#[derive(Debug)]
struct Ended {
    step: u64,
    is_store: bool,
    reference: ObjectId,
    slot: Slot,
    target: Node,
}

/// A reference to an object that has died. It was cleared, unless it died before.
#[derive(Debug)]
struct Open {
    reference: Node,
    slot: Slot,
    target: ObjectId,
    /// When that died, and by which thread.
    step: u64,
    thread: u32,
}

/// Weak references.
#[derive(Debug, Default)]
pub struct WeakReferences {
    /// What each of them refers to.
    targets: FxHashMap<Node, (Slot, Node)>,
    ended: Vec<Ended>,
    open: Vec<Open>,
}

impl WeakReferences {
    /// An object is stored in a weak slot, which held `old` according to the stores alone. Returns the step if it is none
    /// since the reference has been cleared.
    pub fn put(
        &mut self,
        step: u64,
        old: ObjectId,
        (origin, reference): (ObjectId, Node),
        slot: Slot,
        target: Option<Node>,
    ) -> Option<KnownStep> {
        let held = match target {
            Some(target) => self.targets.insert(reference, (slot, target)),
            None => self.targets.remove(&reference),
        };
        match held {
            Some((slot, target)) => {
                self.ended.push(Ended { step, is_store: true, reference: origin, slot, target });
                None
            }
            None => (!old.is_null()).then_some(KnownStep::Cleared { at: step }),
        }
    }

    /// Dead objects have been looked for: adds the clearings that are certain now.
    pub fn clear(&mut self, seen: impl Fn(Node) -> Seen, clearings: &mut Vec<(u64, KnownStep)>) {
        self.open.retain(|open| {
            let reference = seen(open.reference);
            let is_cleared = reference.is_alive || reference.step > open.step;
            if is_cleared {
                clearings.push(cleared(reference.id, open.slot, open.target, open.step, open.thread));
            }
            !is_cleared && !reference.is_dead
        });
        let Self { targets, ended, open } = self;
        targets.retain(|&reference, &mut (slot, target)| {
            let (of, to) = (seen(reference), seen(target));
            match (of.is_dead, to.is_dead) {
                (false, false) => return true,
                (true, _) => {
                    ended.push(Ended { step: of.step, is_store: false, reference: of.id, slot, target });
                }
                (false, true) if of.is_alive || of.step > to.step => {
                    clearings.push(cleared(of.id, slot, to.id, to.step, to.thread));
                }
                (false, true) => open.push(Open { reference, slot, target: to.id, step: to.step, thread: to.thread }),
            }
            false
        });
        ended.retain(|ended| {
            let target = seen(ended.target);
            if target.step >= ended.step {
                return false;
            }
            if target.is_dead {
                clearings.push(cleared(ended.reference, ended.slot, target.id, target.step, target.thread));
                clearings.extend(ended.is_store.then_some((ended.step, KnownStep::Cleared { at: ended.step })));
            }
            // It may have died, which is not known yet.
            !target.is_dead && !target.is_alive
        });
    }

    /// The trace has ended: references that are left live to the end.
    pub fn end(&mut self, id: impl Fn(Node) -> ObjectId, clearings: &mut Vec<(u64, KnownStep)>) {
        let open = self.open.drain(..);
        clearings.extend(open.map(|open| cleared(id(open.reference), open.slot, open.target, open.step, open.thread)));
    }
}

fn cleared(reference: ObjectId, slot: Slot, target: ObjectId, step: u64, thread: u32) -> (u64, KnownStep) {
    let record =
        Record::Update { old: target, origin: reference, target: ObjectId::NULL, slot, thread: ThreadId(thread) };
    (step, KnownStep::Found { after: step, record })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Heap;

    const SLOT: Slot = Slot::Element(0);

    /// A reference and its target, with the steps that kept them alive last.
    struct Pair {
        heap: Heap<u64>,
        references: WeakReferences,
    }

    impl Pair {
        fn new(reference: u64, target: u64) -> Self {
            let mut heap = Heap::default();
            let mut references = WeakReferences::default();
            heap.insert(ObjectId(1), reference);
            heap.insert(ObjectId(2), target);
            let (of, to) = (heap.node(ObjectId(1)).unwrap(), heap.node(ObjectId(2)).unwrap());
            assert!(references.put(0, ObjectId::NULL, (ObjectId(1), of), SLOT, Some(to)).is_none());
            Self { heap, references }
        }

        /// The objects that are found dead, and those that certainly live. Returns the steps after which the reference was
        /// cleared.
        fn look(&mut self, dead: &[u64], alive: &[u64]) -> Vec<u64> {
            let mut clearings = Vec::new();
            let seen = |node| {
                let object = self.heap.get(node);
                let (is_dead, is_alive) = (dead.contains(&object.id.0), alive.contains(&object.id.0));
                Seen { id: object.id, step: object.data, thread: 1, is_dead, is_alive }
            };
            self.references.clear(seen, &mut clearings);
            clearings.into_iter().map(|(step, _)| step).collect()
        }

        fn end(&mut self) -> usize {
            let mut clearings = Vec::new();
            self.references.end(|node| self.heap.get(node).id, &mut clearings);
            clearings.len()
        }
    }

    #[test]
    fn the_reference_is_found_dead_before_its_target() {
        let mut pair = Pair::new(20, 10);
        assert!(pair.look(&[1], &[]).is_empty(), "the target seems to be named again");
        assert_eq!(pair.look(&[2], &[]), [10]);
        let mut pair = Pair::new(10, 20);
        assert!(pair.look(&[1], &[]).is_empty());
        assert!(pair.look(&[2], &[]).is_empty(), "the reference died first");
        let mut pair = Pair::new(20, 10);
        assert!(pair.look(&[1], &[2]).is_empty(), "the target certainly lived longer");
        assert!(pair.references.ended.is_empty());
    }

    #[test]
    fn the_target_is_found_dead_before_the_reference() {
        let mut pair = Pair::new(10, 20);
        assert!(pair.look(&[2], &[]).is_empty(), "the reference seems to be named again");
        assert!(pair.look(&[1], &[]).is_empty(), "it died first");
        let mut pair = Pair::new(10, 20);
        assert!(pair.look(&[2], &[]).is_empty());
        assert_eq!(pair.look(&[], &[1]), [20]);
        let mut pair = Pair::new(10, 20);
        assert!(pair.look(&[2], &[]).is_empty());
        assert_eq!(pair.end(), 1, "it lives to the end");
        let mut pair = Pair::new(10, 20);
        assert_eq!(pair.look(&[2], &[1]), [20]);
        assert_eq!(pair.end(), 0);
    }

    #[test]
    fn both_are_found_dead_at_once() {
        assert_eq!(Pair::new(20, 10).look(&[1, 2], &[]), [10]);
        assert!(Pair::new(10, 20).look(&[1, 2], &[]).is_empty());
        assert!(Pair::new(10, 10).look(&[1, 2], &[]).is_empty());
    }

    #[test]
    fn a_store_behind_the_death_of_the_target_is_none() {
        let mut pair = Pair::new(20, 10);
        let of = pair.heap.node(ObjectId(1)).unwrap();
        assert!(pair.references.put(15, ObjectId(2), (ObjectId(1), of), SLOT, None).is_none());
        assert!(pair.look(&[1], &[]).is_empty());
        assert_eq!(pair.look(&[2], &[]), [10, 15]);
    }
}
