//! A part in order: what it makes, stores and names becomes part of the graph, what has died in it becomes rows.

use et_format::Nanos;
use rustc_hash::FxHashMap;

use super::super::local::{Caller, Dead, Known, Nodes, Settled, Stored};
use super::super::usage::{FieldStore, InOrder};
use super::super::walk::{NONE, Named, Part, Put, Stamp};
use super::super::{BlocksError, LifeRow, Rows, Wanted};
use super::{AllocFrame, At, Forward, Gist, Life, OpenFrame, Row, Stack, Sums, death, key_of, running};
use crate::model::{ContextId, Contexts, FrameRef, Node};
use crate::observed::usage::InUse;
use crate::record::{Alloc, ObjectId, RecordKind, Slot, StackId, ThreadId};

/// The context of a frame, relative or absolute.
fn context_of(caller: Caller, frames: &mut [OpenFrame], nodes: &[ContextId], all: &mut Contexts) -> ContextId {
    let frame = match caller {
        Caller::Nothing => return ContextId::EMPTY,
        Caller::Node(node) => return nodes[node as usize],
        Caller::Base(frame) => frame as usize,
    };
    if let Some(known) = frames[frame].context {
        return known;
    }
    let known = frames[..frame].iter().rposition(|frame| frame.context.is_some());
    let mut context = known.and_then(|at| frames[at].context).unwrap_or_default();
    for frame in &mut frames[known.map_or(0, |at| at + 1)..=frame] {
        context = all.call(context, frame.method);
        frame.context = Some(context);
    }
    context
}

/// A part that is being applied.
pub(super) struct Applying<'p> {
    pub known: &'p Known,
    pub part: &'p Part,
    /// Of its objects, by number; `NONE` for those that died in it, or that no longer exist.
    pub places: Vec<u32>,
    pub stack: Stack,
    /// The calling contexts that it needs.
    contexts: Vec<ContextId>,
    /// Places in [`Forward::tracked`] of frames entered in the part.
    tracked: FxHashMap<u32, u32>,
}

impl Applying<'_> {
    #[inline]
    pub fn node(&self, number: u32) -> Option<Node> {
        self.places.get(number as usize).filter(|&&place| place != NONE).map(|&place| Node(place))
    }

    /// Whether an object is older than the part, and no longer exists.
    #[inline]
    fn lacks(&self, number: u32) -> bool {
        self.places.get(number as usize) == Some(&NONE) && self.part.named[number as usize].birth == NONE
    }

    #[inline]
    pub fn context(&mut self, caller: Caller, all: &mut Contexts) -> ContextId {
        context_of(caller, &mut self.stack.frames, &self.contexts, all)
    }
}

/// What is known of the steps once the old targets of slots are.
#[derive(Debug, Default)]
struct Steps {
    /// Steps that are none, since the slot held the same target before.
    unchanged: Vec<u32>,
    /// Objects, by number, used by stores that might have been none.
    used: Vec<(u32, Stamp)>,
    /// Objects that such stores have named, and the frame that stored, if it is still active at the end of the part.
    in_hand: Vec<(Node, FrameRef)>,
    /// Objects that such stores have named, and those that have lost a reference.
    named: Vec<(Node, Stamp, Caller)>,
    in_order: InOrder,
}

impl Steps {
    /// A store that might have been none has changed its slot: it uses its origin, and names origin and target.
    fn changed(
        &mut self,
        (at, in_context): (Stamp, Caller),
        origin: u32,
        names: [Option<Node>; 2],
        by: Option<FrameRef>,
    ) {
        self.used.push((origin, at));
        for node in names.into_iter().flatten() {
            self.in_hand.extend(by.map(|frame| (node, frame)));
            self.named.push((node, at, in_context));
        }
    }
}

/// A store into a weak slot: step, the target before it according to the stores alone, reference, slot, target.
type WeakStore = (u32, ObjectId, Option<Node>, Slot, Option<Node>);

