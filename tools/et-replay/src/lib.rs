//! Traces replayed: what would this program cost under another collector, another allocator, another cache?
//!
//! A trace is boiled down once to an operations file ([`prepare`], [`ops`]), which [`simulate`] plays to simulated collectors, [`collect`] to
//! real ones, and [`allocate`] to a real allocator. What collectors report, [`events`] checks and writes; what they and the program touch, [`cache`] has
//! looked up in simulated caches.

pub mod allocate;
pub mod cache;
mod chart;
mod children;
pub mod cli;
pub mod collect;
pub mod events;
pub mod ops;
mod output;
pub mod prepare;
pub mod simulate;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
