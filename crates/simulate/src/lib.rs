//! Traces replayed: what would this program cost under another collector, another allocator, another cache?
//!
//! A trace is boiled down once to an operations file ([`prepare`], [`ops`]). It is played to simulated [`collectors`], whose [`events`] are checked
//! and written, or to a real allocator ([`allocate`]); what they and the program touch is looked up in simulated caches ([`cache`]). [`mmtk`] is what
//! `et-replay` and `et-collect` say to each other. The commands are thin: `et-replay`, `et-collect`, `et-allocate`, `et-jvmpi`.

pub mod allocate;
pub mod cache;
pub mod collectors;
pub mod events;
pub mod mmtk;
pub mod ops;
pub mod prepare;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
