//! Events as CSV.

use std::io::{self, Write};

use super::{Event, Sink, array_kind};
use crate::ops::Tables;

/// The header line.
pub const CSV_HEADER: &str = "operation,event,arena,object,name,array,size,new_arena,new_object";

/// Writes one row per event.
#[derive(Debug)]
pub struct CsvWriter<'a, W> {
    out: W,
    tables: &'a Tables,
    line: Vec<u8>,
    failed: Option<io::Error>,
}

impl<'a, W: Write> CsvWriter<'a, W> {
    /// Writes the header line.
    pub fn new(mut out: W, tables: &'a Tables) -> Self {
        let failed = writeln!(out, "{CSV_HEADER}").err();
        Self { out, tables, line: Vec::new(), failed }
    }

    fn row(&mut self, operation: u64, event: &Event) -> io::Result<()> {
        let line = &mut self.line;
        match *event {
            Event::NewArena { arena, name } => writeln!(line, "{operation},new_arena,{},,{name},,,,", arena.0),
            Event::DeleteArena { arena } => writeln!(line, "{operation},delete_arena,{},,,,,,", arena.0),
            Event::NewObject { arena, object, class, size } => {
                write!(line, "{operation},new_object,{},{object},", arena.0)?;
                let array = match self.tables.classes.get(class as usize) {
                    Some(class) => {
                        push_cell(line, &et_reader::types::for_people(&class.descriptor));
                        array_kind(class)
                    }
                    None => 0,
                };
                writeln!(line, ",{array},{size},,")
            }
            Event::DeleteObject { arena, object } => {
                writeln!(line, "{operation},delete_object,{},{object},,,,,", arena.0)
            }
            Event::MoveObject { arena, object, new_arena, new_object } => {
                writeln!(line, "{operation},move_object,{},{object},,,,{},{new_object}", arena.0, new_arena.0)
            }
        }
    }

    /// Flushes and returns the underlying writer, or the first error.
    pub fn into_inner(mut self) -> io::Result<W> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }
}

impl<W: Write> Sink for CsvWriter<'_, W> {
    fn push(&mut self, operation: u64, event: &Event) {
        if self.failed.is_none() {
            self.line.clear();
            let done = self.row(operation, event).and_then(|()| self.out.write_all(&self.line));
            self.failed = done.err();
        }
    }

    fn is_well(&self) -> bool {
        self.failed.is_none()
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.into_inner().map(drop)
    }
}

/// Writes a quoted cell (RFC 4180). Line breaks are escaped, so that a row is one line.
fn push_cell(line: &mut Vec<u8>, text: &str) {
    let text = et_names::escape::line(text);
    if text.contains([',', '"']) {
        line.push(b'"');
        line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        line.push(b'"');
    } else {
        line.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::ArenaId;
    use super::*;
    use crate::ops::{Class, ClassKind};

    #[test]
    fn rows_are_one_line_each() {
        let class = |descriptor: &str| Class { descriptor: descriptor.into(), kind: ClassKind::Scalar, slots: 0 };
        let classes = ["Ljava/lang/String;", "[[I", "[J", "La\"b,c\n;"].map(class).to_vec();
        let tables = Tables { classes, ..Tables::default() };
        let mut csv = CsvWriter::new(Vec::new(), &tables);
        let (one, two) = (ArenaId(1), ArenaId(2));
        csv.push(0, &Event::NewArena { arena: one, name: "heap" });
        for class in 0..4 {
            csv.push(3, &Event::NewObject { arena: one, object: 4096, class, size: 24 });
        }
        csv.push(4, &Event::MoveObject { arena: one, object: 4096, new_arena: two, new_object: 64 });
        csv.push(5, &Event::DeleteObject { arena: two, object: 64 });
        csv.push(6, &Event::DeleteArena { arena: one });
        let text = String::from_utf8(csv.into_inner().unwrap()).unwrap();
        let expected = [
            CSV_HEADER,
            "0,new_arena,1,,heap,,,,",
            "3,new_object,1,4096,java.lang.String,0,24,,",
            "3,new_object,1,4096,int[][],2,24,,",
            "3,new_object,1,4096,long[],11,24,,",
            "3,new_object,1,4096,\"a\"\"b,c\\u000a\",0,24,,",
            "4,move_object,1,4096,,,,2,64",
            "5,delete_object,2,64,,,,,",
            "6,delete_arena,1,,,,,,",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let commas = |line: &&str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
        assert!(text.lines().all(|line| commas(&line) == 8));
    }
}
