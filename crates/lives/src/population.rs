//! The rows of a life table for analyses: of the one beside the trace, or of a temporary one.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use et_columns::TableReader;
use et_reader::births;
use et_reader::blocks::Passed;
use et_reader::counted::counted;
use et_reader::model::Contexts;
use et_reader::observed::{Observed, Observer};
use et_reader::population::{Groups, Population};
use et_reader::record::{Clock, Record};
use et_reader::resolve::Lost;
use et_reader::source::{At, Deaths, Ending, Reading, Source, SourceError};
use et_reader::survival::Marker;
use et_reader::told::Told;
use thiserror::Error;

use crate::births as kept_births;
use crate::maker::{Follows, Maker};
use crate::names::read_contexts;
use crate::object_table::{HeldRows, ObjectTable, warnings};
use crate::passing::Passing;
use crate::surviving::Surviving;
use crate::without_uses::{tells_uses, with_uses};
use crate::{
    BY_RECORDS, CONTEXTS, FATES, HELD, LifeTable, Manifest, OBJECTS, WALKS, by_blocks, fates, lock, only_births,
};

/// Why there are no rows.
#[derive(Debug, Error)]
pub enum PopulationError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] SourceError),
    /// The temporary file could not be written or read, for example because the disk is full.
    #[error("cannot keep a row for each object in a temporary file in {folder} (set TMPDIR to use another folder): {0}", folder = std::env::temp_dir().display())]
    Temporary(io::Error),
}

/// Returns all objects of a trace. `table` is the result of [`attach`](crate::attach) or
/// [`attach_passing`](crate::attach_passing): an existing table is read, otherwise it is made. If there can be none, the
/// rows are in a temporary file.
pub fn population(source: &Source, table: Option<&LifeTable>, reading: Reading) -> Result<Population, PopulationError> {
    if let Some((population, _)) = counts(source) {
        return Ok(population);
    }
    let table = table.filter(|table| table.is_for(source, reading));
    if let Some(table) = table {
        if let Some(population) = table.rows(source, reading) {
            return Ok(population);
        }
        if let Some(population) = table.kept_births(source, reading) {
            return Ok(population);
        }
        if let Some((population, _)) = table.births_alone(source, reading) {
            return Ok(population);
        }
        if table.make_for(source).is_none() && table.follows == Follows::Lives {
            source.for_each(reading, |_, _| ControlFlow::Continue(()))?;
        }
        if let Some(population) = table.rows(source, reading) {
            return Ok(population);
        }
    }
    match tells_births_only(source, reading) {
        true => Ok(births_in(source, reading, table.is_none())?.0),
        false => Ok(pass(source, reading, Follows::Lives, |_, _| {})?.0),
    }
}

/// Whether the rows of a reading say no more than how objects were made.
fn tells_births_only(source: &Source, reading: Reading) -> bool {
    source.trace().is_some() && source.deaths(reading.deaths) == Deaths::None && !tells_uses(source.events())
}

/// Returns all objects of a trace and what their rows do not tell, in one reading of the records, which `see` gets as
/// well. `table` as for [`population`].
pub fn observe(
    source: &Source,
    table: Option<&LifeTable>,
    reading: Reading,
    mut see: impl FnMut(&Record, &At<'_>),
) -> Result<(Population, Observed), PopulationError> {
    if let Some(counts) = counts(source) {
        return Ok(counts);
    }
    let mut observer = Observer::new(source, reading);
    let mut visit = |record: &Record, at: &At<'_>| {
        observer.record(record, at);
        see(record, at);
    };
    let tells_lives = |table: &&LifeTable| table.follows == Follows::Lives && table.is_for(source, reading);
    let Some(table) = table.filter(tells_lives) else {
        let (population, ending) = pass(source, reading, Follows::Lives, visit)?;
        return Ok((population, observer.finish(&ending)));
    };
    let ending = source.for_each(reading, |record, at| {
        visit(record, at);
        ControlFlow::Continue(())
    })?;
    let observed = observer.finish(&ending);
    Ok((population(source, Some(table), reading)?, observed))
}

