//! Tables of a trace: as many rows as records, and queries that DuckDB answers as is known of the programs. With `ET_SPARK=1` Spark is
//! asked as well, and must answer the same. With `ET_TABLES=six` DuckDB's
//! command is asked, too, and with `ET_TABLES=all` about most programs of the tests, not six.
#![allow(clippy::print_stderr, reason = "tests tell what they do")]

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab, SOME_JDKS};
use et_tests::program::{self, Run};
use serde_json::Value;
use xtask::jdks::Jdk;
use xtask::{command, python};

/// Programs of all kinds of records; those that need a newer Java are left out on an older one.
const PROGRAMS: [&str; 6] =
    ["analyses/Lives", "Exceptions", "Updates", "facts/Collections", "threads/Threads", "deaths/OnVirtualThreads"];
/// Folders of programs that run without arguments, which `ET_TABLES=all` adds.
const FOLDERS: [&str; 5] = ["", "analyses", "deaths", "semantics", "threads"];

fn programs(lab: &Lab) -> Result<Vec<String>> {
    let mut programs: Vec<String> = PROGRAMS.map(str::to_owned).to_vec();
    if env::var_os("ET_TABLES").is_some_and(|which| which == "all") {
        for folder in FOLDERS {
            programs.extend(
                program::in_folder(&lab.layout, folder)?.into_iter().filter(|name| !PROGRAMS.contains(&&**name)),
            );
        }
    }
    Ok(programs)
}

fn main() -> ExitCode {
    lab::run(lab::on_one_jdk("tables", tables)).exit_code()
}

/// A folder of tables, and what DuckDB needs to be found.
struct Tables<'a> {
    lab: &'a Lab,
    folder: PathBuf,
    python: OsString,
}

impl Tables<'_> {
    fn et_trace(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.lab.tools.et_trace());
        command.args(arguments).env("PYTHONPATH", &self.python);
        command
    }

    fn ask(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let mut sql = self.et_trace(&["sql"]);
        let said = command::quiet(sql.arg(&self.folder).args(arguments).arg("--json"))?;
        serde_json::from_slice(&said.stdout).with_context(|| format!("{arguments:?}"))
    }

    /// The row of a query in which a column has that value.
    fn row(&self, query: &str, column: &str, value: &str) -> Result<Value> {
        let rows = self.ask(&["--query", query, "--set", "top=1000000"])?;
        let found = rows.into_iter().find(|row| row[column] == value);
        found.with_context(|| format!("{query}: no row of {value}"))
    }
}

