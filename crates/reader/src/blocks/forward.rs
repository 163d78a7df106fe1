//! What remains of the parts, in order: the objects that outlive the part in which they were made, and the references
//! between them. From time to time those that nothing reaches and nothing will name are found to have died, by Merlin as
//! in [`crate::lifetimes`].

mod apply;
mod births;
mod glimpses;
mod used;

use et_format::Nanos;
use rustc_hash::FxHashMap;

pub use self::glimpses::Plan;
use super::glimpse::Glimpse;
use super::living::{Entry, Living};
use super::usage;
use super::weak::{Seen, WeakReferences};
use super::{BlocksError, Kind, Late, LifeRow, RowDeath, Rows, Wanted};
use crate::lifetimes::{HeldByStack, Known as KnownStep, WeakSlots, held_by_stacks};
use crate::model::{ContextId, Contexts, FrameRef, Heap, Marks, Node, Objects, OnStack};
use crate::moment::Moment;
use crate::observed::held::{Candidate, Dead, Held};
use crate::observed::usage::{InUse, Tally, Usage};
use crate::record::{Alloc, AllocKind, ObjectId, RecordKind, Slot, StackId, ThreadId, Totals};
use crate::resolve::thread::Subject;
use crate::resolve::{ObjectIds, Slots};
use crate::stack_contexts::StackContexts;
use crate::survival::{Fates, Marker};
use crate::trace::Trace;
use crate::types::TypeId;
use et_names::{MethodId, SiteId};

/// A step of the trace.
#[derive(Clone, Copy, Debug)]
struct At {
    /// Number of the step, from 0.
    step: u64,
    /// Number of the record, from 1; of the last one, if the step is none.
    record: u64,
    kind: Option<RecordKind>,
    tick: u64,
    bytes: u64,
    time: Option<Nanos>,
    thread: u32,
    context: ContextId,
}

/// The frame in which an object was allocated.
#[derive(Clone, Copy, Debug)]
enum AllocFrame {
    None,
    /// Left at that step.
    Left(u64),
    /// Still running when last looked at: index in `Forward::tracked`.
    Open(u32),
}

/// What a look at all objects of the graph needs of each. The rest, which is several times as large, is kept elsewhere ([`Life`]).
#[derive(Clone, Copy, Debug, Default)]
struct Gist {
    number: u64,
    /// Whether a later part may name it, or the VM holds it to the end.
    in_use: bool,
    is_held: bool,
    /// Whether [`Living`] has it.
    has_key: bool,
}

/// A living object.
#[derive(Debug)]
struct Life {
    alloc: Alloc,
    context: ContextId,
    frame: AllocFrame,
    tick: u64,
    bytes: u64,
    time: Option<Nanos>,
    last_use: u64,
    in_use_as: InUse,
    escaped_thread: bool,
    /// The outermost frame that has used it and is still active.
    holder: Option<FrameRef>,
    /// The last step that is known to have kept it alive.
    last: At,
}

impl Life {
    /// For a place without an object.
    fn vacant() -> Self {
        let alloc = Alloc {
            kind: AllocKind::Initial,
            object: ObjectId::NULL,
            size: 0,
            ty: TypeId::UNKNOWN,
            site: SiteId(0),
            length: 0,
            thread: ThreadId(0),
            stack: StackId::NONE,
        };
        let last =
            At { step: 0, record: 0, kind: None, tick: 0, bytes: 0, time: None, thread: 0, context: ContextId::EMPTY };
        Self {
            alloc,
            context: ContextId::EMPTY,
            frame: AllocFrame::None,
            tick: 0,
            bytes: 0,
            time: None,
            last_use: 0,
            in_use_as: InUse::default(),
            escaped_thread: false,
            holder: None,
            last,
        }
    }
}

/// A frame at the end of a part.
#[derive(Debug)]
struct OpenFrame {
    method: MethodId,
    receiver: Option<Node>,
    serial: u64,
    context: Option<ContextId>,
    /// Index in `Forward::tracked`, if objects were allocated in it that were alive at the end of a part.
    tracked: Option<u32>,
}

/// A frame in which objects were allocated that are alive.
#[derive(Clone, Copy, Debug)]
struct TrackedFrame {
    left: Option<u64>,
    objects: u32,
}

