//! Objects that the collector freed although the trace holds them alive: why does it?

use std::collections::VecDeque;

use et_format::event::ObjectHash;
use et_names::FieldId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::heap::{Heap, Known, Mention};
use et_trace::Trace;
use et_trace::model::{Holder, Node, Object, Stacks};
use et_trace::record::{AllocKind, ObjectId, Record};
use et_trace::types::{TypeId, Types};

/// What makes the trace hold an object that the collector freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// By definition: the receiver of a method that had not returned.
    Running,
    /// By definition: an exception that nobody had caught yet.
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
    /// A record mentions it later.
    Mentioned,
    /// A field holds it, as the trace has it.
    Field(FieldId),
    /// An element of an array holds it.
    Element,
    /// A static field holds it.
    Static(FieldId),
    /// None of these.
    Unknown,
}

impl Cause {
    /// Whether `docs/semantics.md` says that the trace holds such objects for longer than it need, or nobody can know.
    pub fn is_by_definition(self) -> bool {
        self <= Self::Start
    }
}

/// Such an object.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Early {
    pub id: ObjectId,
    pub ty: TypeId,
    pub size: u64,
    pub cause: Cause,
    /// Not it, but one that holds it.
    pub through: bool,
    /// What holds it.
    pub holder: Option<(ObjectId, TypeId)>,
    pub born: u64,
    pub last: Mention,
    /// Number of the collection, from 1.
    pub collection: usize,
    /// Record behind which it began.
    pub at: u64,
    pub later: Option<Mention>,
}

/// All of them.
#[derive(Debug)]
pub struct EarlyDeaths {
    all: Vec<Early>,
    /// Of how many objects the collector was asked about one.
    share: u32,
    /// What the trace holds to its end for the VM: constants, loaders, what was there at the start.
    to_the_end: FxHashSet<ObjectId>,
    class: Option<TypeId>,
    string: Option<TypeId>,
    /// `Thread` objects and class loaders.
    threads: FxHashSet<ObjectHash>,
    loaders: FxHashSet<ObjectHash>,
}

impl EarlyDeaths {
    /// None yet.
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

    /// What was found, once the trace has ended.
    pub fn finish(mut self) -> Vec<Early> {
        for early in &mut self.all {
            let is_own = !early.through && early.cause > Cause::Start;
            if is_own && early.later.is_some() {
                early.cause = Cause::Mentioned;
            }
        }
        self.excuse_those_told_in_parts();
        self.all
    }

    /// What one collection freed may be told in two parts, the later one as if the next collection had done it. An object whose
    /// holder follows in the second part is held by what holds its holder.
    fn excuse_those_told_in_parts(&mut self) {
        let index: FxHashMap<ObjectId, usize> = self.all.iter().enumerate().map(|(at, early)| (early.id, at)).collect();
        let is_excused = |early: &Early| early.cause.is_by_definition();
        // What holds it, if that was freed with it or in the next part.
        let holder = |early: &Early| {
            let holder = early.holder.and_then(|(id, _)| index.get(&id).copied())?;
            (self.all[holder].collection <= early.collection + 1).then_some(holder)
        };
        let mut excuses = Vec::new();
        for (at, early) in self.all.iter().enumerate().filter(|(_, early)| !is_excused(early)) {
            let mut seen = FxHashSet::from_iter([at]);
            let mut last = holder(early);
            while let Some(next) = last.filter(|&next| !is_excused(&self.all[next]) && seen.insert(next)) {
                last = holder(&self.all[next]);
            }
            if let Some(last) = last.filter(|&last| is_excused(&self.all[last])) {
                excuses.push((at, self.all[last].cause));
            }
        }
        for (at, cause) in excuses {
            (self.all[at].cause, self.all[at].through) = (cause, true);
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
        let Holders { blamed, passes } = self.holders(&by_slots.map(|(&node, _)| node).collect(), heap, types);
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

    /// Who holds those: a walk through the whole heap, unless there are none.
    fn holders(&self, wanted: &FxHashSet<Node>, heap: &Heap, types: &Types) -> Holders {
        let mut holders = Holders::default();
        if wanted.is_empty() {
            return holders;
        }
        heap.holders(
            |node| wanted.contains(&node),
            |Holder { origin, slot, target }| {
                let Some(node) = origin else {
                    holders.blamed.entry(target).or_insert((Cause::Static(FieldId(slot)), None));
                    return;
                };
                let object = heap.get(node);
                if object.data.early.is_some() {
                    holders.passes.entry(node).or_default().push(target);
                    return;
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
            },
        );
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

/// What holds those that a collection freed.
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
        // What is explained explains first.
        if cause.is_by_definition() { self.queue.push_front(node) } else { self.queue.push_back(node) }
    }
}
