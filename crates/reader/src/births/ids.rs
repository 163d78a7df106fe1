//! Which ids may have been given more than once: looked for on all cores, in no order.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits for each object, as long as there are fewer than one for each id: few objects then share one.
const BITS: usize = 64;
const MOST_BITS: usize = 1 << 31;
/// Ids that are looked at together. Each look waits for memory, and those of a loop that does nothing else wait together.
const AT_ONCE: usize = 64;

/// A set of ids, perhaps with others that share their bits.
#[derive(Debug)]
pub struct Seen {
    words: Vec<AtomicU64>,
}

impl Seen {
    /// For that many objects.
    pub fn new(objects: usize) -> Self {
        let bits = objects.saturating_mul(BITS).next_power_of_two().clamp(64, MOST_BITS);
        Self { words: std::iter::repeat_with(AtomicU64::default).take(bits / 64).collect() }
    }

    #[inline]
    fn place(&self, id: u32) -> (usize, u64) {
        (id as usize >> 6 & (self.words.len() - 1), 1 << (id & 63))
    }

    pub fn may_have(&self, id: u32) -> bool {
        let (word, bit) = self.place(id);
        self.words[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Adds ids. Those that may have been there go to `again`.
    pub fn add(&self, ids: &[u32], again: &mut Vec<u32>) {
        for ids in ids.chunks(AT_ONCE) {
            let look = |sum, id: &u32| sum ^ self.words[self.place(*id).0].load(Ordering::Relaxed);
            std::hint::black_box(ids.iter().fold(0, look));
            for &id in ids {
                let (word, bit) = self.place(id);
                if self.words[word].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                    again.push(id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_come_again_are_found() {
        let seen = Seen::new(1000);
        let (mut again, ids) = (Vec::new(), Vec::from_iter(1..=1000u32));
        seen.add(&ids, &mut again);
        assert_eq!(again, [0; 0]);
        seen.add(&[2000, 7, 1000], &mut again);
        assert_eq!(again, [7, 1000]);
        assert!(seen.may_have(2000) && !seen.may_have(2001));
    }
}
