//! The generator that identity hashes come from with `-XX:hashCode=0`: HotSpot's `os::random`, that of Park and Miller
//! (multiplier 16807, modulus 2^31-1), which runs through all 2^31-2 values before it repeats one.
//!
//! What can still repeat are the hashes of objects in a CDS archive: they were drawn by the process that made the
//! archive, from the start of the same sequence. So the runtime looks where in the sequence the hashes of existing
//! objects lie ahead, and skips that far.

use rustc_hash::FxHashSet;

const MULTIPLIER: u64 = 16807;
const MODULUS: u64 = 0x7fff_ffff;
/// Draws that lie between two of ours at most: other threads draw, too.
const GAP: u32 = 64;
/// How far ahead an archive's hashes are looked for. Making one draws a few ten thousand.
const HORIZON: u32 = 1 << 18;

/// How many values there are: from 1 to 2^31-2.
pub const PERIOD: u32 = 0x7fff_fffe;

/// The value after that one.
pub fn next(hash: u32) -> u32 {
    (u64::from(hash) * MULTIPLIER % MODULUS) as u32
}

/// The value so many steps after that one.
pub fn after(hash: u32, steps: u32) -> u32 {
    let (mut value, mut power, mut left) = (u64::from(hash), MULTIPLIER, steps);
    while left > 0 {
        if left & 1 == 1 {
            value = value * power % MODULUS;
        }
        power = power * power % MODULUS;
        left >>= 1;
    }
    value as u32
}

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
    fn the_generator_is_park_millers() {
        // The check value of Park and Miller's paper: the 10000th number after 1.
        assert_eq!(sequence(1, 10001)[10000], 1_043_618_065);
    }

    #[test]
    fn many_steps_at_once_lead_to_the_same_place() {
        for steps in [0, 1, 2, 999] {
            assert_eq!(after(1_234_567, steps), sequence(1_234_567, 1000)[steps as usize]);
        }
        assert_eq!(after(77, PERIOD), 77);
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
