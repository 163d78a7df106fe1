//! Allocation profiles in the formats of other tools. Each writer turns a [`Tree`] of stacks into one file.

mod collapsed;
mod firefox;
mod heapprofile;
pub mod jfr;
mod pprof;
mod speedscope;
#[cfg(test)]
mod tests;
mod tree;
mod weight;

use std::io::{self, Write};

pub use tree::{Frame, Node, Tree};
pub use weight::Weight;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `pprof`'s protocol buffers, compressed with gzip; includes all weights.
    Pprof,
    /// The Firefox Profiler's processed profile, in JSON.
    Firefox,
    /// speedscope's own format, in JSON.
    Speedscope,
    /// One line per stack, as flame graph scripts read it.
    Collapsed,
    /// A sampling heap profile of Chrome's DevTools (`.heapprofile`), in JSON.
    Chrome,
}

/// Metadata of a profile.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub program: String,
    /// Duration of the run in nanoseconds, if known.
    pub nanos: Option<u64>,
    /// What is missing from the trace, one line each.
    pub comments: Vec<String>,
}

/// Writes a profile with the given weight; `pprof` also includes the others, and shows this one by default.
pub fn write(tree: &Tree, format: Format, weight: Weight, about: &About, out: impl Write) -> io::Result<()> {
    match format {
        Format::Pprof => pprof::write(tree, weight, about, out),
        Format::Firefox => firefox::write(tree, weight, about, out),
        Format::Speedscope => speedscope::write(tree, weight, about, out),
        Format::Collapsed => collapsed::write(tree, weight, out),
        Format::Chrome => heapprofile::write(tree, weight, out),
    }
}
