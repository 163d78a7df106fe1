//! Does a trace keep its promises? Checks records against the invariants of `docs/semantics.md`, with state of
//! its own: nothing that the resolver believes is taken over.

mod checker;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;

use rustc_hash::FxHashMap;
use thiserror::Error;

pub use checker::{Breach, Checker};

use crate::file::ReadError;
use crate::record::{Alloc, ObjectId, Record, ThreadId, Totals};
use crate::summary::counted;
use crate::text::{Line, ParseError, TextReader, push_record};
use crate::trace::Trace;
use crate::types::Types;

/// Why nothing could be checked.
#[derive(Debug, Error)]
pub enum ValidateError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The text cannot be read.
    #[error("{path}: {source}")]
    Text {
        /// Which file.
        path: String,
        /// Why.
        source: ParseError,
    },
}

/// What was found.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Report {
    pub totals: Totals,
    /// All breaches, shown or not.
    pub breach_count: u64,
    /// The first of them, one line each.
    pub breaches: Vec<String>,
    /// What is no breach but worth knowing.
    pub notes: Vec<String>,
    /// What was lost, as the trace says.
    pub lost: u64,
}

impl Report {
    /// Whether the trace keeps all its promises.
    pub fn is_clean(&self) -> bool {
        self.breach_count == 0
    }
}

