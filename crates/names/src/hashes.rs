//! Identity hashes as HotSpot draws them with `-XX:hashCode=0`: `os::random`, the generator of Park and Miller
//! (multiplier 16807, modulus 2^31-1; CACM 31(10), 1988), which runs through all 2^31-2 values before it repeats one.

const MULTIPLIER: u64 = 16807;
const MODULUS: u64 = 0x7fff_ffff;

/// How many values there are: from 1 to 2^31-2.
pub const PERIOD: u32 = 0x7fff_fffe;
/// Where every process starts, as libjvm has it (`os::_rand_seed` in os.cpp, the same from JDK 8 on).
pub const SEED: u32 = 1_234_567;

/// The value after that one.
#[inline]
pub fn next(hash: u32) -> u32 {
    let product = u64::from(hash) * MULTIPLIER;
    let folded = (product >> 31) as u32 + (product as u32 & 0x7fff_ffff);
    if folded >= 0x7fff_ffff { folded - 0x7fff_ffff } else { folded }
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

/// The value so many steps before that one.
pub fn before(hash: u32, steps: u32) -> u32 {
    after(hash, PERIOD - steps % PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_park_millers() {
        // The check value of Park and Miller's paper: the 10000th number after 1.
        assert_eq!((0..10_000).fold(1, |hash, _| next(hash)), 1_043_618_065);
        assert_eq!(after(1, 10_000), 1_043_618_065);
    }

    #[test]
    fn many_steps_at_once_lead_to_the_same_place_and_back() {
        for steps in [0, 1, 2, 999] {
            let end = (0..steps).fold(SEED, |hash, _| next(hash));
            assert_eq!((after(SEED, steps), before(end, steps)), (end, SEED));
        }
        assert_eq!((after(77, PERIOD), before(77, PERIOD)), (77, 77));
        // The largest sums.
        for hash in [1, 0x7fff_fffe, 0x7fff_fffd] {
            assert_eq!(u64::from(next(hash)), u64::from(hash) * MULTIPLIER % MODULUS);
        }
    }
}
