//! What classes come in and go out in.

pub mod class_file;
pub mod folder;
pub mod jar;
pub mod jimage;
pub mod manifest;
pub mod zip;
