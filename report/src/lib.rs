//! A report as one page that needs nothing else, and its tables as text.

mod data;
mod page;
mod shell;
mod table;
mod tables;
#[cfg(test)]
mod tests;

pub use page::{START, page};
pub use table::{Cell, Column, Table};
pub use tables::tables;
