//! The containers from which classes are read and to which they are written.

pub mod class_file;
pub mod folder;
pub mod jar;
pub mod jimage;
pub mod manifest;
pub mod zip;
