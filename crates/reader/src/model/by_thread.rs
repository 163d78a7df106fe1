//! State per thread, kept only while it differs from the initial one: a program may have millions of virtual threads,
//! one after the other.

use rustc_hash::FxHashMap;

use crate::record::ThreadId;

/// State that can be dropped when it equals the initial state.
pub trait Forget: Default {
    /// Whether it equals the initial state.
    fn is_as_at_first(&self) -> bool;
}

/// A `T` for each thread whose state is not the initial one.
#[derive(Debug)]
pub struct ByThread<T> {
    all: Vec<T>,
    places: FxHashMap<ThreadId, usize>,
    free: Vec<usize>,
    current: Option<(ThreadId, usize)>,
}

impl<T> Default for ByThread<T> {
    fn default() -> Self {
        Self { all: Vec::new(), places: FxHashMap::default(), free: Vec::new(), current: None }
    }
}

impl<T: Forget> ByThread<T> {
    /// State of a thread, for modification.
    #[inline]
    pub fn of(&mut self, thread: ThreadId) -> &mut T {
        let place = match self.current {
            Some((current, place)) if current == thread => place,
            _ => self.go_to(thread),
        };
        &mut self.all[place]
    }

    fn go_to(&mut self, thread: ThreadId) -> usize {
        if let Some((left, place)) = self.current
            && self.all[place].is_as_at_first()
        {
            // Frees its buffers as well.
            self.all[place] = T::default();
            self.places.remove(&left);
            self.free.push(place);
        }
        let Self { all, free, .. } = self;
        let place = *self.places.entry(thread).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                all.push(T::default());
                all.len() - 1
            })
        });
        self.current = Some((thread, place));
        place
    }

    /// State of a thread; `None` if it is the initial one.
    pub fn get(&self, thread: ThreadId) -> Option<&T> {
        match self.current {
            Some((current, place)) if current == thread => Some(&self.all[place]),
            _ => self.places.get(&thread).map(|&place| &self.all[place]),
        }
    }

    /// States of all threads for which one is kept.
    pub fn iter(&self) -> impl Iterator<Item = (ThreadId, &T)> {
        self.places.iter().map(|(&thread, &place)| (thread, &self.all[place]))
    }

    /// Maximum number of states that were kept at a time.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl Forget for u32 {
        fn is_as_at_first(&self) -> bool {
            *self == 0
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map(puts in prop::collection::vec((0..6u32, 0..3u32), 0..200)) {
            let (mut all, mut model) = (ByThread::<u32>::default(), BTreeMap::new());
            for (thread, value) in puts {
                let old = std::mem::replace(all.of(ThreadId(thread)), value);
                prop_assert_eq!(old, model.insert(thread, value).unwrap_or(0));
                let found: BTreeMap<u32, u32> =
                    all.iter().map(|(thread, &value)| (thread.0, value)).filter(|&(_, value)| value > 0).collect();
                model.retain(|_, value| *value > 0);
                prop_assert_eq!(&found, &model);
                prop_assert_eq!(all.get(ThreadId(thread)).copied(), Some(value));
            }
        }
    }

    #[test]
    fn a_million_threads_in_turn_take_the_room_of_two() {
        let mut all = ByThread::<u32>::default();
        for thread in 0..1_000_000 {
            *all.of(ThreadId(thread)) = 1;
            *all.of(ThreadId(thread)) = 0;
        }
        assert!(all.places() <= 2);
    }
}
