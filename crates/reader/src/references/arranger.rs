//! The order in which stays and objects are kept: those of a moment are close together, however long the trace is.
//!
//! Time (for stays in records, for objects in bytes) is a binary tree: at each level, pieces of the same length. A stay belongs to the smallest piece that
//! contains both of its ends, so it crosses the middle of that piece, or the piece is one of the smallest. What holds at a moment
//! is then in the pieces around that moment, one at each level: a logarithm's worth of pieces, and in each, nothing that
//! does not hold at its middle. Stays end in order, so at each level only one piece is open at a time, and when the next begins, its
//! stays are complete. A reader needs to know nothing of the tree: it skips groups by the smallest and largest
//! ticks in them.

use std::cmp::Ordering;

use super::Stay;

/// Records in the smallest pieces, as a power of two: some 50,000 stays.
const SMALLEST: u32 = 18;
/// Stays of a group: more make a second group of the same piece.
const GROUP: usize = 1 << 16;

/// Stays that are close together in time, in the order of their beginnings.
pub type Group = Vec<Stay>;

/// What is there from a point in time to another.
pub trait Lasts {
    /// When it begins.
    fn begins(&self) -> u64;

    /// When it ends; `None`: it lasts to the end of the trace.
    fn ends(&self) -> Option<u64>;

    /// Orders those of a group: by their beginnings first.
    fn order(&self, other: &Self) -> Ordering;
}

impl Lasts for Stay {
    #[inline]
    fn begins(&self) -> u64 {
        self.from.record
    }

    #[inline]
    fn ends(&self) -> Option<u64> {
        self.to.map(|(to, _)| to.record)
    }

    /// What was there when tracing began, by slots.
    fn order(&self, other: &Self) -> Ordering {
        let key = |stay: &Self| (stay.from.record, stay.origin, stay.slot);
        key(self).cmp(&key(other))
    }
}

/// Arranges stays that come in the order of their ends.
#[derive(Debug)]
pub struct Arranger<T = Stay> {
    smallest: u32,
    most: usize,
    /// By level: the number of the open piece, and its stays so far.
    levels: Vec<(u64, Vec<T>)>,
    lasting: Vec<T>,
}

impl Default for Arranger {
    fn default() -> Self {
        Self::with(SMALLEST, GROUP)
    }
}

impl<T: Lasts> Arranger<T> {
    /// With smallest pieces of that length, a power of two, and groups of so many at most.
    pub fn with(smallest: u32, most: usize) -> Self {
        Self { smallest, most, levels: Vec::new(), lasting: Vec::new() }
    }

    /// Takes the next stay: first those that have ended, in the order of their ends, then those that last to the end, in
    /// the order of their beginnings. Calls `full` with groups that are complete.
    #[inline]
    pub fn add(&mut self, stay: T, mut full: impl FnMut(Vec<T>)) {
        let Some(to) = stay.ends() else {
            self.lasting.push(stay);
            if self.lasting.len() >= self.most {
                full(std::mem::take(&mut self.lasting));
            }
            return;
        };
        let differing = u64::BITS - (stay.begins() ^ to).leading_zeros();
        let bits = differing.max(self.smallest);
        // A shift by all 64 bits would be none.
        let piece = to.checked_shr(bits).unwrap_or(0);
        let level = (bits - self.smallest) as usize;
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, || (0, Vec::new()));
        }
        let (open, stays) = &mut self.levels[level];
        if (*open != piece || stays.len() >= self.most) && !stays.is_empty() {
            full(in_order(std::mem::take(stays)));
        }
        *open = piece;
        stays.push(stay);
    }

    /// Calls `full` with all groups that are left.
    pub fn finish(self, mut full: impl FnMut(Vec<T>)) {
        for (_, stays) in self.levels.into_iter().filter(|(_, stays)| !stays.is_empty()) {
            full(in_order(stays));
        }
        if !self.lasting.is_empty() {
            full(self.lasting);
        }
    }
}

fn in_order<T: Lasts>(mut group: Vec<T>) -> Vec<T> {
    group.sort_by(Lasts::order);
    group
}
