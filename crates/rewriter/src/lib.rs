//! Rewrites a Java class so that it reports what happens to objects.
//!
//! `et-instrument` uses it ahead of time, the runtime for classes created at run time. Knows nothing of files,
//! containers or commands: the bytes of a class file go in, the bytes of a class file come out.

pub mod classfile;
pub mod code;
pub mod filter;
pub mod hooks;
pub mod rewrite;
