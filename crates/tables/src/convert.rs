//! Converts a trace to tables.

use std::io;
use std::path::Path;
use std::sync::Arc;

use et_names::EventSet;
use et_reader::model::Contexts;
use et_reader::population::{Moment, Population};
use et_reader::resolve::Lost;
use et_reader::source::{Deaths, Reading, Source, SourceError, deaths_unknown};
use et_system::threads::NoThread;
use rustc_hash::FxHashSet;
use thiserror::Error;

use crate::book::Book;
use crate::folder::{Conversion, FolderError};
use crate::meanings;
use crate::object_pass::{self, Met};
use crate::record_pass::{Fill, Named, Pass};
use crate::tables::{self, trace};
use crate::wanted::Wanted;
use et_columns::Rows;

/// Why a trace could not be converted.
#[derive(Debug, Error)]
pub enum ConvertError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] SourceError),
    /// The rows of its objects could not be read.
    #[error("cannot read the object rows: {0} (--no-lives avoids the life table)")]
    Rows(io::Error),
    /// The folder is unsuitable or could not be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// No thread could be started.
    #[error(transparent)]
    Thread(#[from] NoThread),
}

/// Options of a conversion.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tables to write.
    pub wanted: Wanted,
    /// Name of the run in the folder; by default made from the file name of the trace and the run id.
    pub run: Option<String>,
    /// Free text about the run: a release, a machine.
    pub label: Option<String>,
}

/// Result of a conversion.
#[derive(Clone, Debug)]
pub struct Converted {
    /// Name of the run in the folder.
    pub run: String,
    /// Name, number of rows and number of bytes of each table.
    pub tables: Vec<(&'static str, u64, u64)>,
    pub lost: Lost,
    pub warnings: Vec<String>,
}

/// A conversion that has claimed its place: a wrong path is detected before the long work.
#[derive(Debug)]
pub struct Converter {
    options: Options,
    conversion: Conversion,
}

impl Converter {
    /// Prepares to write the tables of a trace to a folder.
    pub fn begin(source: &Source, folder: &Path, options: Options) -> Result<Self, FolderError> {
        let id = run_id(source);
        let run = options.run.clone().unwrap_or_else(|| {
            let stem = source.path().file_stem().unwrap_or_default().to_string_lossy().replace(' ', "-");
            id.as_ref().map_or_else(|| stem.clone(), |id| format!("{stem}-{id}"))
        });
        let conversion = Conversion::begin(folder, &run, id.as_deref())?;
        Ok(Self { options, conversion })
    }