fn tables(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "tables")?;
    let duckdb = python::fetched(&lab.layout, python::DUCKDB)?;
    let tables =
        Tables { lab, folder: folder.join("all.tables"), python: python::path(std::slice::from_ref(&duckdb))? };
    let (mut runs, mut expected) = (Vec::new(), BTreeMap::new());
    for program in programs(lab)? {
        if let Some(reason) = program::obstacle(lab, jdk, &program) {
            lab.not_tested(&format!("jdk{}::tables of {program}", jdk.feature), &reason);
            continue;
        }
        let name = program.replace('/', "-");
        let run = Run::of(lab, jdk, &format!("tables_{name}"), &program)?;
        let mut convert = tables.et_trace(&["tables"]);
        convert.arg(&run.trace).arg("-o").arg(&tables.folder).args(["--run", &name, "--label", "1.0"]);
        let said = command::read(&mut convert)?;
        ensure!(said.contains(&format!("run {name}, 16 tables")), "{said}");
        expected.extend(letters(lab, &run.trace)?.into_iter().map(|(letter, count)| ((name.clone(), letter), count)));
        runs.push(run);
    }
    ensure!(runs.len() > 4, "{} programs", runs.len());
    let counted = tables.ask(&[COUNTS])?.into_iter().map(|row| -> Result<_> {
        let text = |column: &str| row[column].as_str().map(str::to_owned).context("no text");
        Ok(((text("run")?, text("letter")?), row["rows"].as_u64().context("no number")?))
    });
    let counted: BTreeMap<_, _> = counted.collect::<Result<_>>()?;
    ensure!(counted == expected, "rows {counted:?}, records {expected:?}");
    for query in et_trace_queries(&tables)? {
        let rows = tables.ask(&["--query", &query])?;
        ensure!(!rows.is_empty() || OF_LONG_RUNS.contains(&&*query), "{query} answers nothing");
    }
    if env::var_os("ET_TABLES").is_some() {
        by_command(&tables)?;
    } else {
        let why =
            "the queries once more take a minute, and gigabytes: ET_TABLES=six cargo test -p et-tests --test tables";
        lab.not_tested("queries by DuckDB's command", why);
    }
    answers(&tables)?;
    newer_columns(&tables)?;
    killed(&tables, &runs[0].trace)?;
    // Ids as they are printed, and back.
    let ids = tables
        .ask(&["select object_text(object) as text, object_id(object_text(object)) = object as is_same, \
                            object_id('0x1f3a') as number from objects order by object desc limit 1"])?;
    let is_hexadecimal = ids[0]["text"].as_str().is_some_and(|text| u64::from_str_radix(text, 16).is_ok());
    ensure!(is_hexadecimal && ids[0]["is_same"] == true && ids[0]["number"] == 0x1f3a, "{ids:?}");
    // It would appear between the answers to long queries.
    let bar = tables.ask(&["select current_setting('enable_progress_bar') as is_shown"])?;
    ensure!(bar[0]["is_shown"] == false, "{bar:?}");
    let limit = tables.ask(&["--memory", "1GB", "select current_setting('memory_limit') as it"])?;
    ensure!(limit[0]["it"].as_str().is_some_and(|it| it.starts_with("1.0")), "{limit:?}");
    if jdk.feature == SOME_JDKS[0] {
        by_heart(&tables)?;
        pictures(&tables, &runs[0].trace, &duckdb, &folder)?;
    }
    if env::var_os("ET_SPARK").is_some() {
        on_spark(&tables, duckdb)?;
    } else {
        lab.not_tested("queries on Spark", "it is 450 MB from PyPI: ET_SPARK=1 cargo test -p et-tests --test tables");
    }
    std::fs::remove_dir_all(&folder)?;
    runs.iter().try_for_each(Run::clean)
}

/// DuckDB's command answers each query as its Python module does, to the last digit that a double has in common.
fn by_command(tables: &Tables<'_>) -> Result<()> {
    let command = python::fetched(&tables.lab.layout, python::DUCKDB_COMMAND)?.join("duckdb_cli");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([command].into_iter().chain(env::split_paths(&path)))?;
    for query in et_trace_queries(tables)? {
        // All rows, for of equal ones a limit takes any.
        let text = std::fs::read_to_string(tables.lab.layout.repo.join("queries").join(&query).with_extension("sql"))?;
        let all = ["--query", &query, "--set", "top=1000000"];
        let arguments = if text.contains("/*:top*/") { &all[..] } else { &all[..2] };
        let expected = tables.ask(arguments)?;
        let mut sql = tables.et_trace(&["sql"]);
        let said = command::quiet(sql.env("PATH", &path).arg(&tables.folder).args(arguments).arg("--json"))?;
        let note = String::from_utf8_lossy(&said.stderr);
        ensure!(note.contains("the command duckdb"), "{query}: {note}");
        let found: Vec<Value> = serde_json::from_slice(&said.stdout).with_context(|| query.clone())?;
        ensure!(sorted(&found) == sorted(&expected), "{query}: the command {found:?}, the module {expected:?}");
    }
    Ok(())
}