/// From what is relative to a part to what holds for the trace.
pub(super) struct Scale<'a> {
    part: &'a Part,
    step: u64,
    record: u64,
    tick: u64,
    bytes: u64,
    /// Steps that are none, in ascending order.
    pub unchanged: Vec<u32>,
    /// Since when it is how late.
    times: Vec<(u32, Nanos)>,
    before: Option<Nanos>,
}

impl Scale<'_> {
    fn step_of(&self, step: u32) -> u64 {
        self.step + u64::from(step) - self.unchanged.partition_point(|unchanged| *unchanged < step) as u64
    }

    pub fn time_at(&self, step: u32) -> Option<Nanos> {
        let count = self.times.partition_point(|(from, _)| *from <= step);
        count.checked_sub(1).map_or(self.before, |last| Some(self.times[last].1))
    }

    fn at(&self, stamp: Stamp, context: ContextId) -> At {
        let step = self.step_of(stamp.step);
        let holds = self.part.holds.partition_point(|(hold, _)| *hold <= stamp.step);
        let kind = RecordKind::ALL.get(usize::from(stamp.kind)).copied();
        let (thread, context) = match kind {
            Some(_) => (self.part.thread, context),
            None => (holds.checked_sub(1).map_or(self.part.thread, |last| self.part.holds[last].1), ContextId::EMPTY),
        };
        At {
            step,
            record: self.record + (step - self.step) + 1 - holds as u64,
            kind,
            tick: self.tick + self.part.advance(stamp.tick),
            bytes: self.bytes + self.part.bytes_at(stamp.step),
            time: self.time_at(stamp.step),
            thread,
            context,
        }
    }
}

