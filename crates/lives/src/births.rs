//! Traces that tell how objects are made and nothing else have no rows in a life table: they are made from the blocks of the trace whenever
//! they are needed. Rows for sums are kept, in which objects that are alike are one: the first command that sums up all objects makes
//! them, a summary for example, and those that come later read no events, such as a report.

use std::fs::File;
use std::io;
use std::mem;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use et_columns::{TableReader, TableWriter, Word, Written};
use et_reader::Trace;
use et_reader::axis::{Span, middle};
use et_reader::births::{self, Alike, NEVER_JOINED, untold};
use et_reader::lifetimes::HeldByStack;
use et_reader::model::Contexts;
use et_reader::population::{Columns, Groups, Joined, Key, Moment, Population, Rows};
use et_reader::resolve::Lost;
use et_reader::source::{Reading, Source};
use et_reader::survival::{Fate, Survival};
use et_system::threads::on_all_cores;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::added::{self, Added};
use crate::object_table::warnings;
use crate::rows::{GroupReader, stored};
use crate::tables::{self, births as table};
use crate::{BIRTH_CONTEXTS, BIRTH_FATES, BIRTH_WALKS, BIRTHS, LifeTable, fates, folder, lock, names};

const ADDED: Added<4> = Added {
    kept: "births-1.json",
    names: [BIRTHS, BIRTH_CONTEXTS, BIRTH_WALKS, BIRTH_FATES],
    tables: [&table::TABLE, &tables::contexts::TABLE, &tables::walks::TABLE, &tables::fates::TABLE],
};

/// All columns of rows for sums.
const JOINED: Columns = Columns::ALL.without(NEVER_JOINED);
/// Columns that the table of rows for sums does not have.
const UNTOLD: Columns = NEVER_JOINED
    .and(Columns::LAST_USE_TICK)
    .and(Columns::DEATH_TICK)
    .and(Columns::DEATH_BYTES)
    .and(Columns::DEATH_NANOS)
    .and(Columns::DEATH_THREAD)
    .and(Columns::DEATH_CONTEXT)
    .and(Columns::ESCAPED_THREAD)
    .and(Columns::ESCAPED_FRAME)
    .and(Columns::DEATH_RECORD)
    .and(Columns::DEATH_KIND)
    .and(Columns::FATE);
/// Rows up to which they are kept: a program that makes hardly any objects alike would take more time and room for them than they save.
const MOST: usize = if cfg!(test) { 2000 } else { 1 << 18 };
/// Rows of a group.
const GROUP: usize = if cfg!(test) { 100 } else { 1 << 17 };
/// What a note says is not kept.
const WHAT: &str = "sums of births are";

/// What the rows do not tell.
#[derive(Debug, Serialize, Deserialize)]
struct Meanings {
    /// Number of groups of objects; 0 if there were too many rows to be kept.
    groups: usize,
    /// Whether there were walks through the heap.
    has_walks: bool,
    /// Spans: tick, bytes and nanoseconds of the last birth, objects and bytes.
    spans: Vec<(u64, u64, Option<u64>, u64, u64)>,
}

/// Objects of a trace that tells only how they are made.
struct Births {
    trace: Trace,
    /// The objects one by one, once they are asked for.
    objects: Mutex<Option<Arc<dyn Groups>>>,
    sums: Mutex<Sums>,
    groups: usize,
}

/// Rows for sums.
enum Sums {
    /// They are made at once when they are first asked for, and kept.
    ToMake(Box<ToMake>),
    Kept(Arc<Kept>),
    /// They are not worth keeping, or cannot be kept, and are made group by group whenever they are asked for.
    Passing,
}

/// Rows that are kept.
struct Kept {
    table: TableReader,
    fates: TableReader,
    spans: Vec<Span>,
    /// Number of groups of objects, among which the rows are divided.
    groups: usize,
}

/// What is known of sums that are to be made.
struct ToMake {
    lives: Weak<LifeTable>,
    contexts: Contexts,
    survival: Option<Arc<Survival>>,
    middle: u64,
}

/// What objects of a row have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Common {
    alike: Alike,
    is_in_first_half: bool,
    fate: Option<Fate>,
}

/// How many they are, their bytes, and the number and the birth of the first.
#[derive(Clone, Copy)]
struct Sum {
    objects: u64,
    bytes: u64,
    number: u64,
    birth: Moment,
}

/// Sums of some groups.
#[derive(Default)]
struct Part {
    sums: FxHashMap<Common, Sum>,
    spans: Vec<Span>,
}

