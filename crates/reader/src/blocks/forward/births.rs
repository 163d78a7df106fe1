//! Parts in order, if only births are wanted: their rows are complete at once, and there is no graph. What slots hold
//! matters only for stores that are none since they change nothing; so only slots are kept whose owners may be named again.

use super::super::local::{Known, Settled, Stored};
use super::super::walk::{NONE, Named, Part};
use super::{BlocksError, Forward, LifeRow, OpenFrame, Rows, Scale, Stack, context_of};
use crate::model::ContextId;
use crate::record::{Alloc, ObjectId, RecordKind, Slot};
use crate::resolve::Slots;

impl<R: Rows> Forward<R> {
    /// Passes on an object that existed when tracing began.
    pub(super) fn initial_birth(&mut self, alloc: Alloc, in_use: bool) {
        let last = self.now(Some(RecordKind::Initial));
        self.rows.row(&LifeRow {
            number: self.sums.births,
            alloc,
            context: ContextId::EMPTY,
            tick: last.tick,
            bytes: last.bytes,
            time: last.time,
            last_use: last.tick,
            escaped_thread: false,
            escaped_frame: None,
            death: None,
        });
        if !in_use {
            self.slots.release(alloc.object);
        }
    }

    /// The target of a slot when tracing began.
    pub(super) fn initial_slot(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) {
        // Stores to static fields are always records.
        if !origin.is_null() {
            self.slots.put(origin, slot, target);
        }
    }

    /// Applies the next part.
    pub(super) fn apply_births(&mut self, settled: Settled) -> Result<(), BlocksError> {
        let Settled { known, nodes, stored, mut unchanged, born_in, .. } = settled;
        let part = &known.part;
        let mut stack = self.take_stack(part)?;
        let contexts = self.contexts_of(&nodes, &mut stack);
        let before = self.sums.time;
        let times = self.note(part);
        self.sums.time = times.last().map_or(before, |(_, time)| Some(*time));
        store(&mut self.slots, &known, &stored, &mut unchanged);
        unchanged.sort_unstable();
        let scale = Scale {
            part,
            step: self.sums.steps,
            record: self.sums.records,
            tick: known.ticks,
            bytes: known.bytes,
            unchanged: &unchanged,
            times: &times,
            before,
        };
        for (number, named) in part.named.iter().enumerate().filter(|(_, named)| named.birth != NONE) {
            let birth = &part.births[named.birth as usize];
            let in_context = born_in[named.birth as usize];
            let tick = known.ticks + u64::from(birth.tick);
            self.rows.row(&LifeRow {
                number: known.births + u64::from(named.birth),
                alloc: Alloc { object: known.ids[number], ..birth.alloc },
                context: context_of(in_context, &mut stack.frames, &contexts, &mut self.contexts),
                tick,
                bytes: known.bytes + birth.bytes,
                time: scale.time_at(birth.step),
                last_use: tick,
                escaped_thread: false,
                escaped_frame: None,
                death: None,
            });
        }
        move_stack(&mut stack, part);
        if !stack.frames.is_empty() {
            self.stacks.insert(part.thread, stack);
        }
        self.count(&known, unchanged.len() as u64);
        Ok(())
    }
}

/// Applies stores, which tells which of them are none.
fn store(slots: &mut Slots, known: &Known, stored: &[Stored], unchanged: &mut Vec<u32>) {
    let part = &known.part;
    let id = |number: u32| if number == NONE { ObjectId::NULL } else { known.ids[number as usize] };
    for &Stored { origin, slot, target, first } in stored {
        if origin == NONE {
            continue;
        }
        let if_not = first.and_then(|first| Some((first.at.step, first.if_not?)));
        if if_not.is_none() && !part.named[origin as usize].is(Named::LATER) {
            continue;
        }
        let old = slots.put(id(origin), slot, id(target));
        if let Some((step, target)) = if_not
            && old == id(target)
        {
            unchanged.push(step);
        }
    }
    for (named, &id) in part.named.iter().zip(&known.ids) {
        if named.birth == NONE && !named.is(Named::LATER) {
            slots.release(id);
        }
    }
    known.last_named.iter().for_each(|&object| slots.release(object));
    slots.tidy();
}

/// Methods only.
fn move_stack(stack: &mut Stack, part: &Part) {
    let stay = stack.frames.len().saturating_sub(part.left.len());
    stack.frames.truncate(stay);
    let mut at = part.top;
    while let Some(frame) = part.frame(at) {
        let (method, receiver) = (frame.method, ObjectId::NULL);
        stack.frames.push(OpenFrame { method, receiver, serial: 0, context: None, tracked: None });
        at = frame.caller;
    }
    stack.frames[stay..].reverse();
}
