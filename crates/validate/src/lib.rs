//! Does a trace keep its invariants? Checks records against those of `docs/semantics.md`, with state of
//! its own: nothing that the resolver believes is taken over.

mod checker;
mod monitors;
mod objects;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

pub use checker::Checker;

use et_names::units::counted;
use et_names::{MethodId, SiteId};
use et_reader::Trace;
use et_reader::record::{Alloc, Clock, ObjectId, Record, ThreadId, Totals};
use et_reader::resolve::Recent;
use et_reader::source::{Deaths, Reading, Source, SourceError};
use et_reader::text::{Line, TextTrace, push_record};
use et_reader::types::{TypeId, Types};

/// The result of a validation.
#[derive(Debug, Default)]
pub struct Report {
    pub totals: Totals,
    /// All violations, shown or not.
    pub violation_count: u64,
    /// The first of them, one line each.
    pub violations: Vec<String>,
    /// Observations that are not violations.
    pub notes: Vec<String>,
    /// Number of lost events according to the trace.
    pub lost: u64,
}

impl Report {
    /// Whether the trace keeps all its invariants.
    pub fn is_clean(&self) -> bool {
        self.violation_count == 0
    }
}

/// Checks a trace in one pass; at most `limit` violations are described.
pub fn validate(source: &Source, deaths: Deaths, limit: usize) -> Result<Report, SourceError> {
    match source {
        Source::Trace(trace) => of_trace(source, trace, deaths, limit),
        Source::Text(text) => of_text(text, limit),
    }
}

/// Checks a trace or a text that is in memory, its deaths included.
pub fn bytes(trace: Vec<u8>, limit: usize) -> Result<Report, SourceError> {
    validate(&Source::from_bytes(trace)?, Deaths::Trace, limit)
}

fn of_trace(source: &Source, trace: &Trace, deaths: Deaths, limit: usize) -> Result<Report, SourceError> {
    // Tables are looked for while the program runs already: a run that is killed early leaves events that no table is of. And a class may
    // have no record yet of which there is an object. Recovering adds nothing to that.
    let is_cut_off = trace.file.cut_off().is_some() || trace.file.is_recovered();
    let mut checker = Checker::new(limit);
    let mut unnamed = 0;
    // Most records are of what others have named shortly before.
    let (mut methods, mut sites) = (Recent::default(), Recent::default());
    let mut has_method =
        |method: MethodId| methods.get(method.0, || trace.names.method_index(method).map(|_| ())).is_some();
    let mut has_site =
        |site: SiteId| site.0 == 0 || sites.get(site.0, || trace.names.site_index(site).map(|_| ())).is_some();
    let ending = source.for_each(Reading { deaths, ..Reading::default() }, |record, _| {
        checker.record(record, &trace.types);
        match *record {
            Record::Alloc(Alloc { site, ty, .. }) if is_cut_off && (ty == TypeId::UNKNOWN || !has_site(site)) => {
                unnamed += 1;
            }
            Record::Entry { method, .. } if is_cut_off && !has_method(method) => unnamed += 1,
            Record::Alloc(Alloc { site, .. }) if !has_site(site) => {
                checker.violation(record, &trace.types, "no names table has this site", &[]);
            }
            Record::Entry { method, .. } if !has_method(method) => {
                checker.violation(record, &trace.types, "no names table has this method", &[]);
            }
            Record::Alloc(_)
            | Record::Entry { .. }
            | Record::Update { .. }
            | Record::Death { .. }
            | Record::Use { .. } => {}
            // Their methods have been entered before.
            Record::Exit { .. } | Record::ExitThrow { .. } | Record::Throw { .. } | Record::Handle { .. } => {}
        }
        ControlFlow::Continue(())
    })?;
    let outcome = &ending.outcome;
    let cut_off: Vec<_> = outcome.cut_off.iter().map(|stack| (stack.thread, stack.frames)).collect();
    checker.finish(&cut_off, is_cut_off);
    let mut report = checker.report();
    report.notes.extend(ending.warnings.iter().cloned());
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
    if unnamed > 0 {
        let records = counted(unnamed, "record");
        report.notes.push(format!(
            "{records} of methods, sites and classes whose names were not in the trace yet when it was cut off"
        ));
    }
    monitors::check(trace, |violation| report.add(violation));
    for overlap in trace.names.overlaps() {
        report.add(overlap.to_string());
    }
    report.lost = outcome.lost.total();
    if report.lost > 0 {
        report.add(format!("lost: {}", outcome.lost));
    }
    Ok(report)
}

impl Report {
    fn add(&mut self, violation: String) {
        self.violation_count += 1;
        self.violations.push(violation);
    }
}

/// Checks a text as it is: with its own deaths, and without renaming reused ids.
fn of_text(text: &TextTrace, limit: usize) -> Result<Report, SourceError> {
    let mut types = Types::default();
    let mut checker = Checker::new(limit);
    let mut claims = Claims::default();
    let mut clocks = vec![(Clock::Methods, 0), (Clock::MethodsAndExceptions, 0), (Clock::Bytes, 0)];
    let mut reader = text.lines(true);
    while let Some(line) = reader.next_line(&mut types).map_err(|error| text.error(error))? {
        match line {
            Line::Record(record) => {
                checker.record_at(&record, &types, reader.line_number());
                // Which clock it has shows at the first death that the other does not fit.
                if let Some(time) = reader.time_of_death() {
                    if clocks.iter().any(|&(_, now)| now == time) {
                        clocks.retain(|&(_, now)| now == time);
                    } else {
                        let what = format!("it died at {time}, but the clock stands at {}", clocks[0].1);
                        checker.violation(&record, &types, &what, &record.objects());
                    }
                }
                clocks.iter_mut().for_each(|(clock, now)| *now += record.ticks(*clock));
            }
            Line::Comment(text) => claims.comment(&text),
            // No invariant is about what only the VM holds.
            Line::Hold(_) => {}
        }
    }
    checker.finish(&claims.cut_off, claims.is_cut_off);
    let mut report = checker.report();
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
    report.notes.extend(text.warnings().iter().cloned().chain(reader.quirks().warnings()));
    Ok(report)
}

/// The totals in the closing comments of a text.
#[derive(Debug, Default)]
struct Claims {
    totals: Vec<(char, u64)>,
    cut_off: Vec<(ThreadId, usize)>,
    lost: Option<u64>,
    /// The trace that it was made of.
    is_cut_off: bool,
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
            ["trace", "is", "cut", "off", ..] | ["problem", _, "recovered:", ..] => self.is_cut_off = true,
            _ => {}
        }
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
