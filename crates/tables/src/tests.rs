use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use et_lives::LifeTable;
use et_reader::lifetimes::Lives;
use et_reader::record::{Clock, Record, Totals};
use et_reader::source::{Deaths, Reading, Source, TraceSource};
use et_reader::text::TextTrace;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;

use crate::*;

/// A run of a real program, without the names of the JDK.
const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

type Rows = Vec<BTreeMap<String, Field>>;

/// A folder with the tables of a trace.
struct Converted {
    folder: tempfile::TempDir,
    run: String,
}

impl Converted {
    fn of(source: &Source, reading: Reading, options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = convert(source, &folder.path().join("tables"), reading, options).unwrap().run;
        Self { folder, run }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("tables")
    }

    fn rows(&self, table: &str) -> Rows {
        let file = format!("{table}/run={}/part-00000.parquet", self.run);
        let reader = SerializedFileReader::new(fs::File::open(self.path().join(file)).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().into_columns().into_iter().collect()).collect()
    }
}

fn convert(
    source: &Source,
    folder: &Path,
    reading: Reading,
    options: Options,
) -> Result<crate::Converted, ConvertError> {
    convert_with(source, None, folder, reading, options)
}

fn convert_with(
    source: &Source,
    lives: Option<&LifeTable>,
    folder: &Path,
    reading: Reading,
    options: Options,
) -> Result<crate::Converted, ConvertError> {
    let needs_objects = options.wanted.need_objects();
    let converter = Converter::begin(source, folder, options)?;
    let population = needs_objects.then(|| et_lives::population(source, lives, reading).unwrap());
    converter.convert(source, population, reading)
}

/// Without a life table that is kept, deaths are computed for the rows of objects, and are known when records are read.
#[test]
fn deaths_that_are_known_from_the_objects_give_the_same_tables() {
    // With this clock, rows are made from records: those made by blocks have the same deaths in another order.
    let clock = Clock::MethodsAndExceptions;
    let reading = Reading { clock, ..Reading::default() };
    let plain = Converted::of(&Source::open(REAL.as_ref(), None).unwrap(), reading, Options::default());
    let mut trace = TraceSource::open(REAL.as_ref()).unwrap();
    let lives = et_lives::attach_passing(&mut trace, clock);
    let (source, folder) = (Source::from(trace), tempfile::tempdir().unwrap());
    let place = folder.path().join("tables");
    let run = convert_with(&source, Some(&lives), &place, reading, Options::default()).unwrap().run;
    assert!(lives.earlier().is_some(), "they are known");
    let other = Converted { folder, run };
    assert_eq!(other.run, plain.run);
    for table in tables::ALL.iter().map(|table| table.name) {
        assert!(other.rows(table) == plain.rows(table), "{table}");
    }
}

fn long(row: &BTreeMap<String, Field>, column: &str) -> Option<i64> {
    match &row[column] {
        Field::Long(value) => Some(*value),
        Field::Null => None,
        other => panic!("{column}: {other:?}"),
    }
}

fn word<'a>(row: &'a BTreeMap<String, Field>, column: &str) -> &'a str {
    match &row[column] {
        Field::Str(value) => value,
        Field::Null => "",
        other => panic!("{column}: {other:?}"),
    }
}

fn totals(source: &Source, reading: Reading) -> Totals {
    let mut totals = Totals::default();
    let count = |record: &Record, _: &et_reader::source::At<'_>| {
        totals.count(record);
        ControlFlow::Continue(())
    };
    source.for_each(reading, count).unwrap();
    totals
}

