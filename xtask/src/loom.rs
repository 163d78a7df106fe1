//! `cargo xtask loom`: the hand-over of chunks from threads to the writer, in all orders in which threads may come.

use anyhow::Result;

use crate::command;
use crate::layout::Layout;

/// Runs the models of `runtime-native/src/loom_models.rs`.
pub fn run(layout: &Layout) -> Result<()> {
    let mut cargo = command::cargo(&layout.repo);
    // In a folder of its own: with another RUSTFLAGS all is built anew. Optimised, as there are many orders; whole-program
    // optimisation would take longer than they do.
    cargo.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", layout.target.join("loom"));
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "off");
    command::run(cargo.args(["test", "-p", "et-runtime-native", "--lib", "--release", "--locked", "loom_"]))
}
