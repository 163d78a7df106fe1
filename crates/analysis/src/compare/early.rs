//! Objects that the collector freed although the trace holds them alive: why does it?

use std::collections::VecDeque;

use et_format::event::ObjectHash;
use et_names::FieldId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::heap::{Heap, Known, Mention};
use et_reader::Trace;
use et_reader::model::{Holder, Node, Object, Stacks};
use et_reader::record::{AllocKind, ObjectId, Record};
use et_reader::types::{TypeId, Types};

/// Why the trace holds an object that the collector freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// By definition: the receiver of a method that had not returned.
    Running,
    /// By definition: an exception that has not been caught yet.
    InFlight,
    /// By definition: a constant string of a class.
    Constant,
    /// By definition: the mirror of a class, or the loader of one.
    Class,
    /// By definition: the `Thread` of a thread that had not ended.
    Thread,
    /// Not known: what holds it may be gone as well, but the collector was not asked about that.
    Unasked,
    /// By definition: there at the start, held by nothing that the trace knows.
    Start,
    /// A later record mentions it.
    Mentioned,
    /// A field holds it, as the trace has it.
    Field(FieldId),
    /// An element of an array holds it.
    Element,
    Static(FieldId),
    /// None of the others.
    Unknown,
}

impl Cause {
    /// Whether `docs/semantics.md` says that the trace holds such objects longer than necessary, or it cannot be known.
    pub fn is_by_definition(self) -> bool {
        self <= Self::Start
    }
}

/// An object that the collector freed although the trace holds it.
#[derive(Clone, Debug)]
pub struct Early {
    pub id: ObjectId,
    pub ty: TypeId,
    pub size: u64,
    pub cause: Cause,
    /// Not it, but one that holds it.
    pub through: bool,
    /// Id and type of the object that holds it.
    pub holder: Option<(ObjectId, TypeId)>,
    pub born: u64,
    pub last: Mention,
    /// Number of the collection, from 1.
    pub collection: usize,
    /// Number of the record after which the collection began.
    pub at: u64,
    pub later: Option<Mention>,
}

/// Collects all such objects.
#[derive(Debug)]
pub struct EarlyDeaths {
    all: Vec<Early>,
    /// Of how many objects the collector was asked about one.
    share: u32,
    /// What the trace holds to its end on behalf of the VM: constants, loaders, initial objects.
    to_the_end: FxHashSet<ObjectId>,
    class: Option<TypeId>,
    string: Option<TypeId>,
    /// `Thread` objects and class loaders.
    threads: FxHashSet<ObjectHash>,
    loaders: FxHashSet<ObjectHash>,
}

impl EarlyDeaths {
    pub fn new(trace: &Trace, share: u32, to_the_end: FxHashSet<ObjectId>) -> Self {
        Self {
            all: Vec::new(),
            share,
            to_the_end,
            class: trace.types.get_class("java/lang/Class"),
            string: trace.types.get_class("java/lang/String"),
            threads: trace.threads.iter().map(|thread| thread.object).collect(),
            loaders: trace.classes.iter().map(|class| class.record.loader).collect(),
        }
    }

    /// Returns the result at the end of the trace.
    pub fn finish(mut self) -> Vec<Early> {
        for early in &mut self.all {
            let is_own = !early.through && early.cause > Cause::Start;
            if is_own && early.later.is_some() {
                early.cause = Cause::Mentioned;
            }
        }
        self.excuse_those_reported_in_parts();
        self.all
    }

    /// Objects freed by one collection may be reported in two parts, the second as if the next collection had freed
    /// them. An object whose holder is in the second part is attributed to whatever holds its holder.
    fn excuse_those_reported_in_parts(&mut self) {
        let index: FxHashMap<ObjectId, usize> = self.all.iter().enumerate().map(|(at, early)| (early.id, at)).collect();
        // Its holder, if that was freed with it or in the next part.
        let holder = |early: &Early| {
            let holder = early.holder.and_then(|(id, _)| index.get(&id).copied())?;
            (self.all[holder].collection <= early.collection + 1).then_some(holder)
        };
        let excuses = excuses(self.all.len(), |at| {
            let early = &self.all[at];
            if early.cause.is_by_definition() { Next::Excused(early.cause) } else { Next::Holder(holder(early)) }
        });
        for (early, excuse) in self.all.iter_mut().zip(excuses) {
            if let Some(cause) = excuse.filter(|_| !early.cause.is_by_definition()) {
                (early.cause, early.through) = (cause, true);
            }
        }
    }