#[derive(Debug, Default)]
struct Stack {
    frames: Vec<OpenFrame>,
    in_flight: Option<Node>,
}

/// A row before it is in order.
#[derive(Clone, Copy, Debug)]
struct Row {
    row: LifeRow,
    step: u64,
    /// Number of the record at that step, or of the last record before it.
    record: u64,
    /// The frame that had used it, unless it is known to have returned.
    holder: Option<FrameRef>,
}

impl Row {
    /// What [`Held`] needs to know. `None` for objects that existed when tracing began: they are not counted.
    fn dead(&self) -> Option<Dead<Kind>> {
        let LifeRow { number, alloc, context, .. } = self.row;
        (alloc.kind != AllocKind::Initial).then(|| Dead {
            record: self.record,
            kind: ((&alloc).into(), context),
            number,
            bytes: alloc.size,
            holder: self.holder,
        })
    }
}

/// Number of rows that wait, and of new objects, at which dead ones are looked for: what it costs to follow the references
/// of all that live is then spread over many.
pub const MOST_ROWS: usize = 1 << 18;

/// The state behind the parts that were applied.
#[derive(Debug)]
pub struct Forward<'t, R> {
    rows: R,
    heap: Heap<Gist>,
    /// What else there is to its objects, by their places.
    lives: Vec<Life>,
    /// Which of its objects may be named.
    pub living: Living,
    /// Those that may be named, if only births are wanted: there is no heap then.
    known: Objects<ObjectId>,
    contexts: Contexts,
    /// The contexts of stacks that the trace has of its own.
    of_stacks: StackContexts,
    trace: &'t Trace,
    stacks: FxHashMap<u32, Stack>,
    tracked: Tracked,
    weak_slots: WeakSlots,
    weak: WeakReferences,
    /// What slots hold, if only births are wanted.
    slots: Slots,
    /// Where walks through the heap are between births, if only those are wanted.
    marker: Option<Marker>,
    /// What weak slots hold according to the stores alone.
    stored_weakly: FxHashMap<ObjectId, ObjectId>,
    waiting: Vec<Row>,
    late: Vec<Row>,
    clearings: Vec<(u64, KnownStep)>,
    late_clearings: Vec<(u64, KnownStep)>,
    /// Number of rows and of clearings that were passed on in order.
    in_order: u64,
    cleared_in_order: u64,
    /// Deaths at earlier steps have been passed on.
    passed_on: u64,
    /// Objects alive after the last look for dead ones.
    alive: usize,
    /// What there is so far.
    pub sums: Sums,
    entries: u64,
    noted: Option<u64>,
    held: Held<Kind>,
    usage: Tally,
    about_usage: usage::Known<'t>,
    glimpses: glimpses::Taken,
    wanted: Wanted,
    most_rows: usize,
}

/// Sums over the parts that were applied.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub most_alive: usize,
    pub steps: u64,
    pub records: u64,
    pub ticks: u64,
    pub bytes: u64,
    pub births: u64,
    pub time: Option<Nanos>,
    pub totals: Totals,
    /// Number of records by thread, computed ones not counted.
    pub of_thread: FxHashMap<u32, u64>,
}

impl Sums {
    /// How far the trace has come.
    pub fn moment(&self) -> Moment {
        Moment { tick: self.ticks, bytes: self.bytes, nanos: self.time.map(|time| time.0) }
    }
}

/// Frames in which objects were allocated that are alive.
#[derive(Debug, Default)]
struct Tracked {
    all: Vec<TrackedFrame>,
    free: Vec<u32>,
}

impl Tracked {
    fn add(&mut self) -> u32 {
        let new = TrackedFrame { left: None, objects: 0 };
        match self.free.pop() {
            Some(place) => {
                self.all[place as usize] = new;
                place
            }
            None => {
                self.all.push(new);
                self.all.len() as u32 - 1
            }
        }
    }

    fn leave(&mut self, place: u32, step: u64) {
        let frame = &mut self.all[place as usize];
        frame.left = Some(step);
        if frame.objects == 0 {
            self.free.push(place);
        }
    }

    /// An object has died that was allocated in it.
    fn drop_object(&mut self, place: u32) {
        let frame = &mut self.all[place as usize];
        frame.objects -= 1;
        if frame.objects == 0 && frame.left.is_some() {
            self.free.push(place);
        }
    }
}

