//! The heap as the trace has it, record after record.

use rustc_hash::FxHashMap;

use crate::lifetimes::{Node, Refs, Step};
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot};
use crate::types::TypeId;

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

const RECENT: usize = 1 << 12;

/// All of them.
#[derive(Debug)]
pub struct Heap {
    /// A null id: free.
    objects: Vec<Object>,
    free: Vec<Node>,
    by_id: FxHashMap<ObjectId, Node>,
    recent: Box<[(ObjectId, Node); RECENT]>,
    statics: FxHashMap<u32, Node>,
}

impl Default for Heap {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            free: Vec::new(),
            by_id: FxHashMap::default(),
            recent: Box::new([(ObjectId::NULL, Node(0)); RECENT]),
            statics: FxHashMap::default(),
        }
    }
}

impl Heap {
    /// The object with that id, if it is alive.
    #[inline]
    pub fn node(&mut self, id: ObjectId) -> Option<Node> {
        if id.is_null() {
            return None;
        }
        let recent = &mut self.recent[id.0 as usize % RECENT];
        if recent.0 == id {
            return Some(recent.1);
        }
        let node = *self.by_id.get(&id)?;
        *recent = (id, node);
        Some(node)
    }

    /// What is known of it.
    pub fn get(&self, node: Node) -> &Object {
        &self.objects[node.0 as usize]
    }

    /// As above.
    #[inline]
    pub fn get_mut(&mut self, node: Node) -> &mut Object {
        &mut self.objects[node.0 as usize]
    }

    /// All that are alive.
    pub fn iter(&self) -> impl Iterator<Item = (Node, &Object)> {
        (0..).map(Node).zip(&self.objects).filter(|(_, object)| !object.id.is_null())
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
        let node = match self.free.pop() {
            Some(node) => {
                self.objects[node.0 as usize] = object;
                node
            }
            None => {
                self.objects.push(object);
                Node(self.objects.len() as u32 - 1)
            }
        };
        self.by_id.insert(id, node);
        self.recent[id.0 as usize % RECENT] = (id, node);
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
        let node = self.by_id.remove(&id)?;
        let recent = &mut self.recent[id.0 as usize % RECENT];
        if recent.0 == id {
            recent.0 = ObjectId::NULL;
        }
        self.free.push(node);
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
