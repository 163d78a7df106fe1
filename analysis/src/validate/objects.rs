//! What the checker knows of each object: slots, holders, history. Forgotten when it dies.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use et_trace::model::ObjectSet;
use et_trace::model::{Node, Refs};
use et_trace::record::{ObjectId, Slot};

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
struct Object {
    id: ObjectId,
    refs: Refs,
    /// Slots of living objects, and static ones, that hold it.
    holders: u32,
    /// Born under the eyes of the trace: its slots held null at first.
    born_empty: bool,
    /// Otherwise, the slots that are known to hold null. (Others may have held something from the start.)
    cleared: Option<Box<FxHashSet<u32>>>,
    history: History,
}

/// The holders of so many that died too early are looked for: each search asks all objects.
const SEARCHES: usize = 1000;

/// Histories of the dead are kept for so many objects.
const REMEMBERED: usize = 1 << 16;

/// All objects that are not known to be dead.
#[derive(Debug, Default)]
pub struct Objects {
    ever: ObjectSet,
    nodes: Vec<Object>,
    free: Vec<Node>,
    by_id: FxHashMap<ObjectId, Node>,
    statics: FxHashMap<u32, Node>,
    cleared_statics: FxHashSet<u32>,
    /// Deaths at one point, which are simultaneous.
    dying: Vec<(Node, u64)>,
    dead: FxHashMap<ObjectId, History>,
    dead_in_order: VecDeque<ObjectId>,
    searches: usize,
}

/// What is known of an object that a record mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was allocated and has not died.
    Alive,
    /// Nothing was said of it before.
    Unknown,
    /// It died before.
    Dead,
}

/// A death that came too early.
#[derive(Debug)]
pub struct EarlyDeath {
    /// The object.
    pub object: ObjectId,
    /// Where its `D` stands.
    pub position: u64,
    /// One that holds it; null: a static field, or it was not looked for.
    pub holder: ObjectId,
}

impl Objects {
    fn node(&self, id: ObjectId) -> Option<Node> {
        self.by_id.get(&id).copied()
    }

    fn object(&mut self, node: Node) -> &mut Object {
        &mut self.nodes[node.0 as usize]
    }

    /// An allocation; whether the id is new.
    pub fn allocate(&mut self, id: ObjectId, born_empty: bool) -> bool {
        let is_new = self.ever.insert(id);
        if self.node(id).is_none() {
            self.insert(id, born_empty);
        }
        is_new
    }

    fn insert(&mut self, id: ObjectId, born_empty: bool) -> Node {
        // The violation of one who comes back from the dead shows how he died.
        let history = self.dead.remove(&id).unwrap_or_default();
        let object = Object { id, born_empty, history, ..Object::default() };
        let node = match self.free.pop() {
            Some(node) => {
                *self.object(node) = object;
                node
            }
            None => {
                self.nodes.push(object);
                Node(self.nodes.len() as u32 - 1)
            }
        };
        self.by_id.insert(id, node);
        node
    }

    /// A record mentions the object. After this it counts as alive, so that one fault is not told many times.
    pub fn mention(&mut self, id: ObjectId, position: u64, letter: char) -> Standing {
        let (node, standing) = match self.node(id) {
            Some(node) => (node, Standing::Alive),
            None => {
                let standing = if self.ever.insert(id) { Standing::Unknown } else { Standing::Dead };
                (self.insert(id, false), standing)
            }
        };
        self.object(node).history.add(position, letter);
        standing
    }

    /// Stores into a slot: what it held, and whether it may have held something else that the trace never told of.
    pub fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> (ObjectId, bool) {
        let target = self.node(target);
        let number = slot.number();
        let (held, may_hold_more) = if origin.is_null() {
            let held = match target {
                Some(target) => self.statics.insert(number, target),
                None => self.statics.remove(&number),
            };
            let was_cleared = self.cleared_statics.contains(&number);
            note(&mut self.cleared_statics, number, target);
            (held, !was_cleared)
        } else {
            let Some(origin) = self.node(origin) else { return (ObjectId::NULL, true) };
            let origin = self.object(origin);
            let held = origin.refs.put(slot, target);
            let mut may_hold_more = false;
            if !origin.born_empty {
                let cleared = origin.cleared.get_or_insert_default();
                may_hold_more = !cleared.contains(&number);
                note(cleared, number, target);
            }
            (held, may_hold_more)
        };
        if let Some(target) = target {
            self.object(target).holders += 1;
        }
        let held = held.map_or(ObjectId::NULL, |held| {
            let held = self.object(held);
            held.holders = held.holders.saturating_sub(1);
            held.id
        });
        (held, may_hold_more && held.is_null())
    }

    /// A `D`. Whether there is such an object is for [`mention`](Self::mention) to say.
    pub fn die(&mut self, id: ObjectId, position: u64) {
        if let Some(node) = self.node(id) {
            self.by_id.remove(&id);
            self.dying.push((node, position));
        }
    }

    /// The deaths since the last call are complete: those that somebody alive still holds come back.
    pub fn settle(&mut self) -> Vec<EarlyDeath> {
        if self.dying.is_empty() {
            return Vec::new();
        }
        let dying = std::mem::take(&mut self.dying);
        for &(node, _) in &dying {
            let refs = std::mem::take(&mut self.object(node).refs);
            refs.for_each(|target| {
                let target = self.object(target);
                target.holders = target.holders.saturating_sub(1);
            });
        }
        let mut early = Vec::new();
        for (node, position) in dying {
            let object = self.object(node);
            let (id, history, holders) = (object.id, object.history, object.holders);
            self.remember(id, history);
            if holders > 0 {
                // Its place is not used again: slots still lead to it.
                early.push(EarlyDeath { object: id, position, holder: self.holder(node) });
            } else {
                self.free.push(node);
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

    /// One that holds the object.
    fn holder(&mut self, node: Node) -> ObjectId {
        self.searches += 1;
        if self.searches > SEARCHES {
            return ObjectId::NULL;
        }
        let holds = |object: &&Object| {
            let mut holds = false;
            object.refs.for_each(|target| holds |= target == node);
            holds
        };
        self.nodes.iter().find(holds).map_or(ObjectId::NULL, |object| object.id)
    }

    /// `object 1f: N at 12, M at 13`.
    pub fn history(&self, id: ObjectId) -> String {
        let alive = self.node(id).map(|node| &self.nodes[node.0 as usize].history);
        let history = alive.or_else(|| self.dead.get(&id)).map(History::text).unwrap_or_default();
        if history.is_empty() { format!("object {:x}", id.0) } else { format!("object {:x}: {history}", id.0) }
    }
}

fn note(cleared: &mut FxHashSet<u32>, number: u32, target: Option<Node>) {
    // What was written once is known from then on, null or not.
    match target {
        None => drop(cleared.insert(number)),
        Some(_) => drop(cleared.remove(&number)),
    }
}
