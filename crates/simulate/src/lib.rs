//! Replays of a trace: what would this program cost under another collector, another allocator, another cache?
//!
//! A trace is reduced once to an operations file ([`prepare`], [`ops`]). The operations run under simulated
//! [`collectors`], whose [`events`] are checked and written, or with a real allocator ([`allocate`]); the memory
//! accesses can be simulated in a [`cache`]. [`mmtk`] is the interface between `et-replay` and `et-collect`. The
//! commands are thin: `et-replay`, `et-collect`, `et-allocate`, `et-jvmpi`.

pub mod allocate;
pub mod cache;
pub mod collectors;
pub mod events;
pub mod mmtk;
pub mod ops;
pub mod prepare;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