/// As [`observe`], for callers that do not need the records: if the table has to be made, they are not.
pub fn observe_rows(
    source: &Source,
    table: Option<&LifeTable>,
    reading: Reading,
) -> Result<(Population, Observed), PopulationError> {
    let table = table.filter(|table| table.is_for(source, reading));
    if let Some(births) = table.and_then(|table| table.births_alone(source, reading)) {
        return Ok(births);
    }
    if let Some(table) = table
        && table.rows(source, reading).is_none()
        && let Some(passed) = table.make_for(source)
        && let Some(population) = table.rows(source, reading)
    {
        return Ok((population, passed.observed(source)));
    }
    if tells_births_only(source, reading) {
        return births_in(source, reading, table.is_none());
    }
    observe(source, table, reading, |_, _| {})
}

/// Returns all objects of a trace without what became of them, and what their rows do not tell: what a reading without
/// deaths is usually for. The rows say when objects were made, where and how, and not when they were used last, nor
/// whether they escaped.
pub fn births(source: &Source, reading: Reading) -> Result<(Population, Observed), PopulationError> {
    if let Some(counts) = counts(source) {
        return Ok(counts);
    }
    births_in(source, reading, true)
}

/// The same of a trace that tells objects. `may_be_alone`: whether it is not known already that it cannot be read by [`births_alone`].
fn births_in(source: &Source, reading: Reading, may_be_alone: bool) -> Result<(Population, Observed), PopulationError> {
    let deaths = source.deaths(reading.deaths);
    let reading = if deaths == Deaths::None { reading } else { Reading { deaths: Deaths::None, ..reading } };
    if may_be_alone && let Some(births) = births_alone(source, reading) {
        return Ok(births);
    }
    match births_by_blocks(source, reading) {
        Some(births) => Ok(births),
        None => births_by_records(source, reading),
    }
}

/// What a trace has that only counts allocations: no records are read.
fn counts(source: &Source) -> Option<(Population, Observed)> {
    source.trace().filter(|trace| trace.only_counts()).map(counted)
}

/// As [`births`], of a trace that tells nothing else: rows are made from its blocks whenever they are needed. `None` if it does tell more,
/// or cannot be read in this way.
fn births_alone(source: &Source, reading: Reading) -> Option<(Population, Observed)> {
    let trace = source.trace().filter(|trace| only_births(trace.events))?;
    if std::env::var_os(BY_RECORDS).is_some() {
        return None;
    }
    // Any error shows again.
    let (population, observed) = births::read(trace).ok()??;
    Some((Population { warnings: warnings(source, reading), ..population }, observed))
}

fn births_by_records(source: &Source, reading: Reading) -> Result<(Population, Observed), PopulationError> {
    let mut observer = Observer::new(source, reading);
    let (population, ending) = pass(source, reading, Follows::Births, |record, at| observer.record(record, at))?;
    Ok((population, observer.finish(&ending)))
}

/// As [`births`], without making records. `None` if that cannot be done: then they are made, and any error shows again.
fn births_by_blocks(source: &Source, reading: Reading) -> Option<(Population, Observed)> {
    let trace = source.trace()?;
    if reading.clock != Clock::default() || std::env::var_os(BY_RECORDS).is_some() {
        return None;
    }
    let (made, passed) = by_blocks::make(trace, Follows::Births, tempfile::tempfile).ok()?;
    let observed = passed.observed(source);
    let rows = Passing::of(made, Vec::new(), passed.outcome.lost);
    Some((rows.population(source, reading).ok()?, observed))
}

impl LifeTable {
    /// As [`births_alone`]. Then there are no rows to keep, but results.
    fn births_alone(&self, source: &Source, reading: Reading) -> Option<(Population, Observed)> {
        let (population, observed) = births_alone(source, reading).filter(|_| self.follows == Follows::Births)?;
        let Some(trace) = source.trace().filter(|_| population.lost.total() == 0) else {
            return Some((population, observed));
        };
        self.keep_results(trace, &population);
        match self.manifest() {
            Some(_) => Some((kept_births::keeping(population, trace, self), observed)),
            None => Some((population, observed)),
        }
    }

