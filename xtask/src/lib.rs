//! The project's own chores, each a module: build, demo, test, bench, and what they share.

pub mod bench;
pub mod build;
pub mod command;
pub mod completeness;
pub mod cost;
pub mod deaths;
pub mod demo;
pub mod dist;
pub mod docs;
pub mod instrumented;
pub mod jdks;
pub mod layout;
pub mod linking;
pub mod loom;
pub mod markdown;
pub mod memory;
pub mod plugins;
pub mod programs;
pub mod reading;
pub mod runtime_java;
pub mod setup;
pub mod skips;
pub mod startup;
pub mod test;
pub mod verify_world;
pub mod workloads;
