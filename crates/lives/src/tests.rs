use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use et_columns::TableReader;
use et_format::ClassRecord;
use et_format::event::{Event, ObjectHash};
use et_names::{MethodId, SiteId};
use et_reader::population::{Columns, Rows};
use et_reader::record::{Clock, Record};
use et_reader::source::{Deaths, Reading, Source, TraceSource};
use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};
use et_system::files::lives_of;

use super::*;

/// A run of a real program, without the names of the JDK.
const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

const MAIN: MethodId = MethodId(5_000_000);
const MAKE: MethodId = MethodId(5_000_001);
const BOX: u32 = 0x15;

/// The whole content of a trace as text, including deaths and holds.
fn told(trace: &Path, lives: Option<&Path>) -> (String, Option<Arc<LifeTable>>) {
    let mut trace = TraceSource::open(trace).unwrap();
    let table = lives.and_then(|folder| attach(&mut trace, Some(folder)));
    let (source, mut text) = (Source::from(trace), Vec::new());
    let reading = Reading { deaths: Deaths::Trace, clock: Clock::Methods, ..Reading::default() };
    et_reader::text_writer::write_with(
        &source,
        et_reader::text::Dialect::Replayer,
        reading,
        et_reader::text::Holders::Always,
        &mut text,
    )
    .unwrap();
    (in_order(&String::from_utf8(text).unwrap()), table)
}

/// The order of deaths at one step is not defined.
fn in_order(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.chunk_by_mut(|a, b| a.starts_with("D ") && b.starts_with("D ")).for_each(<[&str]>::sort);
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

/// All rows by number, with the methods of their contexts: contexts are numbered as they are met.
pub(crate) fn rows(population: &et_reader::population::Population) -> Vec<String> {
    let mut all = Vec::new();
    for group in 0..population.groups.len() {
        let rows = population.groups.read(group, Columns::ALL).unwrap();
        for row in 0..rows.len {
            let mut one = rows.arranged(&et_reader::population::Rows::default(), &[(false, row..row + 1)]);
            let contexts = [one.context.pop(), one.death_context.pop().flatten()];
            let methods =
                contexts.map(|context| context.map(|context| population.contexts.methods(context).collect::<Vec<_>>()));
            all.push((one.number[0], format!("{one:?} {methods:?}")));
        }
    }
    all.sort_unstable();
    all.into_iter().map(|(_, row)| row).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn deaths_are_the_same_worked_out_kept_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, lives) = (folder.path().join("a.ettrace"), folder.path().join("a.ettrace.lives"));
    fs::copy(REAL, &trace).unwrap();
    let (plain, _) = told(&trace, None);
    assert!(plain.lines().filter(|line| line.starts_with("D ")).count() > 100, "there is something to compare");
    let (made, table) = told(&trace, Some(&lives));
    assert_eq!(table.unwrap().trouble(), None);
    assert!(made == plain);
    assert_eq!(names(folder.path()), ["a.ettrace", "a.ettrace.lives"], "nothing else is left behind");
    let before = fs::read(lives.join(MANIFEST)).unwrap();
    let (read, table) = told(&trace, Some(&lives));
    assert!(table.unwrap().manifest().is_some());
    assert!(read == plain);
    assert_eq!(fs::read(lives.join(MANIFEST)).unwrap(), before, "it was not made again");
    assert_eq!(
        names(&lives),
        [stamp::CHECKED, CLASSES, CLEARINGS, CONTEXTS, HELD, MANIFEST, METHODS, OBJECTS, SITES, THREADS]
            .map(str::to_owned)
    );
}

