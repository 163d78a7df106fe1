//! Axes along which objects are born, in bins of equal width. Rows for sums never join objects of different bins
//! ([`Groups::read_joined`](crate::population::Groups::read_joined)), so that what happened when can be told from them.

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

/// Where bins begin: of ticks and of bytes, which are the same where only allocations have events, and of nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Borders {
    bytes: u64,
    nanos: u64,
    /// The last tick of the first half.
    middle: u64,
}

impl Borders {
    /// Of a trace that ends then.
    pub fn of(end: &Moment) -> Self {
        Self::with(end, BINS)
    }

    /// With up to so many bins.
    pub(crate) fn with(end: &Moment, bins: usize) -> Self {
        let nanos = width(NANOS, end.nanos.unwrap_or(0), bins);
        Self { bytes: width(1, end.bytes, bins), nanos, middle: middle(end) }
    }

    /// The first border after these bytes.
    pub(crate) fn after(&self, bytes: u64) -> u64 {
        let next = (bytes / self.bytes + 1).saturating_mul(self.bytes);
        if bytes <= self.middle { next.min(self.middle + 1) } else { next }
    }

    /// The bin of a time.
    pub(crate) fn of_time(&self, nanos: u64) -> u64 {
        nanos / self.nanos
    }
}

/// The last tick of the first half of a trace.
pub fn middle(end: &Moment) -> u64 {
    end.tick / 2
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

    #[test]
    fn borders_are_those_of_bins_and_the_middle() {
        let borders = Borders::with(&Moment { tick: 100, bytes: 100, nanos: None }, 8);
        assert_eq!(
            [0, 15, 16, 47, 48, 50, 51, 63, 64].map(|at| borders.after(at)),
            [16, 16, 32, 48, 51, 51, 64, 64, 80]
        );
        let last = Borders::of(&Moment { tick: u64::MAX, bytes: u64::MAX, nanos: None });
        assert_eq!(last.after(u64::MAX), u64::MAX);
    }
}
