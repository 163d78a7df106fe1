//! `cargo xtask loom`: checks the hand-over of chunks from threads to the writer, and of jobs and results between the threads that read a trace, in all interleavings.

use anyhow::Result;

use crate::command;
use crate::layout::Layout;

/// Runs the models of `runtime-native/src/loom_models.rs` and of `crates/reader/src/blocks/pool.rs`.
pub fn run(layout: &Layout) -> Result<()> {
    let mut cargo = command::cargo(&layout.repo);
    // In a separate folder, because other RUSTFLAGS would recompile everything. Optimized, because there are many
    // interleavings; LTO, however, would take longer than it saves.
    cargo.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", layout.target.join("loom"));
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "off");
    command::run(cargo.args([
        "test",
        "-p",
        "et-runtime-native",
        "-p",
        "et-reader",
        "--lib",
        "--release",
        "--locked",
        "loom_",
    ]))
}