impl<'t, R: Rows> Forward<'t, R> {
    /// Begins before the first part. `most_rows` as [`MOST_ROWS`].
    pub fn new(
        rows: R,
        trace: &'t Trace,
        marker: Option<Marker>,
        weak_slots: WeakSlots,
        wanted: Wanted,
        most_rows: usize,
        plan: Plan,
    ) -> Self {
        Self {
            rows,
            heap: Heap::default(),
            lives: Vec::new(),
            living: Living::default(),
            known: Objects::default(),
            contexts: Contexts::default(),
            of_stacks: StackContexts::default(),
            trace,
            stacks: FxHashMap::default(),
            tracked: Tracked::default(),
            weak_slots,
            weak: WeakReferences::default(),
            slots: Slots::default(),
            marker,
            stored_weakly: FxHashMap::default(),
            waiting: Vec::new(),
            late: Vec::new(),
            clearings: Vec::new(),
            late_clearings: Vec::new(),
            in_order: 0,
            cleared_in_order: 0,
            passed_on: 0,
            alive: 0,
            sums: Sums::default(),
            entries: 0,
            noted: None,
            held: Held::default(),
            usage: Tally::default(),
            about_usage: usage::Known::of(trace),
            glimpses: glimpses::Taken::by(plan),
            wanted,
            most_rows,
        }
    }

    fn now(&self, kind: Option<RecordKind>) -> At {
        At {
            step: self.sums.steps,
            record: self.sums.records + u64::from(kind.is_some()),
            kind,
            tick: self.sums.ticks,
            bytes: self.sums.bytes,
            time: self.sums.time,
            thread: 0,
            context: ContextId::EMPTY,
        }
    }

    /// Takes a place for an object that a part has made.
    pub fn reserve(&mut self) -> Node {
        match self.wanted {
            Wanted::Births => self.known.reserve(|| ObjectId::NULL),
            Wanted::Deaths | Wanted::Uses => {
                let place = self.heap.reserve(Gist::default);
                if place.0 as usize >= self.lives.len() {
                    self.lives.resize_with(place.0 as usize + 1, Life::vacant);
                }
                place
            }
        }
    }

    /// Adds an object at a reserved place.
    fn fill(&mut self, node: Node, gist: Gist, life: Life) {
        self.heap.fill(node, life.alloc.object, gist);
        self.lives[node.0 as usize] = life;
    }

    #[inline]
    fn life(&mut self, node: Node) -> &mut Life {
        &mut self.lives[node.0 as usize]
    }

    /// The place of an object that existed when tracing began.
    pub fn initial_node(&self, object: ObjectId) -> Option<Node> {
        self.living.get(u32::try_from(object.0).ok()?).map(Entry::node)
    }

    /// Adds an object that existed when tracing began, and whether blocks may name it, or the VM.
    pub fn initial_object(&mut self, alloc: Alloc, is_held: bool, (in_blocks, by_vm): (bool, bool)) {
        match self.wanted {
            Wanted::Births => self.initial_birth(alloc, (in_blocks, by_vm)),
            Wanted::Deaths | Wanted::Uses => self.initial_life(alloc, is_held, (in_blocks, by_vm)),
        }
        self.sums.births += 1;
        self.sums.steps += 1;
        self.sums.records += 1;
        self.sums.totals.0[RecordKind::Initial as usize] += 1;
        *self.sums.of_thread.entry(0).or_default() += 1;
    }

    fn initial_life(&mut self, alloc: Alloc, is_held: bool, (in_blocks, by_vm): (bool, bool)) {
        self.weak_slots.saw(&alloc);
        let last = self.now(Some(RecordKind::Initial));
        self.glimpses.bytes += alloc.size;
        let node = self.reserve();
        self.living.add(alloc.object.0 as u32, Entry::new(node, in_blocks, by_vm));
        self.fill(
            node,
            Gist { number: self.sums.births, in_use: in_blocks || by_vm, is_held, has_key: true },
            Life {
                alloc,
                context: ContextId::EMPTY,
                frame: AllocFrame::None,
                tick: last.tick,
                bytes: last.bytes,
                time: last.time,
                last_use: last.tick,
                in_use_as: InUse::default(),
                escaped_thread: false,
                holder: None,
                last,
            },
        );
    }

