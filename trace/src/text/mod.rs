//! Records as text (`docs/reading-traces.md`), and back.

mod et;
mod hold;
mod input;
mod line;
mod names_file;
mod names_reader;
mod oracle;
mod reader;
mod replayer;
mod writer;

pub use et::push_record;
pub use input::{TextInputError, TextTrace};
pub use line::Radix;
pub use names_file::{NamesUse, write_names};
pub use names_reader::TextNames;
pub use reader::{Line, ParseError, Quirks, TextForm, TextReader};
pub use writer::{Dialect, TextError, write};
