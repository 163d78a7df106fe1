//! The order in which stays are kept: those of a moment are close together, however long the trace is.
//!
//! Time, in records, is a binary tree: at each level, pieces of the same length. A stay belongs to the smallest piece that
//! contains both of its ends, so it crosses the middle of that piece, or the piece is one of the smallest. What holds at a moment
//! is then in the pieces around that moment, one at each level: a logarithm's worth of pieces, and in each, nothing that
//! does not hold at its middle. Stays end in order, so at each level only one piece is open at a time, and when the next begins, its
//! stays are complete. A reader needs to know nothing of the tree: it skips groups by the smallest and largest
//! ticks in them.

use super::Stay;

/// Records in the smallest pieces, as a power of two: some 50,000 stays.
const SMALLEST: u32 = 18;
/// Stays of a group: more make a second group of the same piece.
const GROUP: usize = 1 << 16;

/// Stays that are close together in time, in the order of their beginnings.
pub type Group = Vec<Stay>;

/// Arranges stays that come in the order of their ends.
#[derive(Debug)]
pub struct Arranger {
    smallest: u32,
    most: usize,
    /// By level: the number of the open piece, and its stays so far.
    levels: Vec<(u64, Group)>,
    lasting: Group,
}

impl Default for Arranger {
    fn default() -> Self {
        Self::with(SMALLEST, GROUP)
    }
}

impl Arranger {
    pub(super) fn with(smallest: u32, most: usize) -> Self {
        Self { smallest, most, levels: Vec::new(), lasting: Vec::new() }
    }

    /// Takes the next stay: first those that have ended, in the order of their ends, then those that last to the end, in
    /// the order of their beginnings. Calls `full` with groups that are complete.
    #[inline]
    pub fn add(&mut self, stay: Stay, mut full: impl FnMut(Group)) {
        let Some((to, _)) = stay.to else {
            self.lasting.push(stay);
            if self.lasting.len() >= self.most {
                full(std::mem::take(&mut self.lasting));
            }
            return;
        };
        let differing = u64::BITS - (stay.from.record ^ to.record).leading_zeros();
        let bits = differing.max(self.smallest);
        // A shift by all 64 bits would be none.
        let piece = to.record.checked_shr(bits).unwrap_or(0);
        let level = (bits - self.smallest) as usize;
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, || (0, Group::new()));
        }
        let (open, stays) = &mut self.levels[level];
        if (*open != piece || stays.len() >= self.most) && !stays.is_empty() {
            full(in_order(std::mem::take(stays)));
        }
        *open = piece;
        stays.push(stay);
    }

    /// Calls `full` with all groups that are left.
    pub fn finish(self, mut full: impl FnMut(Group)) {
        for (_, stays) in self.levels.into_iter().filter(|(_, stays)| !stays.is_empty()) {
            full(in_order(stays));
        }
        if !self.lasting.is_empty() {
            full(self.lasting);
        }
    }
}

/// By their beginnings; what was there when tracing began, by slots.
fn in_order(mut stays: Group) -> Group {
    stays.sort_by_key(|stay| (stay.from.record, stay.origin, stay.slot));
    stays
}
