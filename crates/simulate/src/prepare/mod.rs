//! Reduces a trace to operations, in one pass.

mod maker;
mod oracle;
mod slots;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use et_reader::source::{Deaths, Ending, Reading, Source, SourceError, deaths_unknown};
use et_reader::text::starts;
use et_reader::told::{Hold, Told};
use thiserror::Error;

use crate::ops::{Layout, OpsError, OpsReader, OpsWriter, Tables};
use maker::Maker;

/// Why a trace cannot be reduced to operations.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum PrepareError {
    #[error(transparent)]
    Read(#[from] SourceError),
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error("cannot read {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}: line {line}: {what} (a row is {columns})", path = path.display(), columns = oracle::COLUMNS)]
    Oracle { path: PathBuf, line: u64, what: String },
    #[error("{path}: {why}; instrument with --events all to replay the program", path = path.display())]
    NoDeaths { path: PathBuf, why: String },
}

/// What to take from a trace.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Include uses of objects: as receivers of methods, and from witnesses if the trace has any.
    pub touches: bool,
    /// Write a tick whenever the clock has advanced, not only at intervals: for a reader that follows the trace and
    /// the operations side by side.
    pub every_tick: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { touches: true, every_tick: false }
    }
}

/// An input that is to be prepared or is prepared already.
#[derive(Debug)]
pub enum Input {
    /// An operations file.
    Ops(Box<OpsReader>),
    /// A trace, or a text with all that deaths need.
    Trace(Box<Source>),
    /// A text in dialect oracle: births and deaths only.
    Oracle(PathBuf, File),
}

impl Input {
    /// Opens a file of any of these kinds; `names` is the names file of a text.
    pub fn open(path: &Path, names: Option<&Path>) -> Result<Self, PrepareError> {
        let fail = |source| PrepareError::Io { path: path.to_owned(), source };
        if path != Path::new("-") && path.is_file() {
            let mut file = File::open(path).map_err(fail)?;
            if crate::ops::is_ops(&mut file).map_err(fail)? {
                return Ok(Self::Ops(Box::new(OpsReader::of_file(path, file)?)));
            }
            let mut start = Vec::new();
            (&mut file).take(64).read_to_end(&mut start).map_err(fail)?;
            if start.starts_with(starts::ORACLE.as_bytes()) {
                std::io::Seek::rewind(&mut file).map_err(fail)?;
                return Ok(Self::Oracle(path.to_owned(), file));
            }
        }
        Ok(Self::Trace(Box::new(Source::open(path, names)?)))
    }
}

/// A complete operations file, and how reading the trace ended.
#[derive(Debug)]
pub struct Prepared {
    /// The file.
    pub file: File,
    /// The tables of the operations file.
    pub tables: Tables,
    /// How reading the trace ended; empty for a text in dialect oracle.
    pub ending: Ending,
}

/// Writes the operations of a trace to an empty file.
pub fn prepare(source: &Source, wanted: Wanted, file: File) -> Result<Prepared, PrepareError> {
    if source.deaths(Deaths::Trace) == Deaths::None {
        let why = deaths_unknown(source.events()).unwrap_or_default();
        return Err(PrepareError::NoDeaths { path: source.path().to_owned(), why });
    }
    let out = OpsWriter::new(file, layout_of(source))?;
    let mut maker = Maker::new(source, wanted, out);
    let reading = Reading { deaths: Deaths::Trace, holders: true, ..Reading::default() };
    let mut failed = None;
    let ending = source.for_each_told(reading, |told, at| {
        let done = match told {
            Told::Record(record) => maker.record(record, at),
            Told::Hold(Hold::Initial { origin, slot, target }) => maker.initial(*origin, *slot, *target),
            Told::Hold(_) => Ok(()),
        };
        match done {
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
    let (out, mut tables) = maker.finish(ending.outcome.totals.sum())?;
    tables.notes.splice(0..0, notes(source, &ending));
    let file = out.finish(&tables)?;
    Ok(Prepared { file, tables, ending })
}

/// As [`prepare`], for a text in dialect oracle.
pub fn prepare_oracle(path: &Path, text: File, file: File) -> Result<Prepared, PrepareError> {
    let (out, tables) = oracle::read(path, text, OpsWriter::new(file, Layout::default())?)?;
    let file = out.finish(&tables)?;
    Ok(Prepared { file, tables, ending: Ending::default() })
}

/// Warnings about the trace.
fn notes(source: &Source, ending: &Ending) -> Vec<String> {
    let mut notes = ending.warnings.clone();
    if let Source::Text(text) = source {
        if !text.tells_holders() {
            notes.push("the text does not say what objects held when tracing began".to_owned());
        }
        notes.push(
            "a text does not tell the fields of classes: objects have as many slots as references were stored into"
                .to_owned(),
        );
    }
    notes.extend(source.cut_off().map(ToString::to_string));
    let lost = ending.outcome.lost;
    if lost.total() > 0 {
        notes.push(format!("events are missing: {lost}"));
    }
    notes
}

fn layout_of(source: &Source) -> Layout {
    let Source::Trace(trace) = source else { return Layout::default() };
    let arrays = &trace.file.meta().array_layout;
    let number = |all: &std::collections::BTreeMap<String, u32>| all.get("L").copied().filter(|&bytes| bytes > 0);
    let usual = Layout::default();
    let reference_bytes = number(&arrays.index_scale).unwrap_or(usual.reference_bytes);
    let array_base = number(&arrays.base_offset).unwrap_or(usual.array_base);
    // The array length precedes the elements; apart from it the header is that of any object.
    Layout { reference_bytes, array_base, header_bytes: array_base.saturating_sub(4).max(8) }
}