/// The objects that a trace tells. Rows for sums are kept with its life table, once they were asked for.
pub fn keeping(population: Population, trace: &Trace, lives: &LifeTable) -> Population {
    let groups = population.groups.len();
    let to_make = ToMake {
        lives: lives.me.clone(),
        contexts: population.contexts.clone(),
        survival: population.survival.clone(),
        middle: middle(&population.end),
    };
    let (objects, sums) = (Arc::from(population.groups), Sums::ToMake(Box::new(to_make)));
    let (objects, sums) = (Mutex::new(Some(objects)), Mutex::new(sums));
    let births = Births { trace: trace.clone(), objects, sums, groups };
    Population { groups: Box::new(births), ..population }
}

/// The objects of a trace, if rows for sums are kept with its life table: then no events are read until single objects are asked for.
pub fn kept(lives: &LifeTable, source: &Source, reading: Reading) -> Option<Population> {
    let (trace, manifest) = (source.trace()?, lives.manifest()?);
    let Opened::Kept { kept, contexts, walks } = open(lives)? else { return None };
    let survival = match walks {
        Some(walks) => Some(Arc::new(fates::read_walks(walks, trace.gcs.len() as u64).ok()?)),
        None => None,
    };
    let groups = kept.groups;
    let sums = Mutex::new(Sums::Kept(Arc::new(kept)));
    Some(Population {
        groups: Box::new(Births { trace: trace.clone(), objects: Mutex::default(), sums, groups }),
        objects: manifest.objects,
        contexts: names::read_contexts(contexts, Contexts::default()).ok()?,
        types: source.types(),
        has_deaths: false,
        has_uses: false,
        survival,
        end: manifest.end(),
        lost: Lost::default(),
        warnings: warnings(source, reading),
    })
}

/// What a folder has.
enum Opened {
    Kept {
        kept: Kept,
        contexts: File,
        /// If there were some.
        walks: Option<File>,
    },
    TooMany,
}

/// Opens what is kept with a life table, if it is intact.
fn open(lives: &LifeTable) -> Option<Opened> {
    let ([rows, contexts, walks, of_rows], meanings) = added::open::<Meanings, 4>(lives, &ADDED)?;
    let Meanings { groups, has_walks, spans } = meanings;
    if groups == 0 {
        return Some(Opened::TooMany);
    }
    let span = |(tick, bytes, nanos, objects, made)| {
        let last = Moment { tick, bytes, nanos };
        Span { last, objects, bytes: made }
    };
    let spans = spans.into_iter().map(span).collect();
    let (table, fates) = (TableReader::open(rows).ok()?, TableReader::open(of_rows).ok()?);
    let kept = Kept { table, fates, spans, groups };
    // Rows that are kept and rows that are made do not go together: an error must not show in the midst of them.
    let is_whole = (0..kept.table.groups()).all(|group| kept.read_group(group, JOINED).is_ok());
    is_whole.then(|| Opened::Kept { kept, contexts, walks: Some(walks).filter(|_| has_walks) })
}

impl Births {
    fn objects(&self) -> io::Result<Arc<dyn Groups>> {
        let mut objects = lock(&self.objects);
        if let Some(objects) = &*objects {
            return Ok(Arc::clone(objects));
        }
        let read = births::read(&self.trace).map_err(io::Error::other)?;
        let (population, _) = read.ok_or_else(|| io::Error::other("the trace is another than before"))?;
        Ok(Arc::clone(objects.insert(Arc::from(population.groups))))
    }

    /// The rows that are kept, which are made now if they have not been.
    fn kept(&self) -> Option<Arc<Kept>> {
        let mut sums = lock(&self.sums);
        let to_make = match mem::replace(&mut *sums, Sums::Passing) {
            Sums::ToMake(to_make) => to_make,
            Sums::Passing => return None,
            Sums::Kept(kept) => {
                *sums = Sums::Kept(Arc::clone(&kept));
                return Some(kept);
            }
        };
        let lives = to_make.lives.upgrade()?;
        let made = match open(&lives) {
            // Another command was faster.
            Some(Opened::Kept { kept, .. }) => Ok(Some(kept)),
            Some(Opened::TooMany) => Ok(None),
            None => self.sum_and_keep(&to_make, &lives),
        };
        // Whoever reads the rows has the same error if it is one of the trace.
        let made = made.inspect_err(|error| lives.is_not_kept(WHAT, error));
        let kept = Arc::new(made.ok().flatten()?);
        *sums = Sums::Kept(Arc::clone(&kept));
        Some(kept)
    }

