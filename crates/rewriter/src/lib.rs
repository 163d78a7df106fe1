//! Rewrites one Java class so that it reports what its objects do.
//!
//! `et-instrument` does it ahead of time, the runtime for classes that are made at run time. No files, no containers, no
//! commands here: bytes of a class file in, bytes of a class file out.

pub mod classfile;
pub mod code;
pub mod filter;
pub mod hooks;
pub mod rewrite;
