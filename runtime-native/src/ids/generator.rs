//! The VM's position in the sequence from which it draws identity hashes with `-XX:hashCode=0` ([`et_names::hashes`]).
//!
//! The sequence has a full period; only hashes of objects in a CDS archive can repeat: they were drawn by the process
//! that created the archive, from the beginning of the same sequence. So the runtime determines which hashes of
//! existing objects lie ahead in the sequence, and skips past them.

use et_names::hashes::next;
use rustc_hash::FxHashMap;

/// Maximum number of draws by other threads between two of ours.
const GAP: u32 = 64;
/// How far ahead to search for an archive's hashes. Creating an archive draws a few ten thousand.
const HORIZON: u32 = 1 << 18;
/// Bits of the sieve: many times the number of objects in a JVM when it starts.
const SIEVE: u32 = 1 << 20;

/// Whether consecutively drawn hashes come from the generator with the full period.
pub fn is_full_period(drawn: &[u32]) -> bool {
    drawn.len() > 1
        && drawn.windows(2).all(|pair| {
            let mut hash = pair[0];
            (0..GAP).any(|_| {
                hash = next(hash);
                hash == pair[1]
            })
        })
}

/// Number of draws after `last` until the last one of `taken` within reach.
pub fn draws_to_skip(last: u32, taken: impl Iterator<Item = u32> + Clone) -> u32 {
    // A bit set in the cache rejects most draws without a lookup in `taken`.
    let place = |hash: u32| ((hash % SIEVE) as usize / 64, 1_u64 << (hash % 64));
    let mut sieve = vec![0_u64; SIEVE as usize / 64];
    for hash in taken.clone() {
        let (word, bit) = place(hash);
        sieve[word] |= bit;
    }
    let mut hash = last;
    let mut left = FxHashMap::default();
    for step in 1..=HORIZON {
        hash = next(hash);
        let (word, bit) = place(hash);
        if sieve[word] & bit != 0 {
            left.insert(hash, step);
        }
    }
    taken.filter_map(|hash| left.get(&hash)).max().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(start: u32, count: usize) -> Vec<u32> {
        std::iter::successors(Some(start), |hash| Some(next(*hash))).take(count).collect()
    }

    #[test]
    fn the_scheme_shows_in_a_few_draws() {
        let drawn = sequence(1_234_567, 40);
        assert!(is_full_period(&drawn[..4]));
        assert!(is_full_period(&[drawn[0], drawn[7], drawn[39]]));
        assert!(!is_full_period(&[drawn[0], 99, 1234]));
        assert!(!is_full_period(&[]));
    }

    #[test]
    fn hashes_ahead_are_skipped_and_those_behind_are_not() {
        let drawn = sequence(1_234_567, 1000);
        let taken = [drawn[3], drawn[500], drawn[700], 5].into_iter();
        assert_eq!(draws_to_skip(drawn[600], taken.clone()), 100);
        assert_eq!(draws_to_skip(drawn[700], taken.clone()), 0);
        assert_eq!(draws_to_skip(drawn[0], taken.clone()), 700);
    }
}
