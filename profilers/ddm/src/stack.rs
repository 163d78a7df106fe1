//! The stack of a thread (`STKL`).

use crate::wire::{Malformed, Reader, Writer};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Class name with dots.
    pub class: String,
    pub method: String,
    /// The source file, if that is known.
    pub file: Option<String>,
    /// Source line; -1 if unknown, -2 in native code.
    pub line: i32,
}

/// The frames of a thread, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    pub thread: u32,
    /// Frames, innermost first.
    pub frames: Vec<Frame>,
}

impl Stack {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an STKL chunk", data);
        // Reserved.
        reader.u4()?;
        let thread = reader.u4()?;
        let count = reader.count(16)?;
        let mut frames = Vec::with_capacity(count);
        for _ in 0..count {
            let (class, method, file) = (reader.text()?, reader.text()?, reader.text()?);
            let file = (!file.is_empty()).then_some(file);
            frames.push(Frame { class, method, file, line: reader.u4()?.cast_signed() });
        }
        reader.end()?;
        Ok(Self { thread, frames })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u4(0).u4(self.thread).count(self.frames.len());
        for frame in &self.frames {
            out.text(&frame.class).text(&frame.method).text(frame.file.as_deref().unwrap_or_default());
            out.u4(frame.line.cast_unsigned());
        }
        out.finish()
    }
}
