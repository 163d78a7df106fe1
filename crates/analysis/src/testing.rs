//! Analyses of a whole trace, for tests.

use et_lives::{PopulationError, births, observe, population, references};
use et_reader::population::Population;
use et_reader::references::References;
use et_reader::source::{Deaths, Reading, Source};
use et_reader::{Trace, TraceFile};

use crate::report::{Report, report};
use crate::summary::{self, Summary};

/// A run of a real program, without the names of the JDK.
pub(crate) const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

/// The summary of a trace; lists are cut to `top` entries.
pub(crate) fn summarize(source: &Source, reading: Reading, top: usize) -> Result<Summary, PopulationError> {
    let (population, observed) = match source.deaths(reading.deaths) {
        Deaths::None => births(source, reading)?,
        Deaths::Trace => observe(source, None, reading, |_, _| {})?,
    };
    Ok(summary::summarize(source, &population, &observed, top).unwrap())
}

/// The report of a trace; lists of its summary are cut to `top` entries.
pub(crate) fn report_of(source: &Source, reading: Reading, top: usize) -> Report {
    let (population, observed) = observe(source, None, reading, |_, _| {}).unwrap();
    let summary = summary::summarize(source, &population, &observed, top).unwrap();
    report(source, summary, &population, &observed, None, true, reading).unwrap()
}

/// A trace with its objects and references.
pub(crate) fn with_references(bytes: Vec<u8>) -> (Source, Population, Box<dyn References>) {
    let source = Source::from(Trace::from_file(TraceFile::from_bytes(bytes, None).unwrap()).unwrap());
    let population = population(&source, None, Reading::default()).unwrap();
    let references = references(&source, None, &population, Reading::default()).unwrap();
    (source, population, references)
}
