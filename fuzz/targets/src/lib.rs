//! Fuzz targets. Each takes arbitrary bytes and panics if a property that must hold for all input does not: no internal
//! panic, output can be parsed again, the same input gives the same output.
//!
//! `fuzz/` runs these under libFuzzer; `tests/replay.rs` runs the stored corpus as an ordinary test.

pub mod class;
pub mod ddm;
pub mod image_maker;
pub mod jar;
pub mod jimage;
pub mod names;
mod random;
pub mod rewriter;
pub mod seeds;
pub mod text;
pub mod trace;

use et_analysis::summary::{self, Summary};
use et_reader::source::{Reading, Source};

pub use random::Random;

/// Changes some bytes at random, and perhaps their number.
pub type Plain<'a> = &'a dyn Fn(&mut Vec<u8>);

/// Makes another input of one; `None` if it cannot.
pub type Mutate = fn(&[u8], &mut Random, Plain<'_>) -> Option<Vec<u8>>;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    /// Name of its seeds and of its corpus: some targets do different things with the same inputs.
    pub inputs: &'static str,
    /// Maximum length of inputs in long runs, in bytes: short ones are faster, and reach as much code.
    pub longest: usize,
    /// Whether long runs let libFuzzer see what is compared: it finds magic numbers then; readers of traces run 1.7 times as fast without.
    pub compares: bool,
    /// Bytes of memory that a byte of input may cost; see [`memory`](Self::memory).
    pub memory_ratio: usize,
    /// Panics if something is wrong.
    pub run: fn(&[u8]),
    /// Makes another input of one, with checksums and lengths right where bytes alone would never get it right.
    pub mutate: Option<Mutate>,
    /// Makes right, in place, the checksums of bytes that were changed anywhere.
    pub mend: Option<fn(&mut [u8])>,
}

pub const ALL: [Target; 12] = [
    class::TARGET,
    rewriter::TARGET,
    jar::TARGET,
    jimage::TARGET,
    trace::TARGET,
    trace::TEXT,
    trace::COMPARE,
    trace::RECOVER,
    trace::HEAP,
    text::TARGET,
    names::TARGET,
    ddm::TARGET,
];

impl Target {
    /// Memory that an input of `size` bytes may take. The ratio is that of the best compression inside (deflate 1032,
    /// zstd 32768) times the copies that are made.
    pub const fn memory(&self, size: usize) -> usize {
        (64 << 20) + self.memory_ratio * size
    }
}

/// The summary of a trace in any form, with short lists; `None` if it cannot be read.
fn summarize(source: &Source) -> Option<Summary> {
    let (population, observed) = et_lives::observe(source, None, Reading::default(), |_, _| {}).ok()?;
    summary::summarize(source, &population, &observed, 5).ok()
}

/// Prepares a process for fuzzing: parallel iterators run on the caller's thread, since worker threads make runs slow and hard to repeat. Traces of
/// several blocks are read on several threads nevertheless, as they always are.
pub fn init() {
    // Fails only if it was done before.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
}