/// Compares the number of rows with the number of records of each letter.
fn counts_fit(converted: &Converted, totals: &Totals) {
    let letters = |letters: &str| letters.chars().map(|letter| totals.of(letter)).sum::<u64>() as usize;
    let (objects, calls) = (converted.rows("objects"), converted.rows("calls"));
    let exceptions = converted.rows("exceptions");
    assert_eq!(objects.len(), letters("AINPV"));
    for letter in ["A", "I", "N", "P", "V"] {
        assert_eq!(objects.iter().filter(|row| word(row, "kind") == letter).count(), letters(letter));
    }
    assert_eq!(objects.iter().filter(|row| long(row, "death_tick").is_some()).count(), letters("D"));
    assert_eq!(converted.rows("updates").len(), letters("U"));
    assert_eq!(calls.len(), letters("M"));
    assert_eq!(calls.iter().filter(|row| word(row, "left_by") == "E").count(), letters("E"));
    assert_eq!(calls.iter().filter(|row| word(row, "left_by") == "X").count(), letters("X"));
    assert_eq!(exceptions.len(), letters("T"));
    assert_eq!(exceptions.iter().filter(|row| word(row, "ended") == "caught").count(), letters("H"));
    let sum = |rows: &Rows, column| rows.iter().filter_map(|row| long(row, column)).sum::<i64>();
    let made = letters("ANPV") as i64;
    assert_eq!(sum(&converted.rows("allocations_by_second"), "objects"), made);
    let bytes = objects.iter().filter(|row| word(row, "kind") != "I").filter_map(|row| long(row, "size")).sum::<i64>();
    assert_eq!(sum(&converted.rows("allocations_by_second"), "bytes"), bytes);
    let trace = &converted.rows("trace")[0];
    assert_eq!(long(trace, "records"), Some(totals.sum() as i64));
    assert_eq!(long(trace, "end_tick"), Some(letters("MEX") as i64));
    assert_eq!(long(trace, "end_bytes"), Some(bytes));
    // Everything that rows refer to must have a row of its own.
    for (of, column, table) in [
        ("objects", "class", "classes"),
        ("objects", "site", "sites"),
        ("objects", "context", "contexts"),
        ("objects", "thread", "threads"),
        ("calls", "thread", "threads"),
        ("calls", "method", "methods"),
        ("calls", "context", "contexts"),
        ("updates", "field", "fields"),
        ("exceptions", "method", "methods"),
        ("exceptions", "caught_method", "methods"),
        ("contexts", "method", "methods"),
        ("sites", "method", "methods"),
        ("classes", "superclass", "classes"),
    ] {
        let key = table.strip_suffix("es").filter(|_| table == "classes").unwrap_or(table.trim_end_matches('s'));
        let known: std::collections::BTreeSet<_> =
            converted.rows(table).iter().filter_map(|row| long(row, key)).collect();
        let unknown = converted.rows(of).iter().filter_map(|row| long(row, column)).find(|id| !known.contains(id));
        assert_eq!(unknown, None, "{of}.{column}");
    }
}

#[test]
fn rows_are_the_records_of_a_real_program() {
    let source = Source::open(REAL.as_ref(), None).unwrap();
    let reading = Reading::default();
    let converted = Converted::of(&source, reading, Options::default());
    counts_fit(&converted, &totals(&source, reading));
    let tables = Tables::open(&converted.path()).unwrap();
    tables.check().unwrap();
    assert_eq!(tables.runs().len(), 1);
    assert!(word(&converted.rows("trace")[0], "missing").contains("collections: "));
}

#[test]
fn contexts_are_those_of_the_life_table() {
    let source = Source::open(REAL.as_ref(), None).unwrap();
    let (all, calls) = (Options::default(), Wanted::only(&["calls".parse().unwrap(), "contexts".parse().unwrap()]));
    let all = Converted::of(&source, Reading::default(), all);
    let calls = Converted::of(&source, Reading::default(), Options { wanted: calls, ..Options::default() });
    assert_eq!(all.rows("calls"), calls.rows("calls"));
    assert_eq!(all.rows("contexts"), calls.rows("contexts"));
    assert!(all.rows("contexts").len() > 100);
    assert!(!calls.path().join("objects").exists());
    assert!(word(&calls.rows("trace")[0], "missing").contains("objects: not selected (--only)"));
}