    /// A step that no record shows: the target of a slot when tracing began.
    pub fn initial_reference(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) {
        let at = self.now(None);
        self.sums.steps += 1;
        if self.wanted == Wanted::Births {
            return self.initial_slot(origin, slot, target);
        }
        let (origin_node, target_node) = (self.initial_node(origin), self.initial_node(target));
        for node in [origin_node, target_node].into_iter().flatten() {
            self.life(node).last = at;
        }
        if self.weak_slots.is_weak(origin, slot) {
            self.stored_weakly.insert(origin, target);
            self.put_weak(at.step, ObjectId::NULL, origin_node, slot, target_node);
        } else {
            self.put(origin.is_null(), origin_node, slot, target_node);
        }
    }

    /// Stores to a slot of an object, or to a static field. Returns the old target.
    fn put(&mut self, is_static: bool, origin: Option<Node>, slot: Slot, target: Option<Node>) -> Option<Node> {
        match origin {
            Some(origin) => self.heap.put_in(origin, slot, target),
            None if is_static => self.heap.put_static(slot, target),
            None => None,
        }
    }

    /// The VM holds the object to the end.
    pub fn hold(&mut self, node: Node) {
        // Where only births are wanted, nothing dies.
        if self.wanted != Wanted::Births {
            self.heap.data(node).is_held = true;
        }
    }

    fn put_weak(&mut self, step: u64, old: ObjectId, origin: Option<Node>, slot: Slot, target: Option<Node>) {
        let Some(reference) = origin else { return };
        let id = self.heap.get(reference).id;
        let cleared = self.weak.put(step, old, (id, reference), slot, target);
        self.clearings.extend(cleared.map(|cleared| (step, cleared)));
    }

    /// Finds what has died so far, and passes it on.
    fn look_for_dead(&mut self, is_end: bool) {
        if self.wanted == Wanted::Deaths {
            self.collect();
        }
        if is_end {
            self.weak.end(|node| self.heap.get(node).id, &mut self.clearings);
        }
        self.alive = self.heap.len();
        // Rows are large: their places are sorted, not they.
        let mut order: Vec<(u64, u32)> = self.waiting.iter().zip(0..).map(|(row, at)| (row.step, at)).collect();
        // Each part comes in order, so there are few runs to merge.
        order.sort();
        self.sums.totals.0[RecordKind::Death as usize] += order.len() as u64;
        for (step, at) in order {
            let row = self.waiting[at as usize];
            if let Some(dead) = row.dead() {
                self.held.tidy(|holder| running(&self.stacks, &holder).is_some());
                self.held.died(&dead);
            }
            match step < self.passed_on {
                true => self.late.push(row),
                false => {
                    self.in_order += 1;
                    self.rows.row(&row.row);
                }
            }
        }
        self.waiting.clear();
        self.clearings.sort_by_key(|(step, clearing)| (*step, objects_of(clearing)));
        for (step, clearing) in std::mem::take(&mut self.clearings) {
            self.sums.totals.0[RecordKind::Update as usize] += u64::from(matches!(clearing, KnownStep::Found { .. }));
            match step < self.passed_on {
                true => self.late_clearings.push((step, clearing)),
                false => {
                    self.cleared_in_order += 1;
                    self.rows.clearing(&clearing);
                }
            }
        }
        self.passed_on = self.sums.steps;
    }