    /// Sums up all objects, and keeps the sums with the life table. None if there are too many rows, which is kept as well.
    fn sum_and_keep(&self, to_make: &ToMake, lives: &LifeTable) -> io::Result<Option<Kept>> {
        let Some(folder) = lives.folder() else { return Ok(None) };
        // Before the long work: where nothing can be written, rows are made group by group.
        let file = || folder::nameless(folder).or_else(|_| tempfile::tempfile());
        let files = [file()?, file()?, file()?, file()?];
        let all = match self.sum_up(to_make.middle) {
            Ok(all) => Some(all),
            Err(NotKept::TooMany) => None,
            Err(NotKept::Failed(error)) => return Err(error),
        };
        let groups = if all.is_some() { self.groups } else { 0 };
        let (made, kept) = to_make.keep(files, lives, all.unwrap_or_default(), groups)?;
        if let Err(error) = kept {
            lives.is_not_kept(WHAT, &error);
        }
        Ok(Some(made).filter(|_| groups > 0))
    }

    /// Sums up all objects.
    fn sum_up(&self, middle: u64) -> Result<Part, NotKept> {
        let objects = self.objects()?;
        let joined = objects.joined();
        // What several threads have come across counts more than once.
        let rows = AtomicUsize::new(0);
        let add = |part: &mut Part, group: usize| {
            let before = part.sums.len();
            part.add(&joined(group, JOINED)?, middle);
            let more = part.sums.len() - before;
            if rows.fetch_add(more, Ordering::Relaxed) + more > 2 * MOST { Err(NotKept::TooMany) } else { Ok(()) }
        };
        let (_, parts) = on_all_cores(self.groups, 1, Part::default, add)?;
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        parts.for_each(|part| all.merge(part));
        if all.sums.len() > MOST { Err(NotKept::TooMany) } else { Ok(all) }
    }
}

/// Why sums are not kept.
enum NotKept {
    TooMany,
    Failed(io::Error),
}

impl From<io::Error> for NotKept {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl Groups for Births {
    fn len(&self) -> usize {
        self.groups
    }

    fn may_have(&self, group: usize, tick: u64) -> io::Result<bool> {
        self.objects()?.may_have(group, tick)
    }

    fn range(&self, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
        self.objects()?.range(group, key)
    }

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        self.objects()?.read(group, columns)
    }

    /// Those that are kept differ from those that are made, group by group: it is decided once which are read.
    fn joined(&self) -> Joined<'_> {
        let kept = self.kept();
        Box::new(move |group, columns| match &kept {
            _ if columns.has_any(NEVER_JOINED) => self.read(group, columns),
            Some(kept) => kept.read(group, columns),
            None => (self.objects()?.joined())(group, columns),
        })
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        Ok(Vec::new())
    }
}

impl Part {
    fn add(&mut self, rows: &Rows, middle: u64) {
        for row in 0..rows.len {
            let birth =
                Moment { tick: rows.birth_tick[row], bytes: rows.birth_bytes[row], nanos: rows.birth_nanos[row] };
            let is_in_first_half = birth.tick <= middle;
            let common = Common { alike: Alike::of(rows, row), is_in_first_half, fate: rows.fate[row] };
            let sum = Sum { objects: rows.objects(row), bytes: rows.size[row], number: rows.number[row], birth };
            self.sums.entry(common).and_modify(|there| there.add(&sum)).or_insert(sum);
        }
        self.spans.extend(rows.spans.iter().flatten());
    }

    fn merge(&mut self, other: Self) {
        for (common, sum) in other.sums {
            self.sums.entry(common).and_modify(|there| there.add(&sum)).or_insert(sum);
        }
        self.spans.extend(other.spans);
    }
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
        if other.number < self.number {
            (self.number, self.birth) = (other.number, other.birth);
        }
    }
}

impl ToMake {
    /// Writes what was added up, and keeps it with the life table; the inner error is that of the latter.
    fn keep(
        &self,
        [rows, of_rows, contexts, walks]: [File; 4],
        lives: &LifeTable,
        all: Part,
        groups: usize,
    ) -> io::Result<(Kept, io::Result<()>)> {
        let Part { sums, spans } = all;
        let [rows, of_rows] = write([rows, of_rows], sums)?;
        let contexts = names::contexts(contexts, &self.contexts, 0)?;
        let walks = fates::write_walks(walks, self.survival.as_deref().unwrap_or(&Survival::default()))?;
        let told = |span: &Span| (span.last.tick, span.last.bytes, span.last.nanos, span.objects, span.bytes);
        let has_walks = self.survival.is_some();
        let meanings = Meanings { groups, has_walks, spans: spans.iter().map(told).collect() };
        let outcome = added::keep(lives, &ADDED, [&rows, &contexts, &walks, &of_rows], &meanings);
        let (table, fates) = (TableReader::open(rows.file)?, TableReader::open(of_rows.file)?);
        Ok((Kept { table, fates, spans, groups }, outcome))
    }
}

