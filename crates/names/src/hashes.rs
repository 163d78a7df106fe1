//! Identity hashes as HotSpot generates them with `-XX:hashCode=0`: `os::random`, the generator of Park and Miller
//! (multiplier 16807, modulus 2^31-1; CACM 31(10), 1988), whose period is 2^31-2.

const MULTIPLIER: u64 = 16807;
const MODULUS: u64 = 0x7fff_ffff;

/// Period of the generator: its values are 1 to 2^31-2.
pub const PERIOD: u32 = 0x7fff_fffe;
/// Initial value in every process (`os::_rand_seed` in os.cpp, unchanged since JDK 8).
pub const SEED: u32 = 1_234_567;

/// Returns the value after `hash`.
#[inline]
pub fn next(hash: u32) -> u32 {
    let product = u64::from(hash) * MULTIPLIER;
    let folded = (product >> 31) as u32 + (product as u32 & 0x7fff_ffff);
    if folded >= 0x7fff_ffff { folded - 0x7fff_ffff } else { folded }
}

/// Returns the value `steps` steps after `hash`.
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

/// Returns the value `steps` steps before `hash`.
pub fn before(hash: u32, steps: u32) -> u32 {
    after(hash, PERIOD - steps % PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_park_millers() {
        // Check value from Park and Miller's paper: the 10000th number after 1.
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
        // The largest products.
        for hash in [1, 0x7fff_fffe, 0x7fff_fffd] {
            assert_eq!(u64::from(next(hash)), u64::from(hash) * MULTIPLIER % MODULUS);
        }
    }
}