    /// Writes the tables. `population` is required if the tables [need it](Wanted::need_objects).
    pub fn convert(
        self,
        source: &Source,
        population: Option<Population>,
        reading: Reading,
    ) -> Result<Converted, ConvertError> {
        let Self { options, conversion } = self;
        let mut found = Found::default();
        let mut book = Book::new(conversion.place())?;
        let filled = fill(&mut book, conversion.place(), source, population, reading, &options, &mut found);
        // The writing threads must end before the files are removed on failure.
        let parts = book.finish();
        filled?;
        let parts = parts.map_err(|source| FolderError::Write { path: conversion.place().to_owned(), source })?;
        let tables = parts
            .iter()
            .map(|(name, parts)| {
                let (rows, bytes) = (parts.iter().map(|part| part.rows), parts.iter().map(|part| part.bytes));
                (*name, rows.sum(), bytes.sum())
            })
            .collect();
        let run = conversion.run().to_owned();
        conversion.finish(&parts)?;
        Ok(Converted { run, tables, lost: found.lost, warnings: found.warnings })
    }
}

fn run_id(source: &Source) -> Option<String> {
    source.trace().map(|trace| trace.file.run().to_string())
}

/// What is known about the trace after all records have been read.
#[derive(Debug, Default)]
struct Found {
    end: Moment,
    records: Option<u64>,
    has_deaths: bool,
    lost: Lost,
    warnings: Vec<String>,
    has_collections: bool,
    has_monitors: bool,
    has_exceptions: bool,
}

fn fill(
    book: &mut Book,
    folder: &Path,
    source: &Source,
    population: Option<Population>,
    reading: Reading,
    options: &Options,
    found: &mut Found,
) -> Result<(), ConvertError> {
    let wanted = &options.wanted;
    let fail = |source| FolderError::Write { path: folder.to_owned(), source };
    let (mut met, mut contexts, mut types) = (Met::default(), Contexts::default(), source.types());
    found.has_deaths = source.deaths(reading.deaths) == Deaths::Trace;
    if let Some(population) = population {
        let objects = if wanted.has(&tables::objects::TABLE) { Some(book.table().map_err(fail)?) } else { None };
        let counts = if wanted.has(&tables::counts::TABLE) { Some(book.table().map_err(fail)?) } else { None };
        met = object_pass::over(source, &population, objects, counts).map_err(ConvertError::Rows)?;
        if wanted.has(&tables::allocations_by_second::TABLE) {
            object_pass::by_second(&met, book.table().map_err(fail)?);
        }
        found.end = population.end;
        found.has_deaths = population.has_deaths;
        found.lost = population.lost;
        found.warnings = population.warnings;
        (contexts, types) = (population.contexts, Arc::clone(&population.types));
    }
    let (mut named, mut extra) = (Named::default(), Vec::new());
    let only_counts = source.tells_objects().is_err();
    if wanted.need_records() {
        let fill = Fill {
            calls: table(book, wanted).map_err(fail)?,
            updates: table(book, wanted).map_err(fail)?,
            exceptions: table(book, wanted).map_err(fail)?,
            refs: table(book, wanted).map_err(fail)?,
        };
        if only_counts {
            fill.finish();
        } else {
            // Weak references are cleared when their referents die: without deaths, there would be fewer updates than other
            // commands report. And a reference ends when the object that has it dies.
            let needs_deaths = wanted.has(&tables::updates::TABLE) || wanted.has(&tables::refs::TABLE);
            let deaths = if needs_deaths { reading.deaths } else { Deaths::None };
            let passed = Pass::over(source, Reading { deaths, ..reading }, contexts, fill)?;
            let outcome = passed.ending.outcome;
            (contexts, named, extra) = (passed.contexts, passed.named, outcome.extra_fields);
            found.end = Moment { tick: passed.tick, bytes: passed.bytes, nanos: passed.nanos.map(i64::cast_unsigned) };
            found.records = (deaths == reading.deaths).then(|| outcome.totals.sum());
            found.has_exceptions = outcome.totals.of('T') > 0;
            found.lost = outcome.lost;
            if found.warnings.is_empty() {
                found.warnings = passed.ending.warnings;
            }
        }
    }
    let mut threads = met.threads.clone();
    threads.extend(&named.threads);
    let mut methods = named.methods;
    methods.extend(contexts.iter().skip(1).map(|(_, context)| context.method));
    let naming = source.naming();
    methods.extend(met.sites.iter().filter_map(|&site| naming.method_of_site(site)));
    if wanted.has(&tables::threads::TABLE) {
        meanings::threads(book, source, &threads, &met.allocated).map_err(fail)?;
    }
    if wanted.has(&tables::collections::TABLE) {
        found.has_collections = meanings::collections(book, source).map_err(fail)?;
    }
    if wanted.has(&tables::monitors::TABLE) {
        found.has_monitors = meanings::monitors(book, source).map_err(fail)?;
    }
    if wanted.has(&tables::classes::TABLE) {
        meanings::classes(book, source, &types, &met.classes).map_err(fail)?;
    }
    if wanted.has(&tables::methods::TABLE) {
        meanings::methods(book, source, &methods).map_err(fail)?;
    }
    if wanted.has(&tables::fields::TABLE) {
        meanings::fields(book, source, &named.fields, &extra).map_err(fail)?;
    }
    if wanted.has(&tables::sites::TABLE) {
        meanings::sites(book, source, &met.sites, &met.places).map_err(fail)?;
    }
    if wanted.has(&tables::contexts::TABLE) {
        meanings::contexts(book, source.naming(), &contexts).map_err(fail)?;
    }
    let mut writer = book.table::<trace::Rows>().map_err(fail)?;
    writer.push(run_row(source, reading, options, found));
    writer.finish();
    Ok(())
}

/// Starts a table if it is wanted.
fn table<R: Rows>(book: &mut Book, wanted: &Wanted) -> io::Result<Option<crate::book::TableWriter<R>>> {
    if wanted.has(R::TABLE) { book.table().map(Some) } else { Ok(None) }
}

fn run_row(source: &Source, reading: Reading, options: &Options, found: &Found) -> trace::Row {
    let (trace, bytes) = match source {
        Source::Trace(trace) => (Some(trace), trace.file.size()),
        Source::Text(text) => (None, text.size()),
    };
    let meta = trace.map(|trace| trace.file.meta());
    let seconds = trace.and_then(|trace| {
        let last = trace.file.last_known().map(|last| last.seconds);
        trace.file.end().map(|end| end.seconds).or(last)
    });
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let events: Vec<&str> = source.events().names().collect();
    trace::Row {
        file: source.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        trace_bytes: bytes.cast_signed(),
        run_id: run_id(source),
        label: options.label.clone(),
        program: meta.and_then(|meta| text(meta.options.get("program").unwrap_or(&meta.command))),
        pid: meta.map(|meta| meta.pid.into()),
        start_unix_millis: meta.map(|meta| meta.start_unix_millis.cast_signed()),
        seconds,
        jvm: meta.and_then(|meta| text(&meta.jvm.name)),
        jvm_version: meta.and_then(|meta| text(&meta.jvm.version)),
        java_home: meta.and_then(|meta| text(&meta.java_home)),
        options: meta.and_then(|meta| serde_json::to_string(&meta.options).ok()),
        events: events.join(","),
        has_deaths: found.has_deaths,
        has_times: found.end.nanos.is_some(),
        is_complete: source.cut_off().is_none() && found.lost.total() == 0,
        lost: found.lost.total().cast_signed(),
        end_tick: found.end.tick.cast_signed(),
        end_bytes: found.end.bytes.cast_signed(),
        end_nanos: found.end.nanos.map(u64::cast_signed),
        records: found.records.map(u64::cast_signed),
        missing: missing(source, reading, options, found).join("; "),
        tables: options.wanted.names().join(","),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Which tables or columns are empty, and why.
fn missing(source: &Source, reading: Reading, options: &Options, found: &Found) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |tables: &[&str], why: &str| all.extend(tables.iter().map(|table| format!("{table}: {why}")));
    let lacks = |what, tables: &[&'static str], name: &str| -> Option<(Vec<&'static str>, String)> {
        let is_lacking = !source.events().has(what);
        is_lacking
            .then(|| (tables.to_vec(), format!("the classes have no hooks for {name} (instrument with --events all)")))
    };
    let has_stacks = source.trace().is_some_and(|trace| !trace.stacks.is_empty());
    let events = [
        lacks(EventSet::ALLOC, &["objects", "allocations_by_second", "sites"], "allocations"),
        lacks(EventSet::UPDATE, &["updates", "refs", "fields"], "updates"),
        lacks(
            EventSet::METHOD,
            &["calls", "objects.last_use_tick", "objects.escaped_frame", "objects.escaped_thread"],
            "methods",
        ),
        lacks(EventSet::METHOD, &["contexts"], "methods").filter(|_| !has_stacks),
        lacks(EventSet::EXCEPTION, &["exceptions"], "exceptions"),
    ];
    let only_counts = source.tells_objects().is_err();
    if only_counts {
        let why = "the trace counts allocations (record with --mode objects or everything)";
        say(&["objects", "calls", "updates", "refs", "fields", "exceptions"], why);
    } else {
        say(&["counts"], "each object is in objects");
        for (tables, why) in events.into_iter().flatten() {
            say(&tables, &why);
        }
    }
    if !found.has_deaths && !only_counts {
        let unknown = deaths_unknown(source.events()).filter(|_| reading.deaths != Deaths::None);
        say(
            &["objects.death_tick", "refs.to_tick"],
            &unknown.unwrap_or_else(|| "deaths are off (--deaths none)".to_owned()),
        );
    }
    if found.end.nanos.is_none() {
        say(&["objects.birth_nanos"], "the trace has no times");
    }
    if !found.has_exceptions
        && !only_counts
        && options.wanted.has(&tables::exceptions::TABLE)
        && source.events().has(EventSet::EXCEPTION)
    {
        say(&["exceptions"], "none was thrown");
    }
    if !found.has_collections && options.wanted.has(&tables::collections::TABLE) {
        let why = if matches!(source, Source::Text(_)) { "a text has none" } else { "there was none during the run" };
        say(&["collections"], why);
    }
    if !found.has_monitors && options.wanted.has(&tables::monitors::TABLE) {
        let is_on =
            |trace: &et_reader::Trace| trace.file.meta().options.get("monitors").is_some_and(|value| value == "on");
        let why = match source {
            Source::Text(_) => "a text has none",
            Source::Trace(trace) if is_on(trace) => "no thread had to wait",
            Source::Trace(_) => "they were not recorded (-Det.monitors=on)",
        };
        say(&["monitors"], why);
    }
    if !source.naming().is_known() {
        say(
            &["methods.name", "fields.name", "sites.name"],
            "a text without a names file has numbers only (--with-names)",
        );
    }
    if let Some(cut) = source.cut_off() {
        say(&["trace"], &cut.to_string());
    }
    let not_written: FxHashSet<&str> = options.wanted.names().iter().copied().collect();
    let left_out = tables::ALL.iter().filter(|table| !not_written.contains(table.name)).map(|table| table.name);
    say(&left_out.collect::<Vec<_>>(), "not selected (--only)");
    all
}
