//! When the heap is looked at ([`Glimpse`]), and what there is then.

use super::super::glimpse::{Glimpse, Packer, SHARES, StackThen, When};
use super::super::local::Known;
use super::{Forward, Node, Rows, ThreadId};

/// Thousandths of the blocks before the first share from which on small glimpses are taken.
const EARLY: u64 = 100;
/// Of traces with fewer blocks none is taken: their records are read soon enough, and parts are too large for moments.
pub const LEAST_BLOCKS: u64 = 64;
/// How often dead objects are looked for at least, if there are many new ones: how close the peak is to the real one.
const LOOKS: u64 = 32;
/// Bytes of a glimpse up to which one is taken at each of these looks from some before the first share on, so that those closest to the shares can be chosen
/// once it is known how many calls and returns there are. Of larger ones there are only those at the shares of the blocks.
const SMALL: usize = 4 << 20;
/// Bytes of objects by which the graph always may grow before it is looked whether these are alive.
const LEAST_BYTES: u64 = 1 << 20;

/// When to take glimpses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plan {
    /// For a trace of so many blocks.
    #[default]
    Never,
    Blocks(u64),
    /// After each part, for tests.
    Always,
}

impl Plan {
    /// For a trace of so many blocks.
    pub fn of(blocks: u64) -> Self {
        if blocks < LEAST_BLOCKS { Self::Never } else { Self::Blocks(blocks) }
    }
}

/// Those taken so far.
#[derive(Debug, Default)]
pub(super) struct Taken {
    plan: Plan,
    /// How many [`LOOKS`] are behind, and how many were when the last glimpse was taken.
    looks: u64,
    taken_at: u64,
    /// Bytes of the graph, and how many there were when what was dead had been found last.
    pub bytes: u64,
    bytes_before: u64,
    peak: Option<Glimpse>,
    /// Whether the peak is behind the part that was applied last.
    is_peak_now: bool,
    others: Vec<Glimpse>,
}

impl Taken {
    pub fn by(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }
}

impl<R: Rows> Forward<'_, R> {
    /// A part was applied: whether what is dead should be found, for the sake of the peak.
    pub(super) fn is_look_due(&mut self, known: &Known) -> bool {
        let taken = &mut self.glimpses;
        taken.is_peak_now = false;
        let Plan::Blocks(blocks) = taken.plan else { return false };
        let looks = known.blocks * LOOKS / blocks;
        let is_later = looks > taken.looks;
        taken.looks = looks;
        let many_new = self.heap.len().saturating_sub(self.alive) >= self.alive / 32;
        let best = taken.peak.as_ref().map_or(0, |peak| peak.live_bytes).max(taken.bytes_before);
        is_later && many_new || taken.bytes > (best + best / 2).max(LEAST_BYTES)
    }

    /// What was dead has been found.
    pub(super) fn consider_peak(&mut self, ticket: u64) {
        self.glimpses.bytes_before = self.glimpses.bytes;
        let is_more = self.glimpses.peak.as_ref().is_none_or(|peak| peak.live_bytes < self.glimpses.bytes);
        if matches!(self.glimpses.plan, Plan::Blocks(_)) && is_more {
            self.glimpses.peak = Some(self.glimpse(When::Peak, ticket));
            self.glimpses.is_peak_now = true;
        }
    }

    /// Takes the glimpse that is due behind a part.
    pub(super) fn take_glimpse(&mut self, known: &Known) {
        match self.glimpses.plan {
            Plan::Never => return,
            Plan::Always => {}
            Plan::Blocks(blocks) => {
                let (look, last) = (known.blocks * LOOKS / blocks, self.glimpses.taken_at);
                let is_share = SHARES.iter().any(|share| (last + 1..=look).contains(&(share * LOOKS / 1000)));
                let is_small = self.glimpses.others.last().is_none_or(|last| last.packed_len() <= SMALL);
                let is_late = look * 1000 + LOOKS * EARLY >= SHARES[0] * LOOKS;
                if look == last || !(is_share || is_small && is_late) {
                    return;
                }
                self.glimpses.taken_at = look;
            }
        }
        // In a heap that grows, the peak was taken behind this same part: it is this glimpse.
        let peak = self.glimpses.peak.as_ref().filter(|_| self.glimpses.is_peak_now);
        let glimpse = match peak {
            Some(peak) => Glimpse { when: When::Share(0), ..peak.clone() },
            None => self.glimpse(When::Share(0), known.part.ticket),
        };
        self.glimpses.others.push(glimpse);
    }

    /// Of the glimpses so far those that are closest to the shares of calls and returns.
    fn at_shares(&mut self) -> Vec<Glimpse> {
        let all = std::mem::take(&mut self.glimpses.others);
        if self.glimpses.plan == Plan::Always {
            return all;
        }
        let end = u128::from(self.sums.ticks);
        let closest = |share: u64| {
            let tick = (end * u128::from(share) / 1000) as u64;
            let found = all.iter().min_by_key(|glimpse| glimpse.tick.abs_diff(tick))?;
            Some(Glimpse { when: When::Share(share), ..found.clone() })
        };
        SHARES.into_iter().filter_map(closest).collect()
    }

    /// All of them; the last is that of the end, which it is.
    pub(super) fn all_glimpses(&mut self) -> Vec<Glimpse> {
        if self.glimpses.plan == Plan::Never {
            return Vec::new();
        }
        let end = self.glimpse(When::End, u64::MAX);
        let mut all = self.at_shares();
        let peak = self.glimpses.peak.take().filter(|peak| peak.live_bytes > end.live_bytes);
        let at = peak.as_ref().map_or(0, |peak| all.partition_point(|other| other.records <= peak.records));
        peak.into_iter().for_each(|peak| all.insert(at, peak));
        all.push(end);
        all
    }

    fn glimpse(&self, when: When, ticket: u64) -> Glimpse {
        let number = |node: Node| self.heap.get(node).data.number;
        let mut objects: Vec<(u64, Node)> = self.heap.iter().map(|(node, object)| (object.data.number, node)).collect();
        objects.sort_unstable();
        let (mut packer, mut slots) = (Packer::default(), Vec::new());
        for &(origin, node) in &objects {
            self.heap.get(node).refs().for_each_slot(|slot, target| slots.push((slot, number(target))));
            // Fields are in no order, elements are.
            slots.sort_unstable_by_key(|&(slot, _)| slot);
            packer.add(origin, &slots);
            slots.clear();
        }
        let held = objects.iter().filter(|(_, node)| self.heap.get(*node).data.is_held).map(|(number, _)| *number);
        let mut statics: Vec<(u32, u64)> = self.heap.statics().map(|(field, node)| (field, number(node))).collect();
        statics.sort_unstable();
        let stack = |(&thread, stack): (&u32, &super::Stack)| StackThen {
            thread: ThreadId(thread),
            frames: stack.frames.iter().map(|frame| (frame.method, frame.receiver.map(number))).collect(),
            in_flight: stack.in_flight.map(number),
        };
        let mut stacks: Vec<StackThen> =
            self.stacks.iter().filter(|(_, stack)| !stack.frames.is_empty()).map(stack).collect();
        stacks.sort_unstable_by_key(|stack| stack.thread);
        let sums = &self.sums;
        packer.into(Glimpse {
            when,
            births: sums.births,
            records: sums.records,
            tick: sums.ticks,
            bytes: sums.bytes,
            nanos: sums.time.map(|time| time.0),
            ticket,
            live_bytes: self.glimpses.bytes,
            stacks,
            held: held.collect(),
            statics,
            ..Glimpse::default()
        })
    }
}
