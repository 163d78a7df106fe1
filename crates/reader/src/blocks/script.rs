//! The records of a part, in which objects have the numbers that the part gives them. They take some eight bytes each: a block has
//! tens of thousands, which stay in the cache of the core that makes them until they are written.

use et_format::Wall;
use et_format::event::Ticket;
use et_names::{FieldId, MethodId};
use rustc_hash::FxHashMap;

use super::walk::NONE;
use crate::place::Place;
use crate::record::{ObjectId, RecordKind, Slot, ThreadId};
use crate::told::Hold;

/// As the old target of a store: what the slot held before the part.
const FROM_BEFORE: u32 = NONE - 1;
/// Maximum capacity of a table of slots that is kept for the next part.
const MOST_SLOTS: usize = 1 << 16;

/// A slot that a part stores into.
#[derive(Clone, Copy, Debug)]
pub struct SlotUse {
    /// `NONE` for a static field.
    pub origin: u32,
    pub slot: Slot,
    /// What it holds at the end of the part; `NONE` for null.
    pub target: u32,
    /// Index of the item of its first store; `NONE` if the object is made in the part, so that it was null before.
    pub first: u32,
    /// What the first store put there, if it is a record only if that was another object.
    pub if_changed: Option<u32>,
}

/// The kind of an item, and so the number of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Tag {
    Entry,
    Exit,
    /// Two items.
    Leaf,
    ExitThrow,
    Throw,
    Handle,
    Use,
    /// The next of the part's births.
    Alloc,
    PutField,
    PutElement,
    HeldUntil,
    HeldToTheEnd,
    HeldField,
    HeldElement,
}

/// An item; objects have their numbers.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    Entry {
        method: MethodId,
        receiver: u32,
    },
    Exit {
        method: MethodId,
        receiver: u32,
    },
    /// Entry and exit.
    Leaf {
        method: MethodId,
        receiver: u32,
    },
    /// An exception leaves a method, is thrown, or handled.
    Flight {
        kind: RecordKind,
        method: MethodId,
        receiver: u32,
        exception: u32,
    },
    Use {
        object: u32,
    },
    Alloc {
        object: u32,
    },
    /// `old` is `None` if it is what the slot held before the part.
    Update {
        old: Option<u32>,
        origin: u32,
        target: u32,
        slot: Slot,
    },
    Until {
        object: u32,
        thread: ThreadId,
    },
    ToTheEnd {
        object: u32,
    },
    Initial {
        origin: u32,
        target: u32,
        slot: Slot,
    },
}

/// What a part tells. Objects have the numbers that they have in the part, and null is `NONE`.
#[derive(Debug, Default)]
pub struct Script {
    tags: Vec<Tag>,
    words: Vec<u32>,
    /// Number of items.
    pub count: u32,
    /// Places, each with the index of the first item there. Items before the first of them are at the place that the part before ended
    /// with.
    pub places: Vec<(u32, Place)>,
    /// In the order of their first stores.
    pub slots: Vec<SlotUse>,
    /// Number of stores that are no items, since they changed nothing.
    pub same: u32,
    /// Number of items that are no steps: objects that the VM holds to the end.
    pub no_steps: u32,
    /// Number of frames on the stack at the end.
    pub depth: u32,
}

impl Script {
    pub fn reserve(&mut self, items: usize) {
        self.tags.reserve(items);
        self.words.reserve(2 * items);
    }

    #[inline(always)]
    fn push<const N: usize>(&mut self, tag: Tag, words: [u32; N]) {
        self.tags.push(tag);
        self.words.extend_from_slice(&words);
        self.count += 1;
    }

    #[inline]
    pub fn entry(&mut self, method: MethodId, receiver: u32) {
        self.push(Tag::Entry, [method.0, receiver]);
    }

    #[inline]
    pub fn exit(&mut self, method: MethodId, receiver: u32) {
        self.push(Tag::Exit, [method.0, receiver]);
    }

    #[inline]
    pub fn leaf(&mut self, method: MethodId, receiver: u32) {
        self.push(Tag::Leaf, [method.0, receiver]);
        self.count += 1;
    }

    pub fn flight(&mut self, kind: RecordKind, method: MethodId, receiver: u32, exception: u32) {
        let tag = match kind {
            RecordKind::ExitThrow => Tag::ExitThrow,
            RecordKind::Throw => Tag::Throw,
            _ => Tag::Handle,
        };
        self.push(tag, [method.0, receiver, exception]);
    }

    pub fn used(&mut self, object: u32) {
        self.push(Tag::Use, [object]);
    }

    #[inline]
    pub fn alloc(&mut self, object: u32) {
        self.push(Tag::Alloc, [object]);
    }

    pub fn held(&mut self, object: u32, thread: ThreadId) {
        self.push(Tag::HeldUntil, [object, thread.0]);
    }