#[test]
fn a_table_that_is_damaged_or_of_another_trace_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, lives) = (folder.path().join("a.ettrace"), folder.path().join("lives"));
    fs::copy(REAL, &trace).unwrap();
    let (plain, _) = told(&trace, Some(&lives));
    let objects = lives.join(OBJECTS);
    let good = fs::read(&objects).unwrap();
    let mut damages: Vec<Vec<u8>> = [4, good.len() / 3, good.len() / 2, good.len() - 5]
        .into_iter()
        .map(|at| {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            bad
        })
        .collect();
    damages.extend([Vec::new(), good[..good.len() / 2].to_vec()]);
    for bad in damages {
        fs::write(&objects, bad).unwrap();
        let (read, table) = told(&trace, Some(&lives));
        assert!(read == plain);
        assert_eq!(table.unwrap().trouble(), None);
        assert!(fs::read(&objects).unwrap() == good, "it is whole again");
    }
    for bad in ["", "{}", "{\"format\": \"Elephant Tracks life table\""] {
        fs::write(lives.join(MANIFEST), bad).unwrap();
        let (read, table) = told(&trace, Some(&lives));
        assert!(read == plain);
        let is_ours = bad.contains("Elephant");
        assert_eq!(table.unwrap().trouble().is_none(), is_ours, "{bad:?}");
        if !is_ours {
            assert_eq!(fs::read_to_string(lives.join(MANIFEST)).unwrap(), bad, "what is not ours stays");
        }
    }
    // Another trace in place of the original.
    let mut other = boxes();
    fs::write(&trace, other.finish()).unwrap();
    let (plain, _) = told(&trace, None);
    let (made, table) = told(&trace, Some(&lives));
    assert!(made == plain);
    assert_eq!(table.unwrap().manifest().unwrap().objects, 6);
}

#[test]
fn a_table_with_other_columns_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, lives) = (folder.path().join("a.ettrace"), folder.path().join("lives"));
    fs::copy(REAL, &trace).unwrap();
    told(&trace, Some(&lives));
    let manifest = fs::read_to_string(lives.join(MANIFEST)).unwrap();
    let columns = format!("\"columns\":\"{:016x}\"", tables::schemas(&tables::ALL));
    for other in ["\"columns\":\"0123456789abcdef\"", "\"before\":\"there was such a hash\""] {
        let older = manifest.replace(": ", ":").replace(&columns, other);
        assert!(older.contains(other), "{older}");
        fs::write(lives.join(MANIFEST), older).unwrap();
        told(&trace, Some(&lives));
        assert_eq!(fs::read_to_string(lives.join(MANIFEST)).unwrap(), manifest);
    }
}

#[test]
fn what_is_no_life_table_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.ettrace");
    fs::copy(REAL, &trace).unwrap();
    let (plain, _) = told(&trace, None);
    let mine = folder.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("thesis.tex"), "").unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [&mine, &file, &folder.path().join("no/such/folder")] {
        let (read, table) = told(&trace, Some(place));
        assert!(read == plain, "reading goes on");
        let trouble = table.unwrap().trouble().unwrap();
        assert!(trouble.contains(&place.display().to_string()), "{trouble}");
    }
    assert_eq!(names(&mine), ["thesis.tex"]);
    assert_eq!(names(folder.path()), ["a.ettrace", "file", "mine"]);
}

#[test]
fn files_of_others_in_the_folder_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, lives) = (folder.path().join("a.ettrace"), folder.path().join("lives"));
    fs::copy(REAL, &trace).unwrap();
    told(&trace, Some(&lives));
    fs::write(lives.join("notes.txt"), "mine").unwrap();
    // It belongs to the trace and is used.
    assert_eq!(told(&trace, Some(&lives)).1.unwrap().trouble(), None);
    fs::write(&trace, boxes().finish()).unwrap();
    let (plain, _) = told(&trace, None);
    let (read, table) = told(&trace, Some(&lives));
    assert!(read == plain);
    let trouble = table.unwrap().trouble().unwrap();
    assert!(trouble.contains("does not match the trace and contains other files"), "{trouble}");
    assert_eq!(fs::read_to_string(lives.join("notes.txt")).unwrap(), "mine");
    fs::remove_file(lives.join("notes.txt")).unwrap();
    assert_eq!(told(&trace, Some(&lives)).1.unwrap().manifest().unwrap().objects, 6);
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, there) = (folder.path().join("a.ettrace"), folder.path().join("there"));
    let link = lives_of(&trace);
    fs::copy(REAL, &trace).unwrap();
    fs::create_dir(&there).unwrap();
    std::os::unix::fs::symlink(&there, &link).unwrap();
    for _ in 0..2 {
        assert_eq!(told(&trace, Some(&link)).1.unwrap().trouble(), None);
        assert!(link.is_symlink() && there.join(OBJECTS).is_file());
        fs::write(there.join(OBJECTS), "damaged").unwrap();
    }
    fs::remove_dir_all(&there).unwrap();
    assert!(told(&trace, Some(&link)).1.unwrap().trouble().unwrap().contains("dangling link"));
}

/// A trace with two blocks of events and its table, and the offset of a byte in the second block.
fn with_table(folder: &Path) -> (PathBuf, usize) {
    let path = folder.join("a.ettrace");
    let mut builder = boxes();
    let before = builder.without_end().len();
    builder.events(1, 9, &[Event::Exit { method: MAIN }]);
    fs::write(&path, builder.finish()).unwrap();
    told(&path, Some(&lives_of(&path)));
    (path, before + 40)
}

