//! Connects targets to libFuzzer: inputs, structure-aware mutation, a memory limit.

use et_fuzz_targets::{Random, Target};

pub use et_tests_heap::Counting;
#[doc(hidden)]
pub use libfuzzer_sys;

/// Prepares the process.
pub fn init() {
    et_fuzz_targets::init();
    // A panic ends the process, but for those of the readers that the checker asks for an opinion, and catches.
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        if !file.contains("/cafebabe-") && !file.contains("/classfile-parser-") {
            abort(panic);
        }
    }));
}

/// Runs a target on an input, its memory in proportion to the input.
pub fn run(target: &Target, data: &[u8]) {
    et_tests_heap::bounded(target.memory(data.len()), || (target.run)(data));
}

/// Half of the mutations are libFuzzer's own, with the checksums made right again most of the time; half are the target's.
pub fn mutate(
    target: &Target,
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    plain: fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut random = Random::new(seed);
    let bytes = |part: &mut Vec<u8>| {
        let (size, room) = (part.len(), part.len() + 64);
        part.resize(room, 0);
        let size = plain(part, size, room);
        part.truncate(size);
    };
    if let Some(mutate) = target.mutate
        && random.one_in(2)
        && let Some(mutated) = mutate(&data[..size], &mut random, &bytes)
        && mutated.len() <= max_size
    {
        data[..mutated.len()].copy_from_slice(&mutated);
        return mutated.len();
    }
    let size = plain(data, size, max_size);
    if let Some(mend) = target.mend
        && !random.one_in(8)
    {
        mend(&mut data[..size]);
    }
    size
}

/// Defines the `main` of a fuzzer.
#[macro_export]
macro_rules! fuzz {
    ($target:expr) => {
        #[global_allocator]
        static HEAP: $crate::Counting = $crate::Counting;

        $crate::libfuzzer_sys::fuzz_target!(init: $crate::init(), |data: &[u8]| {
            $crate::run(&$target, data)
        });

        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::mutate(&$target, data, size, max_size, seed, $crate::libfuzzer_sys::fuzzer_mutate)
        });
    };
}
