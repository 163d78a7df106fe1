//! A number from 0 to 15 for each object, by its address: half a byte for every eight of the heap, as far as it has objects.

use rustc_hash::FxHashMap;

const PAGE: u64 = 2 << 20;
const UNIT: u64 = 8;

/// See the module. What was not set is 0.
#[derive(Debug, Default)]
pub struct Levels {
    pages: FxHashMap<u64, Box<[u8]>>,
}

impl Levels {
    fn place(address: u64) -> (u64, usize, u32) {
        let unit = address % PAGE / UNIT;
        (address / PAGE, (unit / 2) as usize, (unit % 2 * 4) as u32)
    }

    /// The level of an object.
    pub fn get(&self, address: u64) -> u8 {
        let (page, byte, shift) = Self::place(address);
        self.pages.get(&page).map_or(0, |page| page[byte] >> shift & 15)
    }

    /// Sets it, if it is 0 or greater. What it was.
    pub fn lower(&mut self, address: u64, level: u8) -> u8 {
        let (page, byte, shift) = Self::place(address);
        let page = self.pages.entry(page).or_insert_with(|| vec![0; (PAGE / UNIT / 2) as usize].into());
        let before = page[byte] >> shift & 15;
        if before == 0 || level < before {
            page[byte] = page[byte] & !(15 << shift) | (level & 15) << shift;
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_map(claims in prop::collection::vec((0..2_000_000_u64, 1..16_u8), 0..200)) {
            let (mut levels, mut map) = (Levels::default(), HashMap::new());
            for (unit, level) in claims {
                let address = 0x7_0000_0000 + unit * 8;
                prop_assert_eq!(levels.lower(address, level), map.get(&address).copied().unwrap_or(0));
                let there = map.entry(address).or_insert(level);
                *there = level.min(*there);
            }
            for (address, level) in map {
                prop_assert_eq!(levels.get(address), level);
                prop_assert_eq!(levels.get(address + (1 << 40)), 0);
            }
        }
    }
}