/// Results computed from a trace are not used after it has lost something: neither when events are damaged nor when
/// their order is.
#[test]
fn a_trace_that_was_damaged_since_has_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let (path, at) = with_table(folder.path());
    let whole = fs::read(&path).unwrap();
    let attached = || attach(&mut TraceSource::open(&path).unwrap(), None).and_then(|table| table.manifest());
    let manifest = attached();
    assert!(manifest.is_some());
    // The ticket is in the header, which has no checksum; the hash of the headers no longer matches.
    for damaged in [at, at - 8] {
        let mut bytes = whole.clone();
        bytes[damaged] ^= 0xff;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(attached(), None, "byte {damaged}");
    }
    // Repaired and copied: it is checked again and accepted.
    fs::write(&path, &whole).unwrap();
    assert_eq!(attached(), manifest);
    fs::remove_file(&path).unwrap();
    fs::write(&path, &whole).unwrap();
    assert_eq!(attached(), manifest);
    assert_eq!(names(folder.path()), ["a.ettrace", "a.ettrace.lives"]);
}

/// An unchanged file is not read for a check.
#[test]
fn a_trace_is_checked_once() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = with_table(folder.path());
    let lives = lives_of(&path);
    let checks = || {
        let mut trace = TraceSource::open(&path).unwrap();
        let watcher = et_reader::watch::Watcher::watched();
        trace.file.watch(&watcher);
        attach(&mut trace, None).unwrap();
        watcher.stage().is_some_and(|(stage, _)| stage.what == "checking the trace")
    };
    assert!(!checks(), "all of it was read when the table was made");
    fs::remove_file(lives.join(stamp::CHECKED)).unwrap();
    assert!(checks() && !checks());
    fs::write(&path, fs::read(&path).unwrap()).unwrap();
    assert!(checks() && !checks());
}

/// A table belongs to an intact trace: if the trace loses something later, its steps differ.
#[test]
fn a_trace_that_is_damaged_while_it_is_read_is_an_error() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    let (path, at) = with_table(folder.path());
    let mut trace = TraceSource::open(&path).unwrap();
    attach(&mut trace, None).unwrap();
    let byte = fs::read(&path).unwrap()[at] ^ 0xff;
    File::options().write(true).open(&path).unwrap().write_all_at(&[byte], at as u64).unwrap();
    let read = Source::from(trace).for_each(Reading::default(), |_, _| ControlFlow::Continue(()));
    let error = read.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the life table: events of the trace were damaged since it was made"),
        "{error}"
    );
}

#[test]
fn what_is_read_in_part_leaves_a_table_only_if_it_needed_no_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::copy(REAL, &path).unwrap();
    let mut trace = TraceSource::open(&path).unwrap();
    let table = attach(&mut trace, None).unwrap();
    let source = Source::from(trace);
    let mut left = 500;
    let stop = |_: &et_reader::record::Record, _: &et_reader::source::At<'_>| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    source.for_each(Reading::default(), stop).unwrap();
    assert!(table.manifest().is_some(), "it was made before the first record");
    assert_eq!(names(folder.path()), ["a.ettrace", "a.ettrace.lives"]);
    let mut trace = TraceSource::open(&path).unwrap();
    // Rows with times of another clock are made from records.
    let table = attach_passing(&mut trace, Clock::MethodsAndExceptions);
    let reading = Reading { clock: Clock::MethodsAndExceptions, ..Reading::default() };
    Source::from(trace).for_each(reading, |_, _| ControlFlow::Break(())).unwrap();
    assert!(table.earlier().is_none());
}

#[test]
fn a_trace_that_is_cut_off_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::write(&path, boxes().without_end()).unwrap();
    assert!(attach(&mut TraceSource::open(&path).unwrap(), None).is_none());
}

