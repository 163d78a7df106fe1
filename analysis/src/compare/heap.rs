//! The heap as the trace has it, record after record.

use rustc_hash::FxHashMap;

use et_trace::lifetimes::Step;
use et_trace::model::{Node, Objects, Refs};
use et_trace::record::{Alloc, AllocKind, ObjectId, Record, Slot};
use et_trace::types::TypeId;

/// Number of a record, deaths counted, and its letter.
pub type Mention = (u64, char);

/// An object that is alive, as the trace sees it.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Object {
    pub id: ObjectId,
    pub ty: TypeId,
    pub kind: AllocKind,
    pub size: u64,
    pub refs: Refs,
    pub born: u64,
    pub last: Mention,
    /// The collector freed it all the same; which of those it is.
    pub early: Option<u32>,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Heap {
    /// A null id: free.
    objects: Objects<Object>,
    statics: FxHashMap<u32, Node>,
}

impl Heap {
    /// The object with that id, if it is alive.
    #[inline]
    pub fn node(&mut self, id: ObjectId) -> Option<Node> {
        self.objects.node(id)
    }

    /// What is known of it.
    pub fn get(&self, node: Node) -> &Object {
        &self.objects[node]
    }

    /// As above.
    #[inline]
    pub fn get_mut(&mut self, node: Node) -> &mut Object {
        &mut self.objects[node]
    }

    /// All that are alive.
    pub fn iter(&self) -> impl Iterator<Item = (Node, &Object)> {
        self.objects.iter().filter(|(_, object)| !object.id.is_null())
    }

    /// Static fields and what they hold.
    pub fn statics(&self) -> impl Iterator<Item = (u32, Node)> {
        self.statics.iter().map(|(&field, &node)| (field, node))
    }

    /// What a step makes, and which slot it changes.
    #[inline]
    pub fn step(&mut self, position: u64, step: &Step) {
        match *step {
            Step::Record(Record::Alloc(alloc)) => self.allocate(position, &alloc),
            Step::Record(Record::Update { origin, target, slot, .. })
            | Step::Initial { origin, target, slot, weak: false } => self.put(origin, slot, target),
            _ => {}
        }
    }

    fn allocate(&mut self, position: u64, alloc: &Alloc) {
        let &Alloc { object: id, ty, kind, size, .. } = alloc;
        let last = (position, kind.letter());
        let object = Object { id, ty, kind, size, refs: Refs::default(), born: position, last, early: None };
        self.objects.insert(id, object);
    }

    fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) {
        let target = self.node(target);
        if origin.is_null() {
            match target {
                Some(target) => self.statics.insert(slot.number(), target),
                None => self.statics.remove(&slot.number()),
            };
        } else if let Some(origin) = self.node(origin) {
            self.get_mut(origin).refs.put(slot, target);
        }
    }

    /// Forgets an object that has died.
    pub fn remove(&mut self, id: ObjectId) -> Option<Object> {
        let node = self.objects.forget(id)?;
        let object = self.get_mut(node);
        let removed = std::mem::replace(
            object,
            Object {
                id: ObjectId::NULL,
                ty: TypeId::UNKNOWN,
                kind: AllocKind::New,
                size: 0,
                refs: Refs::default(),
                born: 0,
                last: (0, 'D'),
                early: None,
            },
        );
        Some(removed)
    }
}
