//! The operations file: what the objects of a trace did, in few bytes (`docs/inside/ops.md`).

mod error;
mod format;
mod reader;
mod tables;
mod writer;

pub use error::OpsError;
pub use format::{HEAD, MAGIC, MOST_HANDLES, Op, VERSION};
pub use reader::OpsReader;
pub(crate) use reader::is_ops;
pub use tables::{Amount, Class, ClassKind, Layout, Peak, Site, Tables, Totals};
pub use writer::OpsWriter;

#[cfg(test)]
mod tests;
