//! Packing of events: predictable words are left out (`docs/inside/packing.md`).
//!
//! Programs are repetitive. Each word of an event is predicted in several ways, from tables of the words that followed
//! in similar places earlier in the block. The output says which prediction was right, in one byte per event, or in one
//! byte for up to 64 events whose words were all predicted in the first way. A word that was not predicted is stored.
//! The idea comes from the value predictors of M. Burtscher, "VPC3: A Fast and Effective Trace-Compression Algorithm"
//! (SIGMETRICS 2004).
//!
//! Packer and unpacker run the same [model] over the same words, so they make the same predictions. Each block is
//! packed independently: a damaged block does not affect others.

mod columns;
mod model;
mod pack;
mod streams;
#[cfg(test)]
mod tests;
mod unpack;

pub use columns::{ColumnPacker, unpack_counts, unpack_stacks};
pub use pack::Packer;
pub use streams::{UnpackError, values};
pub use unpack::Unpacker;
