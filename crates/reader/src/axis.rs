//! Axes along which objects are born, in bins of equal width. How wide these are follows from the end of the trace, so whoever makes rows
//! for sums ([`Groups::joined`](crate::population::Groups::joined)) can say beside them how many objects are born in each.

use crate::moment::Moment;

/// Maximum number of bins of an axis.
pub const BINS: usize = 512;
/// Minimum width of bins of nanoseconds: times in a trace are no closer.
pub const NANOS: u64 = 10_000_000;

/// The width of up to `bins` bins of an axis that ends at `end`: `least`, doubled as often as necessary.
pub fn width(least: u64, end: u64, bins: usize) -> u64 {
    let mut width = least.max(1);
    while end / width >= bins as u64 {
        width *= 2;
    }
    width
}

/// The last tick of the first half of a trace.
pub fn middle(end: &Moment) -> u64 {
    end.tick / 2
}

/// Objects that were born one after the other, in the same bin of each axis. Not those that were there when tracing began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The birth of the last.
    pub last: Moment,
    pub objects: u64,
    pub bytes: u64,
}

/// Spans that are being made, where ticks are bytes allocated.
#[derive(Debug)]
pub(crate) struct Spans {
    bytes: u64,
    nanos: u64,
    /// What has been allocated until the next border, and the bin of the latest time.
    border: u64,
    of_time: Option<u64>,
    time: Option<u64>,
    all: Vec<Span>,
}

impl Spans {
    /// Of a trace that ends then, with up to so many bins.
    pub fn of(end: &Moment, bins: usize) -> Self {
        let nanos = width(NANOS, end.nanos.unwrap_or(0), bins);
        Self { bytes: width(1, end.bytes, bins), nanos, border: 0, of_time: None, time: None, all: Vec::new() }
    }

    /// An object of so many bytes is born, behind those before.
    #[inline]
    pub fn born(&mut self, birth: Moment, size: u64) {
        let mut is_other = false;
        // One in whose bytes there is a border is alone: it is in the bin of its tick, and in the next of bytes.
        if birth.bytes >= self.border {
            is_other = true;
            if birth.tick >= self.border {
                self.border = (birth.tick / self.bytes + 1).saturating_mul(self.bytes);
            }
        }
        if birth.nanos != self.time {
            let of_time = birth.nanos.map(|nanos| nanos / self.nanos);
            is_other |= of_time != self.of_time;
            (self.time, self.of_time) = (birth.nanos, of_time);
        }
        match self.all.last_mut().filter(|_| !is_other) {
            Some(span) => {
                *span = Span { last: birth, objects: span.objects + 1, bytes: span.bytes + size };
            }
            None => self.all.push(Span { last: birth, objects: 1, bytes: size }),
        }
    }

    pub fn finish(self) -> Vec<Span> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_as_wide_as_they_have_to_be() {
        assert_eq!([0, 7, 8, 15, 16, 1 << 40].map(|end| width(1, end, 8)), [1, 1, 2, 2, 4, 1 << 38]);
        assert_eq!([0, 79, 80, 1000].map(|end| width(10, end, 8)), [10, 10, 20, 160]);
        assert_eq!(width(1, u64::MAX, BINS), 1 << 55);
    }

    /// Of bins of 16 bytes and of 10 ms.
    #[test]
    fn spans_end_where_a_bin_does() {
        let mut spans = Spans::of(&Moment { tick: 100, bytes: 100, nanos: Some(5) }, 8);
        let mut tick = 0;
        for (size, nanos) in [(8, 0), (7, 0), (8, 0), (0, 9), (1, 9), (40, 10_000_000), (8, 10_000_000), (0, 1)] {
            spans.born(Moment { tick, bytes: tick + size, nanos: Some(nanos) }, size);
            tick += size;
        }
        let found: Vec<_> = spans.finish().iter().map(|span| (span.objects, span.bytes, span.last.tick)).collect();
        // The third has bytes on both sides of 16, the sixth of 32, 48 and 64, the seventh ends at 72.
        assert_eq!(found, [(2, 15, 8), (1, 8, 15), (2, 1, 23), (1, 40, 24), (1, 8, 64), (1, 0, 72)]);
    }
}
