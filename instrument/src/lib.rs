//! Rewrites Java classes so that they report what their objects do.

pub mod app;
pub mod artifact;
mod class_path;
pub mod classfile;
pub mod cli;
pub mod code;
pub mod container;
pub mod error;
pub mod filter;
pub mod hooks;
pub mod input;
pub mod interrupt;
pub mod jdk;
pub mod progress;
pub mod report;
pub mod rewrite;
pub mod staging;
pub mod verify;