    fn collect(&mut self) {
        let Self { heap, lives, stacks, .. } = self;
        let mut living = Marks::default();
        heap.unmark(&mut living);
        let receivers = stacks.values().flat_map(|stack| &stack.frames).filter_map(|frame| frame.receiver);
        let held = heap.iter().filter(|(_, object)| object.data.is_held).map(|(node, _)| node);
        for root in heap.statics().map(|(_, held)| held).chain(held).chain(receivers) {
            heap.follow(root, &mut living, |_| {});
        }
        let certain = living.clone();
        // Another exception may take the place of one in flight, which has died long before if nothing else names it.
        let in_flight = stacks.values().filter_map(|stack| stack.in_flight);
        let in_use = heap.iter().filter(|(_, object)| object.data.in_use).map(|(node, _)| node);
        for root in in_use.chain(in_flight) {
            heap.follow(root, &mut living, |_| {});
        }
        let dead = heap.iter().filter(|&(node, _)| !living.contains(node));
        // Latest first; ids only make the order deterministic.
        let mut dead: Vec<_> =
            dead.map(|(node, object)| (std::cmp::Reverse(lives[node.0 as usize].last.step), object.id, node)).collect();
        dead.sort_unstable();
        let mut deaths = Vec::with_capacity(dead.len());
        let mut seen = living.clone();
        for &(_, _, first) in &dead {
            let found = deaths.len();
            heap.follow(first, &mut seen, |node| deaths.push(node));
            let last = lives[first.0 as usize].last;
            for &node in &deaths[found..] {
                lives[node.0 as usize].last = last;
            }
        }
        // What lives on was held until then. That matters if it is dead as well, and only seems to be named again.
        let mut held = Vec::new();
        for &node in &deaths {
            heap.get(node).refs().for_each(|target| held.extend(living.contains(target).then_some(target)));
            let last = lives[node.0 as usize].last;
            for target in held.drain(..) {
                let life = &mut lives[target.0 as usize];
                if life.last.step < last.step {
                    life.last = last;
                }
            }
        }
        self.clear_weak(&living, &certain);
        // Holders stay before what they hold.
        for node in deaths {
            let row = self.row_of(node, true);
            let life = &self.lives[node.0 as usize];
            self.usage.over(&life.alloc, self.about_usage.kind(life.alloc.ty), &life.in_use_as);
            if let AllocFrame::Open(place) = life.frame {
                self.tracked.drop_object(place);
            }
            self.glimpses.bytes -= row.row.alloc.size;
            let id = row.row.alloc.object;
            self.stored_weakly.remove(&id);
            self.waiting.push(row);
            if self.heap.get(node).data.has_key {
                self.living.died(key_of(id), node);
            }
            self.heap.free(node);
        }
    }

    fn row_of(&self, node: Node, is_dead: bool) -> Row {
        let life = &self.lives[node.0 as usize];
        let At { step, record, .. } = life.last;
        let has_left = |left: u64| !is_dead || left < step;
        let escaped_frame = match life.frame {
            AllocFrame::None => None,
            AllocFrame::Left(left) => Some(has_left(left)),
            AllocFrame::Open(place) => Some(self.tracked.all[place as usize].left.is_some_and(has_left)),
        };
        // An object that a frame has in hand that has ended since is held by it no more.
        Row {
            step,
            record,
            holder: life.holder.filter(|holder| is_dead && running(&self.stacks, holder).is_some()),
            row: LifeRow {
                number: self.heap.get(node).data.number,
                alloc: life.alloc,
                context: life.context,
                tick: life.tick,
                bytes: life.bytes,
                time: life.time,
                last_use: life.last_use,
                escaped_thread: life.escaped_thread,
                escaped_frame,
                death: is_dead.then(|| death(&life.last)),
            },
        }
    }

    fn clear_weak(&mut self, living: &Marks, certain: &Marks) {
        let Self { heap, lives, weak, clearings, .. } = self;
        let seen = |node: Node| {
            let At { step, thread, .. } = lives[node.0 as usize].last;
            let id = heap.get(node).id;
            Seen { id, step, thread, is_dead: !living.contains(node), is_alive: certain.contains(node) }
        };
        weak.clear(seen, clearings);
    }

