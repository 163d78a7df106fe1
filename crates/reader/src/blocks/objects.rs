//! What becomes of the objects, part by part.

use std::collections::VecDeque;

use et_format::event::{ObjectHash, Ticket};
use et_names::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::awaited::Awaited;
use super::forward::{self, Forward, Plan};
use super::glimpse::Glimpses;
use super::hands::Hands;
use super::literals::Literals;
use super::living::Entry;
use super::local::{self, Known, Settled};
use super::oracle::Before;
use super::parts::{AllBlocks, Done, How, Next, Parts, Taker, with_parts};
use super::pool::{Promise, Urgency};
use super::walk::{self, Named, Part};
use super::{BlocksError, Cost, Options, Passed, Rows, Wanted};
use crate::lifetimes::{self, Vm, WeakSlots};
use crate::model::Node;
use crate::record::{Alloc, ObjectId};
use crate::resolve::allocs::Allocs;
use crate::resolve::each_initial_reference;
use crate::survival::Marker;
use crate::told::Hold;
use crate::trace::Trace;
use crate::types::TypeId;

/// Reads a trace in that way.
pub fn read_with<R: Rows + Send>(
    trace: &Trace,
    wanted: Wanted,
    rows: R,
    options: &Options,
) -> Result<(R, Passed), BlocksError> {
    let special = lifetimes::special(trace);
    // What walks tell is asked for where deaths are not known.
    let marker = if wanted == Wanted::Births { Marker::of(trace)? } else { None };
    let cuts = marker.as_ref().map(Marker::tickets).unwrap_or_default();
    let all = AllBlocks::of(trace);
    let literals = match wanted {
        Wanted::Deaths | Wanted::Births => {
            trace.file.begin_events("finding last uses");
            Literals::find(&trace.file, &all.blocks, options.by_events)?
        }
        Wanted::Uses => Literals::find(&trace.file, &[], false)?,
    };
    let plan = match wanted {
        Wanted::Deaths if options.glimpses => Plan::Always,
        Wanted::Deaths => Plan::of(all.blocks.len() as u64),
        Wanted::Uses | Wanted::Births => Plan::Never,
    };
    let how = How { referent: special.referent, in_order: options.in_order, threads: options.threads };
    let most_rows = options.most_rows.unwrap_or(forward::MOST_ROWS);
    let ((forward, done), ran) = with_parts(trace, &how, |mut parts| {
        let mut objects = Objects {
            trace,
            literals,
            awaited: Awaited::default(),
            wanted,
            class_type: special.class,
            forward: Forward::new(rows, trace, marker, WeakSlots::new(&special), wanted, most_rows, plan),
            settling: VecDeque::new(),
            births: 0,
            bytes: 0,
            ticks: 0,
        };
        objects.run(&mut parts, all.numbers, cuts)?;
        Ok((objects.forward, parts.finish()))
    })?;
    Ok(passed(trace, forward, done, ran))
}

fn passed<R: Rows>(trace: &Trace, forward: Forward<'_, R>, done: Done, ran: FxHashSet<MethodId>) -> (R, Passed) {
    let finished = forward.finish();
    let Done { cost, .. } = done;
    let sums = finished.sums;
    let outcome = done.outcome(trace, sums.totals, finished.frames_left);
    let passed = Passed {
        contexts: finished.contexts,
        objects: sums.births,
        ticks: sums.ticks,
        bytes: sums.bytes,
        time: sums.time,
        late: finished.late,
        held_by_stacks: finished.held_by_stacks,
        held_by_locals: finished.held_by_locals,
        usage: finished.usage,
        glimpses: Glimpses { all: finished.glimpses, extra_fields: outcome.extra_fields.clone() },
        records: sums.of_thread,
        ran,
        fates: finished.fates,
        outcome,
        cost: Cost { most_objects: sums.most_alive, ..cost },
    };
    (finished.rows, passed)
}

/// Maximum number of steps of a part that the thread which applies it settles itself: passing it on takes longer. In tests, most
/// parts would be as small.
const FEW_STEPS: u32 = if cfg!(test) { 8 } else { 256 };

/// A part before it is applied.
enum Settling {
    Elsewhere(Promise<Settled>),
    /// It is settled when its turn to be applied has come.
    Here(Box<Known>),
}

/// Follows the objects from part to part.
struct Objects<'a, R> {
    trace: &'a Trace,
    literals: Literals,
    awaited: Awaited,
    wanted: Wanted,
    class_type: Option<TypeId>,
    forward: Forward<'a, R>,
    settling: VecDeque<Settling>,
    births: u64,
    bytes: u64,
    ticks: u64,
}

impl<'a, R: Rows> Objects<'a, R> {
    fn run(
        &mut self,
        parts: &mut Parts<'_, 'a>,
        numbers: FxHashMap<(usize, usize), usize>,
        cuts: VecDeque<Ticket>,
    ) -> Result<(), BlocksError> {
        self.begin(parts)?;
        parts.run(self, numbers, cuts)?;
        while !self.settling.is_empty() {
            self.apply_next(parts)?;
        }
        for thread in self.trace.threads.iter().filter(|thread| thread.end.is_none()) {
            if let Some(entry) = self.forward.living.get(thread.object.0) {
                self.forward.hold(entry.node());
            }
        }
        Ok(())
    }

