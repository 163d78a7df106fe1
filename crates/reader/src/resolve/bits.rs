//! A set of 31-bit ids that takes two to four bytes per id, and never more than one bit for each possible id.

/// Ids are random (`docs/inside/events.md`), so a plain bit set would soon take its maximum size.
const PAGE_BITS: u32 = 16;
const PAGE_WORDS: usize = (1 << PAGE_BITS) / 64;
/// From this number on, bits take at most twice the memory, and inserting in order takes longer.
const FEW: usize = 2048;

#[derive(Debug)]
enum Page {
    /// The low halves, sorted.
    Few(Vec<u16>),
    Many(Box<[u64; PAGE_WORDS]>),
}

/// A set of object hashes.
#[derive(Debug, Default)]
pub struct IdSet {
    pages: Vec<Page>,
}

impl IdSet {
    #[inline]
    fn place(id: u32) -> (usize, u16) {
        ((id >> PAGE_BITS) as usize, id as u16)
    }

    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        let (page, low) = Self::place(id);
        match self.pages.get(page) {
            None => false,
            Some(Page::Few(few)) => find(few, low).is_ok(),
            Some(Page::Many(words)) => words[usize::from(low) / 64] & 1 << (low % 64) != 0,
        }
    }

    /// Memory used in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let pages = self.pages.iter().map(|page| match page {
            Page::Few(few) => 2 * few.capacity(),
            Page::Many(words) => size_of_val(&**words),
        });
        self.pages.capacity() * size_of::<Page>() + pages.sum::<usize>()
    }

    /// Adds `id`; returns whether it is new.
    #[inline]
    pub fn insert(&mut self, id: u32) -> bool {
        let (page, low) = Self::place(id);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || Page::Few(Vec::new()));
        }
        let page = &mut self.pages[page];
        if let Page::Few(few) = page {
            let Err(at) = find(few, low) else { return false };
            if few.len() < FEW {
                if few.len() == few.capacity() {
                    // Doubling would waste half of the memory.
                    few.reserve_exact((few.len() / 4).max(4));
                }
                few.insert(at, low);
                return true;
            }
            *page = Page::bits(few);
        }
        page.set(low)
    }
}

impl IdSet {
    /// Removes `id`; returns whether it was there. Pages with bits stay as they are.
    pub fn remove(&mut self, id: u32) -> bool {
        let (page, low) = Self::place(id);
        match self.pages.get_mut(page) {
            None => false,
            Some(Page::Few(few)) => find(few, low).map(|at| few.remove(at)).is_ok(),
            Some(Page::Many(words)) => {
                let (word, bit) = (&mut words[usize::from(low) / 64], 1 << (low % 64));
                let was_there = *word & bit != 0;
                *word &= !bit;
                was_there
            }
        }
    }
}

/// Finds the index of `low` in sorted numbers, or where it would be inserted. The numbers are random, so the index can
/// be estimated from the value: this touches one or two cache lines, a binary search about five.
#[inline]
fn find(few: &[u16], low: u16) -> Result<usize, usize> {
    let len = few.len();
    if len == 0 {
        return Err(0);
    }
    let guess = (usize::from(low) * len) >> u16::BITS;
    let mut step = 16;
    // All before `from` are smaller; the one at `to` is not, if there is one.
    let (mut from, mut to) = (guess, guess);
    if few[guess] < low {
        from += 1;
        to = guess + step;
        while to < len && few[to] < low {
            (from, step) = (to + 1, 2 * step);
            to += step;
        }
    } else {
        from = guess.saturating_sub(step);
        while from > 0 && few[from] >= low {
            (to, step) = (from, 2 * step);
            from = from.saturating_sub(step);
        }
    }
    let near = &few[from..len.min(to + 1)];
    near.binary_search(&low).map(|at| from + at).map_err(|at| from + at)
}

impl Page {
    fn bits(few: &[u16]) -> Self {
        let mut page = Self::Many(Box::new([0; PAGE_WORDS]));
        for &low in few {
            page.set(low);
        }
        page
    }

    /// Sets a bit of a page with bits; returns whether it was not set.
    #[inline]
    fn set(&mut self, low: u16) -> bool {
        let Self::Many(words) = self else { return false };
        let (word, bit) = (&mut words[usize::from(low) / 64], 1 << (low % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(ids in prop::collection::vec(prop_oneof![0..10_000u32, 0..1u32 << 31], 0..300), ask: u32) {
            let mut set = IdSet::default();
            let mut model = BTreeSet::new();
            for id in ids {
                prop_assert_eq!(set.insert(id), model.insert(id));
            }
            prop_assert!(model.iter().all(|&id| set.contains(id)));
            prop_assert_eq!(set.contains(ask), model.contains(&ask));
        }

        #[test]
        fn what_was_removed_is_gone(
            acts in prop::collection::vec((any::<bool>(), prop_oneof![0..300u32, 0..1u32 << 31]), 0..600),
            many: bool,
        ) {
            let mut set = IdSet::default();
            let mut model = BTreeSet::new();
            for id in 0..if many { 3 * FEW as u32 } else { 0 } {
                prop_assert_eq!(set.insert(id), model.insert(id));
            }
            for (insert, id) in acts {
                match insert {
                    true => prop_assert_eq!(set.insert(id), model.insert(id)),
                    false => prop_assert_eq!(set.remove(id), model.remove(&id)),
                }
                prop_assert_eq!(set.contains(id), model.contains(&id));
            }
        }

        /// For arbitrary numbers, not only random ones.
        #[test]
        fn places_are_those_of_a_binary_search(
            numbers in prop::collection::btree_set(prop_oneof![any::<u16>(), 0..300u16, 65_000..=u16::MAX], 0..600),
            ask: u16,
        ) {
            let numbers: Vec<u16> = numbers.into_iter().collect();
            for low in numbers.iter().flat_map(|low| [low.wrapping_sub(1), *low, low.wrapping_add(1)]).chain([ask]) {
                prop_assert_eq!(find(&numbers, low), numbers.binary_search(&low));
            }
        }

        /// Filling a page does not change the set.
        #[test]
        fn a_page_may_be_full(step in 1..40u32, more in prop::collection::vec(0..1u32 << 17, 0..100)) {
            let mut set = IdSet::default();
            let mut model = BTreeSet::new();
            for id in (0..1 << 17).step_by(step as usize).chain(more) {
                prop_assert_eq!(set.insert(id), model.insert(id));
            }
            prop_assert!((0..1 << 17).all(|id| set.contains(id) == model.contains(&id)));
        }
    }
}
