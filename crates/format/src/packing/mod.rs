//! Packing of events: what can be predicted is left unsaid (`docs/inside/packing.md`).
//!
//! A program repeats itself. Each word of an event is predicted in a few ways, by tables of what followed in like places
//! earlier in the block. What is kept is which way was right, in a byte for each event, or in a byte for up to 64 events
//! whose words were all predicted in the first way. A word that none predicted is kept itself. The idea is that of the
//! value predictors of M. Burtscher, "VPC3: A Fast and Effective Trace-Compression Algorithm" (SIGMETRICS 2004).
//!
//! Both sides run the same [model] over the same words, so that they predict the same. A block is packed by
//! itself: a damaged one costs no other.

mod model;
mod pack;
mod streams;
#[cfg(test)]
mod tests;
mod unpack;

pub use pack::Packer;
pub use streams::UnpackError;
pub use unpack::Unpacker;