    /// What existed when tracing began.
    fn begin(&mut self, parts: &mut Parts<'_, 'a>) -> Result<(), BlocksError> {
        let trace = self.trace;
        let mut vm = Vm::new(trace);
        parts.before.holds = vm.changes.iter().copied().collect();
        for (_, hash, _) in &vm.changes {
            *parts.before.held_later.entry(*hash).or_default() += 1;
        }
        for thread in trace.threads.iter().filter(|thread| thread.end.is_none()) {
            *parts.before.held_later.entry(thread.object).or_default() += 1;
        }
        let allocs = Allocs::new(trace);
        trace.initial_objects(|object| {
            let (ids, anomalies) = (&mut parts.before.ids, &mut parts.anomalies);
            if object.object.is_null() || ids.current(object.object).is_some() {
                return;
            }
            let alloc = allocs.initial(object, anomalies);
            let alloc = Alloc { object: ids.allocate(object.object).0, ..alloc };
            vm.saw(&alloc, true);
            let (in_blocks, by_vm) = (self.literals.may_name(object.object.0), parts.before.holds_later(object.object));
            self.forward.initial_object(alloc, Some(alloc.ty) == self.class_type, (in_blocks, by_vm));
            self.births += 1;
        })?;
        let (ids, anomalies) = (&mut parts.before.ids, &mut parts.anomalies);
        each_initial_reference(
            trace,
            &mut parts.before.fields,
            |hash| ids.current(hash),
            |reference| {
                anomalies.bad_initial_references += u64::from(reference.is_none());
            },
        )?;
        let forward = &mut self.forward;
        let mut tell = |hold| match hold {
            Hold::Initial { origin, slot, target } => forward.initial_reference(origin, slot, target),
            Hold::ToTheEnd { object } => {
                if let Some(node) = forward.initial_node(object) {
                    forward.hold(node);
                }
            }
            Hold::Until { .. } => {}
        };
        vm.begin(&mut tell)?;
        Ok(())
    }

    /// The place of an object from before the part. Notes whether it may be named later.
    #[inline]
    fn node(&self, before: &Before<'a>, named: &mut Named) -> Option<Node> {
        let Ok(hash) = u32::try_from(named.key) else { return self.forward.living.made_up(named.key) };
        let entry = self.forward.living.get(hash)?;
        if self.may_name(before, hash, entry) {
            named.flags |= Named::LATER;
        }
        Some(entry.node())
    }

    #[inline]
    fn may_name(&self, before: &Before<'a>, hash: u32, entry: Entry) -> bool {
        let otherwise = || before.holds_later(ObjectHash(hash)) || self.awaited.contains(hash);
        entry.is_in_blocks() || entry.may_be_named_otherwise() && otherwise()
    }

    fn apply_next(&mut self, parts: &mut Parts<'_, 'a>) -> Result<(), BlocksError> {
        match self.settling.pop_front() {
            None => Ok(()),
            Some(Settling::Elsewhere(promise)) => {
                let settled = parts.pool.wait(&promise, parts.hands);
                self.apply(parts, settled)
            }
            Some(Settling::Here(known)) => self.settle_and_apply(parts, *known),
        }
    }

    fn settle_and_apply(&mut self, parts: &mut Parts<'_, 'a>, known: Known) -> Result<(), BlocksError> {
        let settled = local::settle(known, self.wanted, &mut parts.hands.about_usage);
        self.apply(parts, settled)
    }

    fn apply(&mut self, parts: &mut Parts<'_, 'a>, settled: Settled) -> Result<(), BlocksError> {
        parts.cost.died_at_once += settled.dead.len() as u64;
        self.forward.apply(settled)
    }

    /// Has the next part settled, and applies those whose turn has come.
    fn settle(&mut self, parts: &mut Parts<'_, 'a>, known: Known) -> Result<(), BlocksError> {
        match known.part.steps <= FEW_STEPS {
            true if self.settling.is_empty() => return self.settle_and_apply(parts, known),
            true => self.settling.push_back(Settling::Here(Box::new(known))),
            false => {
                let wanted = self.wanted;
                let settle = move |hands: &mut Hands<'a>| local::settle(known, wanted, &mut hands.about_usage);
                self.settling.push_back(Settling::Elsewhere(parts.pool.add(Urgency::Settle, settle)));
            }
        }
        let is_ready = |first: &Settling| match first {
            Settling::Elsewhere(promise) => promise.is_kept(),
            Settling::Here(_) => true,
        };
        while self.settling.len() > parts.ahead || self.settling.front().is_some_and(is_ready) {
            self.apply_next(parts)?;
        }
        Ok(())
    }
}

