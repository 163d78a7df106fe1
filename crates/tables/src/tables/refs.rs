//! Stays of references in slots: the rows of the life table.

pub use et_lives::tables::references::{Row, Rows, TABLE};