    /// Ends the trace. Returns the sums, what only stacks hold, and what only local variables may hold.
    pub fn finish(mut self) -> Finished<R> {
        // Nothing is in flight on a stack without frames, but until now others might have followed.
        self.stacks.retain(|_, stack| !stack.frames.is_empty());
        self.look_for_dead(true);
        let glimpses = self.all_glimpses();
        self.late_clearings.sort_by_key(|(step, _)| *step);
        for (_, clearing) in &self.late_clearings {
            self.rows.clearing(clearing);
        }
        let late = Late {
            rows: self.in_order..self.in_order + self.late.len() as u64,
            clearings: self.cleared_in_order..self.cleared_in_order + self.late_clearings.len() as u64,
        };
        let mut rows = std::mem::take(&mut self.late);
        rows.sort_by_key(|row| row.step);
        let mut alive: Vec<Node> = self.heap.iter().map(|(node, _)| node).collect();
        alive.sort_unstable_by_key(|&node| self.heap.get(node).data.number);
        rows.iter().for_each(|row| self.rows.row(&row.row));
        for node in alive {
            let row = self.row_of(node, false);
            let life = &self.lives[node.0 as usize];
            self.usage.remains(&life.alloc, self.about_usage.kind(life.alloc.ty), &life.in_use_as);
            self.rows.row(&row.row);
        }
        let held = std::mem::take(&mut self.held);
        let held_by_locals = held.at_end(|holder| Some(running(&self.stacks, &holder)?.method));
        let by_vm = self.heap.iter().filter(|(_, object)| object.data.is_held).map(|(node, _)| node);
        let held_by_stacks = match self.wanted {
            Wanted::Deaths => held_by_stacks(&self.heap, self.on_stacks(), by_vm),
            Wanted::Uses | Wanted::Births => Vec::new(),
        };
        let frames_left = self.stacks.iter().map(|(&thread, stack)| (thread, stack.frames.len()));
        let frames_left = frames_left.filter(|(_, frames)| *frames > 0).collect();
        let fates = self.marker.take().map(|marker| marker.finish(self.sums.moment(), self.sums.births));
        Finished {
            rows: self.rows,
            contexts: self.contexts,
            fates,
            usage: if self.wanted == Wanted::Deaths { self.usage.finish() } else { Usage::default() },
            glimpses,
            sums: self.sums,
            late,
            held_by_stacks,
            held_by_locals,
            frames_left,
        }
    }

    /// Everything held by methods that have not returned: by thread, outermost first, exceptions in flight last.
    fn on_stacks(&self) -> Vec<(OnStack, Node)> {
        let mut stacks: Vec<(&u32, &Stack)> = self.stacks.iter().collect();
        stacks.sort_unstable_by_key(|(thread, _)| **thread);
        let mut all = Vec::new();
        for (&thread, stack) in stacks {
            let receivers = stack.frames.iter().map(|frame| (frame.method, frame.receiver, false));
            let in_flight = stack.frames.last().map(|top| (top.method, stack.in_flight, true));
            for (method, node, is_in_flight) in receivers.chain(in_flight) {
                let Some(node) = node else { continue };
                let object = self.heap.get(node).id;
                all.push((OnStack { thread: ThreadId(thread), method, object, is_in_flight }, node));
            }
        }
        all
    }
}

/// What there is at the end.
#[derive(Debug)]
pub struct Finished<R> {
    pub rows: R,
    pub contexts: Contexts,
    pub usage: Usage,
    pub glimpses: Vec<Glimpse>,
    pub sums: Sums,
    pub late: Late,
    pub held_by_stacks: Vec<HeldByStack>,
    pub held_by_locals: Vec<Candidate<Kind>>,
    /// Threads whose stacks were not empty, with the number of their frames.
    pub frames_left: Vec<(u32, usize)>,
    pub fates: Option<Fates>,
}

/// What events call an object: its hash, or its id if it was made up.
fn key_of(id: ObjectId) -> u64 {
    if id.0 & Subject::MADE_UP != 0 { id.0 } else { ObjectIds::hash(id).0.into() }
}

/// The frame, if it still runs.
fn running<'s>(stacks: &'s FxHashMap<u32, Stack>, holder: &FrameRef) -> Option<&'s OpenFrame> {
    let frame = stacks.get(&holder.thread.0)?.frames.get(holder.depth as usize)?;
    (frame.serial == holder.serial).then_some(frame)
}

/// What orders the clearings of a step.
fn objects_of(clearing: &KnownStep) -> [ObjectId; 3] {
    match clearing {
        KnownStep::Found { record, .. } => record.objects(),
        KnownStep::Cleared { .. } => [ObjectId::NULL; 3],
    }
}

fn death(at: &At) -> RowDeath {
    RowDeath {
        step: at.step,
        record: at.kind.map(|kind| (kind, at.record)),
        tick: at.tick,
        bytes: at.bytes,
        time: at.time,
        thread: ThreadId(at.thread),
        context: at.context,
    }
}