/// Writes rows, and what walks through the heap say of them.
fn write([rows, of_rows]: [File; 2], sums: FxHashMap<Common, Sum>) -> io::Result<[Written; 2]> {
    let mut sums: Vec<(Common, Sum)> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(_, sum)| sum.number);
    let (mut writer, mut of_walks) =
        (TableWriter::<table::Rows>::new(rows), TableWriter::<tables::fates::Rows>::new(of_rows));
    for sums in sums.chunks(GROUP) {
        for (Common { alike: Alike { class, site, context, thread, kind }, fate, .. }, sum) in sums {
            of_walks.push(fates::row(sum.number, *fate));
            writer.push(table::Row {
                number: sum.number.cast_signed(),
                class: class.0.into(),
                kind: Word(kind.record_kind().text()),
                objects: sum.objects.cast_signed(),
                size: sum.bytes.cast_signed(),
                site: site.0.into(),
                context: context.0.into(),
                thread: thread.0.into(),
                birth_tick: sum.birth.tick.cast_signed(),
                birth_bytes: sum.birth.bytes.cast_signed(),
                birth_nanos: sum.birth.nanos.map(u64::cast_signed),
            });
        }
        writer.end_group();
        of_walks.end_group();
    }
    Ok([writer.finish()?, of_walks.finish()?])
}

