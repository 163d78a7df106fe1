//! The objects that are not dead yet, and what the lives of the others add up to.

use std::ops::AddAssign;

use super::Amount;
use super::code::Callers;
use crate::drag;
use et_reader::model::{FrameRef, Objects, Stacks};
use et_reader::record::ObjectId;
use et_reader::types::TypeId;

/// Origin of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It is one of those that the row with that number counts.
    Traced(u32),
    /// It was there when tracing began.
    Before(TypeId),
}

/// An object that is not dead yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    born: u64,
    used: u64,
    pub size: u64,
    pub made: Made,
    /// The outermost method that had it in hand and, when that was last looked at, still ran.
    pub holder: Option<FrameRef>,
}

impl Life {
    pub fn new(now: u64, size: u64, made: Made, holder: Option<FrameRef>) -> Self {
        Self { born: now, used: now, size, made, holder }
    }
}

/// All live objects.
#[derive(Debug, Default)]
pub(super) struct Lives {
    alive: Objects<Life>,
    /// Of the objects that were there when tracing began.
    pub initial_died: u64,
}

impl Lives {
    pub fn born(&mut self, object: ObjectId, life: Life) {
        self.alive.insert(object, life);
    }

    /// Removes a dead object.
    pub fn died(&mut self, object: ObjectId) -> Option<Life> {
        let life = self.alive.forget(object).map(|node| {
            self.alive.free(node);
            self.alive[node]
        });
        self.initial_died += u64::from(life.is_none_or(|life| matches!(life.made, Made::Before(_))));
        life
    }

    /// Data of a live object.
    pub fn get(&self, object: ObjectId) -> Option<&Life> {
        self.alive.find(object).map(|node| &self.alive[node])
    }

    /// One was mentioned: used, if `now` is given, and a method may have it in hand.
    #[inline]
    pub fn mentioned(&mut self, object: ObjectId, now: Option<u64>, frame: Option<FrameRef>, stacks: &Stacks<Callers>) {
        let Some(node) = self.alive.node(object) else { return };
        let life = &mut self.alive[node];
        life.used = now.unwrap_or(life.used);
        let Some(frame) = frame else { return };
        let keeps = life.holder.is_some_and(|holder| {
            (holder.thread != frame.thread || holder.depth <= frame.depth) && stacks.running(holder).is_some()
        });
        if !keeps {
            life.holder = Some(frame);
        }
    }
}

/// Lifetimes of those that died.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LifetimeSum {
    pub died: Amount,
    pub lifetime: u64,
    pub drag: u64,
    pub drag_bytes: u64,
}

impl LifetimeSum {
    pub fn died(&mut self, life: &Life, now: u64) {
        self.died.add(life.size);
        self.lifetime += now - life.born;
        let drag = drag::ticks(matches!(life.made, Made::Before(_)), life.used, Some(now)).unwrap_or(0);
        self.drag += drag;
        self.drag_bytes = self.drag_bytes.saturating_add(drag.saturating_mul(life.size));
    }

    pub fn mean(&self, sum: u64) -> f64 {
        if self.died.objects == 0 { 0.0 } else { sum as f64 / self.died.objects as f64 }
    }
}

impl AddAssign for LifetimeSum {
    fn add_assign(&mut self, other: Self) {
        self.died += other.died;
        self.lifetime += other.lifetime;
        self.drag += other.drag;
        self.drag_bytes = self.drag_bytes.saturating_add(other.drag_bytes);
    }
}
