//! Reads dialect `et`.

use std::io::{self, BufRead};

use et_names::{FieldId, MethodId, SiteId};
use thiserror::Error;

use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId};
use crate::types::Types;

/// Why text is not dialect `et`.
#[derive(Debug, Error)]
pub enum ParseError {
    /// The system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is no record.
    #[error("line {line}: {what}: {text:?}")]
    Line {
        /// From 1.
        line: u64,
        /// What is wrong.
        what: &'static str,
        /// The line's beginning.
        text: String,
    },
}

/// A line that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A record; what stands after `U` is given as a field, whether it is one or an index.
    Record(Record),
    /// A comment, without its `#`.
    Comment(String),
    /// `D` or `R`, which this reader passes over.
    Other,
}

/// Reads line by line.
#[derive(Debug)]
pub struct TextReader<R> {
    input: R,
    buffer: Vec<u8>,
    line: u64,
}

impl<R: BufRead> TextReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), line: 0 }
    }

    /// Number of the line read last.
    pub fn line_number(&self) -> u64 {
        self.line
    }

    /// The next line that is not empty; types are added to `types`.
    pub fn next_line(&mut self, types: &mut Types) -> Result<Option<Line>, ParseError> {
        loop {
            self.buffer.clear();
            if self.input.read_until(b'\n', &mut self.buffer)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let text = self.buffer.trim_ascii();
            match text.first() {
                None => {}
                Some(b'#') => {
                    return Ok(Some(Line::Comment(String::from_utf8_lossy(text[1..].trim_ascii()).into_owned())));
                }
                Some(_) => {
                    return parse(text, types).map(Some).map_err(|what| ParseError::Line {
                        line: self.line,
                        what,
                        text: String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned(),
                    });
                }
            }
        }
    }
}

fn parse(text: &[u8], types: &mut Types) -> Result<Line, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| "not UTF-8")?;
    let mut words = text.split(' ');
    let letter = words.next().unwrap_or_default();
    let kind = AllocKind::ALL.into_iter().find(|kind| letter.chars().eq([kind.letter()]));
    let mut word = || words.next().ok_or("a field is missing");
    let number = |word: &str| u64::from_str_radix(word, 16).map_err(|_| "a field is not a hexadecimal number");
    let small = |word: &str| u32::from_str_radix(word, 16).map_err(|_| "a field is not a hexadecimal number");
    let record = match (letter, kind) {
        (_, Some(kind)) => Record::Alloc(Alloc {
            kind,
            object: ObjectId(number(word()?)?),
            size: number(word()?)?,
            ty: types.intern(word()?),
            site: SiteId(small(word()?)?),
            length: small(word()?)?,
            thread: ThreadId(small(word()?)?),
        }),
        ("U", _) => Record::Update {
            old: ObjectId(number(word()?)?),
            origin: ObjectId(number(word()?)?),
            target: ObjectId(number(word()?)?),
            slot: Slot::Field(FieldId(small(word()?)?)),
            thread: ThreadId(small(word()?)?),
        },
        ("M" | "E", _) => {
            let (method, receiver) = (MethodId(small(word()?)?), ObjectId(number(word()?)?));
            let thread = ThreadId(small(word()?)?);
            if letter == "M" {
                Record::Entry { method, receiver, thread }
            } else {
                Record::Exit { method, receiver, thread }
            }
        }
        ("X" | "T" | "H", _) => {
            let (method, receiver) = (MethodId(small(word()?)?), ObjectId(number(word()?)?));
            let (exception, thread) = (ObjectId(number(word()?)?), ThreadId(small(word()?)?));
            match letter {
                "X" => Record::ExitThrow { method, receiver, exception, thread },
                "T" => Record::Throw { method, receiver, exception, thread },
                _ => Record::Handle { method, receiver, exception, thread },
            }
        }
        ("D" | "R", _) => return Ok(Line::Other),
        _ => return Err("not a record of dialect et"),
    };
    if words.next().is_some() {
        return Err("more fields than the record has");
    }
    Ok(Line::Record(record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::push_record;

    #[test]
    fn what_is_written_is_read_back() {
        let text = "# lost 0\n\nN 1f 10 La/B; 3 0 1\nA 20 18 [I 0 ff 1\nU 0 1f 20 7 1\nM a 1f 1\nE a 1f 1\nX a 0 20 1\n\
                    T a 0 20 2\nH a 0 20 2\n";
        let mut types = Types::default();
        let mut reader = TextReader::new(text.as_bytes());
        let mut back = String::new();
        while let Some(line) = reader.next_line(&mut types).unwrap() {
            match line {
                Line::Record(record) => {
                    let mut out = Vec::new();
                    push_record(&mut out, &record, &types);
                    back += &format!("{}\n", String::from_utf8(out).unwrap());
                }
                Line::Comment(text) => back += &format!("# {text}\n\n"),
                Line::Other => {}
            }
        }
        assert_eq!(back, text);
    }

    #[test]
    fn wrong_lines_are_named() {
        let mut types = Types::default();
        for (text, what) in [
            ("Q 1", "not a record"),
            ("M 1 2", "missing"),
            ("M x 2 1", "hexadecimal"),
            ("M 1 2 1 5", "more fields"),
            ("PK\u{3}\u{4}", "not a record"),
        ] {
            let error = TextReader::new(text.as_bytes()).next_line(&mut types).unwrap_err().to_string();
            assert!(error.starts_with("line 1: ") && error.contains(what), "{error}");
        }
    }
}
