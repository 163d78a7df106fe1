//! Parts in order, if only births are wanted: their rows are complete at once, and there is no graph. What slots hold
//! matters only for stores that are none since they change nothing; so only slots are kept whose owners may be named again.

use super::super::living::Entry;
use super::super::local::{Settled, Stored};
use super::super::walk::{NONE, Named, Part};
use super::apply::Applying;
use super::{BlocksError, Forward, LifeRow, OpenFrame, Rows, Stack};
use crate::model::{ContextId, Node};
use crate::record::{Alloc, ObjectId, RecordKind, Slot};

impl<R: Rows> Forward<'_, R> {
    /// Passes on an object that existed when tracing began.
    pub(super) fn initial_birth(&mut self, alloc: Alloc, (in_blocks, by_vm): (bool, bool)) {
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
        if in_blocks || by_vm {
            let node = self.reserve();
            self.known.fill(node, alloc.object);
            self.living.add(alloc.object.0 as u32, Entry::new(node, in_blocks, by_vm));
        } else {
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
    ///
    /// # Errors
    /// [`BlocksError::Surprise`] if a store names an object that nothing seemed to name any more, and what the slot holds matters.
    pub(super) fn apply_births(&mut self, settled: Settled) -> Result<(), BlocksError> {
        let Settled { mut known, nodes, stored, mut unchanged, born_in, .. } = settled;
        if let Some(marker) = &mut self.marker {
            marker.at(known.part.first_ticket, || (self.sums.moment(), self.sums.births));
        }
        let places = std::mem::take(&mut known.nodes);
        let mut part = self.begin(&known, places, &nodes)?;
        let of = part.part;
        let births = of.named.iter().zip(&part.places).filter(|(named, place)| named.birth != NONE && **place != NONE);
        for (named, place) in births {
            self.known.fill(Node(*place), of.births[named.birth as usize].alloc.object);
        }
        self.store_for_births(&part, &stored, &mut unchanged)?;
        self.release(&part);
        let scale = self.scale(&known, unchanged);
        for named in of.named.iter().filter(|named| named.birth != NONE) {
            let birth = &of.births[named.birth as usize];
            let in_context = born_in[named.birth as usize];
            let tick = known.tick(birth.tick);
            let context = self.born_in(&mut part, &birth.alloc, in_context);
            let number = known.births + u64::from(named.birth);
            if let Some(marker) = &mut self.marker {
                marker.born(birth.alloc.object, number);
            }
            self.rows.row(&LifeRow {
                number,
                alloc: birth.alloc,
                context,
                tick,
                bytes: known.bytes + birth.bytes,
                time: scale.time_at(birth.step),
                last_use: tick,
                escaped_thread: false,
                escaped_frame: None,
                death: None,
            });
        }
        let mut stack = part.stack;
        move_stack(&mut stack, of);
        if !stack.frames.is_empty() {
            self.stacks.insert(of.thread, stack);
        }
        let unchanged = scale.unchanged.len() as u64;
        self.sum_up(&known, unchanged);
        Ok(())
    }

    /// The id of an object of a part; null if it has none, or is not known.
    fn id(&self, part: &Applying<'_>, number: u32) -> ObjectId {
        match part.part.named.get(number as usize) {
            Some(named) if named.birth != NONE => part.part.births[named.birth as usize].alloc.object,
            Some(_) => part.node(number).map_or(ObjectId::NULL, |node| self.known[node]),
            None => ObjectId::NULL,
        }
    }

    /// Applies stores, which tells which of them are none.
    ///
    /// # Errors
    /// [`BlocksError::Surprise`] if what a slot holds is needed, and the slot, or what is stored, has been forgotten.
    fn store_for_births(
        &mut self,
        part: &Applying<'_>,
        stored: &[Stored],
        unchanged: &mut Vec<u32>,
    ) -> Result<(), BlocksError> {
        for &Stored { origin, slot, target, first } in stored.iter().filter(|stored| stored.origin != NONE) {
            let if_not = first.and_then(|first| Some((first.at.step, first.if_not?)));
            if if_not.is_none() && !part.part.named[origin as usize].is(Named::LATER) {
                continue;
            }
            let unless = if_not.map_or(NONE, |(_, target)| target);
            let [of, to, unless_to] = [origin, target, unless].map(|number| self.id(part, number));
            if of.is_null() && if_not.is_none() {
                continue;
            }
            let lacks = |number: u32, id: ObjectId| number != NONE && id.is_null();
            if lacks(origin, of) || lacks(target, to) || lacks(unless, unless_to) {
                return Err(BlocksError::Surprise);
            }
            let old = self.slots.put(of, slot, to);
            if let Some((step, _)) = if_not
                && old == unless_to
            {
                unchanged.push(step);
            }
        }
        Ok(())
    }

    /// Forgets the objects that nothing names any more, and their slots.
    fn release(&mut self, part: &Applying<'_>) {
        for (number, named) in (0..).zip(&part.part.named) {
            if named.birth == NONE && !named.is(Named::LATER) {
                self.release_at(named.key, part.node(number));
            }
        }
        for &(key, node) in &part.known.last_named {
            self.release_at(key, Some(node));
        }
        self.slots.tidy();
    }

    fn release_at(&mut self, key: u64, node: Option<Node>) {
        let Some(node) = node.filter(|&node| self.is_at(key, node)) else { return };
        self.slots.release(std::mem::take(&mut self.known[node]));
        self.living.died(key, node);
        self.known.free(node);
    }
}

/// Methods only.
fn move_stack(stack: &mut Stack, part: &Part) {
    let stay = stack.frames.len().saturating_sub(part.left.len());
    stack.frames.truncate(stay);
    stack.frames.extend(part.entered(part.top).into_iter().map(|(_, frame)| OpenFrame {
        method: frame.method,
        receiver: None,
        serial: 0,
        context: None,
        tracked: None,
    }));
}
