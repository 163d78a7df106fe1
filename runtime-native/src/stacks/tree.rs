//! The frames of stacks, by the numbers of the stacks.

use rustc_hash::FxHashMap;

/// A stack: that of its caller and one more frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The stack of the caller; 0: there is none.
    pub caller: u32,
    /// The site at which the frame is; 0 in place of the callers of stacks beyond the limit.
    pub site: u32,
}

/// The tree.
#[derive(Debug)]
pub struct Tree {
    frames: Vec<Frame>,
    /// Stacks without a value of their own, by their last frames.
    by_frame: FxHashMap<Frame, u32>,
    most: usize,
}

impl std::hash::Hash for Frame {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (u64::from(self.caller) << 32 | u64::from(self.site)).hash(state);
    }
}

impl Tree {
    /// Without stacks. After `most` there are only short ones.
    pub fn new(most: u32) -> Self {
        Self { frames: Vec::new(), by_frame: FxHashMap::default(), most: most as usize }
    }

    /// The frame of a stack.
    pub fn get(&self, number: u32) -> Option<Frame> {
        self.frames.get((number as usize).checked_sub(1)?).copied()
    }

    /// How many frames of each stack get a number; `None`: all.
    pub fn most_frames(&self) -> Option<usize> {
        /// Frames of a stack beyond the limit while there is still some room.
        const SOME: usize = 4;
        /// And after that.
        const LAST: usize = 1;
        match self.frames.len() {
            count if count < self.most => None,
            count if count < self.most + self.most / 4 => Some(SOME),
            _ => Some(LAST),
        }
    }

    /// Adds a stack, and returns its number.
    pub fn add(&mut self, frame: Frame) -> u32 {
        self.frames.push(frame);
        self.frames.len() as u32
    }

    /// The number of a stack that is found by its frames; `is_new` gets it if it was added.
    pub fn find_or_add(&mut self, frame: Frame, is_new: impl FnOnce(u32)) -> u32 {
        if let Some(&known) = self.by_frame.get(&frame) {
            return known;
        }
        let number = self.add(frame);
        self.by_frame.insert(frame, number);
        is_new(number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_stacks_are_short() {
        let mut tree = Tree::new(8);
        assert_eq!((tree.get(0), tree.get(1)), (None, None));
        let mut caller = 0;
        for site in 1..=8 {
            assert_eq!(tree.most_frames(), None);
            caller = tree.add(Frame { caller, site });
        }
        assert_eq!(tree.most_frames(), Some(4));
        let mut added = Vec::new();
        let mut find = |site| tree.find_or_add(Frame { caller: 3, site }, |number| added.push(number));
        assert_eq!([find(1), find(2), find(1)], [9, 10, 9]);
        assert_eq!(added, [9, 10]);
        assert_eq!(tree.get(10), Some(Frame { caller: 3, site: 2 }));
        assert_eq!(tree.most_frames(), Some(1));
    }
}
