//! Search for the smallest heap.

use super::ChildError;

/// Minimum precision in bytes: MMTk counts pages, and allocates blocks of 32 KiB.
const STEP: u64 = 256 << 10;
/// Maximum heap size in bytes.
const MOST: u64 = 28 << 30;

/// Bisects to within 1/64 of the peak of live bytes. `run` replays with a heap size; `None` if even the maximum is too
/// small.
pub fn smallest_heap<T>(
    peak: u64,
    mut run: impl FnMut(u64) -> Result<T, ChildError>,
) -> Result<Option<(u64, T)>, ChildError> {
    let step = (peak / 64).max(STEP);
    let (mut too_small, mut enough) = (0, peak.next_multiple_of(step).max(STEP).saturating_mul(2).min(MOST));
    let mut best = loop {
        match run(enough) {
            Ok(done) => break done,
            Err(ChildError::TooSmall { .. } | ChildError::Nursery(_)) if enough >= MOST => return Ok(None),
            Err(ChildError::TooSmall { .. } | ChildError::Nursery(_)) => {
                (too_small, enough) = (enough, (enough * 2).min(MOST))
            }
            Err(error) => return Err(error),
        }
    };
    while enough - too_small > step {
        let middle = (too_small + (enough - too_small) / 2) / 4096 * 4096;
        match run(middle) {
            Ok(done) => (enough, best) = (middle, done),
            Err(ChildError::TooSmall { .. } | ChildError::Nursery(_)) => too_small = middle,
            Err(error) => return Err(error),
        }
    }
    Ok(Some((enough, best)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_heap_is_found() {
        let too_small = || ChildError::TooSmall { said: String::new() };
        for needed in [1, 300 << 10, 10 << 20, (1 << 30) + 5, 20 << 30] {
            for peak in [0, 1 << 20, 8 << 20, 1 << 30] {
                let mut runs = 0;
                let found = smallest_heap(peak, |heap| {
                    runs += 1;
                    if heap >= needed { Ok(heap) } else { Err(too_small()) }
                });
                let (heap, done) = found.unwrap().unwrap();
                assert_eq!(heap, done);
                assert!(heap >= needed && heap - needed <= (peak / 64).max(STEP), "{needed} {peak}: {heap}");
                assert!(runs < 40, "{runs}");
            }
        }
        assert!(smallest_heap(1, |_| Err::<(), _>(too_small())).unwrap().is_none());
        let missing = || ChildError::Missing { folder: "x".into() };
        assert!(smallest_heap(1, |_| Err::<(), _>(missing())).is_err());
    }
}
