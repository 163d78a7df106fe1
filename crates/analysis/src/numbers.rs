//! Sets of objects.

use et_reader::population::Population;

/// A set of objects by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Vec<u64>);

impl Numbers {
    /// Room for all objects of a trace.
    pub fn of(population: &Population) -> Self {
        Self(vec![0; population.objects.div_ceil(64) as usize + 1])
    }

    /// Adds a number; whether it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        let (at, bit) = ((number / 64) as usize, 1 << (number % 64));
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        let is_new = self.0[at] & bit == 0;
        self.0[at] |= bit;
        is_new
    }

    /// Adds all of another set.
    pub fn append(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    /// Whether it is in the set.
    pub fn has(&self, number: u64) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}
