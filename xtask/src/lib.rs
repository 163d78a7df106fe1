//! The project's tasks, one module each: build, demo, test, package; and code shared with end-to-end tests and
//! `bench/`.
#![allow(clippy::print_stderr, reason = "a tool for developers")]

pub mod assets;
pub mod book;
pub mod browser;
pub mod build;
pub mod chroot;
pub mod command;
pub mod completeness;
pub mod deaths;
pub mod demo;
pub mod deny;
pub mod dist;
pub mod docs;
pub mod folders;
pub mod instrumented;
pub mod jdks;
pub mod jvmpi;
pub mod lab;
pub mod layout;
pub mod linking;
pub mod loom;
pub mod packages;
pub mod pages;
pub mod plugins;
pub mod programs;
pub mod python;
pub mod quick;
pub mod replayer;
pub mod runtime_java;
pub mod setup;
pub mod skips;
pub mod test;
pub mod tidy;
pub mod times;
pub mod workloads;
