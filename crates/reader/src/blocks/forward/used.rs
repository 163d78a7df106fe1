//! How a part uses objects that are older than it, and what of those made in it depends on older ones.

use super::super::Rows;
use super::super::usage::{InOrder, PartUsage};
use super::super::walk::{NONE, Part};
use super::apply::Applying;
use super::{Forward, Wanted};
use crate::record::{Alloc, ObjectId, RecordKind, ThreadId};
use crate::types::TypeId;

impl<R: Rows> Forward<'_, R> {
    /// Adds how a part uses objects. `unchanged`: steps that are none, in ascending order.
    pub(super) fn add_usage(
        &mut self,
        part: &Applying<'_>,
        died: &[bool],
        unchanged: &[u32],
        in_order: &InOrder,
        mut usage: PartUsage,
    ) {
        if self.wanted != Wanted::Deaths {
            return;
        }
        let of = part.part;
        let uncertain = usage.uncertain.iter().filter(|store| unchanged.binary_search(&store.step).is_err());
        for &store in uncertain.chain(&in_order.weak) {
            usage.owners[store.target as usize].stored(store.step, store.field);
            if store.origin != NONE && self.about_usage.are_for_arrays(store.field) {
                usage.arrays.push(store);
            }
        }
        for (number, named) in of.named.iter().enumerate().filter(|(number, _)| !died[*number]) {
            let Some(node) = part.node(number as u32) else { continue };
            let state = &mut self.life(node).in_use_as;
            if named.birth == NONE {
                state.making = state.making.after(named.making);
            }
            state.owner = usage.owners[number].field().or(state.owner);
        }
        let mut held = in_order.held.iter().copied();
        for store in &usage.elements {
            let was_held = store.held.or_else(|| held.next()).unwrap_or(false);
            if let Some(node) = part.node(store.origin) {
                let life = &mut self.lives[node.0 as usize];
                let length = self.about_usage.length(&life.alloc);
                life.in_use_as.element(length, !was_held, !store.holds);
            }
        }
        for store in &usage.arrays {
            let alloc = self.alloc(part, store.target);
            if alloc.is_none_or(|alloc| self.about_usage.length(&alloc) == 0) {
                continue;
            }
            match part.node(store.origin).filter(|_| !died[store.origin as usize]) {
                Some(node) => self.life(node).in_use_as.keeps = true,
                None => usage.made[store.origin as usize].keeps = true,
            }
        }
        for &number in &usage.died_later {
            let state = usage.made[number as usize].held_by(usage.owners[number as usize].field());
            let alloc = &of.births[of.named[number as usize].birth as usize].alloc;
            self.usage.over(alloc, self.about_usage.kind(alloc.ty), &state);
        }
        self.usage.add(usage.dead);
        self.usage.has_witnesses |= of.totals.0[RecordKind::Use as usize] > 0;
        self.add_flights(part, of);
    }

    fn add_flights(&mut self, part: &Applying<'_>, of: &Part) {
        let thread = ThreadId(of.thread);
        for flight in &of.flights {
            let alloc = self.alloc(part, flight.exception);
            let exception = alloc.map_or(ObjectId::NULL, |alloc| alloc.object);
            match flight.kind {
                RecordKind::Throw => {
                    let ty = alloc.map_or(TypeId::UNKNOWN, |alloc| alloc.ty);
                    self.usage.throw(thread, flight.method, exception, ty);
                }
                RecordKind::Handle => self.usage.handle(thread, flight.method, exception),
                _ => self.usage.pass(thread, exception),
            }
        }
    }

    /// The allocation of an object of a part.
    fn alloc(&self, part: &Applying<'_>, number: u32) -> Option<Alloc> {
        let named = part.part.named.get(number as usize)?;
        match part.part.births.get(named.birth as usize) {
            Some(birth) => Some(birth.alloc),
            None => part.node(number).map(|node| self.lives[node.0 as usize].alloc),
        }
    }
}