/// Its declaration compiles without being listed, but it would never be written.
#[test]
fn each_module_of_a_table_is_listed() {
    let modules = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tables")).unwrap();
    let modules = modules.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    let modules: BTreeSet<String> = modules.filter(|name| name != "mod").collect();
    assert_eq!(tables::ALL.iter().map(|table| table.name.to_owned()).collect::<BTreeSet<_>>(), modules);
}

/// What a table needs is read although nothing else is selected that needs it.
#[test]
fn no_table_is_empty_only_because_it_is_alone() {
    let source = Source::open(REAL.as_ref(), None).unwrap();
    let all = Converted::of(&source, Reading::default(), Options::default());
    for table in tables::ALL {
        let wanted = Wanted::only(&[table.name.parse().unwrap()]);
        let alone = Converted::of(&source, Reading::default(), Options { wanted, ..Options::default() });
        assert_eq!(alone.rows(table.name).is_empty(), all.rows(table.name).is_empty(), "{}", table.name);
    }
}

fn text(lines: &str) -> Source {
    Source::from(TextTrace::from_text(lines, None))
}

#[test]
fn calls_and_exceptions_are_as_they_happened() {
    // Method 2, called by 1, throws 9, which 1 catches; 3 is still running at the end.
    let lines = "N 9 10 Lx; 0 0 1\nM 1 0 1\nM 2 7 1\nA 8 20 [I 0 4 1\nT 2 7 9 1\nX 2 7 9 1\nH 1 0 9 1\nE 1 0 1\nM 3 0 1\nT 3 0 9 1\n";
    let converted =
        Converted::of(&text(lines), Reading { deaths: Deaths::None, ..Reading::default() }, Options::default());
    let calls = converted.rows("calls");
    let of = |call: i64| calls.iter().find(|row| long(row, "call") == Some(call)).unwrap();
    let ticks = |call| (long(of(call), "entry_tick"), long(of(call), "exit_tick"));
    assert_eq!([ticks(1), ticks(2), ticks(3)], [(Some(0), Some(3)), (Some(1), Some(2)), (Some(4), None)]);
    assert_eq!([1, 2, 3].map(|call| long(of(call), "caller")), [None, Some(1), None]);
    assert_eq!([1, 2, 3].map(|call| word(of(call), "left_by")), ["E", "X", ""]);
    assert_eq!(long(of(2), "exception"), Some(9));
    assert_eq!((long(of(2), "receiver"), long(of(1), "receiver")), (Some(7), None));
    assert_eq!((long(of(2), "allocated_objects"), long(of(2), "allocated_bytes")), (Some(1), Some(32)));
    assert_eq!([1, 2, 3].map(|call| long(of(call), "depth")), [Some(1), Some(2), Some(1)]);
    let exceptions = converted.rows("exceptions");
    let caught = &exceptions[0];
    assert_eq!((word(caught, "ended"), long(caught, "frames"), long(caught, "method")), ("caught", Some(1), Some(2)));
    assert_eq!(
        (long(caught, "caught_method"), long(caught, "tick"), long(caught, "ended_tick")),
        (Some(1), Some(2), Some(3))
    );
    assert_eq!((word(&exceptions[1], "ended"), long(&exceptions[1], "ended_tick")), ("in flight", None));
}

#[test]
fn what_is_missing_is_said() {
    let lines = "# Elephant Tracks, dialect et\nA 8 20 [I 0 4 1\n";
    let converted =
        Converted::of(&text(lines), Reading { deaths: Deaths::None, ..Reading::default() }, Options::default());
    let trace = &converted.rows("trace")[0];
    let missing = word(trace, "missing");
    for why in ["deaths are off", "the trace has no times", "a text has none", "none was thrown"] {
        assert!(missing.contains(why), "{why}: {missing}");
    }
    assert_eq!(converted.rows("calls").len(), 0, "the file is there");
}

