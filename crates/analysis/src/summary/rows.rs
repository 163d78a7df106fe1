//! Counters of objects allocated in one place on behalf of one caller.

use std::ops::AddAssign;

use super::Amount;
use crate::drag;
use et_reader::attribution::Origins;
use et_reader::record::AllocKind;

/// Objects by the kind of their records, in the order of [`AllocKind::ALL`].
pub(super) type KindCounts = [u64; AllocKind::ALL.len()];

/// Lifetimes of those that died.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LifetimeSum {
    pub died: Amount,
    pub lifetime: u64,
    pub drag: u64,
    pub drag_bytes: u64,
}

impl LifetimeSum {
    /// An object that was made while tracing was on; the times are ticks.
    #[inline]
    pub fn died(&mut self, size: u64, birth: u64, last_use: u64, death: u64) {
        self.died.add(size);
        self.lifetime = self.lifetime.saturating_add(death.saturating_sub(birth));
        let drag = drag::ticks(false, last_use, Some(death)).unwrap_or(0);
        self.drag = self.drag.saturating_add(drag);
        self.drag_bytes = self.drag_bytes.saturating_add(drag.saturating_mul(size));
    }

    /// The mean of a sum over them.
    pub fn mean(&self, sum: u64) -> f64 {
        if self.died.objects == 0 { 0.0 } else { sum as f64 / self.died.objects as f64 }
    }
}

impl AddAssign for LifetimeSum {
    fn add_assign(&mut self, other: Self) {
        self.died += other.died;
        self.lifetime = self.lifetime.saturating_add(other.lifetime);
        self.drag = self.drag.saturating_add(other.drag);
        self.drag_bytes = self.drag_bytes.saturating_add(other.drag_bytes);
    }
}

/// What some objects come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    /// Number of the first of them, in the order of births.
    pub first: u64,
    pub made: Amount,
    pub kinds: KindCounts,
    /// Alive in the middle of the run.
    pub middle: Amount,
    /// Alive at the end.
    pub alive: Amount,
    pub lifetime: LifetimeSum,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            first: u64::MAX,
            made: Amount::default(),
            kinds: KindCounts::default(),
            middle: Amount::default(),
            alive: Amount::default(),
            lifetime: LifetimeSum::default(),
        }
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.first = self.first.min(other.first);
        self.made += other.made;
        self.kinds.iter_mut().zip(other.kinds).for_each(|(sum, count)| *sum += count);
        self.middle += other.middle;
        self.alive += other.alive;
        self.lifetime += other.lifetime;
    }
}

/// Objects of the same origins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub key: Origins,
    pub sum: Sum,
}
