//! One level.

use super::CacheSpec;

/// Sets of lines, the one that was used last first.
#[derive(Debug)]
pub struct Level {
    pub spec: CacheSpec,
    /// All ways of all sets; 0 where there is no line yet.
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

    /// Whether the line of that address is there. Now it is.
    #[inline]
    pub fn access(&mut self, address: u64) -> bool {
        let line = address >> self.shift;
        // 0 stands for nothing.
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
