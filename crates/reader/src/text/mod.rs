//! Traces as text (`docs/reading-traces.md`): dialects, lines, names files, and the reader.
//! [`text_writer`](crate::text_writer) writes whole traces.

mod clearings;
mod dialect;
mod error;
pub(crate) mod et;
pub(crate) mod hold;
mod input;
mod line;
mod lines;
mod names_file;
mod names_reader;
pub(crate) mod number;
mod reader;
mod referent;
pub mod starts;
mod stream;
mod type_number;
pub(crate) mod unknown_type;

pub use dialect::{Dialect, Holders};
pub use error::ParseError;
pub use et::push_record;
pub use input::{TextInputError, TextTrace};
pub use names_file::{NamesUse, write_names};
pub use names_reader::TextNames;
pub use number::Radix;
pub use reader::{Line, Quirks, TextForm, TextReader};
pub(crate) use type_number::type_number;
pub use unknown_type::is_unknown_type;