    /// A collection freed all these at once, which are alive in the heap. `at` is its number and the record before it.
    pub fn add(&mut self, freed: &[Node], heap: &mut Heap, stacks: &Stacks, types: &Types, at: (usize, u64)) {
        if freed.is_empty() {
            return;
        }
        let first = self.all.len() as u32;
        self.enlist(freed, heap, at);
        let held = HeldByStacks::new(stacks, heap);
        let own: Vec<Option<Cause>> = freed.iter().map(|&node| self.own_cause(node, heap, &held)).collect();
        let by_slots = freed.iter().zip(&own).filter(|(_, own)| own.is_none());
        let Holders { blamed, passes } = self.holders(by_slots.map(|(&node, _)| node), heap, types);
        let mut spread = Spread { queue: VecDeque::new(), seen: FxHashSet::default(), passes };
        let mut unexplained = Vec::new();
        for (&node, own) in freed.iter().zip(own) {
            match own.map(|cause| (cause, None)).or_else(|| blamed.get(&node).copied()) {
                Some((cause, holder)) => {
                    self.explain(node, heap, cause, holder);
                    spread.explained(node, cause);
                }
                None => unexplained.push(node),
            }
        }
        // Earlier ones hold as they did.
        let is_earlier = |node: &&Node| heap.get(**node).data.early.is_some_and(|index| index < first);
        spread.queue.extend(spread.passes.keys().filter(is_earlier));
        spread.seen = spread.queue.iter().copied().collect();
        self.pass_on(&mut spread, heap);
        // Held by none of those: mentioned again, or held from the start, or in circles.
        unexplained.sort_by_key(|&node| !self.is_from_start(heap.get(node)));
        for node in unexplained {
            if !spread.seen.insert(node) {
                continue;
            }
            if self.is_from_start(heap.get(node)) {
                self.explain(node, heap, Cause::Start, None);
            }
            spread.queue.push_back(node);
            self.pass_on(&mut spread, heap);
        }
    }

    /// Adds them, with nothing explained yet.
    fn enlist(&mut self, freed: &[Node], heap: &mut Heap, (collection, at): (usize, u64)) {
        for &node in freed {
            heap.data(node).early = Some(self.all.len() as u32);
            let object = heap.get(node);
            let Known { ty, size, born, last, .. } = object.data;
            self.all.push(Early {
                id: object.id,
                ty,
                size,
                cause: Cause::Unknown,
                through: false,
                holder: None,
                born,
                last,
                collection,
                at,
                later: None,
            });
        }
    }

    /// Finds the holders of these objects.
    fn holders(&self, wanted: impl Iterator<Item = Node>, heap: &mut Heap, types: &Types) -> Holders {
        let mut holders = Holders::default();
        let mut found = Vec::new();
        for target in wanted {
            heap.holders_of(target, |holder| found.push(holder));
            for Holder { origin, slot, target } in found.drain(..) {
                let Some(node) = origin else {
                    holders.blamed.entry(target).or_insert((Cause::Static(FieldId(slot)), None));
                    continue;
                };
                let object = heap.get(node);
                if object.data.early.is_some() {
                    holders.passes.entry(node).or_default().push(target);
                    continue;
                }
                let cause = match object.id {
                    ObjectId(id) if id >> 31 != 0 || !(id as u32).is_multiple_of(self.share) => Cause::Unasked,
                    _ if types.descriptor(object.data.ty).starts_with('[') => Cause::Element,
                    _ => Cause::Field(FieldId(slot)),
                };
                let blame = holders.blamed.entry(target).or_insert((cause, Some(node)));
                if blame.0 == Cause::Unasked {
                    *blame = (cause, Some(node));
                }
            }
        }
        holders
    }

