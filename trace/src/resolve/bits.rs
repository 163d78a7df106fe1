//! A set of 31-bit ids in pages: ids may be scattered over the whole range or lie in runs.

const PAGE_BITS: u32 = 12;
const PAGE_WORDS: usize = (1 << PAGE_BITS) / 64;

type Page = [u64; PAGE_WORDS];

/// A set of object hashes: 1 bit each, a page of 512 bytes for each 4096 of them that holds one.
#[derive(Debug, Default)]
pub struct IdSet {
    pages: Vec<Option<Box<Page>>>,
}

impl IdSet {
    #[inline]
    fn place(id: u32) -> (usize, usize, u64) {
        let page = (id >> PAGE_BITS) as usize;
        let word = (id as usize & ((1 << PAGE_BITS) - 1)) / 64;
        (page, word, 1 << (id & 63))
    }

    /// Whether `id` is in the set.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        let (page, word, bit) = Self::place(id);
        matches!(self.pages.get(page), Some(Some(page)) if page[word] & bit != 0)
    }

    /// Adds `id`; whether it is new.
    #[inline]
    pub fn insert(&mut self, id: u32) -> bool {
        let (page, word, bit) = Self::place(id);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let word = &mut self.pages[page].get_or_insert_with(|| Box::new([0; PAGE_WORDS]))[word];
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
    }
}
