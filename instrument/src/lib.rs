//! Rewrites Java classes so that they report what their objects do.

pub mod app;
mod archives;
pub mod artifact;
pub mod cache;
mod class_path;
pub mod cli;
pub mod container;
mod files;
pub mod input;
pub mod interrupt;
pub mod jdk;
pub mod memory;
pub mod progress;
pub mod report;
pub mod run;
pub mod staging;
pub mod verify;
