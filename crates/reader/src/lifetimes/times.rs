//! Times of steps: a step has the time at which the newest chunk of events begun by then was begun.

use std::iter::Peekable;
use std::slice::Iter;

use et_format::Nanos;

/// Minimum interval between two recorded times in nanoseconds: an hour then takes 6 MB.
const BETWEEN: u64 = 10_000_000;

/// Times, each with the first step that it applies to.
#[derive(Debug, Default)]
pub struct Times(Vec<(u64, Nanos)>);

impl Times {
    /// Records that the events of the steps from this one on happened from that time on.
    #[inline]
    pub fn note(&mut self, step: u64, time: Nanos) {
        if self.0.last().is_none_or(|(_, last)| time.0 >= last.0.saturating_add(BETWEEN)) {
            self.0.push((step, time));
        }
    }

    /// All times, in order.
    pub fn iter(&self) -> TimesIter<'_> {
        TimesIter(self.0.iter().peekable())
    }
}

/// Iterates over [`Times`] step by step.
#[derive(Debug)]
pub struct TimesIter<'a>(Peekable<Iter<'a, (u64, Nanos)>>);

impl TimesIter<'_> {
    /// The latest time up to that step that has not been returned yet.
    #[inline]
    pub fn until(&mut self, step: u64) -> Option<Nanos> {
        let mut time = None;
        while let Some(&(_, next)) = self.0.next_if(|(from, _)| *from <= step) {
            time = Some(next);
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_apart_and_never_go_back() {
        let mut times = Times::default();
        for (step, time) in [(0, 5), (3, BETWEEN), (4, BETWEEN + 5), (5, 7), (9, 3 * BETWEEN)] {
            times.note(step, Nanos(time));
        }
        let mut iter = times.iter();
        assert_eq!(iter.until(3), Some(Nanos(5)));
        assert_eq!(iter.until(3), None);
        assert_eq!(iter.until(20), Some(Nanos(3 * BETWEEN)));
        assert_eq!(times.0.len(), 3);
    }
}
