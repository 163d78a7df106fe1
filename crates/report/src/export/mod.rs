//! An allocation profile in the formats of other tools. Each takes a [`Tree`] of stacks and writes one file.

mod collapsed;
mod firefox;
mod heapprofile;
mod pprof;
mod speedscope;
#[cfg(test)]
mod tests;
mod tree;
mod weight;

use std::io::{self, Write};

pub use tree::{Frame, Node, Tree};
pub use weight::Weight;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Protocol buffers of `pprof`, compressed with gzip; has all weights at once.
    Pprof,
    /// The Firefox Profiler's processed profile, JSON.
    Firefox,
    /// speedscope's own JSON.
    Speedscope,
    /// One line a stack, as flame graph scripts read it.
    Collapsed,
    /// A sampling heap profile of Chrome's DevTools (`.heapprofile`), JSON.
    Chrome,
}

/// What a profile says of itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The program.
    pub program: String,
    /// How long it ran, if that is known.
    pub nanos: Option<u64>,
    /// What the trace lacks, a line each.
    pub comments: Vec<String>,
}

/// Writes a profile, weighted by `weight`; `pprof` has the other weights, too, and shows this one first.
pub fn write(tree: &Tree, format: Format, weight: Weight, about: &About, out: impl Write) -> io::Result<()> {
    match format {
        Format::Pprof => pprof::write(tree, weight, about, out),
        Format::Firefox => firefox::write(tree, weight, about, out),
        Format::Speedscope => speedscope::write(tree, weight, about, out),
        Format::Collapsed => collapsed::write(tree, weight, out),
        Format::Chrome => heapprofile::write(tree, weight, out),
    }
}