impl<R: Rows> Forward<'_, R> {
    /// The context of an allocation: that of its stack, if the trace has one, or that of the methods that have been entered.
    pub(super) fn born_in(&mut self, part: &mut Applying<'_>, alloc: &Alloc, caller: Caller) -> ContextId {
        if alloc.stack == StackId::NONE {
            return part.context(caller, &mut self.contexts);
        }
        self.of_stacks.of(alloc.stack, &self.trace.stacks, &mut self.contexts)
    }

    /// Times, with the first step that each applies to. Threads take turns, so a later part may have an earlier one.
    fn note(&mut self, part: &Part) -> Vec<(u32, Nanos)> {
        let mut times = Vec::new();
        for (step, wall) in part.times.iter().filter(|(step, _)| *step < part.steps) {
            if self.noted.is_none_or(|last| wall.begin.0 > last) {
                self.noted = Some(wall.begin.0);
                times.push((*step, wall.begin));
            }
        }
        times
    }

    /// Applies the next part.
    ///
    /// # Errors
    /// [`BlocksError::Surprise`] if it names an object that was found dead.
    pub fn apply(&mut self, settled: Settled) -> Result<(), BlocksError> {
        if self.wanted == Wanted::Births {
            return self.apply_births(settled);
        }
        let Settled { mut known, nodes, dead, died, stored, weak, unchanged, born_in, last_in, usage } = settled;
        let places = std::mem::take(&mut known.nodes);
        let mut part = self.begin(&known, places, &nodes)?;
        self.add_births(&mut part, &died, &born_in, &usage.made);
        // Stores tell what steps there are.
        let mut steps = Steps { unchanged, ..Steps::default() };
        let if_not = |stored: &Stored| stored.first.and_then(|first| first.if_not).unwrap_or(NONE);
        let in_stores = stored.iter().flat_map(|stored| [stored.origin, stored.target, if_not(stored)]);
        let in_weak_stores = weak.iter().flat_map(|(put, _)| [put.origin, put.target]);
        if in_stores.chain(in_weak_stores).any(|number| part.lacks(number)) {
            return Err(BlocksError::Surprise);
        }
        self.store(&part, &stored, &mut steps);
        let weakly = self.store_weakly(&part, &weak, &mut steps);
        let scale = self.scale(&known, steps.unchanged);
        for (step, old, origin, slot, target) in weakly {
            self.put_weak(scale.step_of(step), old, origin, slot, target);
        }
        self.name(&mut part, &scale, &died, &last_in)?;
        self.name_also(&mut part, &scale, &steps.used, steps.named);
        for (node, frame) in steps.in_hand {
            self.hold_in_hand(&part, node, Some(frame));
        }
        self.add_dead(&mut part, &scale, &dead);
        self.add_usage(&part, &died, &scale.unchanged, &steps.in_order, usage);
        self.leave_and_enter(part, &scale);
        for &(key, node) in &known.last_named {
            if self.is_at(key, node) {
                self.heap.data(node).in_use = false;
            }
        }
        let unchanged = scale.unchanged.len() as u64;
        self.sum_up(&known, unchanged);
        let enough = self.most_rows.max(self.alive / 4);
        let is_enough = self.waiting.len() + self.heap.len().saturating_sub(self.alive) >= enough;
        if self.is_look_due(&known) || is_enough {
            self.look_for_dead(false);
            self.consider_peak(known.part.ticket);
        }
        self.take_glimpse(&known);
        Ok(())
    }

    pub(super) fn begin<'p>(
        &mut self,
        known: &'p Known,
        places: Vec<u32>,
        nodes: &Nodes,
    ) -> Result<Applying<'p>, BlocksError> {
        let (thread, expected) = (known.part.thread, known.part.base as usize);
        let stack = self.stacks.remove(&thread).unwrap_or_default();
        let found = stack.frames.len();
        if found != expected {
            return Err(BlocksError::Stack { thread, expected, found });
        }
        let contexts = Vec::with_capacity(nodes.all.len());
        let mut part = Applying { known, part: &known.part, places, stack, contexts, tracked: FxHashMap::default() };
        self.check_places(&mut part);
        for &(caller, method) in &nodes.all {
            let caller = part.context(caller, &mut self.contexts);
            part.contexts.push(self.contexts.call(caller, method));
        }
        Ok(part)
    }

    /// Forgets the places of older objects that were found dead meanwhile.
    fn check_places(&self, part: &mut Applying<'_>) {
        // What a part names lies anywhere. Read in a loop that does nothing else, it comes into the cache at the same time.
        let touch = |&place: &u32| {
            let life = self.lives.get(place as usize)?;
            Some(life.last.step ^ life.last_use ^ u64::from(life.holder.is_some()))
        };
        std::hint::black_box(part.places.iter().filter_map(touch).fold(0, |sum, read| sum ^ read));
        for (named, place) in part.part.named.iter().zip(&mut part.places) {
            if named.birth == NONE && *place != NONE && !self.is_at(named.key, Node(*place)) {
                *place = NONE;
            }
        }
    }

    /// Whether the object with this hash, or id, is in that place.
    #[inline]
    pub(super) fn is_at(&self, key: u64, node: Node) -> bool {
        let id = match self.wanted {
            Wanted::Births => self.known[node],
            Wanted::Deaths | Wanted::Uses => self.heap.get(node).id,
        };
        !id.is_null() && key_of(id) == key
    }

    /// How what is relative to the part is told from now on.
    pub(super) fn scale<'p>(&mut self, known: &'p Known, mut unchanged: Vec<u32>) -> Scale<'p> {
        unchanged.sort_unstable();
        let before = self.sums.time;
        let times = self.note(&known.part);
        self.sums.time = times.last().map_or(before, |(_, time)| Some(*time));
        let Sums { steps: step, records: record, .. } = self.sums;
        Scale { part: &known.part, step, record, tick: known.ticks, bytes: known.bytes, unchanged, times, before }
    }

    /// Adds the objects that were made here and remain.
    fn add_births(&mut self, part: &mut Applying<'_>, died: &[bool], born_in: &[Caller], made: &[InUse]) {
        let Applying { known, .. } = *part;
        for (number, named) in known.part.named.iter().enumerate().filter(|(_, named)| named.birth != NONE) {
            let birth = &known.part.births[named.birth as usize];
            self.weak_slots.saw(&birth.alloc);
            if died[number] {
                continue;
            }
            let tick = known.tick(birth.tick);
            let life = Life {
                alloc: birth.alloc,
                context: self.born_in(part, &birth.alloc, born_in[number]),
                tick,
                bytes: known.bytes + birth.bytes,
                last_use: tick,
                in_use_as: made.get(number).copied().unwrap_or_default(),
                last: At { step: 0, thread: known.part.thread, ..self.now(None) },
                ..Life::vacant()
            };
            let has_key = part.places[number] != NONE;
            let gist = Gist { number: known.births + u64::from(named.birth), has_key, ..Gist::default() };
            if part.places[number] == NONE {
                part.places[number] = self.reserve().0;
            }
            self.glimpses.bytes += birth.alloc.size;
            self.fill(Node(part.places[number]), gist, life);
        }
    }

    /// Stores into slots that keep what they hold.
    fn store(&mut self, part: &Applying<'_>, stored: &[Stored], steps: &mut Steps) {
        for &Stored { origin, slot, target, first } in stored {
            let (of, to) = (part.node(origin), part.node(target));
            let old = self.put(origin == NONE, of, slot, to);
            let Some(first) = first else { continue };
            if origin != NONE && matches!(slot, Slot::Element(_)) {
                steps.in_order.held.push(old.is_some());
            }
            if let Some(target) = first.if_not {
                let target = part.node(target);
                if old == target {
                    steps.unchanged.push(first.at.step);
                    continue;
                }
                let by = self.holder(part.part, first.at.frame, &part.stack);
                steps.changed((first.at, first.in_context), origin, [of, target], by);
            }
            steps.named.extend(old.map(|old| (old, first.at, first.in_context)));
        }
    }

    /// Stores into slots that may be weak. Returns what is stored into those that are.
    fn store_weakly(&mut self, part: &Applying<'_>, weak: &[(Put, Caller)], steps: &mut Steps) -> Vec<WeakStore> {
        let mut weakly = Vec::new();
        for (put, in_context) in weak {
            let (of, to) = (part.node(put.origin), part.node(put.target));
            let [origin, target] = [of, to].map(|node| node.map_or(ObjectId::NULL, |node| self.heap.get(node).id));
            let (mut lost, is_same);
            if self.weak_slots.put(origin, put.slot, target) {
                let old = match target {
                    ObjectId::NULL => self.stored_weakly.remove(&origin),
                    target => self.stored_weakly.insert(origin, target),
                };
                let old = old.unwrap_or_default();
                (lost, is_same) = (None, old == target);
                if !(put.if_changed && is_same) {
                    weakly.push((put.at.step, old, of, put.slot, to));
                }
            } else {
                lost = self.put(put.origin == NONE, of, put.slot, to);
                is_same = lost == to;
            }
            if put.if_changed && is_same {
                steps.unchanged.push(put.at.step);
                continue;
            }
            if let (Slot::Field(field), true) = (put.slot, put.target != NONE) {
                let &Put { at: Stamp { step, .. }, origin, target, .. } = put;
                steps.in_order.weak.push(FieldStore { step, origin, target, field });
            }
            if put.if_changed {
                let by = self.holder(part.part, put.at.frame, &part.stack);
                steps.changed((put.at, *in_context), put.origin, [of, to], by);
            }
            steps.named.extend(lost.take().map(|old| (old, put.at, *in_context)));
        }
        weakly
    }

    /// What the part has named.
    fn name(
        &mut self,
        part: &mut Applying<'_>,
        scale: &Scale<'_>,
        died: &[bool],
        last_in: &[Caller],
    ) -> Result<(), BlocksError> {
        let Applying { known, part: of, .. } = *part;
        let thread = of.thread;
        for (number, named) in of.named.iter().enumerate().filter(|(number, _)| !died[*number]) {
            let Some(node) = part.node(number as u32) else {
                match named.last.is_never() && named.flags & Named::ON_STACK == 0 {
                    true => continue,
                    false => return Err(BlocksError::Surprise),
                }
            };
            let holder = self.holder(of, named.holder, &part.stack);
            self.hold_in_hand(part, node, holder);
            let stamp = (!named.last.is_never()).then(|| {
                let context = part.context(last_in[number], &mut self.contexts);
                scale.at(named.last, context)
            });
            let frame =
                (named.birth != NONE).then(|| self.alloc_frame(part, scale, of.births[named.birth as usize].frame));
            let gist = self.heap.data(node);
            gist.in_use = named.is(Named::LATER);
            gist.is_held |= named.is(Named::HELD);
            let life = self.life(node);
            if let Some(at) = stamp {
                life.escaped_thread |= thread != life.alloc.thread.0 && (named.used != NONE || at.kind.is_some());
                life.last = at;
            }
            if named.used != NONE {
                life.last_use = known.tick(named.used);
            }
            if let Some(frame) = frame {
                life.frame = frame;
                life.time = scale.time_at(of.births[named.birth as usize].step);
            }
        }
        Ok(())
    }

    /// Records that a frame has used the object. `holder` is `None` if that frame returns before the part ends.
    fn hold_in_hand(&mut self, part: &Applying<'_>, node: Node, holder: Option<FrameRef>) {
        // If both frames are still active at the end of the part, the outer one used it first.
        let is_before = |old: FrameRef, new: FrameRef| old.thread != new.thread || old.depth <= new.depth;
        let old = self.lives[node.0 as usize].holder.filter(|old| self.stays(part, old));
        let keeps = old.is_some_and(|old| holder.is_none_or(|new| is_before(old, new)));
        if !keeps {
            self.life(node).holder = holder;
        }
    }

    /// Whether a frame that had an object in hand still runs at the end of the part.
    fn stays(&self, part: &Applying<'_>, holder: &FrameRef) -> bool {
        if holder.thread.0 != part.part.thread {
            return running(&self.stacks, holder).is_some();
        }
        let stay = part.part.base - part.part.left.len() as u32;
        let frame = part.stack.frames.get(holder.depth as usize);
        holder.depth < stay && frame.is_some_and(|frame| frame.serial == holder.serial)
    }

    /// The frame in which an object was allocated.
    fn alloc_frame(&mut self, part: &mut Applying<'_>, scale: &Scale<'_>, frame: u32) -> AllocFrame {
        if frame == NONE {
            return AllocFrame::None;
        }
        match part.part.left_at(frame) {
            NONE => {
                let base = part.part.base;
                let open = part.stack.frames.get_mut(frame as usize).filter(|_| frame < base);
                let tracked = &mut self.tracked;
                let place = match open {
                    Some(open) => *open.tracked.get_or_insert_with(|| tracked.add()),
                    None => *part.tracked.entry(frame).or_insert_with(|| tracked.add()),
                };
                tracked.all[place as usize].objects += 1;
                AllocFrame::Open(place)
            }
            left => AllocFrame::Left(scale.step_of(left)),
        }
    }

    /// What stores have named that might have been none, and what has lost a reference.
    fn name_also(
        &mut self,
        part: &mut Applying<'_>,
        scale: &Scale<'_>,
        used: &[(u32, Stamp)],
        named: Vec<(Node, Stamp, Caller)>,
    ) {
        for &(number, at) in used {
            if let Some(node) = part.node(number) {
                let life = self.life(node);
                life.last_use = life.last_use.max(part.known.tick(at.tick));
            }
        }
        for (node, stamp, in_context) in named {
            let context = part.context(in_context, &mut self.contexts);
            let at = scale.at(stamp, context);
            let life = self.life(node);
            life.escaped_thread |= part.part.thread != life.alloc.thread.0;
            if life.last.step <= at.step {
                life.last = at;
            }
        }
    }

    /// What has died in the part.
    fn add_dead(&mut self, part: &mut Applying<'_>, scale: &Scale<'_>, dead: &[Dead]) {
        let Applying { known, part: of, .. } = *part;
        for dead in dead {
            let named = &of.named[dead.object as usize];
            let birth = &of.births[named.birth as usize];
            let context = self.born_in(part, &birth.alloc, dead.born_in);
            let died_in = part.context(dead.died_in, &mut self.contexts);
            let at = scale.at(dead.at, died_in);
            let left = if birth.frame == NONE { None } else { Some(of.left_at(birth.frame)) };
            self.waiting.push(Row {
                step: at.step,
                record: at.record,
                holder: self.holder(of, named.holder, &part.stack),
                row: LifeRow {
                    number: known.births + u64::from(named.birth),
                    alloc: birth.alloc,
                    context,
                    tick: known.tick(birth.tick),
                    bytes: known.bytes + birth.bytes,
                    time: scale.time_at(birth.step),
                    last_use: known.tick(named.used),
                    escaped_thread: of.thread != birth.alloc.thread.0,
                    escaped_frame: left.map(|left| left != NONE && left < dead.at.step),
                    death: Some(death(&at)),
                },
            });
        }
    }

    /// The stack at the end of the part.
    fn leave_and_enter(&mut self, mut part: Applying<'_>, scale: &Scale<'_>) {
        let Applying { part: of, .. } = part;
        for &left in &of.left {
            if let Some(OpenFrame { tracked: Some(place), .. }) = part.stack.frames.pop() {
                self.tracked.leave(place, scale.step_of(left));
            }
        }
        for (number, frame) in of.entered(of.top) {
            let open = OpenFrame {
                method: frame.method,
                receiver: part.node(frame.receiver),
                serial: self.entries + u64::from(frame.entries),
                context: None,
                tracked: part.tracked.get(&number).copied(),
            };
            part.stack.frames.push(open);
        }
        let in_flight = of.in_flight.map_or(part.stack.in_flight, |number| part.node(number));
        let stack = Stack { in_flight, ..part.stack };
        if !stack.frames.is_empty() || stack.in_flight.is_some() {
            self.stacks.insert(of.thread, stack);
        }
    }

    pub(super) fn sum_up(&mut self, known: &Known, unchanged: u64) {
        let Known { part, .. } = known;
        let steps = u64::from(part.steps) - unchanged;
        let records = steps - part.holds.len() as u64;
        let sums = &mut self.sums;
        for (sum, count) in sums.totals.0.iter_mut().zip(part.totals.0) {
            *sum += count;
        }
        sums.totals.0[RecordKind::Update as usize] -= unchanged;
        let by_vm = part.births.iter().filter(|birth| birth.alloc.thread.0 != part.thread).count() as u64;
        if by_vm > 0 {
            *sums.of_thread.entry(0).or_default() += by_vm;
        }
        if records > by_vm {
            *sums.of_thread.entry(part.thread).or_default() += records - by_vm;
        }
        sums.steps += steps;
        sums.records += records;
        sums.ticks = known.tick(part.ticks);
        sums.bytes = known.bytes + part.births.last().map_or(0, |birth| birth.bytes);
        sums.births = known.births + part.births.len() as u64;
        sums.most_alive = sums.most_alive.max(self.heap.len());
        self.entries += u64::from(part.entries);
    }

    /// The frame, if it still runs at the end of the part.
    fn holder(&self, part: &Part, frame: u32, stack: &Stack) -> Option<FrameRef> {
        if !part.runs_on(frame) {
            return None;
        }
        let serial = match part.frame(frame) {
            Some(entered) => self.entries + u64::from(entered.entries),
            None => stack.frames[frame as usize].serial,
        };
        let (mut depth, mut at) = (0, frame);
        while let Some(entered) = part.frame(at) {
            (depth, at) = (depth + 1, entered.caller);
        }
        let below = if at == NONE { 0 } else { at + 1 };
        Some(FrameRef { thread: ThreadId(part.thread), depth: below + depth - 1, serial })
    }
}