    /// Why the trace holds an object whatever its slots are.
    fn own_cause(&self, node: Node, heap: &Heap, held: &HeldByStacks) -> Option<Cause> {
        let object = heap.get(node);
        let Known { ty, kind, .. } = object.data;
        let hash = ObjectHash(object.id.0 as u32 & 0x7fff_ffff);
        if held.running.contains(&node) {
            Some(Cause::Running)
        } else if held.in_flight.contains(&node) {
            Some(Cause::InFlight)
        } else if self.to_the_end.contains(&object.id) && kind == AllocKind::Vm && Some(ty) == self.string {
            Some(Cause::Constant)
        } else if Some(ty) == self.class || self.loaders.contains(&hash) {
            Some(Cause::Class)
        } else {
            self.threads.contains(&hash).then_some(Cause::Thread)
        }
    }

    /// Whether the trace holds it to its end because it was there at the start.
    fn is_from_start(&self, object: &Object<Known>) -> bool {
        object.data.kind == AllocKind::Initial && self.to_the_end.contains(&object.id)
    }

    fn explain(&mut self, node: Node, heap: &Heap, cause: Cause, holder: Option<Node>) {
        if let Some(index) = heap.get(node).data.early {
            let early = &mut self.all[index as usize];
            early.cause = cause;
            early.holder = holder.map(|holder| (heap.get(holder).id, heap.get(holder).data.ty));
        }
    }

    fn pass_on(&mut self, spread: &mut Spread, heap: &Heap) {
        while let Some(node) = spread.queue.pop_front() {
            let from = heap.get(node);
            let Some(cause) = from.data.early.map(|index| self.all[index as usize].cause) else { continue };
            for &target in spread.passes.get(&node).into_iter().flatten() {
                if spread.seen.insert(target)
                    && let Some(index) = heap.get(target).data.early
                {
                    let early = &mut self.all[index as usize];
                    (early.cause, early.through, early.holder) = (cause, true, Some((from.id, from.data.ty)));
                    spread.queue.push_back(target);
                }
            }
        }
    }

    /// A record mentions one of them.
    pub fn mentioned(&mut self, index: u32, record: &Record, place: usize, position: u64) {
        let early = &mut self.all[index as usize];
        // The exit of a method names its receiver, and a slot that changes what it held.
        let is_receiver = early.cause == Cause::Running
            && place == 0
            && matches!(
                record,
                Record::Exit { .. } | Record::ExitThrow { .. } | Record::Throw { .. } | Record::Handle { .. }
            );
        let is_old = place == 0 && matches!(record, Record::Update { .. });
        if !is_receiver && !is_old && early.later.is_none() {
            early.later = Some((position, record.letter()));
        }
    }
}

/// The next step from an object that was freed early.
enum Next {
    /// Held by definition.
    Excused(Cause),
    /// Another of them holds it, if any does.
    Holder(Option<usize>),
}

/// For each of `count` objects the first excuse on the way from holder to holder. Looks at each once, however long the ways are.
fn excuses(count: usize, mut next: impl FnMut(usize) -> Next) -> Vec<Option<Cause>> {
    // Those on the way meanwhile have none: a way that leads back to itself leads to none.
    let mut known: Vec<Option<Option<Cause>>> = vec![None; count];
    let mut way = Vec::new();
    for start in 0..count {
        let mut at = start;
        let excuse = loop {
            if let Some(excuse) = known[at] {
                break excuse;
            }
            known[at] = Some(None);
            way.push(at);
            match next(at) {
                Next::Excused(cause) => break Some(cause),
                Next::Holder(Some(holder)) => at = holder,
                Next::Holder(None) => break None,
            }
        };
        way.drain(..).for_each(|at| known[at] = Some(excuse));
    }
    known.into_iter().map(Option::flatten).collect()
}

/// The holders of the objects that a collection freed.
#[derive(Default)]
struct Holders {
    /// By what they hold: those that the collector holds as well, which are to blame.
    blamed: FxHashMap<Node, (Cause, Option<Node>)>,
    /// The others, which only pass it on, with what they hold.
    passes: FxHashMap<Node, Vec<Node>>,
}

