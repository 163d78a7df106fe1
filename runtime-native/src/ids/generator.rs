//! Where the VM stands in the sequence that it draws identity hashes from with `-XX:hashCode=0` ([`et_names::hashes`]).
//!
//! It does not repeat; what can still repeat are the hashes of objects in a CDS archive: they were drawn by the process
//! that made the archive, from the start of the same sequence. So the runtime looks where in the sequence the hashes of
//! existing objects lie ahead, and skips that far.

use et_names::hashes::next;
use rustc_hash::FxHashSet;

/// Draws that lie between two of ours at most: other threads draw, too.
const GAP: u32 = 64;
/// How far ahead an archive's hashes are looked for. Making one draws a few ten thousand.
const HORIZON: u32 = 1 << 18;

/// Whether hashes drawn one after the other come from the generator that does not repeat.
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

/// How many draws after `last` the last one of `taken` would come that lies within reach.
pub fn draws_to_skip(last: u32, taken: &FxHashSet<u32>) -> u32 {
    let mut hash = last;
    let mut skip = 0;
    for step in 1..=HORIZON {
        hash = next(hash);
        if taken.contains(&hash) {
            skip = step;
        }
    }
    skip
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
        let taken: FxHashSet<u32> = [drawn[3], drawn[500], drawn[700]].into_iter().collect();
        assert_eq!(draws_to_skip(drawn[600], &taken), 100);
        assert_eq!(draws_to_skip(drawn[700], &taken), 0);
        assert_eq!(draws_to_skip(drawn[0], &taken), 700);
    }
}
