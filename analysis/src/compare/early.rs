//! Objects that the collector freed although the trace holds them alive: why does it?

use std::collections::VecDeque;

use et_format::event::ObjectHash;
use et_names::FieldId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::heap::{Heap, Mention};
use et_trace::Trace;
use et_trace::model::{Node, Stacks};
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
        let (collection, at) = at;
        let is_array = |ty| types.descriptor(ty).starts_with('[');
        for &node in freed {
            let index = self.all.len() as u32;
            let object = heap.get_mut(node);
            object.early = Some(index);
            self.all.push(Early {
                id: object.id,
                ty: object.ty,
                size: object.size,
                cause: Cause::Unknown,
                through: false,
                holder: None,
                born: object.born,
                last: object.last,
                collection,
                at,
                later: None,
            });
        }
        let new: FxHashSet<Node> = freed.iter().copied().collect();
        let mut running = FxHashSet::default();
        running.extend(stacks.receivers().filter_map(|id| heap.node(id)));
        let mut in_flight = FxHashSet::default();
        in_flight.extend(stacks.in_flight().filter_map(|id| heap.node(id)));
        // Who holds them: those that the collector holds as well are to blame, the others only pass it on.
        let mut blamed: FxHashMap<Node, (Cause, Option<Node>)> = FxHashMap::default();
        let mut passes: FxHashMap<Node, Vec<Node>> = FxHashMap::default();
        for (field, target) in heap.statics().filter(|(_, target)| new.contains(target)) {
            blamed.entry(target).or_insert((Cause::Static(FieldId(field)), None));
        }
        for (node, object) in heap.iter() {
            object.refs.for_each_slot(|slot, target| {
                if !new.contains(&target) {
                    return;
                }
                if object.early.is_some() {
                    passes.entry(node).or_default().push(target);
                    return;
                }
                let cause = match object.id {
                    ObjectId(id) if id >> 31 != 0 || !(id as u32).is_multiple_of(self.share) => Cause::Unasked,
                    _ if is_array(object.ty) => Cause::Element,
                    _ => Cause::Field(FieldId(slot)),
                };
                let blame = blamed.entry(target).or_insert((cause, Some(node)));
                if blame.0 == Cause::Unasked {
                    *blame = (cause, Some(node));
                }
            });
        }
        let mut queue = VecDeque::new();
        let mut unexplained = Vec::new();
        for &node in freed {
            let object = heap.get(node);
            let hash = ObjectHash(object.id.0 as u32 & 0x7fff_ffff);
            let is_kept = self.to_the_end.contains(&object.id);
            let is_start = is_kept && object.kind == AllocKind::Initial;
            let cause = match blamed.get(&node) {
                _ if running.contains(&node) => Some((Cause::Running, None)),
                _ if in_flight.contains(&node) => Some((Cause::InFlight, None)),
                _ if is_kept && object.kind == AllocKind::Vm && Some(object.ty) == self.string => {
                    Some((Cause::Constant, None))
                }
                _ if Some(object.ty) == self.class || self.loaders.contains(&hash) => Some((Cause::Class, None)),
                _ if self.threads.contains(&hash) => Some((Cause::Thread, None)),
                Some(&blamed) => Some(blamed),
                None => None,
            };
            let Some(index) = object.early else { continue };
            match cause {
                Some((cause, holder)) => {
                    let early = &mut self.all[index as usize];
                    early.cause = cause;
                    early.holder = holder.map(|holder| (heap.get(holder).id, heap.get(holder).ty));
                    // What is explained explains first.
                    if cause.is_by_definition() { queue.push_front(node) } else { queue.push_back(node) }
                }
                None => unexplained.push((node, is_start)),
            }
        }
        // Earlier ones hold as they did.
        queue.extend(passes.keys().filter(|node| !new.contains(node)).copied());
        let mut seen: FxHashSet<Node> = queue.iter().copied().collect();
        self.pass_on(&mut queue, &mut seen, &passes, heap);
        // Held by none of those: mentioned again, or held from the start, or in circles.
        for is_wanted_start in [true, false] {
            for &(node, is_start) in &unexplained {
                if seen.contains(&node) || is_start != is_wanted_start {
                    continue;
                }
                if let (true, Some(index)) = (is_start, heap.get(node).early) {
                    self.all[index as usize].cause = Cause::Start;
                }
                seen.insert(node);
                queue.push_back(node);
                self.pass_on(&mut queue, &mut seen, &passes, heap);
            }
        }
    }

    fn pass_on(
        &mut self,
        queue: &mut VecDeque<Node>,
        seen: &mut FxHashSet<Node>,
        passes: &FxHashMap<Node, Vec<Node>>,
        heap: &Heap,
    ) {
        while let Some(node) = queue.pop_front() {
            let from = heap.get(node);
            let Some(cause) = from.early.map(|index| self.all[index as usize].cause) else { continue };
            for &target in passes.get(&node).into_iter().flatten() {
                if seen.insert(target)
                    && let Some(index) = heap.get(target).early
                {
                    let early = &mut self.all[index as usize];
                    (early.cause, early.through, early.holder) = (cause, true, Some((from.id, from.ty)));
                    queue.push_back(target);
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