/// What stacks hold by definition.
struct HeldByStacks {
    running: FxHashSet<Node>,
    in_flight: FxHashSet<Node>,
}

impl HeldByStacks {
    fn new(stacks: &Stacks, heap: &mut Heap) -> Self {
        let running = stacks.receivers().filter_map(|id| heap.node(id)).collect();
        Self { running, in_flight: stacks.in_flight().filter_map(|id| heap.node(id)).collect() }
    }
}

/// Causes on their way from holders to what they hold.
struct Spread {
    queue: VecDeque<Node>,
    seen: FxHashSet<Node>,
    passes: FxHashMap<Node, Vec<Node>>,
}

impl Spread {
    fn explained(&mut self, node: Node, cause: Cause) {
        // Objects with an explanation come first, since they explain others.
        if cause.is_by_definition() { self.queue.push_front(node) } else { self.queue.push_back(node) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::heap;
    use et_names::SiteId;
    use et_reader::lifetimes::Step;
    use et_reader::record::{Alloc, Slot, ThreadId};

    fn early_deaths() -> EarlyDeaths {
        EarlyDeaths {
            all: Vec::new(),
            share: 1,
            to_the_end: FxHashSet::default(),
            class: None,
            string: None,
            threads: FxHashSet::default(),
            loaders: FxHashSet::default(),
        }
    }

    /// In a heap of many objects, a collection after each of which one more is freed that only a slot explains.
    #[test]
    fn slots_are_not_looked_at_again_for_each_collection() {
        const OBJECTS: u64 = 2000;
        let (mut heap, mut early, mut types) = (heap::Heap::default(), early_deaths(), Types::default());
        let (ty, thread) = (types.intern("LBox;"), ThreadId(1));
        for id in 1..=OBJECTS {
            let alloc = Alloc {
                kind: AllocKind::New,
                object: ObjectId(id),
                size: 16,
                ty,
                site: SiteId(0),
                length: 0,
                stack: Default::default(),
                thread,
            };
            heap.step(id, &Step::Record(Record::Alloc(alloc)));
            let (old, origin, slot) = (ObjectId::NULL, ObjectId(id - 1), Slot::Field(FieldId(1)));
            heap.step(id, &Step::Record(Record::Update { old, origin, target: ObjectId(id), slot, thread }));
        }
        for collection in 1..OBJECTS {
            let freed = heap.node(ObjectId(OBJECTS - collection)).unwrap();
            early.add(&[freed], &mut heap, &Stacks::default(), &types, (collection as usize, OBJECTS + collection));
        }
        assert!(heap.looked_at() <= 4 * OBJECTS, "{} slots for {OBJECTS} objects", heap.looked_at());
        let found = early.finish();
        assert_eq!(found.len() as u64, OBJECTS - 1);
        assert!(found[0].cause == Cause::Field(FieldId(1)) && found[0].holder == Some((ObjectId(OBJECTS - 2), ty)));
    }

    #[test]
    fn each_object_on_the_way_to_an_excuse_is_looked_at_once() {
        const OBJECTS: usize = 1000;
        let mut looked_at = 0;
        // Each is held by the one before it, the first by none, or by the last.
        for (first, expected) in [(Next::Holder(None), None), (Next::Excused(Cause::Thread), Some(Cause::Thread))] {
            let found = excuses(OBJECTS, |at| {
                looked_at += 1;
                match (at, &first) {
                    (0, Next::Excused(cause)) => Next::Excused(*cause),
                    (0, Next::Holder(holder)) => Next::Holder(*holder),
                    _ => Next::Holder(Some(at - 1)),
                }
            });
            assert!(found.iter().all(|excuse| *excuse == expected));
        }
        assert!(excuses(3, |at| Next::Holder(Some((at + 1) % 3))).iter().all(Option::is_none), "a circle");
        let backward = excuses(OBJECTS, |at| {
            looked_at += 1;
            if at + 1 == OBJECTS { Next::Excused(Cause::Class) } else { Next::Holder(Some(at + 1)) }
        });
        assert!(backward.iter().all(|excuse| *excuse == Some(Cause::Class)));
        assert_eq!(looked_at, 3 * OBJECTS);
    }
}
