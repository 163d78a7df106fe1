//! Rewrites Java classes so that they report what their objects do.
//!
//! Without the feature `command` only the rewriting of single classes is left: what the runtime takes along.

#[cfg(feature = "command")]
pub mod app;
#[cfg(feature = "command")]
pub mod artifact;
#[cfg(feature = "command")]
pub mod cache;
#[cfg(feature = "command")]
mod class_path;
pub mod classfile;
#[cfg(feature = "command")]
pub mod cli;
pub mod code;
#[cfg(feature = "command")]
pub mod container;
#[cfg(feature = "command")]
pub mod error;
pub mod filter;
pub mod hooks;
#[cfg(feature = "command")]
pub mod input;
#[cfg(feature = "command")]
pub mod interrupt;
#[cfg(feature = "command")]
pub mod jdk;
#[cfg(feature = "command")]
pub mod memory;
#[cfg(feature = "command")]
pub mod progress;
#[cfg(feature = "command")]
pub mod report;
pub mod rewrite;
#[cfg(feature = "command")]
pub mod run;
#[cfg(feature = "command")]
pub mod staging;
pub mod trace_path;
#[cfg(feature = "command")]
pub mod verify;
