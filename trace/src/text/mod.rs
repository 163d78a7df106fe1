//! Records as text (`docs/reading-traces.md`), and back.

mod et;
mod names_file;
mod reader;

pub use et::{EtWriter, TextError, push_record, write_trace};
pub use names_file::{NamesUse, write_names};
pub use reader::{Line, ParseError, TextReader};