/// Two threads, and an object for each way to die.
fn boxes() -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    let app = class("shop/Box", "java/lang/Object", &["static main ()V", "make ()V"]);
    builder.names(&table(
        "shop.jar",
        5_000_000,
        &[app
            .with_fields(&["next Lshop/Box;", "static kept Lshop/Box;"])
            .with_sites(&[(0, "Lshop/Box;", 21), (1, "Lshop/Box;", 33)])],
    ));
    builder.class(&ClassRecord {
        class: ObjectHash(BOX),
        instance_size: 16,
        signature: "Lshop/Box;".into(),
        ..ClassRecord::default()
    });
    let new = |site: u32, object: u32| Event::New {
        site: SiteId(5_000_000 + site),
        object: ObjectHash(object),
        class: ObjectHash(BOX),
        known: false,
    };
    let keep = |object: u32| Event::PutStatic { field: et_names::FieldRefId(5_000_001), target: ObjectHash(object) };
    builder.first_thread(1, "main", Vec::new()).first_thread(2, "worker", Vec::new());
    builder.events(
        1,
        1,
        &[
            Event::Entry { method: MAIN },
            Event::Entry { method: MAKE },
            // Dies with its frame.
            new(1, 0xa1),
            // Escapes the frame, and dies when the static field is overwritten.
            new(1, 0xa2),
            keep(0xa2),
            Event::Used { object: ObjectHash(0xa1) },
            Event::Exit { method: MAKE },
            // Alive at the end.
            new(0, 0xa3),
            keep(0xa3),
        ],
    );
    builder.events(
        2,
        2,
        &[
            Event::Entry { method: MAIN },
            // A mention by another thread.
            Event::EntryOn { method: MAKE, receiver: ObjectHash(0xa3) },
            // Dies in the frame that allocated it.
            new(1, 0xa4),
            Event::Exit { method: MAKE },
            new(0, 0xa5),
            keep(0xa5),
        ],
    );
    builder
}

#[test]
fn rows_tell_what_became_of_each_object() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::write(&path, boxes().finish()).unwrap();
    let (text, table) = told(&path, Some(&lives_of(&path)));
    let table = table.unwrap();
    assert_eq!(table.trouble(), None);
    let objects = TableReader::open(table.open(OBJECTS).unwrap()).unwrap();
    let column = |name: &str| objects.numbers(0, name).unwrap();
    let rows: Vec<_> = (0..objects.rows() as usize)
        .map(|row| {
            let number = |name: &str| column(name)[row].map_or("-".to_owned(), |number| format!("{number:x}"));
            let flag = |name: &str| match objects.flags(0, name).unwrap()[row] {
                Some(true) => "yes",
                Some(false) => "no",
                None => "-",
            };
            let by = objects.texts(0, "death_kind").unwrap()[row].clone().unwrap_or("-".into());
            format!(
                "{} #{} site {} in {} thread {} born {} used {} died {} by {by} in {} escaped {} {}",
                number("object"),
                number("number"),
                number("site"),
                number("context"),
                number("thread"),
                number("birth_tick"),
                number("last_use_tick"),
                number("death_tick"),
                number("death_context"),
                flag("escaped_thread"),
                flag("escaped_frame"),
            )
        })
        .collect();
    insta::assert_snapshot!(format!("{text}\n{}", rows.join("\n")));
    // The tree of contexts leads back to the methods.
    let contexts = TableReader::open(table.open(CONTEXTS).unwrap()).unwrap();
    assert_eq!(contexts.numbers(0, "caller").unwrap(), [0, 0, 1].map(Some));
    let methods = TableReader::open(table.open(METHODS).unwrap()).unwrap();
    assert_eq!(methods.texts(0, "name").unwrap()[1].as_deref(), Some("shop.Box.make"));
}

#[test]
fn what_is_kept_with_it_is_believed_only_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::write(&path, boxes().finish()).unwrap();
    let table = told(&path, Some(&lives_of(&path))).1.unwrap();
    assert_eq!(table.kept("answer"), None);
    table.keep("answer", b"forty\ntwo");
    assert_eq!(table.kept("answer").as_deref(), Some(&b"forty\ntwo"[..]));
    let file = table.folder().unwrap().join("answer");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(table.kept("answer"), None);
    // Belongs to another table in the same folder.
    table.keep("answer", b"forty-two");
    let file = table.folder().unwrap().join(MANIFEST);
    let text = fs::read_to_string(&file).unwrap().replace("\"callsWithoutContext\": 0", "\"callsWithoutContext\": 1");
    fs::write(&file, text).unwrap();
    let table = told(&path, Some(&lives_of(&path))).1.unwrap();
    assert_eq!((table.manifest().unwrap().calls_without_context, table.kept("answer")), (1, None));
}