/// Rows in a canonical order: queries only order them by some columns, and the order of ties is undefined.
fn sorted(rows: &[Value]) -> Vec<String> {
    // Sums have 128 bits, which the command writes as text into JSON.
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let rounded = |value: &Value| match number(value) {
        Some(number) => format!("{number:.9e}"),
        None => value.to_string(),
    };
    let row = |row: &Value| match row.as_object() {
        Some(cells) => cells.iter().map(|(name, value)| format!("{name}: {} ", rounded(value))).collect(),
        None => row.to_string(),
    };
    let mut rows: Vec<String> = rows.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

/// Short programs may have nothing of that.
const OF_LONG_RUNS: [&str; 2] = ["leaks", "tenured_garbage"];

/// Rows by the letters of their records.
const COUNTS: &str = "
select run, 'M' as letter, count(*) as rows from calls group by run
union all select run, left_by, count(*) from calls where left_by is not null group by run, left_by
union all select run, 'U', count(*) from updates group by run
union all select run, 'T', count(*) from exceptions group by run
union all select run, 'H', count(*) from exceptions where ended = 'caught' group by run
union all select run, kind, count(*) from objects group by run, kind
union all select run, 'D', count(*) from objects where death_tick is not null group by run
union all select run, 'ANPV', sum(objects) from allocations_by_second group by run
union all select run, 'bytes', sum(bytes) from allocations_by_second group by run
union all select run, 'total', records from trace";

/// Records by their letters as `text` has them; what `summary` says is compared.
fn letters(lab: &Lab, trace: &Path) -> Result<BTreeMap<String, u64>> {
    let text = command::quiet(Command::new(lab.tools.et_trace()).arg("text").arg(trace))?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.stdout.split(|&byte| byte == b'\n') {
        match line.first() {
            None | Some(b'#') => {}
            Some(&letter) => *counts.entry(char::from(letter).to_string()).or_default() += 1,
        }
    }
    counts.insert("total".to_owned(), counts.values().sum());
    let summary = command::quiet(Command::new(lab.tools.et_trace()).args(["summary", "--json"]).arg(trace))?;
    let summary: Value = serde_json::from_slice(&summary.stdout)?;
    let said = summary["records"].as_object().context("no records")?;
    let said = said.iter().filter_map(|(letter, count)| Some((letter.clone(), count.as_u64().filter(|&n| n > 0)?)));
    let said: BTreeMap<String, u64> = said.collect();
    ensure!(said == counts, "summary {said:?}, text {counts:?}");
    let made = ["A", "N", "P", "V"].iter().filter_map(|letter| counts.get(*letter)).sum();
    counts.insert("ANPV".to_owned(), made);
    counts.insert("bytes".to_owned(), summary["allocated"]["bytes"].as_u64().context("no bytes")?);
    Ok(counts)
}

fn et_trace_queries(tables: &Tables<'_>) -> Result<Vec<String>> {
    let list = command::read(&mut tables.et_trace(&["sql", "--list"]))?;
    let names: Vec<String> = list.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    ensure!(names.len() == 25, "{list}");
    Ok(names)
}

/// Known answers for `Lives`.
fn answers(tables: &Tables<'_>) -> Result<()> {
    for (query, column, value, answer) in [
        ("captured", "class_name", "Lives$Local", [("objects", 100), ("captured", 100)]),
        ("captured", "class_name", "Lives$Returned", [("objects", 50), ("captured", 0)]),
        ("handed_over", "class_name", "Lives$Shared", [("objects", 10), ("threads", 1)]),
        ("die_together", "class_name", "Lives$Box", [("times", 40), ("objects_with", 40)]),
        ("write_once", "field_name", "Lives$Box.item", [("objects", 40), ("objects", 40)]),
        ("classes", "class_name", "Lives$Kept", [("objects", 2000), ("alive_objects", 2000)]),
        ("hot_methods", "method_name", "Lives.local", [("calls", 100), ("left_by_exception", 0)]),
        ("reference_lifetimes", "field_name", "Lives$Box.item", [("stored", 40), ("until_death", 40)]),
        ("who_wrote", "field_name", "Lives$Box.item", [("stores", 40), ("held", 40)]),
    ] {
        let row = tables.row(query, column, value)?;
        for (column, number) in answer {
            ensure!(row[column] == number, "{query}, {column}: {row} instead of {number}");
        }
    }
    let keeps = tables.ask(&["--query", "who_keeps", "--set", "class=Lives$Kept"])?;
    ensure!(keeps.len() == 1 && keeps[0]["held_by"] == "elements of java.lang.Object[]", "{keeps:?}");
    Ok(())
}

/// Queries that say something of deaths, or of what was alive.
const OF_DEATHS: [&str; 17] = [
    "captured",
    "classes",
    "die_together",
    "drag_sites",
    "field_history",
    "growth",
    "handed_over",
    "heap_at",
    "held_by",
    "leaks",
    "live_bytes",
    "reference_lifetimes",
    "survival",
    "tenured_garbage",
    "top_sites",
    "who_keeps",
    "who_wrote",
];

/// Each query about a run of which all is known; and what it says of the same run without deaths.
fn by_heart(tables: &Tables<'_>) -> Result<()> {
    let place = tables.lab.layout.repo.join("tests/tables/by-heart");
    let convert = |name: &str, more: &[&str]| -> Result<PathBuf> {
        let folder = tables.folder.with_file_name(name);
        let mut convert = tables.et_trace(&["tables", "--run", "heart"]);
        convert.args(more).arg(place.join("trace.txt")).arg("--with-names").arg(place.join("names.txt"));
        command::quiet(convert.arg("-o").arg(&folder))?;
        Ok(folder)
    };
    let ask = |folder: &Path, arguments: &[&str]| -> Result<(String, String)> {
        let said = command::quiet(tables.et_trace(&["sql", "--csv"]).arg(folder).args(arguments))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        Ok((text(&said.stdout), text(&said.stderr)))
    };
    let (with, without) = (convert("heart.tables", &[])?, convert("deathless.tables", &["--deaths", "none"])?);
    let answers = std::fs::read_to_string(place.join("answers.txt"))?;
    let mut asked = BTreeSet::new();
    for section in answers.split("\n== ").skip(1) {
        let (head, expected) = section.split_once('\n').context("no answer")?;
        let (query, set) = head.split_once(' ').map_or((head, None), |(query, set)| (query, Some(set)));
        let arguments: Vec<&str> =
            ["--query", query].into_iter().chain(set.into_iter().flat_map(|set| ["--set", set])).collect();
        let (found, notes) = ask(&with, &arguments)?;
        ensure!(found == expected.trim_end(), "{query} answers\n{found}\ninstead of\n{expected}");
        ensure!(!notes.contains("deaths"), "{query}: {notes}");
        let (found, notes) = ask(&without, &arguments)?;
        let is_said = notes.contains("note: deaths are unknown in run heart: ");
        ensure!(is_said == OF_DEATHS.contains(&query), "{query}: {notes}");
        // What depends on deaths is empty: lines, or columns of them.
        let lines = expected.trim_end().lines().count();
        match query {
            "captured" | "die_together" | "drag_sites" | "live_bytes" | "survival" | "tenured_garbage"
            | "who_keeps" | "heap_at" => {
                ensure!(found.lines().count() == 1, "{query} without deaths: {found}");
            }
            "classes" => ensure!(found.contains("\nheart,app.Box,3,48,,,,"), "{found}"),
            "top_sites" => ensure!(found.contains("\nheart,app.Main.main:3,app.Box,3,48,,"), "{found}"),
            "handed_over" => ensure!(found.ends_with(",1,16,1,"), "{found}"),
            "mutated_fields" | "held_by" | "field_history" | "reference_lifetimes" => {
                ensure!(found.lines().count() == lines, "{found}")
            }
            _ => ensure!(found == expected.trim_end(), "{query} without deaths: {found}"),
        }
        asked.insert(query.to_owned());
    }
    ensure!(asked == et_trace_queries(tables)?.into_iter().collect(), "{asked:?}");
    Ok(())
}

/// Adds a column to a table of one run, as a newer version may have: runs with and without it are asked together.
fn newer_columns(tables: &Tables<'_>) -> Result<()> {
    let run = &tables.ask(&["select min(run) as run, count(distinct run) as runs from sites"])?[0];
    ensure!(run["runs"].as_u64() > Some(1), "{run}");
    let run = run["run"].as_str().context("no run")?;
    let file = format!("sites/run={run}/part-00000.parquet");
    let (path, newer) = (tables.folder.join(&file), tables.folder.join("newer"));
    let add = format!(
        "copy (select *, 7 as added_later from read_parquet('{}', hive_partitioning = false)) to '{}' (format parquet)",
        path.display(),
        newer.display()
    );
    let mut duckdb = Command::new(xtask::packages::python()?);
    command::quiet(
        duckdb.args(["-c", "import duckdb, sys; duckdb.sql(sys.argv[1])", &add]).env("PYTHONPATH", &tables.python),
    )?;
    let older = std::fs::read(&path)?;
    std::fs::rename(&newer, &path)?;
    let manifest = tables.folder.join("_runs").join(format!("{run}.json"));
    let of_older = std::fs::read(&manifest)?;
    let mut says: Value = serde_json::from_slice(&of_older)?;
    let files = says["files"].as_array_mut().context("no files")?;
    let entry = files.iter_mut().find(|entry| entry["path"] == *file).context("no such file")?;
    entry["bytes"] = path.metadata()?.len().into();
    std::fs::write(&manifest, serde_json::to_vec(&says)?)?;
    let rows = tables.ask(&["select run, count(*) as rows, count(added_later) as added from sites group by run"])?;
    for row in &rows {
        let added = if row["run"] == *run { row["rows"].clone() } else { 0.into() };
        ensure!(row["added"] == added, "{row}");
    }
    for query in et_trace_queries(tables)? {
        tables.ask(&["--query", &query])?;
    }
    std::fs::write(&path, older)?;
    std::fs::write(&manifest, of_older)?;
    Ok(())
}

/// A killed conversion leaves nothing that is mistaken for tables, and nothing that the next one does not remove.
fn killed(tables: &Tables<'_>, trace: &Path) -> Result<()> {
    let folder = tables.folder.with_file_name("killed.tables");
    let mut killed = 0;
    for wait in [1, 3, 10, 30, 100] {
        let mut convert = tables.et_trace(&["tables", "--run", "killed", "-o"]);
        let mut convert = convert.arg(&folder).arg(trace).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(Duration::from_millis(wait));
        convert.kill()?;
        if convert.wait()?.success() {
            continue;
        }
        killed += 1;
        let asked = tables.et_trace(&["sql"]).arg(&folder).arg("select count(*) from calls").output()?;
        // A run that was there before is whole, or is said not to be.
        let said = String::from_utf8_lossy(&asked.stderr);
        let is_known =
            ["is not a folder of tables", "conversion did not finish"].iter().any(|what| said.contains(what));
        ensure!(asked.status.success() || is_known, "{said}");
    }
    ensure!(killed > 0, "each was faster than that");
    command::quiet(tables.et_trace(&["tables", "--run", "killed", "-o"]).arg(&folder).arg(trace))?;
    let left: Vec<_> = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.file_name()).collect();
    ensure!(!left.iter().any(|name| name.to_string_lossy().starts_with('.')), "{left:?}");
    command::quiet(tables.et_trace(&["sql", "--check"]).arg(&folder))?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The notebook draws its pictures, with the Python package and the tools that were just built.
fn pictures(tables: &Tables<'_>, trace: &Path, duckdb: &Path, folder: &Path) -> Result<()> {
    let layout = &tables.lab.layout;
    let drawing = python::fetched(layout, python::NOTEBOOK)?;
    let mut notebook = Command::new(xtask::packages::python()?);
    notebook.arg(layout.repo.join("tests/tables/notebook.py")).arg(layout.repo.join("examples/notebook/trace.ipynb"));
    let package = layout.repo.join("tools/python/src");
    notebook.env("PYTHONPATH", python::path(&[package, duckdb.to_owned(), drawing])?).env("MPLBACKEND", "Agg");
    notebook.env("PYTHONDONTWRITEBYTECODE", "1").env("ET_HOME", &tables.lab.tools.root);
    command::quiet(notebook.env("TRACE", trace).current_dir(folder))?;
    let drawn =
        std::fs::read_dir(folder)?.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "png"));
    let drawn = drawn.filter(|picture| picture.metadata().is_ok_and(|file| file.len() > 5000)).count();
    ensure!(drawn == 5, "{drawn} pictures");
    Ok(())
}

fn on_spark(tables: &Tables<'_>, duckdb: PathBuf) -> Result<()> {
    let layout = &tables.lab.layout;
    let spark = python::fetched(layout, python::SPARK)?;
    let mut compare = Command::new(xtask::packages::python()?);
    compare.arg(layout.repo.join("tests/tables/compare.py")).arg(&tables.folder).arg(layout.repo.join("queries"));
    compare.env("PYTHONPATH", python::path(&[duckdb, spark])?).env("JAVA_HOME", &tables.lab.compiler.home);
    eprint!("{}", String::from_utf8_lossy(&command::quiet(&mut compare)?.stdout));
    Ok(())
}
