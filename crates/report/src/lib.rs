//! What a trace shows: the report as one self-contained page, its tables as text, and allocation profiles in the formats of other
//! tools.

mod alive;
mod data;
mod diff;
mod document;
pub mod export;
mod holders;
mod page;
mod parts;
mod source;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod together;

pub use alive::alive_at;
pub use diff::{Difference, diff_page};
pub use document::START;
pub use page::{page, page_with};
pub use source::Excerpts;
pub use table::{Cell, Column, Table};
pub use tables::tables;
pub use together::{Part, together};