#[test]
fn two_that_make_it_at_once_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::copy(REAL, &path).unwrap();
    let plain = told(&path, None).0;
    let lives: PathBuf = lives_of(&path);
    for _ in 0..3 {
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..4).map(|_| scope.spawn(|| told(&path, Some(&lives)))).collect();
            for reader in readers {
                let (text, table) = reader.join().unwrap();
                assert!(text == plain);
                assert_eq!(table.unwrap().trouble(), None);
            }
        });
        assert_eq!(names(folder.path()), ["a.ettrace", "a.ettrace.lives"]);
        // The following have to move something away first.
        fs::write(lives.join(OBJECTS), "").unwrap();
    }
}

/// The deaths of the first reading are those of the second, and nothing is left behind.
#[test]
fn a_table_that_is_not_kept_serves_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::copy(REAL, &path).unwrap();
    let plain = told(&path, None).0;
    for clock in [Clock::Methods, Clock::MethodsAndExceptions] {
        let mut trace = TraceSource::open(&path).unwrap();
        let table = attach_passing(&mut trace, clock);
        let (source, reading) = (Source::from(trace), Reading { clock, ..Reading::default() });
        let without = population(&source, None, reading).unwrap();
        assert!(table.earlier().is_some(), "made on the way");
        let first = population(&source, Some(&table), reading).unwrap();
        let ending = source.for_each(reading, |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(ending.cost.unwrap().steps, 0, "no deaths are computed");
        let second = population(&source, Some(&table), reading).unwrap();
        for other in [&first, &second] {
            assert_eq!((other.objects, other.end), (without.objects, without.end));
            assert_eq!(other.groups.held_by_stacks().unwrap(), without.groups.held_by_stacks().unwrap());
            assert_eq!(rows(other), rows(&without));
        }
        let mut text = Vec::new();
        let holders = et_reader::text::Holders::Always;
        let reading = Reading { clock: Clock::Methods, ..reading };
        let dialect = et_reader::text::Dialect::Replayer;
        et_reader::text_writer::write_with(&source, dialect, reading, holders, &mut text).unwrap();
        assert!(in_order(&String::from_utf8(text).unwrap()) == plain);
        assert_eq!((table.manifest(), table.trouble(), table.folder()), (None, None, None));
    }
    assert_eq!(names(folder.path()), ["a.ettrace"]);
}

/// What rows do not tell is the same from one reading and from the next, with a table and without.
#[test]
fn what_is_observed_does_not_depend_on_who_computes_deaths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::copy(REAL, &path).unwrap();
    let plain = observe(&TraceSource::open(&path).unwrap().into(), None, Reading::default(), |_, _| {}).unwrap().1;
    assert!(plain.totals.of('D') > 0 && !plain.entered.is_empty() && !plain.threads.is_empty());
    let mut records = 0;
    for _ in 0..2 {
        let mut trace = TraceSource::open(&path).unwrap();
        let table = attach(&mut trace, None).unwrap();
        let see = |_: &Record, _: &et_reader::batch::At<'_>| records += 1;
        let (population, observed) = observe(&trace.into(), Some(&table), Reading::default(), see).unwrap();
        assert_eq!(observed, plain);
        assert!(table.manifest().is_some_and(|manifest| manifest.objects == population.objects));
    }
    assert_eq!(records, 2 * plain.totals.sum(), "each record is seen once in a reading");
    let reading = Reading { deaths: Deaths::None, ..Reading::default() };
    let source = TraceSource::open(&path).unwrap().into();
    let (population, without) = observe(&source, None, reading, |_, _| {}).unwrap();
    assert!(!population.has_deaths && without.held_by_locals.is_empty());
    assert_eq!((&without.entered, &without.threads), (&plain.entered, &plain.threads));
    // Rows of births are the same but for what comes later.
    let (births, of_births) = births(&source, reading).unwrap();
    assert_eq!((&of_births, births.end, births.objects), (&without, population.end, population.objects));
    assert!(births.contexts.iter().eq(population.contexts.iter()));
    for group in 0..births.groups.len() {
        let [one, two] = [&births, &population].map(|of| {
            let rows = of.groups.read(group, Columns::ALL).unwrap();
            Rows { last_use_tick: Vec::new(), escaped_thread: Vec::new(), escaped_frame: Vec::new(), ..rows }
        });
        assert_eq!(format!("{one:?}"), format!("{two:?}"));
    }
    let rows = births.groups.read(0, Columns::ALL).unwrap();
    assert!(rows.len > 0 && rows.escaped_thread.iter().chain(&rows.escaped_frame).all(Option::is_none));
}
