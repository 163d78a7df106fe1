//! A cache of lookups.

use rustc_hash::FxHashMap;

/// Number of entries, a power of two for cheap indexing; more would not fit in the L1 cache.
const ENTRIES: usize = 1 << 11;

/// Maximum number of results kept behind the recent ones. Programs have fewer; damaged traces may have any ids.
const MOST: usize = 1 << 18;

/// Caches what static ids mean: events often refer to recently used methods and fields, and looking up an id goes
/// through the tables of all artifacts. The most recent are in a small table, the others behind it.
#[derive(Debug)]
pub struct Recent<T> {
    recent: Box<[(u32, T)]>,
    found: FxHashMap<u32, T>,
}

impl<T: Copy + Default> Default for Recent<T> {
    fn default() -> Self {
        Self { recent: vec![(0, T::default()); ENTRIES].into_boxed_slice(), found: FxHashMap::default() }
    }
}

impl<T: Copy> Recent<T> {
    /// Returns the cached result of `find` for that id, which must be the same whenever it is asked for. `None` is not cached.
    #[inline]
    pub fn get(&mut self, id: u32, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let entry = self.recent[id as usize % ENTRIES];
        // 0 is not a static id.
        if entry.0 == id && id != 0 {
            return Some(entry.1);
        }
        self.look_up(id, find)
    }

    #[inline(never)]
    fn look_up(&mut self, id: u32, find: impl FnOnce() -> Option<T>) -> Option<T> {
        if id == 0 {
            return find();
        }
        let found = match self.found.get(&id) {
            Some(&found) => found,
            None => {
                let found = find()?;
                if self.found.len() >= MOST {
                    self.found.clear();
                }
                self.found.insert(id, found);
                found
            }
        };
        self.recent[id as usize % ENTRIES] = (id, found);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_not_looked_for_again() {
        let mut recent = Recent::default();
        let other = ENTRIES as u32 + 7;
        assert_eq!(recent.get(7, || None), None);
        assert_eq!(recent.get(7, || Some('a')), Some('a'));
        assert_eq!(recent.get(7, || unreachable!()), Some('a'));
        // Both share an entry.
        assert_eq!(recent.get(other, || Some('b')), Some('b'));
        assert_eq!(recent.get(7, || unreachable!()), Some('a'));
        assert_eq!(recent.get(0, || None), None);
        assert_eq!(recent.get(0, || Some('d')), Some('d'));
        assert_eq!(recent.get(0, || None), None);
    }
}
