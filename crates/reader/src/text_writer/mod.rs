//! Writes a whole trace in one of the dialects of [`text`](crate::text).

mod oracle;
mod replayer;
mod tptp;
mod type_numbers;

use std::io::{self, Write};
use std::ops::ControlFlow;

use et_names::{EventSet, escape};
use thiserror::Error;

use type_numbers::TypeNumbers;

use crate::record::{Record, Slot};
use crate::source::{At, Deaths, Ending, Reading, Source, SourceError};
use crate::text::hold::push_line;
use crate::text::number::hex_word;
use crate::text::starts::{EVENTS, NO_EVENTS, WITH_HOLDERS};
use crate::text::{Dialect, Holders, NamesUse, et};
use crate::told::Told;
use crate::trace::Trace;

/// Why a text could not be written.
#[derive(Debug, Error)]
pub enum TextError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] SourceError),
    /// The dialect needs times, thread names and method signatures, which a text does not have.
    #[error("dialect tptp is written of a trace of the runtime only")]
    NoTrace,
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

const FLUSH_AT: usize = 1 << 16;

/// Collects lines and writes them in large pieces.
#[derive(Debug)]
struct Lines<W> {
    out: W,
    lines: Vec<u8>,
}

impl<W: Write> Lines<W> {
    #[inline]
    fn write_if_many(&mut self) -> io::Result<()> {
        if self.lines.len() >= FLUSH_AT { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    /// Writes the comment that lists the events if not all were recorded.
    fn events(&mut self, source: &Source) {
        let events = source.events();
        if events != EventSet::ALL {
            let names = events.to_string();
            let names = if names.is_empty() { NO_EVENTS } else { &names };
            self.comment(&format!("{EVENTS}{names}"));
        }
    }

    fn comment(&mut self, text: &str) {
        self.lines.extend_from_slice(b"# ");
        self.lines.extend_from_slice(escape::line(text.trim()).as_bytes());
        self.lines.push(b'\n');
    }
}

fn note_use(used: &mut NamesUse, record: &Record, trace: &Trace) {
    match record {
        Record::Alloc(alloc) => {
            used.ty(alloc.ty);
            used.site(alloc.site, trace);
        }
        Record::Update { slot: Slot::Field(field), .. } => used.field(*field, trace),
        Record::Entry { method, .. } => used.method(*method, trace),
        Record::Update { slot: Slot::Element(_), .. } | Record::Death { .. } | Record::Use { .. } => {}
        // Their methods have been entered before.
        Record::Exit { .. } | Record::ExitThrow { .. } | Record::Throw { .. } | Record::Handle { .. } => {}
    }
}

/// Writes a whole trace with its closing comments. Returns also the names that it used, if the source is a trace file.
pub fn write<W: Write>(
    source: &Source,
    dialect: Dialect,
    reading: Reading,
    out: W,
) -> Result<(Ending, Option<NamesUse>), TextError> {
    write_with(source, dialect, reading, Holders::default(), out)
}

/// Like [`write()`], with lines about holders if requested.
pub fn write_with<W: Write>(
    source: &Source,
    dialect: Dialect,
    reading: Reading,
    holders: Holders,
    out: W,
) -> Result<(Ending, Option<NamesUse>), TextError> {
    let mut lines = Lines { out, lines: Vec::with_capacity(FLUSH_AT + 256) };
    let trace = source.trace();
    let reading = Reading { places: reading.places || dialect == Dialect::Tptp, ..reading };
    let mut used = trace.map(|trace| NamesUse::new(trace, dialect != Dialect::Et));
    // A text without deaths should say what is needed to compute them.
    let can_be_known = source.deaths(Deaths::Trace) == Deaths::Trace;
    let wanted = holders == Holders::Always || reading.deaths == Deaths::None;
    let holders = wanted && can_be_known && source.tells_holders();
    let numbers = TypeNumbers::of(source);
    let ending = match dialect {
        Dialect::Et => {
            lines.comment("Elephant Tracks, dialect et");
            lines.events(source);
            let push = |out: &mut Vec<u8>, told: &Told, at: &At<'_>| match told {
                Told::Record(record) => et::push_line(out, record, at.types),
                Told::Hold(hold) => push_line(out, hold, hex_word),
            };
            each(source, reading, holders, Output { lines: &mut lines, used: &mut used }, push)?
        }
        Dialect::Replayer => {
            lines.comment("Elephant Tracks, dialect replayer");
            lines.events(source);
            let mut writer = replayer::Writer::new(numbers);
            let output = Output { lines: &mut lines, used: &mut used };
            each(source, reading, holders, output, |out, told, at| writer.push(out, told, at))?
        }
        Dialect::Oracle => {
            lines.lines.extend_from_slice(oracle::HEADER);
            let mut writer = oracle::Writer::new(numbers);
            let output = Output { lines: &mut lines, used: &mut used };
            each(source, reading, false, output, |out, told, at| {
                if let Told::Record(record) = told {
                    writer.push(out, record, at);
                }
            })?
        }
        Dialect::Tptp => {
            let trace = trace.ok_or(TextError::NoTrace)?;
            let mut writer = tptp::Writer::new(trace, numbers);
            writer.begin(&mut lines.lines);
            let output = Output { lines: &mut lines, used: &mut used };
            let ending = each(source, reading, false, output, |out, told, at| {
                if let Told::Record(record) = told {
                    writer.push(out, record, at);
                }
            })?;
            writer.end(&mut lines.lines);
            for comment in closing_comments(source, &ending, source.deaths(reading.deaths)) {
                lines.lines.extend_from_slice(et_trcxml::comment(&comment).as_bytes());
            }
            lines.lines.extend_from_slice(et_trcxml::END.as_bytes());
            ending
        }
    };
    if matches!(dialect, Dialect::Et | Dialect::Replayer) {
        for comment in closing_comments(source, &ending, source.deaths(reading.deaths)) {
            lines.comment(&comment);
        }
    }
    lines.write_out()?;
    lines.out.flush()?;
    Ok((ending, used))
}

struct Output<'o, W> {
    lines: &'o mut Lines<W>,
    used: &'o mut Option<NamesUse>,
}