    /// The same, if rows for sums of them are kept.
    fn kept_births(&self, source: &Source, reading: Reading) -> Option<Population> {
        if self.follows == Follows::Births && std::env::var_os(BY_RECORDS).is_none() {
            kept_births::kept(self, source, reading)
        } else {
            None
        }
    }

    /// Whether its rows are those of a reading.
    pub fn is_for(&self, source: &Source, reading: Reading) -> bool {
        let tells_enough = match self.follows {
            Follows::Lives => source.deaths(reading.deaths) == Deaths::Trace,
            Follows::Births => source.trace().is_some_and(|trace| !trace.only_counts()),
        };
        tells_enough && reading.clock == self.clock
    }

    /// Makes the table without making records, if that can be done.
    fn make_for(&self, source: &Source) -> Option<Passed> {
        self.make_by_blocks(source.trace()?)
    }

    /// Reads the rows in the folder, if they are intact, or those that were made for this process.
    fn rows(&self, source: &Source, reading: Reading) -> Option<Population> {
        let Some(manifest) = self.manifest().filter(Manifest::has_rows) else {
            return lock(&self.passing).as_ref()?.population(source, reading).ok();
        };
        let read = || -> io::Result<Population> {
            let held = HeldRows::Kept(self.open(HELD)?);
            let has_uses = tells_uses(source.events());
            let (survival, fates) = match manifest.files.iter().any(|file| file.name == FATES) {
                true => {
                    let collections = source.trace().map_or(0, |trace| trace.gcs.len() as u64);
                    let survival = fates::read_walks(self.open(WALKS)?, collections)?;
                    (Some(Arc::new(survival)), Some(TableReader::open(self.open(FATES)?)?))
                }
                false => (None, None),
            };
            let table = ObjectTable::open(self.open(OBJECTS)?, held, manifest.late.rows.clone())?.with_fates(fates);
            let groups = with_uses(Box::new(table), has_uses);
            let contexts = read_contexts(self.open(CONTEXTS)?, Contexts::default())?;
            let Manifest { objects, .. } = manifest;
            let (end, types) = (manifest.end(), source.types());
            let (lost, warnings) = (Lost::default(), warnings(source, reading));
            Ok(Population {
                groups,
                objects,
                contexts,
                types,
                has_deaths: self.follows == Follows::Lives,
                has_uses,
                survival,
                end,
                lost,
                warnings,
            })
        };
        read().inspect_err(|_| self.doubt()).ok()
    }
}

