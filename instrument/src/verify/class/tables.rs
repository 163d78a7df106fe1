//! Tables of a `Code` attribute that say something of ranges of code: lines, variables, type annotations.

use super::bytes::Cursor;
use super::code::{Code, START};
use super::{Context, Sink, text};

/// Annotations nest; the JVM itself stops somewhere.
const DEEPEST: usize = 64;

pub(super) fn check(context: &Context<'_>, code: &Code<'_>, name: &[u8], info: &[u8], sink: &mut Sink) {
    let mut table = Table { context, code, cursor: Cursor::new(info), sink };
    let done = match name {
        b"LineNumberTable" => table.lines(),
        b"LocalVariableTable" | b"LocalVariableTypeTable" => table.variables(),
        b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => table.type_annotations(),
        _ => return,
    };
    let problem = match done {
        None => "is cut off, or has unknown content",
        Some(()) if !table.cursor.is_at_end() => "is longer than its content",
        Some(()) => return,
    };
    sink.add(format!("{} {problem}", text(name)));
}

struct Table<'t, 'a> {
    context: &'t Context<'a>,
    code: &'t Code<'a>,
    cursor: Cursor<'t>,
    sink: &'t mut Sink,
}

impl Table<'_, '_> {
    fn lines(&mut self) -> Option<()> {
        for _ in 0..self.cursor.u16()? {
            let start = self.cursor.u16()?;
            self.cursor.u16()?;
            if !self.code.has(start.into(), START) {
                self.sink.at(start.into(), "a line starts where no instruction does");
            }
        }
        Some(())
    }

    fn variables(&mut self) -> Option<()> {
        for _ in 0..self.cursor.u16()? {
            self.range("a local variable")?;
            let (name, kind) = (self.cursor.u16()?, self.cursor.u16()?);
            if self.context.pool.utf8(name).is_none() || self.context.pool.utf8(kind).is_none() {
                self.sink.add("a local variable has no name or type");
            }
            self.index()?;
        }
        Some(())
    }

    fn range(&mut self, what: &str) -> Option<()> {
        let (start, length) = (usize::from(self.cursor.u16()?), usize::from(self.cursor.u16()?));
        let good = self.code.is_bound(start) && self.code.is_bound(start + length);
        if !good {
            self.sink.at(start, format!("{what} lives from {start} to {}, which are not instructions", start + length));
        }
        Some(())
    }

    fn index(&mut self) -> Option<()> {
        let index = self.cursor.u16()?;
        if index >= self.code.max_locals {
            self.sink.add(format!("a table names local variable {index}, max_locals is {}", self.code.max_locals));
        }
        Some(())
    }

    /// §4.7.20
    fn type_annotations(&mut self) -> Option<()> {
        for _ in 0..self.cursor.u16()? {
            match self.cursor.u8()? {
                0x00 | 0x01 | 0x16 => drop(self.cursor.u8()?),
                0x10 | 0x11 | 0x12 | 0x17 => drop(self.cursor.u16()?),
                0x13..=0x15 => {}
                0x40 | 0x41 => {
                    for _ in 0..self.cursor.u16()? {
                        self.range("an annotated variable")?;
                        self.index()?;
                    }
                }
                0x42 => {
                    let row = self.cursor.u16()?;
                    if usize::from(row) >= self.code.handlers.len() {
                        self.sink.add(format!("a type annotation refers to row {row} of the exception table"));
                    }
                }
                0x43..=0x46 => self.offset()?,
                0x47..=0x4b => {
                    self.offset()?;
                    self.cursor.u8()?;
                }
                _ => return None,
            }
            let path = self.cursor.u8()?;
            self.cursor.take(2 * usize::from(path))?;
            self.annotation(0)?;
        }
        Some(())
    }

    fn offset(&mut self) -> Option<()> {
        let offset = self.cursor.u16()?;
        if !self.code.has(offset.into(), START) {
            self.sink.at(offset.into(), "a type annotation refers to an offset where no instruction starts");
        }
        Some(())
    }

    /// §4.7.16
    fn annotation(&mut self, depth: usize) -> Option<()> {
        self.cursor.u16()?;
        for _ in 0..self.cursor.u16()? {
            self.cursor.u16()?;
            self.element(depth)?;
        }
        Some(())
    }

    fn element(&mut self, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match self.cursor.u8()? {
            b'e' => drop(self.cursor.u32()?),
            b'@' => self.annotation(depth + 1)?,
            b'[' => {
                for _ in 0..self.cursor.u16()? {
                    self.element(depth + 1)?;
                }
            }
            b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => drop(self.cursor.u16()?),
            _ => return None,
        }
        Some(())
    }
}