/// Checks a trace; at most `limit` breaches are described.
pub fn trace(trace: &Trace, limit: usize) -> Result<Report, ValidateError> {
    let mut checker = Checker::new(limit);
    let mut last_tick = None;
    let outcome = trace.for_each(|record, context| {
        checker.record(record, &trace.types);
        if last_tick.is_some_and(|last| context.tick.0 != last) {
            checker.breach(record, &trace.types, "the clock does not tick at M, E and X only", &[]);
        }
        last_tick = Some(context.tick.0 + u64::from(record.ticks()));
        match *record {
            Record::Alloc(Alloc { site, .. }) if site.0 != 0 && trace.names.site_index(site).is_none() => {
                checker.breach(record, &trace.types, "no names table has this site", &[]);
            }
            Record::Entry { method, .. } if trace.names.method_index(method).is_none() => {
                checker.breach(record, &trace.types, "no names table has this method", &[]);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    let cut_off: Vec<_> = outcome.cut_off.iter().map(|stack| (stack.thread, stack.frames)).collect();
    checker.finish(&cut_off);
    let interesting = checker.interesting();
    let mut histories = Histories::new(&interesting);
    if !interesting.is_empty() {
        let mut position = 0;
        trace.for_each(|record, _| {
            position += 1;
            histories.record(position, record);
            ControlFlow::Continue(())
        })?;
    }
    let mut report = checker.report(&histories);
    report.notes.extend(outcome.anomalies.iter().map(|(what, count)| format!("{count} {what}")));
    report.notes.extend(outcome.cut_off.iter().map(|stack| {
        let name = trace.thread_name(stack.thread.0).unwrap_or_default();
        format!(
            "thread {:x} {name:?} was cut off with {} on its stack",
            stack.thread.0,
            counted(stack.frames as u64, "frame")
        )
    }));
    report.notes.extend(trace.problems.iter().map(|problem| format!("{} {}", problem.count, problem.what)));
    for overlap in trace.names.overlaps() {
        report.add(format!(
            "artifacts {} and {} use the same ids: instrument one of them again with another --id-base",
            overlap.kept, overlap.shadowed
        ));
    }
    report.lost = outcome.lost.total();
    if report.lost > 0 {
        report.add(format!("lost: {}", counted(report.lost, "event")));
    }
    Ok(report)
}

impl Report {
    fn add(&mut self, breach: String) {
        self.breach_count += 1;
        self.breaches.push(breach);
    }
}

/// Checks a file of dialect `et`.
pub fn text(path: &Path, limit: usize) -> Result<Report, ValidateError> {
    let fail = |source| ValidateError::Text { path: path.display().to_string(), source };
    let mut types = Types::default();
    let mut checker = Checker::new(limit);
    let mut claims = Claims::default();
    {
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        let mut reader = TextReader::new(BufReader::with_capacity(1 << 18, file));
        while let Some(line) = reader.next_line(&mut types).map_err(fail)? {
            match line {
                Line::Record(record) => checker.record_at(&record, &types, reader.line_number()),
                Line::Comment(text) => claims.comment(&text),
                Line::Other => {}
            }
        }
    }
    checker.finish(&claims.cut_off);
    let interesting = checker.interesting();
    let mut histories = Histories::new(&interesting);
    if !interesting.is_empty() {
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        let mut reader = TextReader::new(BufReader::with_capacity(1 << 18, file));
        while let Some(line) = reader.next_line(&mut types).map_err(fail)? {
            if let Line::Record(record) = line {
                histories.record(reader.line_number(), &record);
            }
        }
    }
    let mut report = checker.report(&histories);
    for (letter, claimed) in claims.totals {
        let found = report.totals.of(letter);
        if found != claimed {
            report.add(format!("the closing comments count {claimed} {letter} records, there are {found}"));
        }
    }
    match claims.lost {
        Some(0) => {}
        Some(lost) => {
            report.lost = lost;
            report.add(format!("lost: {}", counted(lost, "event")));
        }
        None => report.add("the text does not end with `# lost`: it is cut off".to_owned()),
    }
    Ok(report)
}

/// What the closing comments of a text say.
#[derive(Debug, Default)]
struct Claims {
    totals: Vec<(char, u64)>,
    cut_off: Vec<(ThreadId, usize)>,
    lost: Option<u64>,
}

impl Claims {
    fn comment(&mut self, text: &str) {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["total", letter, count] => {
                if let (Some(letter), Ok(count)) = (letter.chars().next(), count.parse()) {
                    self.totals.push((letter, count));
                }
            }
            ["cut", "off", "thread", thread, "frames", frames] => {
                if let (Ok(thread), Ok(frames)) = (u32::from_str_radix(thread, 16), frames.parse()) {
                    self.cut_off.push((ThreadId(thread), frames));
                }
            }
            ["lost", count] => self.lost = count.parse().ok(),
            _ => {}
        }
    }
}

/// What happened to a few objects, gathered in a second pass so that the first need not remember.
#[derive(Debug)]
struct Histories {
    by_object: FxHashMap<ObjectId, Vec<(u64, char)>>,
}

impl Histories {
    const LENGTH: usize = 5;

    fn new(objects: &BTreeSet<ObjectId>) -> Self {
        Self { by_object: objects.iter().map(|&object| (object, Vec::new())).collect() }
    }

    fn record(&mut self, position: u64, record: &Record) {
        for object in mentions(record) {
            if let Some(history) = self.by_object.get_mut(&object)
                && history.len() < Self::LENGTH
            {
                history.push((position, record.letter()));
            }
        }
    }

    /// `object 1f: N at 12, M at 13`.
    fn of(&self, object: ObjectId) -> String {
        let history = self.by_object.get(&object).map_or(&[][..], Vec::as_slice);
        let shown: Vec<_> = history.iter().map(|(position, letter)| format!("{letter} at {position}")).collect();
        let more = if history.len() == Self::LENGTH { ", …" } else { "" };
        format!("object {:x}: {}{more}", object.0, shown.join(", "))
    }
}

/// The objects that a record names, each once.
fn mentions(record: &Record) -> impl Iterator<Item = ObjectId> + use<> {
    let objects = record.objects();
    (0..3).filter(move |&at| !objects[at].is_null() && !objects[..at].contains(&objects[at])).map(move |at| objects[at])
}

fn shown(record: &Record, types: &Types) -> String {
    let mut line = Vec::new();
    push_record(&mut line, record, types);
    String::from_utf8_lossy(&line).into_owned()
}
