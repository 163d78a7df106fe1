//! A set of 31-bit ids that takes three to six bytes per id, and never more than one bit for each possible id.

/// Ids are random (`docs/inside/events.md`), so a plain bit set would soon take its maximum size.
const PAGE_BITS: u32 = 16;
const PAGE_WORDS: usize = (1 << PAGE_BITS) / 64;
/// Table size that takes as many bytes as bits for all ids of a page do.
const MOST_PLACES: usize = 4096;
const LEAST_PLACES: usize = 8;

/// An open-addressing table of the low halves of ids. One cache line tells whether an id is there.
#[derive(Debug, Default)]
struct Few {
    /// Their number is a power of two, or 0; 0 is free.
    places: Box<[u16]>,
    /// Number of places taken.
    taken: u16,
    has_zero: bool,
}

#[derive(Debug)]
enum Page {
    Few(Few),
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
            Some(Page::Few(few)) => few.contains(low),
            Some(Page::Many(words)) => words[usize::from(low) / 64] & 1 << (low % 64) != 0,
        }
    }

    /// Reads what tells whether `id` is there. Ids are random, so each lookup waits for memory; those of a loop that does
    /// nothing else are read at the same time.
    #[inline]
    pub fn touch(&self, id: u32) -> u64 {
        let (page, low) = Self::place(id);
        match self.pages.get(page) {
            Some(Page::Few(few)) => few.places.get(few.home(low)).copied().map_or(0, u64::from),
            Some(Page::Many(words)) => words[usize::from(low) / 64],
            None => 0,
        }
    }

    /// Has the lookups of all these ids that follow find what they need in the cache.
    pub fn touch_all(&self, ids: &[u32]) {
        std::hint::black_box(ids.iter().fold(0, |sum, &id| sum ^ self.touch(id)));
    }

    /// Memory used in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let pages = self.pages.iter().map(|page| match page {
            Page::Few(few) => size_of_val(&*few.places),
            Page::Many(words) => size_of_val(&**words),
        });
        self.pages.capacity() * size_of::<Page>() + pages.sum::<usize>()
    }

    /// Adds `id`; returns whether it is new.
    #[inline]
    pub fn insert(&mut self, id: u32) -> bool {
        let (page, low) = Self::place(id);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || Page::Few(Few::default()));
        }
        let page = &mut self.pages[page];
        match page {
            Page::Few(few) => {
                let is_new = few.insert(low);
                if few.is_full()
                    && let Some(many) = few.grow()
                {
                    *page = many;
                }
                is_new
            }
            Page::Many(words) => set(words, low),
        }
    }

    /// Removes `id`; returns whether it was there. Pages with bits stay as they are.
    pub fn remove(&mut self, id: u32) -> bool {
        let (page, low) = Self::place(id);
        match self.pages.get_mut(page) {
            None => false,
            Some(Page::Few(few)) => few.remove(low),
            Some(Page::Many(words)) => {
                let (word, bit) = (&mut words[usize::from(low) / 64], 1 << (low % 64));
                let was_there = *word & bit != 0;
                *word &= !bit;
                was_there
            }
        }
    }
}

/// Sets a bit; returns whether it was not set.
#[inline]
fn set(words: &mut [u64; PAGE_WORDS], low: u16) -> bool {
    let (word, bit) = (&mut words[usize::from(low) / 64], 1 << (low % 64));
    let new = *word & bit == 0;
    *word |= bit;
    new
}

impl Few {
    /// Where the search for a number begins. Its high bits after multiplication depend on all of its bits, so numbers with
    /// a common divisor do not crowd.
    #[inline]
    fn home(&self, low: u16) -> usize {
        let mixed = low.wrapping_mul(0x9e37);
        (usize::from(mixed) * self.places.len()) >> u16::BITS
    }

    /// The place of a number other than 0, or the free one where it belongs; `None` without places.
    #[inline]
    fn find(&self, low: u16) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = self.home(low);
        loop {
            let there = self.places[at & mask];
            if there == low || there == 0 {
                return Some(at & mask);
            }
            at += 1;
        }
    }

    #[inline]
    fn contains(&self, low: u16) -> bool {
        match low {
            0 => self.has_zero,
            low => self.find(low).is_some_and(|at| self.places[at] == low),
        }
    }

    #[inline]
    fn insert(&mut self, low: u16) -> bool {
        if low == 0 {
            return !std::mem::replace(&mut self.has_zero, true);
        }
        if self.places.is_empty() {
            self.places = vec![0; LEAST_PLACES].into_boxed_slice();
        }
        match self.find(low) {
            Some(at) if self.places[at] == 0 => {
                self.places[at] = low;
                self.taken += 1;
                true
            }
            _ => false,
        }
    }

    /// Whether the next number would make searches long.
    #[inline]
    fn is_full(&self) -> bool {
        usize::from(self.taken) * 4 > self.places.len() * 3
    }

    /// Doubles the places. Returns bits if they take no more memory.
    #[cold]
    fn grow(&mut self) -> Option<Page> {
        let old = std::mem::take(&mut self.places);
        let numbers = || old.iter().copied().filter(|low| *low != 0);
        let places = old.len() * 2;
        if places >= MOST_PLACES {
            let mut words: Box<[u64; PAGE_WORDS]> = Box::new([0; PAGE_WORDS]);
            numbers().chain(self.has_zero.then_some(0)).for_each(|low| _ = set(&mut words, low));
            return Some(Page::Many(words));
        }
        self.places = vec![0; places].into_boxed_slice();
        self.taken = 0;
        numbers().for_each(|low| _ = self.insert(low));
        None
    }

    fn remove(&mut self, low: u16) -> bool {
        if low == 0 {
            return std::mem::replace(&mut self.has_zero, false);
        }
        let Some(mut free) = self.find(low).filter(|&at| self.places[at] == low) else { return false };
        // Those behind it move up if the search for them would end at the free place.
        let mask = self.places.len() - 1;
        let mut at = free;
        loop {
            at = (at + 1) & mask;
            let there = self.places[at];
            if there == 0 {
                break;
            }
            let from_home = at.wrapping_sub(self.home(there)) & mask;
            if from_home >= at.wrapping_sub(free) & mask {
                self.places[free] = there;
                free = at;
            }
        }
        self.places[free] = 0;
        self.taken -= 1;
        true
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
            for id in 0..if many { 2 * MOST_PLACES as u32 } else { 0 } {
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