/// Reads the trace, shows its records to `see`, and writes the rows to an unnamed file.
fn pass(
    source: &Source,
    reading: Reading,
    follows: Follows,
    mut see: impl FnMut(&Record, &At<'_>),
) -> Result<(Population, Ending), PopulationError> {
    let file = || tempfile::tempfile().map_err(PopulationError::Temporary);
    let stacks = source.trace().map(|trace| trace.stacks.clone()).unwrap_or_default();
    let mut maker = Maker::new(stacks, [file()?, file()?], source.clock(reading.clock), follows);
    let has_deaths = source.deaths(reading.deaths) == Deaths::Trace;
    let reading = Reading { holders: has_deaths && source.tells_holders(), places: true, ..reading };
    let mut marker = match source.trace().filter(|_| !has_deaths) {
        Some(trace) => Marker::of(trace).map_err(SourceError::from)?,
        None => None,
    };
    let mut ending = source.for_each_told(reading, |told, at| {
        if let (Some(marker), Some(ticket)) = (&mut marker, at.place.ticket()) {
            marker.at(ticket, || maker.now());
            if let Told::Record(Record::Alloc(alloc)) = told {
                marker.born(alloc.object, maker.now().1);
            }
        }
        maker.told(told, at);
        if let Told::Record(record) = told {
            see(record, at);
        }
        if maker.failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let made = maker.finish().map_err(PopulationError::Temporary)?;
    let held = ending.cost.as_ref().map(|cost| cost.held_by_stacks.clone()).unwrap_or_default();
    let text_types = std::mem::take(&mut ending.text_types);
    let table = ObjectTable::open(made.lives.file, HeldRows::Known(held), 0..0).map_err(PopulationError::Temporary)?;
    let fates = marker.map(|marker| Arc::new(marker.finish(made.end, made.objects)));
    let groups: Box<dyn Groups> = match &fates {
        Some(fates) => Box::new(Surviving::of(Box::new(table), fates.clone())),
        None => Box::new(table),
    };
    let survival = fates.map(|fates| fates.survival().clone());
    let has_uses = tells_uses(source.events());
    let population = Population {
        groups: with_uses(groups, has_uses),
        has_uses,
        survival,
        objects: made.objects,
        contexts: made.contexts,
        types: if matches!(source, Source::Text(_)) { Arc::new(text_types) } else { source.types() },
        has_deaths,
        end: made.end,
        lost: ending.outcome.lost,
        warnings: ending.warnings.clone(),
    };
    Ok((population, ending))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    use et_format::event::{Event, ObjectHash, Ticket};
    use et_format::{ClassRecord, GcRecord, HeapWalk, Nanos};
    use et_names::{EventSet, FieldRefId, MethodId, SiteId};
    use et_reader::file::TraceFile;
    use et_reader::population::Columns;
    use et_reader::source::TraceSource;
    use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};
    use et_reader::text::{Dialect, Holders, TextNames, TextTrace, write_names};
    use et_reader::text_writer::write_with;
    use et_reader::watch::{Unit, Watcher};
    use et_reader::{Trace, deaths_unknown};

    use super::*;
    use crate::{BIRTHS, attach};

    /// A run of a real program, without the names of the JDK.
    const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

    use crate::tests::rows as all;

    #[test]
    fn rows_are_the_same_kept_and_passing() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.ettrace");
        fs::copy(REAL, &trace).unwrap();
        let passing = population(&Trace::open(&trace).unwrap().into(), None, Reading::default()).unwrap();
        assert!(passing.has_deaths && passing.objects > 1000);
        let attached = || {
            let mut trace = TraceSource::open(&trace).unwrap();
            let table = attach(&mut trace, None).unwrap();
            (Source::from(trace), table)
        };
        let (source, table) = attached();
        assert!(table.manifest().is_none());
        let made = population(&source, Some(&table), Reading::default()).unwrap();
        assert!(table.manifest().is_some(), "it was made");
        assert_eq!(all(&made), all(&passing));
        let (source, table) = attached();
        let kept = population(&source, Some(&table), Reading::default()).unwrap();
        assert_eq!(all(&kept), all(&passing));
        for other in [&made, &kept] {
            assert_eq!((other.objects, other.end), (passing.objects, passing.end));
        }
    }

    #[test]
    fn a_damaged_table_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.ettrace");
        fs::copy(REAL, &trace).unwrap();
        let read = || {
            let mut trace = TraceSource::open(&trace).unwrap();
            let table = attach(&mut trace, None).unwrap();
            all(&population(&trace.into(), Some(&table), Reading::default()).unwrap())
        };
        let whole = read();
        for name in [OBJECTS, CONTEXTS] {
            let path = folder.path().join("a.ettrace.lives").join(name);
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            fs::write(&path, bytes).unwrap();
            assert!(read() == whole);
        }
    }

    #[test]
    fn without_deaths_all_are_alive() {
        let trace = Trace::open(REAL.as_ref()).unwrap();
        let reading = Reading { deaths: Deaths::None, ..Reading::default() };
        let population = population(&trace.into(), None, reading).unwrap();
        assert!(!population.has_deaths);
        let rows = population.groups.read(0, Columns::DEATH_TICK).unwrap();
        assert!(rows.len > 1000 && rows.death_tick.iter().all(Option::is_none));
    }

    /// A run that counts has classes with hooks for all events as well: nothing of it is in a life table.
    #[test]
    fn counts_are_no_lives_whatever_the_classes_have_hooks_for() {
        let options = [("counts".to_owned(), "1s".to_owned())].into();
        let mut builder = TraceBuilder::with_options(Default::default(), options);
        builder.names(&table("app.jar", 5_000_000, &[class("A", "java/lang/Object", &["static main ()V"])]));
        builder.loaded_classes(&[(0x12, 16, "LA;")]).first_thread(1, "main", Vec::new());
        let counted = Event::Counted { site: SiteId(0), class: ObjectHash(0x12), objects: 3, units: 6 };
        builder.events(1, 1, &[counted]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ettrace");
        fs::write(&path, builder.finish()).unwrap();
        let mut trace = TraceSource::open(&path).unwrap();
        let lives = attach(&mut trace, None);
        let source = Source::from(trace);
        assert!(deaths_unknown(source.events()).is_none(), "{}", source.events());
        assert_eq!(source.deaths(Deaths::Trace), Deaths::None);
        let (population, _) = observe_rows(&source, lives.as_deref(), Reading::default()).unwrap();
        assert_eq!((population.objects, population.end.bytes, population.has_deaths), (3, 48, false));
    }

    #[test]
    fn births_by_blocks_are_those_of_the_records() {
        for source in [Source::from(Trace::open(REAL.as_ref()).unwrap()), weakly_held().into()] {
            let reading = Reading { deaths: Deaths::None, ..Reading::default() };
            let (by_blocks, observed) = births_by_blocks(&source, reading).unwrap();
            let (by_records, expected) = births_by_records(&source, reading).unwrap();
            assert_eq!(observed, expected);
            assert_eq!(all(&by_blocks), all(&by_records));
            assert_eq!((by_blocks.objects, by_blocks.end), (by_records.objects, by_records.end));
            assert_eq!(by_blocks.warnings, by_records.warnings);
        }
    }

    /// A thousand objects, every tenth of which two walks find, and every hundredth a third; the last is born after all walks.
    fn walked() -> TraceBuilder {
        let options = [("events".to_owned(), "alloc,stacks".to_owned())].into();
        let mut builder = TraceBuilder::with_options(Default::default(), options);
        builder.names(&table("app.jar", 5_000_000, &[class("A", "java/lang/Object", &["static main ()V"])]));
        builder.loaded_classes(&[(0x12, 16, "LA;")]).first_thread(1, "main", Vec::new());
        let new =
            |object| Event::New { site: SiteId(0), object: ObjectHash(object), class: ObjectHash(0x12), known: false };
        for round in 0..10_u32 {
            let events: Vec<_> = (0..100).map(|at| new(0x1000 + 100 * round + at)).collect();
            builder.events(1, u64::from(100 * round + 1), &events);
        }
        builder.events(1, 2000, &[new(0x9000)]);
        for (number, every) in [(1_u64, 10), (2, 10), (3, 100)] {
            let start = 300 * number;
            builder.gc(&GcRecord { start: Ticket(start), finish: Ticket(start + 1), ..GcRecord::default() });
            let walk = HeapWalk {
                begin: Ticket(start + 2),
                end: Ticket(start + 3),
                nanos: Nanos(number),
                duration: Nanos(1),
                ..HeapWalk::default()
            };
            let found: Vec<u32> = (0x1000..0x1000 + 300 * number as u32).step_by(every).collect();
            builder.survivors(walk, &found);
        }
        builder
    }

    fn open_births(path: &Path) -> (Source, Arc<LifeTable>) {
        let mut trace = TraceSource::open(path).unwrap();
        trace.events = EventSet::ALLOC.or(EventSet::STACKS);
        let table = attach(&mut trace, None).unwrap();
        (Source::from(trace), table)
    }

    fn same_births(population: &Population, expected: &Population, source: &Source) {
        assert_eq!(all(population), all(expected));
        assert_eq!(population.survival, expected.survival);
        assert_eq!((population.has_deaths, population.has_uses), (false, false));
        assert_eq!(population.warnings, warnings(source, Reading::default()));
        assert_eq!((population.objects, population.end), (expected.objects, expected.end));
    }

    #[test]
    fn births_are_told_with_what_walks_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ettrace");
        fs::write(&path, walked().finish()).unwrap();
        let open = || open_births(&path);
        let (source, table) = open();
        let reading = Reading::default();
        let (by_records, expected) = births_by_records(&source, Reading { deaths: Deaths::None, ..reading }).unwrap();
        let (made, observed) = observe_rows(&source, Some(&table), reading).unwrap();
        assert_eq!(observed, expected);
        table.keep("summary-0.json", b"{}");
        let manifest = table.manifest().unwrap();
        assert!(!manifest.has_rows(), "{manifest:?}");
        let (source, table) = open();
        assert_eq!((table.manifest(), table.kept("summary-0.json")), (Some(manifest), Some(b"{}".to_vec())));
        let again = population(&source, Some(&table), reading).unwrap();
        for population in [&made, &again] {
            same_births(population, &by_records, &source);
        }
    }

    /// Rows for sums are kept by whoever reads all of them first. Afterwards no events are read until single objects are asked for.
    #[test]
    fn sums_of_births_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ettrace");
        fs::write(&path, walked().finish()).unwrap();
        let (reading, watcher) = (Reading::default(), Watcher::watched());
        let open = || {
            let mut trace = TraceSource::open(&path).unwrap();
            trace.file.watch(&watcher);
            trace.events = EventSet::ALLOC.or(EventSet::STACKS);
            let table = attach(&mut trace, None).unwrap();
            (Source::from(trace), table)
        };
        // Sums of all that is alike: each group has rows of its own at first.
        let joined = |population: &Population| {
            let (mut sums, mut spans) = (BTreeMap::<String, (u64, u64, u64)>::new(), BTreeSet::new());
            let joined = population.groups.joined();
            for group in 0..population.groups.len() {
                let columns = Columns::ALL.without(births::NEVER_JOINED);
                let rows = joined(group, columns).unwrap();
                for row in 0..rows.len {
                    let alike = (rows.class[row], rows.kind[row], rows.thread[row], rows.fate[row]);
                    let sum = sums.entry(format!("{alike:?}")).or_insert((0, 0, rows.number[row]));
                    *sum = (sum.0 + rows.objects(row), sum.1 + rows.size[row], sum.2.min(rows.number[row]));
                }
                spans.extend(rows.spans.unwrap().into_iter().map(|span| format!("{span:?}")));
            }
            (sums, spans)
        };
        let (source, _) = open();
        let (by_records, _) = births_by_records(&source, Reading { deaths: Deaths::None, ..reading }).unwrap();
        let (source, table) = open();
        let (made, _) = observe_rows(&source, Some(&table), reading).unwrap();
        let sums = joined(&made);
        assert_eq!(sums.0.values().map(|(objects, ..)| objects).sum::<u64>(), made.objects);
        assert_eq!((table.trouble(), joined(&made)), (None, sums.clone()));
        let kept = folder.path().join("a.ettrace.lives").join(BIRTHS);
        for is_damaged in [false, true] {
            let mut bytes = fs::read(&kept).unwrap();
            if is_damaged {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x55;
                fs::write(&kept, bytes).unwrap();
            }
            watcher.begin("nothing", Unit::Records, 0);
            let (source, table) = open();
            let population = population(&source, Some(&table), reading).unwrap();
            assert_eq!(joined(&population), sums);
            let reads = watcher.stage().is_some_and(|(stage, _)| stage.what != "nothing");
            assert_eq!(reads, is_damaged, "{}", watcher.line());
            same_births(&population, &by_records, &source);
        }
        let (source, table) = open();
        assert!(table.kept_births(&source, reading).is_some(), "they were kept again");
    }

    /// Where a trace tells something else as well, rows are kept.
    #[test]
    fn births_are_kept_with_what_walks_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ettrace");
        let mut builder = walked();
        builder.events(1, 3000, &[Event::Used { object: ObjectHash(0x9000) }]);
        fs::write(&path, builder.finish()).unwrap();
        let open = || open_births(&path);
        let (source, table) = open();
        let reading = Reading::default();
        let (by_records, expected) = births_by_records(&source, Reading { deaths: Deaths::None, ..reading }).unwrap();
        let expected_rows = all(&by_records);
        let fates = by_records.groups.read(0, Columns::FATE).unwrap().fate;
        let survived = |number: usize| fates[number].map(|fate| (fate.survived, fate.survived_at_most, fate.missed));
        assert_eq!((fates.len(), survived(1010 - 9)), (1002, None), "with the mirror, and one after all walks");
        assert_eq!(fates.iter().flatten().filter(|fate| fate.survived == 3).count(), 3);
        let (passing, _) = births_by_blocks(&source, reading).unwrap();
        assert!(table.manifest().is_none());
        let (made, observed) = observe_rows(&source, Some(&table), reading).unwrap();
        assert!(table.manifest().is_some(), "it was made: {:?}", table.trouble());
        assert_eq!(observed, expected);
        let (source, table) = open();
        assert!(table.manifest().is_some());
        let kept = population(&source, Some(&table), reading).unwrap();
        for population in [&passing, &made, &kept] {
            same_births(population, &by_records, &source);
        }
        // A table of fates that is damaged is made anew.
        let fates = folder.path().join("a.ettrace.lives").join(FATES);
        let mut bytes = fs::read(&fates).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        fs::write(&fates, bytes).unwrap();
        let (source, table) = open();
        assert_eq!(all(&population(&source, Some(&table), reading).unwrap()), expected_rows);
        assert!(table.open(FATES).is_ok());
    }

    /// `class Holder { Object o; void g() { Object a = new int[3]; weak = new WeakReference<>(a); o = a; } }`, called
    /// twice by `main`; the second time, the program clears the reference. The array dies with the holder, when `g`
    /// returns.
    fn weakly_held() -> Trace {
        const BASE: u32 = 5_000_000;
        let mut builder = TraceBuilder::new();
        let reference = class("java/lang/ref/Reference", "java/lang/Object", &[]).with_fields(&["referent"]);
        let weak = class("java/lang/ref/WeakReference", "java/lang/ref/Reference", &["<init> ()V"]);
        builder.names(&table("jdk", 1, &[class("java/lang/Object", "", &["<init> ()V"]), reference, weak]));
        let holder = class("shop/Holder", "java/lang/Object", &["static main ()V", "g ()V"])
            .with_fields(&["o", "static weak"])
            .with_sites(&[(0, "Lshop/Holder;", 3), (1, "[I", 5), (1, "Ljava/lang/ref/WeakReference;", 6)]);
        builder.names(&table("shop.jar", BASE, &[holder]));
        for (mirror, above, signature) in [
            (0x10, 0, "Ljava/lang/Object;"),
            (0x11, 0x10, "Ljava/lang/ref/Reference;"),
            (0x12, 0x11, "Ljava/lang/ref/WeakReference;"),
            (0x13, 0x10, "Lshop/Holder;"),
        ] {
            builder.class(&ClassRecord {
                class: ObjectHash(mirror),
                superclass: ObjectHash(above),
                instance_size: 24,
                signature: signature.into(),
                ..ClassRecord::default()
            });
        }
        let new = |site, object, class| Event::New {
            site: SiteId(BASE + site),
            object: ObjectHash(object),
            class: ObjectHash(class),
            known: false,
        };
        let put = |field, origin, target| Event::PutField {
            field: FieldRefId(field),
            origin: ObjectHash(origin),
            target: ObjectHash(target),
            if_changed: false,
        };
        let (main, g) = (MethodId(BASE), MethodId(BASE + 1));
        let mut events = vec![Event::Entry { method: main }];
        for (holder, array, weak) in [(0xa0, 0xa1, 0xa2), (0xb0, 0xb1, 0xb2)] {
            events.extend([
                new(0, holder, 0x13),
                Event::EntryOn { method: g, receiver: ObjectHash(holder) },
                Event::NewArray { depth: 0, site: SiteId(BASE + 1), object: ObjectHash(array), length: 3 },
                new(2, weak, 0x12),
                put(1, weak, array),
                Event::PutStatic { field: FieldRefId(BASE + 1), target: ObjectHash(weak) },
                put(BASE, holder, array),
            ]);
            if weak == 0xb2 {
                events.push(put(1, weak, 0));
            }
            events.extend([Event::Exit { method: g }, Event::Entry { method: main }, Event::Exit { method: main }]);
        }
        builder.first_thread(1, "main", Vec::new()).events(1, 1, &events);
        Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap()
    }

    /// The content of the rows in a form that does not depend on the source.
    fn said(source: Source) -> Vec<String> {
        let population = population(&source, None, Reading::default()).unwrap();
        assert_eq!(population.warnings, [""; 0]);
        let rows = population.groups.read(0, Columns::ALL).unwrap();
        let said = (0..rows.len).map(|row| {
            format!(
                "{:x} {} used {} died {:?} by {:?} in {:?} of {:?} escaped {:?} {:?}",
                rows.object[row].0,
                population.types.descriptor(rows.class[row]),
                rows.last_use_tick[row],
                rows.death_tick[row],
                rows.death_record[row],
                rows.death_context[row],
                rows.death_thread[row],
                rows.escaped_frame[row],
                rows.escaped_thread[row],
            )
        });
        said.collect()
    }

    /// The trace as a text, and its names file.
    fn as_text(trace: Trace, dialect: Dialect, deaths: Deaths, holders: Holders) -> (String, String) {
        let (source, mut text, mut names) = (Source::from(trace), Vec::new(), Vec::new());
        let reading = Reading { deaths, ..Reading::default() };
        let (ending, used) = write_with(&source, dialect, reading, holders, &mut text).unwrap();
        let trace = source.trace().unwrap();
        write_names(trace, dialect, used.as_ref(), &ending.outcome.extra_fields, &mut names).unwrap();
        (String::from_utf8(text).unwrap(), String::from_utf8(names).unwrap())
    }

    #[test]
    fn weak_references_that_are_cleared_are_no_stores_whatever_tells_of_them() {
        let expected = said(weakly_held().into());
        let captured =
            expected.iter().filter(|row| row.contains(" [I ") && row.ends_with("escaped Some(false) Some(false)"));
        assert_eq!(captured.count(), 2, "{expected:#?}");
        for dialect in [Dialect::Et, Dialect::Replayer] {
            for (deaths, holders) in [
                (Deaths::Trace, Holders::Always),
                (Deaths::Trace, Holders::default()),
                (Deaths::None, Holders::default()),
            ] {
                let (text, names) = as_text(weakly_held(), dialect, deaths, holders);
                let names = TextNames::read(names.as_bytes()).unwrap().unwrap();
                let named = said(TextTrace::from_text(&text, Some(names)).into());
                assert_eq!(named, expected, "{dialect:?} {deaths:?} {holders:?}\n{text}");
                if dialect == Dialect::Et {
                    // The field can be recognized without names, too.
                    assert_eq!(
                        said(TextTrace::from_text(&text, None).into()),
                        expected,
                        "{deaths:?} {holders:?}\n{text}"
                    );
                }
            }
        }
    }

    /// A text with deaths that is read without them equals the trace without them: references cleared because of a
    /// death are not cleared.
    #[test]
    fn a_text_without_its_deaths_is_the_trace_without_deaths() {
        let records = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        let (with_deaths, names) = as_text(weakly_held(), Dialect::Et, Deaths::Trace, Holders::default());
        let (without, _) = as_text(weakly_held(), Dialect::Et, Deaths::None, Holders::default());
        let names = TextNames::read(names.as_bytes()).unwrap().unwrap();
        let mut back = Vec::new();
        let source = Source::from(TextTrace::from_text(&with_deaths, Some(names)));
        let reading = Reading { deaths: Deaths::None, ..Reading::default() };
        write_with(&source, Dialect::Et, reading, Holders::default(), &mut back).unwrap();
        assert_eq!(records(&String::from_utf8(back).unwrap()), records(&without));
    }
}
