//! The packing of earlier versions, which traces of theirs have: a dictionary of codes, and two more tables.

mod model;
#[cfg(test)]
mod pack;
mod streams;
mod unpack;

#[cfg(test)]
pub use pack::Packer;
pub use unpack::Unpacker;
