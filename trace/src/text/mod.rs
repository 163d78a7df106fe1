//! Records as text (`docs/reading-traces.md`), and back.

mod et;
mod hold;
mod input;
mod line;
mod lines;
mod names_file;
mod names_reader;
mod oracle;
mod reader;
mod replayer;
mod stream;
mod writer;

pub use et::push_record;
pub use input::{TextInputError, TextTrace};
pub use line::Radix;
pub use names_file::{NamesUse, START as NAMES_START, write_names};
pub use names_reader::TextNames;
pub use oracle::START as ORACLE_START;
pub use reader::{Line, ParseError, Quirks, TextForm, TextReader};
pub use writer::{Dialect, Holders, START as TEXT_START, TextError, write, write_with};

#[cfg(test)]
mod tests;