    pub fn held_to_the_end(&mut self, object: u32) {
        self.push(Tag::HeldToTheEnd, [object]);
        self.no_steps += 1;
    }

    /// What the VM, or a slot, held when tracing began, with a number for each object.
    pub fn hold(&mut self, hold: Hold, mut number: impl FnMut(ObjectId) -> u32) {
        match hold {
            Hold::Until { object, thread } => self.held(number(object), thread),
            Hold::ToTheEnd { object } => self.held_to_the_end(number(object)),
            Hold::Initial { origin, slot, target } => {
                let tag = match slot {
                    Slot::Field(_) => Tag::HeldField,
                    Slot::Element(_) => Tag::HeldElement,
                };
                self.push(tag, [number(origin), number(target), slot.number()]);
            }
        }
    }

    pub fn at(&mut self, ticket: Ticket, wall: Option<Wall>) {
        let (index, place) = (self.count, Place::new(ticket, wall));
        match self.places.last_mut() {
            Some(last) if last.0 == index => last.1 = place,
            _ => self.places.push((index, place)),
        }
    }

    /// A store. `is_new`: the object is made in the part.
    #[inline]
    pub fn put(
        &mut self,
        all: &mut FxHashMap<u64, u32>,
        (origin, is_new): (u32, bool),
        slot: Slot,
        target: u32,
        if_changed: bool,
    ) {
        // An object either is an array or has fields, so an index and a field id cannot collide.
        let key = u64::from(origin) << 32 | u64::from(slot.number());
        let next = self.slots.len() as u32;
        let at = *all.entry(key).or_insert(next);
        let old = if at == next {
            let first = if is_new { NONE } else { self.count };
            let if_changed = (if_changed && !is_new).then_some(target);
            self.slots.push(SlotUse { origin, slot, target, first, if_changed });
            if is_new { NONE } else { FROM_BEFORE }
        } else {
            std::mem::replace(&mut self.slots[at as usize].target, target)
        };
        if if_changed && old == target {
            self.same += 1;
            return;
        }
        let tag = match slot {
            Slot::Field(_) => Tag::PutField,
            Slot::Element(_) => Tag::PutElement,
        };
        self.push(tag, [old, origin, target, slot.number()]);
    }

    /// The items in order.
    #[inline]
    pub fn items(&self) -> Items<'_> {
        Items { tags: self.tags.iter(), words: &self.words }
    }
}

/// Goes through a script.
#[derive(Clone, Debug)]
pub struct Items<'s> {
    tags: std::slice::Iter<'s, Tag>,
    words: &'s [u32],
}

impl Items<'_> {
    #[inline(always)]
    fn take<const N: usize>(&mut self) -> [u32; N] {
        let (first, rest) = self.words.split_first_chunk().unwrap_or((&[NONE; N], &[]));
        self.words = rest;
        *first
    }
}

impl Iterator for Items<'_> {
    type Item = Item;

    #[inline(always)]
    fn next(&mut self) -> Option<Item> {
        let tag = *self.tags.next()?;
        let slot = |number: u32| match tag {
            Tag::PutField | Tag::HeldField => Slot::Field(FieldId(number)),
            _ => Slot::Element(number),
        };
        Some(match tag {
            Tag::Entry | Tag::Exit | Tag::Leaf => {
                let [method, receiver] = self.take();
                let method = MethodId(method);
                match tag {
                    Tag::Entry => Item::Entry { method, receiver },
                    Tag::Exit => Item::Exit { method, receiver },
                    _ => Item::Leaf { method, receiver },
                }
            }
            Tag::ExitThrow | Tag::Throw | Tag::Handle => {
                let [method, receiver, exception] = self.take();
                let kind = match tag {
                    Tag::ExitThrow => RecordKind::ExitThrow,
                    Tag::Throw => RecordKind::Throw,
                    _ => RecordKind::Handle,
                };
                Item::Flight { kind, method: MethodId(method), receiver, exception }
            }
            Tag::Use => Item::Use { object: self.take::<1>()[0] },
            Tag::Alloc => Item::Alloc { object: self.take::<1>()[0] },
            Tag::PutField | Tag::PutElement => {
                let [old, origin, target, number] = self.take();
                Item::Update { old: (old != FROM_BEFORE).then_some(old), origin, target, slot: slot(number) }
            }
            Tag::HeldUntil => {
                let [object, thread] = self.take();
                Item::Until { object, thread: ThreadId(thread) }
            }
            Tag::HeldToTheEnd => Item::ToTheEnd { object: self.take::<1>()[0] },
            Tag::HeldField | Tag::HeldElement => {
                let [origin, target, number] = self.take();
                Item::Initial { origin, target, slot: slot(number) }
            }
        })
    }
}

/// Empties a table of slots for the next part.
pub fn clear(slots: &mut FxHashMap<u64, u32>) {
    if slots.capacity() > MOST_SLOTS {
        *slots = FxHashMap::default();
    }
    slots.clear();
}
