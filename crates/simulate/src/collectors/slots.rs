//! What the slots of all objects hold, in one piece of memory.

use rustc_hash::FxHashMap;

/// Room for slots. What is given back is used again for objects with as many.
#[derive(Debug, Default)]
pub struct SlotStore {
    words: Vec<u32>,
    free: FxHashMap<u32, Vec<usize>>,
}

impl SlotStore {
    /// Room for so many slots, all null. It begins there.
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

    /// It is needed no more.
    pub fn give(&mut self, at: usize, count: u32) {
        if count > 0 {
            self.free.entry(count).or_default().push(at);
        }
    }

    /// What they hold.
    #[inline]
    pub fn of(&self, at: usize, count: u32) -> &[u32] {
        &self.words[at..at + count as usize]
    }

    /// The same, to store into.
    #[inline]
    pub fn of_mut(&mut self, at: usize, count: u32) -> &mut [u32] {
        &mut self.words[at..at + count as usize]
    }
}
