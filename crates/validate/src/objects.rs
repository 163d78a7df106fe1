//! The checker's state of each object: slots, holders, history. Dropped when the object dies.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use et_reader::model::{Heap, Node, ObjectSet};
use et_reader::record::{ObjectId, Slot};

/// Where an object was mentioned, and by which letter.
type Mention = (u64, char);

/// First and last mentions of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    first: Option<Mention>,
    last: [Option<Mention>; 2],
    count: u64,
}

impl History {
    fn add(&mut self, position: u64, letter: char) {
        if self.first.is_none() {
            self.first = Some((position, letter));
        } else {
            self.last = [self.last[1], Some((position, letter))];
        }
        self.count += 1;
    }

    /// `N at 12, … M at 40, D at 41`.
    fn text(&self) -> String {
        let last: Vec<Mention> = self.last.iter().flatten().copied().collect();
        let left_out = self.count > 1 + last.len() as u64;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.first.map(|(position, letter)| format!("{letter} at {position}")));
        for (at, (position, letter)) in last.into_iter().enumerate() {
            let gap = if at == 0 && left_out { "… " } else { "" };
            parts.push(format!("{gap}{letter} at {position}"));
        }
        parts.join(", ")
    }
}

#[derive(Debug, Default)]
struct Known {
    /// Slots of living objects, and static ones, that hold it.
    holders: u32,
    /// Born under the eyes of the trace: its slots held null at first.
    born_empty: bool,
    /// Otherwise, the slots that are known to hold null. (Others may have held something from the start.)
    cleared: Option<Box<FxHashSet<u32>>>,
    history: History,
}

/// Maximum number of searches for the holder of an object that died too early: each searches all objects.
const SEARCHES: usize = 1000;

/// Number of dead objects whose histories are kept.
const REMEMBERED: usize = 1 << 16;

/// All objects that are not known to be dead.
#[derive(Debug, Default)]
pub struct KnownObjects {
    ever: ObjectSet,
    heap: Heap<Known>,
    cleared_statics: FxHashSet<u32>,
    /// Deaths at one point, which are simultaneous.
    dying: Vec<(Node, u64)>,
    dead: FxHashMap<ObjectId, History>,
    dead_in_order: VecDeque<ObjectId>,
    searches: usize,
}

/// State of an object that a record mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was allocated and has not died.
    Alive,
    /// Nothing was said of it before.
    Unknown,
    /// It has died.
    Dead,
}

/// A death that came too early.
#[derive(Debug)]
pub struct EarlyDeath {
    pub object: ObjectId,
    /// Position of its `D` record.
    pub position: u64,
    /// One that holds it; null: a static field, or it was not looked for.
    pub holder: ObjectId,
}

impl KnownObjects {
    /// An allocation; whether the id is new.
    pub fn allocate(&mut self, id: ObjectId, born_empty: bool) -> bool {
        let is_new = self.ever.insert(id);
        if self.heap.node(id).is_none() {
            self.insert(id, born_empty);
        }
        is_new
    }

    fn insert(&mut self, id: ObjectId, born_empty: bool) -> Node {
        // The violation of a mention after death includes how the object died.
        let history = self.dead.remove(&id).unwrap_or_default();
        self.heap.insert(id, Known { born_empty, history, ..Known::default() })
    }

    /// Handles a mention of the object. Afterwards it counts as alive, so that a single error is reported only once.
    pub fn mention(&mut self, id: ObjectId, position: u64, letter: char) -> Standing {
        let (node, standing) = match self.heap.node(id) {
            Some(node) => (node, Standing::Alive),
            None => {
                let standing = if self.ever.insert(id) { Standing::Unknown } else { Standing::Dead };
                (self.insert(id, false), standing)
            }
        };
        self.heap.data(node).history.add(position, letter);
        standing
    }

    /// Stores to a slot: returns the old target, and whether the slot may have held another one that is not in the
    /// trace.
    pub fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> (ObjectId, bool) {
        let (target_node, origin_node) = (self.heap.node(target), self.heap.node(origin));
        let cleared = match origin_node {
            None if origin.is_null() => Some(&mut self.cleared_statics),
            None => return (ObjectId::NULL, true),
            Some(origin) => {
                let known = self.heap.data(origin);
                (!known.born_empty).then(|| &mut **known.cleared.get_or_insert_default())
            }
        };
        let may_hold_more = cleared.is_some_and(|cleared| {
            let number = slot.number();
            // The target of a slot is known from the first store on, whether null or not.
            let was_cleared = match target_node {
                None => !cleared.insert(number),
                Some(_) => cleared.remove(&number),
            };
            !was_cleared
        });
        let held = self.heap.put(origin, slot, target);
        if let Some(target) = target_node {
            self.heap.data(target).holders += 1;
        }
        let held = held.map_or(ObjectId::NULL, |held| {
            let holders = &mut self.heap.data(held).holders;
            *holders = holders.saturating_sub(1);
            self.heap.get(held).id
        });
        (held, may_hold_more && held.is_null())
    }

    /// A `D`. Whether there is such an object is for [`mention`](Self::mention) to say.
    pub fn die(&mut self, id: ObjectId, position: u64) {
        if let Some(node) = self.heap.forget(id) {
            self.dying.push((node, position));
        }
    }

    /// Whether there were deaths since the last call of [`settle`](Self::settle).
    #[inline]
    pub fn is_any_dying(&self) -> bool {
        !self.dying.is_empty()
    }

    /// The deaths since the last call are complete: objects still held by a live object are returned.
    pub fn settle(&mut self) -> Vec<EarlyDeath> {
        let dying = std::mem::take(&mut self.dying);
        for &(node, _) in &dying {
            self.heap.take_refs(node).for_each(|target| {
                let holders = &mut self.heap.data(target).holders;
                *holders = holders.saturating_sub(1);
            });
        }
        let mut early = Vec::new();
        for (node, position) in dying {
            let object = self.heap.get(node);
            let (id, history, holders) = (object.id, object.data.history, object.data.holders);
            self.remember(id, history);
            if holders > 0 {
                // Its place is not used again: slots still lead to it.
                early.push(EarlyDeath { object: id, position, holder: self.holder(node) });
            } else {
                self.heap.free(node);
            }
        }
        early
    }

    fn remember(&mut self, id: ObjectId, history: History) {
        self.dead.insert(id, history);
        self.dead_in_order.push_back(id);
        if self.dead_in_order.len() > REMEMBERED
            && let Some(old) = self.dead_in_order.pop_front()
        {
            self.dead.remove(&old);
        }
    }

    /// An object that refers to it.
    fn holder(&mut self, node: Node) -> ObjectId {
        self.searches += 1;
        if self.searches > SEARCHES {
            return ObjectId::NULL;
        }
        self.heap.holders_of(node).next().map_or(ObjectId::NULL, |(_, holder)| holder.id)
    }

    /// `object 1f: N at 12, M at 13`.
    pub fn history(&self, id: ObjectId) -> String {
        let alive = self.heap.find(id).map(|node| &self.heap.get(node).data.history);
        let history = alive.or_else(|| self.dead.get(&id)).map(History::text).unwrap_or_default();
        if history.is_empty() { format!("object {:x}", id.0) } else { format!("object {:x}: {history}", id.0) }
    }
}
