//! What the slots of all live objects hold, and since when.

use rustc_hash::FxHashMap;

use super::{End, Mark, Stay};
use crate::model::{Kept, Node, Objects, Refs};
use crate::record::{ObjectId, Slot};
use et_names::FieldId;

/// A reference in a slot.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Number of the target; [`u64::MAX`] stands for null.
    target: u64,
    from: Mark,
}

impl Kept for Held {
    const NOTHING: Self = Self {
        target: u64::MAX,
        from: Mark {
            record: 0,
            tick: 0,
            bytes: 0,
            nanos: None,
            thread: crate::record::ThreadId(0),
            context: crate::model::ContextId::EMPTY,
        },
    };

    #[inline]
    fn is_nothing(self) -> bool {
        self.target == u64::MAX
    }
}

#[derive(Debug)]
struct Origin {
    number: u64,
    has_elements: bool,
    refs: Refs<Held>,
}

/// The slots of live objects and static fields, each with the stay that has begun there.
#[derive(Debug, Default)]
pub struct Slots {
    objects: Objects<Origin>,
    statics: FxHashMap<u32, Held>,
    made: u64,
}

impl Slots {
    /// An object is allocated, or found to exist.
    #[inline]
    pub fn born(&mut self, id: ObjectId) {
        self.objects.insert(id, Origin { number: self.made, has_elements: false, refs: Refs::None });
        self.made += 1;
    }

    /// A slot gets a value; `origin` is null for a static field. Returns the stay that this ends.
    #[inline]
    pub fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId, mark: Mark, how: End) -> Option<Stay> {
        let target = self.objects.node(target).map(|node| self.objects[node].number);
        let held = target.map(|target| Held { target, from: mark });
        let (number, old) = if origin.is_null() {
            let old = match held {
                Some(held) => self.statics.insert(slot.number(), held),
                None => self.statics.remove(&slot.number()),
            };
            (None, old)
        } else {
            let node = self.objects.node(origin)?;
            let origin = &mut self.objects[node];
            origin.has_elements = matches!(slot, Slot::Element(_));
            (Some(origin.number), origin.refs.put(slot, held))
        };
        old.map(|old| Stay { origin: number, slot, target: old.target, from: old.from, to: Some((mark, how)) })
    }

    /// An object dies, and with it what its slots hold.
    #[inline]
    pub fn died(&mut self, id: ObjectId, mark: Mark, mut ended: impl FnMut(Stay)) {
        let Some(node) = self.objects.forget(id) else { return };
        let origin = &mut self.objects[node];
        let refs = std::mem::take(&mut origin.refs);
        let (number, has_elements) = (origin.number, origin.has_elements);
        refs.for_each_slot(|number_of_slot, held| {
            let slot = slot(has_elements, number_of_slot);
            let to = Some((mark, End::OriginDied));
            ended(Stay { origin: Some(number), slot, target: held.target, from: held.from, to });
        });
        self.objects.free(node);
    }

    /// The stays that last to the end, in the order of their beginnings.
    pub fn finish(self, mut lasting: impl FnMut(Stay)) {
        let mut all: Vec<(u64, Node, u32)> = Vec::new();
        for (node, origin) in self.objects.iter() {
            origin.refs.for_each_slot(|slot, held| all.push((held.from.record, node, slot)));
        }
        // No object has this place: there is no room for so many.
        let nowhere = Node(u32::MAX);
        all.extend(self.statics.iter().map(|(&slot, held)| (held.from.record, nowhere, slot)));
        all.sort_unstable();
        for (_, node, number) in all {
            let (origin, slot, held) = if node == nowhere {
                (None, Slot::Field(FieldId(number)), self.statics.get(&number).copied())
            } else {
                let origin = &self.objects[node];
                (Some(origin.number), slot(origin.has_elements, number), origin.refs.get(number))
            };
            if let Some(Held { target, from }) = held {
                lasting(Stay { origin, slot, target, from, to: None });
            }
        }
    }
}

fn slot(is_element: bool, number: u32) -> Slot {
    if is_element { Slot::Element(number) } else { Slot::Field(FieldId(number)) }
}