/// The first Parquet file in a table's folder.
fn first(folder: &Path, table: &str) -> std::path::PathBuf {
    let partition = fs::read_dir(folder.join(table)).unwrap().next().unwrap().unwrap().path();
    fs::read_dir(partition).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_folder_that_is_not_as_it_was_written_is_no_folder_of_tables() {
    let source = text("N 9 10 Lx; 0 0 1\nM 1 0 1\nE 1 0 1\n");
    let converted = || Converted::of(&source, Reading::default(), Options::default());
    let open = |converted: &Converted| Tables::open(&converted.path()).map(drop).unwrap_err().to_string();
    let (whole, cut) = (converted(), converted());
    Tables::open(&whole.path()).unwrap().check().unwrap();
    let calls = first(&cut.path(), "calls");
    let bytes = fs::read(&calls).unwrap();
    fs::write(&calls, &bytes[..bytes.len() / 2]).unwrap();
    assert!(open(&cut).contains("is cut off: it has"), "{}", open(&cut));
    let mut bent = bytes.clone();
    bent[bytes.len() / 2] ^= 0x55;
    fs::write(&calls, bent).unwrap();
    let error = Tables::open(&cut.path()).unwrap().check().unwrap_err().to_string();
    assert!(error.contains("is damaged"), "{error}");
    fs::remove_file(&calls).unwrap();
    assert!(open(&cut).contains("is missing"), "{}", open(&cut));
    for (place, what) in [
        ("objects/other.parquet", "was not written by et-trace tables"),
        ("objects/run=x/part-00000.parquet", "conversion did not finish"),
    ] {
        let folder = converted();
        let file = folder.path().join(place);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &bytes).unwrap();
        assert!(open(&folder).contains(what), "{}", open(&folder));
    }
    let other = whole.path().join("objects").join(format!("run={}", whole.run)).join("more.parquet");
    fs::write(other, &bytes).unwrap();
    assert!(open(&whole).contains("was not written by et-trace tables"), "{}", open(&whole));
    let manifest = fs::read_dir(cut.path().join("_runs")).unwrap().next().unwrap().unwrap().path();
    fs::write(&manifest, "{}").unwrap();
    assert!(open(&cut).contains("is damaged"), "{}", open(&cut));
    assert!(Tables::open(cut.folder.path()).unwrap_err().to_string().contains("is not a folder of tables"));
}

#[test]
fn runs_share_a_folder_and_replace_themselves_only() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let (one, two) = (text("M 1 0 1\nE 1 0 1\n"), Source::open(REAL.as_ref(), None).unwrap());
    let convert = |source: &Source, run: &str| {
        let options = Options { run: Some(run.to_owned()), ..Options::default() };
        convert(source, &tables, Reading { deaths: Deaths::None, ..Reading::default() }, options).map(|done| done.run)
    };
    assert_eq!(convert(&one, "one/1").unwrap(), "one_1");
    assert_eq!(convert(&two, "two").unwrap(), "two");
    assert_eq!(convert(&two, "two").unwrap(), "two", "it takes its own place");
    assert_eq!(Tables::open(&tables).unwrap().runs().len(), 2);
    let error = convert(&two, "one_1").unwrap_err().to_string();
    assert!(error.contains("already has a different run"), "{error}");
    Tables::open(&tables).unwrap().check().unwrap();
    let left: Vec<_> = fs::read_dir(&tables).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('.')), "{left:?}");
    // A failed conversion leaves nothing behind.
    fs::write(folder.path().join("file"), "").unwrap();
    for (place, what) in [("file", "is not a folder of tables"), ("no/such", "cannot write to")] {
        let begun = Converter::begin(&one, &folder.path().join(place), Options::default());
        assert!(begun.unwrap_err().to_string().contains(what));
    }
    drop(Converter::begin(&one, &folder.path().join("new"), Options::default()).unwrap());
    assert!(!folder.path().join("new").exists());
}

