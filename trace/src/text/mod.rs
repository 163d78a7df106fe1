//! Records as text (`docs/reading-traces.md`), and back.

mod dialect;
mod error;
mod et;
mod hold;
mod input;
mod line;
mod lines;
mod names_file;
mod names_reader;
mod number;
mod oracle;
mod reader;
mod replayer;
pub mod starts;
mod stream;
mod type_numbers;
mod unknown_type;
mod writer;

pub use dialect::{Dialect, Holders};
pub use error::ParseError;
pub use et::push_record;
pub use input::{TextInputError, TextTrace};
pub use names_file::{NamesUse, write_names};
pub use names_reader::TextNames;
pub use number::Radix;
pub use reader::{Line, Quirks, TextForm, TextReader};
pub use writer::{TextError, write, write_with};

#[cfg(test)]
mod tests;
