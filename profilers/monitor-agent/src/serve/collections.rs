//! Determines which pauses end a collection: the VM only reports pauses, and ZGC and Shenandoah have several per
//! collection.

use std::time::{Duration, Instant};

/// Minimum time between reports for a concurrent collector: pauses within it may belong to the same collection.
const QUIET: Duration = Duration::from_millis(250);

/// The last report.
#[derive(Debug, Default)]
pub struct Collections {
    /// Number of collections at that time.
    count: Option<u32>,
    at: Option<Instant>,
}

impl Collections {
    /// Handles the end of a pause. `count` is the number of collections that the VM has begun, if it counts them.
    /// Returns whether to report a collection.
    pub fn pause(&mut self, count: Option<u32>, is_concurrent: bool, now: Instant) -> bool {
        // Shenandoah does not count collections.
        let count = count.filter(|count| *count > 0);
        let is_another = count.is_none() || count != self.count;
        let is_quiet = !is_concurrent || self.at.is_none_or(|at| now.duration_since(at) >= QUIET);
        let is_new = is_another && is_quiet;
        if is_new {
            *self = Self { count, at: Some(now) };
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pauses: &[(u64, Option<u32>)], is_concurrent: bool) -> Vec<bool> {
        let (mut collections, start) = (Collections::default(), Instant::now());
        let pause = |(ms, count): &(u64, Option<u32>)| {
            collections.pause(*count, is_concurrent, start + Duration::from_millis(*ms))
        };
        pauses.iter().map(pause).collect()
    }

    #[test]
    fn a_collection_is_reported_once_however_many_pauses_it_has() {
        // ZGC counts, and may take its time.
        let pauses = [(0, Some(1)), (2, Some(1)), (900, Some(1)), (1000, Some(2)), (1003, Some(3)), (1400, Some(3))];
        assert_eq!(told(&pauses, true), [true, false, false, true, false, true]);
        // Shenandoah does not count them.
        let pauses = [(0, Some(0)), (2, Some(0)), (20, Some(0)), (600, Some(0)), (605, Some(0))];
        assert_eq!(told(&pauses, true), [true, false, false, true, false]);
    }

    #[test]
    fn others_have_as_many_collections_as_they_count() {
        // G1 has pauses besides, in which nothing is collected.
        assert_eq!(told(&[(0, Some(1)), (1, Some(2)), (2, Some(2)), (3, Some(3))], false), [true, true, false, true]);
        assert_eq!(told(&[(0, None), (1, None)], false), [true, true]);
    }
}
