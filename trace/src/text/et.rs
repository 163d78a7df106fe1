//! Dialect `et`: one record a line, numbers hexadecimal.

use std::io::{self, Write};
use std::ops::ControlFlow;

use thiserror::Error;

use super::NamesUse;
use crate::file::ReadError;
use crate::record::{Record, Slot};
use crate::resolve::Outcome;
use crate::trace::Trace;
use crate::types::Types;

/// Why text could not be written.
#[derive(Debug, Error)]
pub enum TextError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

const FLUSH_AT: usize = 1 << 16;

/// Buffers lines and writes them in large pieces.
#[derive(Debug)]
pub struct EtWriter<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> EtWriter<W> {
    /// Writes to `out`, which needs no buffer of its own.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::with_capacity(FLUSH_AT + 256) }
    }

    /// One record.
    #[inline]
    pub fn record(&mut self, record: &Record, types: &Types) -> io::Result<()> {
        push_record(&mut self.line, record, types);
        self.line.push(b'\n');
        if self.line.len() >= FLUSH_AT { self.write_out() } else { Ok(()) }
    }

    /// One comment line.
    pub fn comment(&mut self, text: &str) -> io::Result<()> {
        self.line.extend_from_slice(b"# ");
        self.line.extend_from_slice(text.as_bytes());
        self.line.push(b'\n');
        Ok(())
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_out()?;
        self.out.flush()?;
        Ok(self.out)
    }
}

#[inline]
fn hex(out: &mut Vec<u8>, value: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (67 - (value | 1).leading_zeros()) / 4;
    let mut text = [0; 17];
    text[0] = b' ';
    for place in 0..digits {
        text[(digits - place) as usize] = DIGITS[(value >> (4 * place)) as usize & 15];
    }
    out.extend_from_slice(&text[..=digits as usize]);
}

/// Appends a record, without line end.
#[inline]
pub fn push_record(out: &mut Vec<u8>, record: &Record, types: &Types) {
    out.push(record.letter() as u8);
    match *record {
        Record::Alloc(alloc) => {
            hex(out, alloc.object.0);
            hex(out, alloc.size);
            out.push(b' ');
            out.extend_from_slice(types.descriptor(alloc.ty).as_bytes());
            hex(out, alloc.site.0.into());
            hex(out, alloc.length.into());
            hex(out, alloc.thread.0.into());
        }
        Record::Update { old, origin, target, slot, thread } => {
            for value in [old.0, origin.0, target.0, slot.number().into(), thread.0.into()] {
                hex(out, value);
            }
        }
        Record::Entry { method, receiver, thread } | Record::Exit { method, receiver, thread } => {
            for value in [method.0.into(), receiver.0, thread.0.into()] {
                hex(out, value);
            }
        }
        Record::ExitThrow { method, receiver, exception, thread }
        | Record::Throw { method, receiver, exception, thread }
        | Record::Handle { method, receiver, exception, thread } => {
            for value in [method.0.into(), receiver.0, exception.0, thread.0.into()] {
                hex(out, value);
            }
        }
        Record::Death { object, thread } | Record::Root { object, thread } => {
            hex(out, object.0);
            hex(out, thread.0.into());
        }
    }
}

/// Writes a whole trace with its closing comments. Says also which names it used.
pub fn write_trace<W: Write>(trace: &Trace, out: W) -> Result<(Outcome, NamesUse), TextError> {
    let mut writer = EtWriter::new(out);
    let mut used = NamesUse::new(trace);
    let mut failed = None;
    writer.comment("Elephant Tracks, dialect et")?;
    let outcome = trace.for_each(|record, _| {
        match record {
            Record::Alloc(alloc) => {
                used.ty(alloc.ty);
                used.site(alloc.site, trace);
            }
            Record::Update { slot: Slot::Field(field), .. } => used.field(*field, trace),
            Record::Entry { method, .. } => used.method(*method, trace),
            _ => {}
        }
        match writer.record(record, &trace.types) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    for comment in closing_comments(trace, &outcome) {
        writer.comment(&comment)?;
    }
    writer.finish()?;
    Ok((outcome, used))
}

/// The comments at the end: totals, what is odd, what was lost.
pub(crate) fn closing_comments(trace: &Trace, outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> =
        outcome.totals.iter().map(|(letter, count)| format!("total {letter} {count}")).collect();
    lines.extend(
        outcome.cut_off.iter().map(|stack| format!("cut off thread {:x} frames {}", stack.thread.0, stack.frames)),
    );
    lines.push(format!("not instrumented classes {}", trace.not_instrumented().count()));
    lines.extend(outcome.anomalies.iter().map(|(what, count)| format!("anomaly {count} {what}")));
    lines.extend(trace.problems.iter().map(|problem| format!("problem {} {}", problem.count, problem.what)));
    if let Some(cut) = trace.file.cut_off() {
        lines.push(cut.to_string());
    }
    lines.push(format!("lost {}", outcome.lost.total()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_hexadecimal() {
        let mut out = Vec::new();
        for value in [0, 1, 15, 16, 255, 256, 0xdead_beef, u64::MAX, 1 << 60, (1 << 60) - 1] {
            out.clear();
            hex(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), format!(" {value:x}"));
        }
    }
}
