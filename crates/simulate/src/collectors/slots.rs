//! The contents of the slots of all objects, in one vector.

use rustc_hash::FxHashMap;

/// Storage for slots. A freed range is reused for an object with the same number of slots.
#[derive(Debug, Default)]
pub struct SlotStore {
    words: Vec<u32>,
    free: FxHashMap<u32, Vec<usize>>,
}

impl SlotStore {
    /// Allocates `count` slots, all null, and returns their position.
    pub fn take(&mut self, count: u32) -> usize {
        if count == 0 {
            return 0;
        }
        if let Some(at) = self.free.get_mut(&count).and_then(Vec::pop) {
            self.of_mut(at, count).fill(0);
            return at;
        }
        let at = self.words.len();
        self.words.resize(at + count as usize, 0);
        at
    }

    /// Frees slots.
    pub fn give(&mut self, at: usize, count: u32) {
        if count > 0 {
            self.free.entry(count).or_default().push(at);
        }
    }

    /// Contents of slots.
    #[inline]
    pub fn of(&self, at: usize, count: u32) -> &[u32] {
        &self.words[at..at + count as usize]
    }

    /// Contents of slots, mutable.
    #[inline]
    pub fn of_mut(&mut self, at: usize, count: u32) -> &mut [u32] {
        &mut self.words[at..at + count as usize]
    }
}