impl<'a, R: Rows> Taker<'a> for Objects<'a, R> {
    fn places(&mut self, before: &mut Before<'a>, part: &mut Part) -> Option<Vec<u32>> {
        let mut nodes = Vec::with_capacity(part.named.len());
        for named in &mut part.named {
            let node = match u32::try_from(named.key) {
                _ if named.birth == walk::NONE => match self.node(before, named) {
                    Some(node) => node.0,
                    None if self.wanted == Wanted::Births && named.is(Named::BY_STACK) => walk::NONE,
                    None => return None,
                },
                Ok(hash) if named.is(Named::UNKNOWN) && before.ids.current(ObjectHash(hash)).is_some() => {
                    return None;
                }
                _ => walk::NONE,
            };
            nodes.push(node);
        }
        Some(nodes)
    }

    fn exact_places(&mut self, before: &mut Before<'a>, part: &mut Part) -> Vec<u32> {
        let node = |named: &mut Named| match named.birth {
            walk::NONE => self.node(before, named).map_or(walk::NONE, |node| node.0),
            _ => walk::NONE,
        };
        part.named.iter_mut().map(node).collect()
    }

    fn passed(&mut self, block: usize, objects: &mut Vec<u64>) -> Result<(), BlocksError> {
        if self.wanted != Wanted::Uses {
            for hash in self.literals.pass(block)? {
                self.forward.living.passed(hash);
                objects.push(hash.into());
            }
        }
        Ok(())
    }

    fn group_passed(&mut self, group: u64, objects: &mut Vec<u64>) {
        objects.extend(self.awaited.group_passed(group).map(u64::from));
    }

    /// Gives the objects that a part has made their ids, and has it settled.
    fn take(&mut self, parts: &mut Parts<'_, 'a>, next: Next) -> Result<(), BlocksError> {
        let Next { mut part, group, places: mut nodes, passed } = next;
        let mut last_named = Vec::new();
        let touch = |key: u64| match u32::try_from(key) {
            Ok(hash) => parts.before.ids.touch(ObjectHash(hash)) ^ self.literals.touch(hash),
            Err(_) => 0,
        };
        let births = part.named.iter().filter(|named| named.birth != walk::NONE);
        std::hint::black_box(births.fold(0, |sum, named| sum ^ touch(named.key)));
        for (named, node) in part.named.iter_mut().zip(&mut nodes).filter(|(named, _)| named.birth != walk::NONE) {
            let alloc = &mut part.births[named.birth as usize].alloc;
            let hash = u32::try_from(named.key);
            let (mut in_blocks, mut otherwise) = (false, false);
            match hash {
                Ok(hash) => {
                    let (object, before) = parts.before.ids.allocate(ObjectHash(hash));
                    alloc.object = object;
                    // Nothing can name an object whose hash is used again.
                    if before.is_some() {
                        self.awaited.forget(hash);
                        let before = self.forward.living.replace(hash);
                        last_named.extend(before.map(|before| (named.key, before.node())));
                    }
                    in_blocks = self.literals.may_name(hash);
                    otherwise = parts.before.holds_later(ObjectHash(hash));
                    // What else names the object may be passed before the rest of its group is.
                    if let Some(group) = group.filter(|_| (in_blocks || otherwise) && named.is(Named::LATER)) {
                        self.awaited.add(hash, group);
                        otherwise = true;
                    }
                    if Some(alloc.ty) == self.class_type {
                        named.flags |= Named::HELD;
                    }
                    if in_blocks || otherwise {
                        named.flags |= Named::LATER;
                    }
                }
                Err(_) => alloc.object = ObjectId(named.key),
            }
            let may_be_named = match self.wanted {
                Wanted::Deaths => named.flags & (Named::LATER | Named::HELD | Named::ON_STACK) != 0,
                Wanted::Births => named.is(Named::LATER),
                Wanted::Uses => true,
            };
            if !may_be_named {
                continue;
            }
            let place = self.forward.reserve();
            *node = place.0;
            match hash {
                Ok(hash) => self.forward.living.add(hash, Entry::new(place, in_blocks, otherwise)),
                Err(_) => self.forward.living.add_made_up(named.key, place),
            }
        }
        for key in passed {
            match u32::try_from(key) {
                Ok(hash) => {
                    let entry =
                        self.forward.living.get(hash).filter(|&entry| !self.may_name(&parts.before, hash, entry));
                    last_named.extend(entry.map(|entry| (key, entry.node())));
                }
                Err(_) => last_named.extend(self.forward.living.made_up(key).map(|node| (key, node))),
            }
        }
        let known = Known {
            last_named,
            births: self.births,
            bytes: self.bytes,
            ticks: self.ticks,
            blocks: parts.blocks,
            nodes,
            part,
        };
        self.births += known.part.births.len() as u64;
        self.bytes += known.part.births.last().map_or(0, |birth| birth.bytes);
        self.ticks += known.part.advance(known.part.ticks);
        self.settle(parts, known)
    }
}