/// A killed conversion leaves its folder with a lock file, which the system has unlocked.
#[test]
fn a_killed_conversion_is_tidied_up_after() {
    let folder = tempfile::tempdir().unwrap();
    let (tables, source) = (folder.path().join("tables"), text("M 1 0 1\nE 1 0 1\n"));
    let running = Converter::begin(&source, &tables, Options::default()).unwrap();
    let abandoned = tables.join(".et-tables-abandoned");
    fs::create_dir_all(abandoned.join("calls")).unwrap();
    fs::write(abandoned.join("lock"), "").unwrap();
    let there = || fs::read_dir(&tables).unwrap().count();
    assert_eq!(there(), 2);
    convert(&source, &tables, Reading::default(), Options { run: Some("other".into()), ..Options::default() }).unwrap();
    assert!(!abandoned.exists());
    assert_eq!(there(), 2 + tables::ALL.len(), "{running:?} is still at work");
    drop(running);
    assert_eq!(there(), 1 + tables::ALL.len());
    Tables::open(&tables).unwrap().check().unwrap();
}

#[test]
fn views_are_of_all_tables() {
    let source = text("M 1 0 1\nE 1 0 1\n");
    let wanted = Wanted::only(&["calls".parse().unwrap()]);
    let converted = Converted::of(&source, Reading::default(), Options { wanted, ..Options::default() });
    let views = Tables::open(&converted.path()).unwrap().views();
    assert_eq!(views.lines().count(), tables::ALL.len());
    assert!(views.contains("create view calls as select * from read_parquet("));
    assert!(views.contains("create view sites as select cast(null as bigint) as site, cast(null as varchar) as name"));
}

#[test]
fn an_unknown_table_is_named_with_those_there_are() {
    let error = "call".parse::<TableName>().unwrap_err();
    assert!(error.contains("choose from: objects, updates, refs, calls"), "{error}");
}

/// A thread's next action.
#[derive(Clone, Copy, Debug)]
enum Act {
    Enter(u8),
    Leave,
    LeaveByException,
    Throw,
    Handle,
    Allocate,
    Store(u8),
}

fn acts() -> impl Strategy<Value = Vec<(u8, Act)>> {
    let act = prop_oneof![
        4 => (1..5u8).prop_map(Act::Enter),
        3 => Just(Act::Leave),
        1 => Just(Act::LeaveByException),
        1 => Just(Act::Throw),
        1 => Just(Act::Handle),
        2 => Just(Act::Allocate),
        2 => (0..4u8).prop_map(Act::Store),
    ];
    prop::collection::vec((1..4u8, act), 0..200)
}

