//! One cache level.

use super::CacheSpec;

/// A set-associative cache; each set is ordered from the most to the least recently used line.
#[derive(Debug)]
pub struct Level {
    pub spec: CacheSpec,
    /// Tags of all ways of all sets; 0 for an empty way.
    tags: Vec<u64>,
    sets: u64,
    shift: u32,
}

impl Level {
    pub fn new(spec: &CacheSpec) -> Self {
        let lines = spec.bytes / spec.line;
        let tags = vec![0; lines as usize];
        Self { spec: spec.clone(), tags, sets: lines / spec.ways, shift: spec.line.trailing_zeros() }
    }

    /// Accesses the line of that address and makes it the most recently used. True if it is a hit.
    #[inline]
    pub fn access(&mut self, address: u64) -> bool {
        let line = address >> self.shift;
        // 0 means an empty way.
        let tag = line + 1;
        let ways = self.spec.ways as usize;
        let first = (line % self.sets) as usize * ways;
        let set = &mut self.tags[first..first + ways];
        if set[0] == tag {
            return true;
        }
        match set.iter().position(|&known| known == tag) {
            Some(at) => {
                set[..=at].rotate_right(1);
                true
            }
            None => {
                set.rotate_right(1);
                set[0] = tag;
                false
            }
        }
    }
}
