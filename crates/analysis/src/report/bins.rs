//! Counters along an axis whose length is not known in advance.

use std::mem;
use std::ops::AddAssign;

/// Bins of equal width. Where a value comes that is beyond the last, each takes its neighbour in, and is twice as wide.
#[derive(Clone, Debug)]
pub(super) struct Bins<T> {
    /// The width at first.
    least: u64,
    /// How often it has doubled.
    doubled: u32,
    most: usize,
    bins: Vec<T>,
    /// A value and its bin at the least width: many objects are made at the same time, and a division takes longer than all else here.
    recent: (u64, u64),
}

impl<T: Copy + Default + AddAssign> Bins<T> {
    /// Up to `most` of them, none narrower than `width`.
    pub fn new(width: u64, most: usize) -> Self {
        Self { least: width.max(1), doubled: 0, most: most.max(2), bins: Vec::new(), recent: (0, 0) }
    }

    /// The counter for a value.
    pub fn at(&mut self, value: u64) -> &mut T {
        if value != self.recent.0 {
            self.recent = (value, if self.least == 1 { value } else { value / self.least });
        }
        let (_, narrow) = self.recent;
        while narrow >> self.doubled >= self.most as u64 {
            self.fold();
        }
        let index = (narrow >> self.doubled) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, T::default());
        }
        &mut self.bins[index]
    }

    fn fold(&mut self) {
        let folded = self.bins.chunks(2).map(|pair| {
            let mut sum = pair[0];
            pair.get(1).into_iter().for_each(|other| sum += *other);
            sum
        });
        self.bins = folded.collect();
        self.doubled += 1;
    }

    /// Takes in what others have counted, of the same least width.
    pub fn add(&mut self, mut others: Self) {
        while self.doubled < others.doubled {
            self.fold();
        }
        while others.doubled < self.doubled {
            others.fold();
        }
        if self.bins.len() < others.bins.len() {
            self.bins.resize(others.bins.len(), T::default());
        }
        self.bins.iter_mut().zip(others.bins).for_each(|(sum, other)| *sum += other);
    }

    /// The width of each, and all of them.
    pub fn finish(&mut self) -> (u64, Vec<T>) {
        (self.least << self.doubled, mem::take(&mut self.bins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_apart_is_what_was_counted_together() {
        let values = [0, 9, 10, 39, 40, 1000, 77, 3];
        for split in 0..=values.len() {
            let of = |values: &[u64]| {
                let mut bins = Bins::<u64>::new(10, 4);
                values.iter().for_each(|&value| *bins.at(value) += 1);
                bins
            };
            let (one, other) = values.split_at(split);
            let mut sum = of(one);
            sum.add(of(other));
            assert_eq!(sum.finish(), of(&values).finish(), "{split}");
        }
    }

    #[test]
    fn bins_are_where_division_puts_values() {
        for least in [1, 7, 10_000_000] {
            let mut bins = Bins::<u64>::new(least, 4);
            let values = [0, 3, 3, 29_999_999, 40_000_000, 40_000_000, 7_777_777_777, 1 << 40, u64::MAX, 5];
            values.iter().for_each(|&value| *bins.at(value) += 1);
            let (width, all) = bins.finish();
            let mut expected = vec![0; all.len()];
            values.iter().for_each(|value| expected[(value / width) as usize] += 1);
            assert_eq!(all, expected, "{least}");
            assert!(u64::MAX / width < 4 && u64::MAX / (width / 2) >= 4, "{least}: {width}");
        }
    }

    #[test]
    fn nothing_is_lost_when_bins_widen() {
        let mut bins = Bins::<u64>::new(10, 4);
        for value in [0, 9, 10, 39] {
            *bins.at(value) += 1;
        }
        assert_eq!(bins.clone().finish(), (10, vec![2, 1, 0, 1]));
        *bins.at(40) += 1;
        assert_eq!(bins.clone().finish(), (20, vec![3, 1, 1]));
        *bins.at(1000) += 1;
        let (width, all) = bins.finish();
        assert_eq!((width, all.iter().sum::<u64>(), all.len()), (320, 6, 4));
    }
}