fn each<W: Write>(
    source: &Source,
    reading: Reading,
    holders: bool,
    output: Output<'_, W>,
    mut push: impl FnMut(&mut Vec<u8>, &Told, &At<'_>),
) -> Result<Ending, TextError> {
    let Output { lines, used } = output;
    let mut failed = None;
    if holders {
        lines.comment(WITH_HOLDERS);
    }
    let told = |told: &Told, at: &At<'_>| {
        if let (Told::Record(record), Some(used), Source::Trace(trace)) = (told, used.as_mut(), source) {
            note_use(used, record, trace);
        }
        push(&mut lines.lines, told, at);
        match lines.write_if_many() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let ending = source.for_each_told(Reading { holders, ..reading }, told)?;
    failed.map_or(Ok(ending), |error| Err(error.into()))
}

/// The comments at the end: totals, anomalies, lost events.
fn closing_comments(source: &Source, ending: &Ending, deaths: Deaths) -> Vec<String> {
    let outcome = &ending.outcome;
    let mut lines: Vec<String> =
        outcome.totals.iter().map(|(letter, count)| format!("total {letter} {count}")).collect();
    lines.extend(
        outcome.cut_off.iter().map(|stack| format!("cut off thread {:x} frames {}", stack.thread.0, stack.frames)),
    );
    lines.push(format!("deaths {}", if deaths == Deaths::None { "none" } else { "trace" }));
    if let Source::Trace(trace) = source {
        lines.push(format!("not instrumented classes {}", trace.not_instrumented().count()));
        lines.extend(outcome.anomalies.iter().map(|(what, count)| format!("anomaly {count} {what}")));
        lines.extend(trace.problems.iter().map(|problem| format!("problem {} {}", problem.count, problem.what)));
        if let Some(cut) = trace.file.cut_off() {
            lines.push(cut.to_string());
        }
    }
    lines.extend(ending.text_comments.iter().cloned());
    lines.push(format!("lost {}", outcome.lost.total()));
    lines
}

#[cfg(test)]
mod tests;
