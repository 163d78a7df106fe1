//! What was looked up lately.

/// Powers of two are cheap to divide by; more entries would not stay in the nearest cache.
const ENTRIES: usize = 1 << 11;

/// What static ids were found to mean lately: an event names methods and fields that were named just before, and looking an id
/// up goes through the tables of all artifacts.
#[derive(Debug)]
pub struct Recent<T>(Box<[(u32, T)]>);

impl<T: Copy + Default> Default for Recent<T> {
    fn default() -> Self {
        Self(vec![(0, T::default()); ENTRIES].into_boxed_slice())
    }
}

impl<T: Copy> Recent<T> {
    /// What `find` finds for that id, or found lately. What is not found is looked for each time.
    #[inline]
    pub fn get(&mut self, id: u32, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let entry = &mut self.0[id as usize % ENTRIES];
        // No static id is 0.
        if entry.0 == id && id != 0 {
            return Some(entry.1);
        }
        let found = find()?;
        *entry = (id, found);
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
        // Both have one place.
        assert_eq!(recent.get(other, || Some('b')), Some('b'));
        assert_eq!(recent.get(7, || Some('c')), Some('c'));
        assert_eq!(recent.get(0, || None), None);
        assert_eq!(recent.get(0, || Some('d')), Some('d'));
        assert_eq!(recent.get(0, || None), None);
    }
}