impl Kept {
    /// The rows that stand in for those of a group, and all spans in the first.
    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        let mut rows = Rows::default();
        for group in (group..self.table.groups()).step_by(self.groups.max(1)) {
            rows.append(self.read_group(group, columns)?);
        }
        untold(&mut rows, columns);
        rows.spans = Some(if group == 0 { self.spans.clone() } else { Vec::new() });
        Ok(rows)
    }

    fn read_group(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        let mut rows = stored(&self.table, group, columns.without(UNTOLD))?;
        rows.counts = GroupReader { table: &self.table, group, columns }.numbers("objects", |count| count)?;
        if columns.has(Columns::FATE) {
            rows.fate = fates::read(&self.fates, group, rows.len)?;
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use et_format::event::{Event, ObjectHash};
    use et_names::{EventSet, SiteId};
    use et_reader::model::ContextId;
    use et_reader::record::{AllocKind, ThreadId};
    use et_reader::source::TraceSource;
    use et_reader::testing::{TraceBuilder, class, table};
    use et_reader::types::TypeId;

    use super::*;
    use crate::attach;
    use crate::population::observe_rows;

    /// Rows of one object each, in groups.
    struct Single(Vec<Rows>);

    impl Single {
        /// Of so many classes, which come in turn.
        fn of(groups: usize, each: u32, classes: u32) -> Self {
            let mut next = 0;
            let group = |_| {
                let mut rows = Rows { len: each as usize, ..Rows::default() };
                for _ in 0..each {
                    let number = u64::from(next);
                    let birth = Moment { tick: 16 * number, bytes: 16 * number + 16, nanos: Some(number / 100) };
                    let fate = Fate {
                        survived: next % 2,
                        survived_at_most: 1,
                        first: 0,
                        seen: (next % 2 == 1).then_some(0),
                        missed: None,
                        is_uncertain: next % 5 == 0,
                    };
                    rows.number.push(number);
                    rows.class.push(TypeId(next * 5 % classes));
                    rows.kind.push(if next % 3 == 0 { AllocKind::Vm } else { AllocKind::New });
                    rows.size.push(8 + u64::from(next % 4));
                    rows.site.push(SiteId(next % 2));
                    rows.context.push(ContextId(next % 3));
                    rows.thread.push(ThreadId(next % 2));
                    rows.birth_tick.push(birth.tick);
                    rows.birth_bytes.push(birth.bytes);
                    rows.birth_nanos.push(birth.nanos);
                    rows.fate.push(Some(fate).filter(|_| next % 11 != 0));
                    rows.spans.get_or_insert_default().push(Span { last: birth, objects: 1, bytes: 16 });
                    next += 1;
                }
                rows
            };
            Self((0..groups).map(group).collect())
        }
    }

    impl Groups for Single {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn read(&self, group: usize, _: Columns) -> io::Result<Rows> {
            Ok(self.0[group].clone())
        }

        fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
            Ok(Vec::new())
        }
    }

    /// What all rows together say: objects, bytes, and the first of the kind; and all spans.
    type Said = (BTreeMap<String, (u64, u64, u64, Moment)>, Vec<String>);

    fn said(groups: &dyn Groups, middle: u64) -> Said {
        let (mut sums, mut spans) = (BTreeMap::new(), Vec::new());
        let joined = groups.joined();
        for group in 0..groups.len() {
            let rows = joined(group, JOINED).unwrap();
            for row in 0..rows.len {
                let birth =
                    Moment { tick: rows.birth_tick[row], bytes: rows.birth_bytes[row], nanos: rows.birth_nanos[row] };
                let key = format!("{:?} {} {:?}", Alike::of(&rows, row), birth.tick <= middle, rows.fate[row]);
                let sum = sums.entry(key).or_insert((0, 0, u64::MAX, birth));
                *sum = (sum.0 + rows.objects(row), sum.1 + rows.size[row], sum.2, sum.3);
                if rows.number[row] < sum.2 {
                    (sum.2, sum.3) = (rows.number[row], birth);
                }
            }
            spans.extend(rows.spans.into_iter().flatten().map(|span| format!("{span:?}")));
        }
        spans.sort_unstable();
        (sums, spans)
    }

    /// A trace of one object, and its life table, which can keep results.
    fn opened(path: &Path) -> (Source, Arc<LifeTable>, Population) {
        let options = [("events".to_owned(), "alloc".to_owned())].into();
        let mut builder = TraceBuilder::with_options(Default::default(), options);
        builder.names(&table("app.jar", 5_000_000, &[class("A", "java/lang/Object", &["static main ()V"])]));
        builder.loaded_classes(&[(0x12, 16, "LA;")]).first_thread(1, "main", Vec::new());
        let new = Event::New { site: SiteId(0), object: ObjectHash(7), class: ObjectHash(0x12), known: false };
        std::fs::write(path, builder.events(1, 1, &[new]).finish()).unwrap();
        let mut trace = TraceSource::open(path).unwrap();
        trace.events = EventSet::ALLOC;
        let lives = attach(&mut trace, None).unwrap();
        let source = Source::from(trace);
        let (population, _) = observe_rows(&source, Some(&lives), Reading::default()).unwrap();
        assert!(lives.manifest().is_some());
        (source, lives, population)
    }

    #[test]
    fn sums_are_those_of_all_groups() {
        // Few classes; more rows than are kept, which shows when those of all threads are there, or before.
        for (classes, each, is_kept) in [(7, 300, true), (1999, 500, false), (100_000, 1000, false)] {
            let folder = tempfile::tempdir().unwrap();
            let (source, lives, mut population) = opened(&folder.path().join("a.ettrace"));
            let groups = Single::of(5, each, classes);
            population.end = Moment { tick: 16 * 5 * u64::from(each), ..population.end };
            let expected = said(&groups, middle(&population.end));
            population.groups = Box::new(groups);
            let end = population.end;
            let births = keeping(population, source.trace().unwrap(), &lives);
            for _ in 0..2 {
                assert_eq!(said(&*births.groups, middle(&end)), expected, "{classes} classes");
            }
            match open(&lives).unwrap() {
                Opened::Kept { kept, .. } => {
                    assert!(is_kept && kept.table.groups() > 1 && kept.groups == 5, "{} groups", kept.table.groups());
                    let rows: usize = (0..kept.table.groups()).map(|group| kept.table.rows_of(group)).sum();
                    assert_eq!(rows, expected.0.len());
                }
                Opened::TooMany => assert!(!is_kept, "{} rows", expected.0.len()),
            }
            assert_eq!(lives.trouble(), None);
            assert_eq!(kept(&lives, &source, Reading::default()).is_some(), is_kept);
        }
    }

    /// Where the folder cannot be written to, sums serve this process only.
    #[test]
    fn sums_that_cannot_be_kept_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let (source, lives, mut population) = opened(&folder.path().join("a.ettrace"));
        let groups = Single::of(3, 50, 3);
        let expected = said(&groups, middle(&population.end));
        population.groups = Box::new(groups);
        std::fs::remove_dir_all(lives.folder().unwrap()).unwrap();
        let end = population.end;
        let births = keeping(population, source.trace().unwrap(), &lives);
        assert_eq!(said(&*births.groups, middle(&end)), expected);
        assert!(
            lives.trouble().is_some_and(|trouble| trouble.starts_with("no sums of births are kept")),
            "{:?}",
            lives.trouble()
        );
    }
}