/// A text in which these actions happen as far as they can, and the ticks of each call when entries and exits are
/// matched independently.
fn lines(acts: &[(u8, Act)]) -> (String, Vec<(u64, Option<u64>)>) {
    let (mut text, mut tick, mut objects) = (String::new(), 0, 0u64);
    let mut stacks: BTreeMap<u8, Vec<(u8, usize)>> = BTreeMap::new();
    let mut in_flight: BTreeMap<u8, u64> = BTreeMap::new();
    let mut calls: Vec<(u64, Option<u64>)> = Vec::new();
    for &(thread, act) in acts {
        let stack = stacks.entry(thread).or_default();
        let top = stack.last().copied();
        match (act, top) {
            (Act::Enter(method), _) => {
                text += &format!("M {method:x} 0 {thread:x}\n");
                stack.push((method, calls.len()));
                calls.push((tick, None));
                tick += 1;
            }
            (Act::Leave, Some((method, call))) => {
                text += &format!("E {method:x} 0 {thread:x}\n");
                stack.pop();
                calls[call].1 = Some(tick);
                tick += 1;
            }
            (Act::LeaveByException, Some((method, call))) => {
                let Some(&exception) = in_flight.get(&thread) else { continue };
                text += &format!("X {method:x} 0 {exception:x} {thread:x}\n");
                stack.pop();
                if stack.is_empty() {
                    in_flight.remove(&thread);
                }
                calls[call].1 = Some(tick);
                tick += 1;
            }
            (Act::Throw, Some((method, _))) => {
                objects += 1;
                text += &format!("N {objects:x} 10 Lx; 0 0 {thread:x}\nT {method:x} 0 {objects:x} {thread:x}\n");
                in_flight.insert(thread, objects);
            }
            (Act::Handle, Some((method, _))) => {
                let Some(exception) = in_flight.remove(&thread) else { continue };
                text += &format!("H {method:x} 0 {exception:x} {thread:x}\n");
            }
            (Act::Allocate, _) => {
                objects += 1;
                text += &format!("A {objects:x} 20 [I 0 4 {thread:x}\n");
            }
            (Act::Store(field), _) if objects > 0 => {
                let target = objects.max(1);
                text += &format!("U 0 {objects:x} {target:x} {field:x} {thread:x}\n");
            }
            _ => {}
        }
    }
    (text, calls)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Rows equal what is counted and matched independently.
    #[test]
    fn rows_are_the_records(acts in acts()) {
        let (lines, expected) = lines(&acts);
        let source = text(&lines);
        let converted = Converted::of(&source, Reading::default(), Options::default());
        counts_fit(&converted, &totals(&source, Reading::default()));
        let mut calls = converted.rows("calls");
        calls.sort_by_key(|row| long(row, "call"));
        let ticks: Vec<_> = calls
            .iter()
            .map(|row| (long(row, "entry_tick").unwrap() as u64, long(row, "exit_tick").map(|tick| tick as u64)))
            .collect();
        prop_assert_eq!(ticks, expected);
        // No call begins before or ends after its caller.
        let ends: Vec<Option<i64>> = calls.iter().map(|row| long(row, "exit_tick")).collect();
        for row in &calls {
            if let Some(caller) = long(row, "caller") {
                let caller = caller as usize - 1;
                prop_assert!(long(&calls[caller], "entry_tick") < long(row, "entry_tick"));
                prop_assert!(ends[caller].is_none_or(|end| long(row, "exit_tick").is_some_and(|inner| inner < end)));
            }
        }
        let last: Vec<Option<i64>> = converted.rows("calls").iter().map(|row| long(row, "exit_tick")).collect();
        let left: Vec<i64> = last.iter().flatten().copied().collect();
        prop_assert!(left.is_sorted() && last[left.len()..].iter().all(Option::is_none));
    }
}

#[test]
fn groups_come_in_order_however_they_are_encoded() {
    use et_columns::GROUP;

    use crate::book::{Book, TableWriter};
    use crate::tables::contexts;
    let folder = tempfile::tempdir().unwrap();
    let mut book = Book::new(folder.path()).unwrap();
    let mut writer: TableWriter<contexts::Rows> = book.table().unwrap();
    let rows = 3 * GROUP as i64 + 5;
    for context in 0..rows {
        writer.push(contexts::Row {
            context,
            caller: (context % 3 > 0).then_some(context / 2),
            method: None,
            depth: 1,
            line: None,
        });
    }
    writer.finish();
    let parts = book.finish().unwrap();
    let (name, parts) = &parts[0];
    assert_eq!((*name, parts.len(), parts[0].rows), ("contexts", 1, rows as u64));
    let file = fs::File::open(folder.path().join("contexts/part-00000.parquet")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), parts[0].bytes);
    let reader = SerializedFileReader::new(file).unwrap();
    assert_eq!(reader.num_row_groups(), 4);
    for (at, row) in (0..).zip(reader.get_row_iter(None).unwrap()) {
        let row: BTreeMap<String, Field> = row.unwrap().into_columns().into_iter().collect();
        assert_eq!((long(&row, "context"), long(&row, "caller")), (Some(at), (at % 3 > 0).then_some(at / 2)));
    }
    let group = reader.metadata().row_group(1);
    let statistics = group.column(0).statistics().unwrap();
    assert_eq!(statistics.min_bytes_opt().unwrap(), (GROUP as i64).to_le_bytes());
}

#[test]
fn null_is_no_object() {
    let converted =
        Converted::of(&text("N 9 10 Lx; 0 0 1\nU 0 9 0 3 1\nU 0 0 9 4 1\n"), Reading::default(), Options::default());
    let updates = converted.rows("updates");
    assert_eq!((long(&updates[0], "object"), long(&updates[0], "new_target")), (Some(9), None));
    assert_eq!((long(&updates[1], "object"), long(&updates[1], "new_target")), (None, Some(9)));
}
