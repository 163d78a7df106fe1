//! `cargo xtask reading`: measures time and memory of et-trace for large traces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use xtask::instrumented::{self, InstrumentedJdk};
use xtask::jdks;
use xtask::layout::{Layout, Tools};
use xtask::workloads::{Runner, Workload};
use xtask::{build, python, setup};

use crate::cost::{self, Cost};
use crate::markdown;

/// Options of `cargo xtask reading`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The program to trace, by name
    #[arg(long, default_value = "h2")]
    program: String,
    /// Sizes of its work in percent of full size, one trace each
    #[arg(long, value_delimiter = ',', default_value = "1,6")]
    scale: Vec<u32>,
    /// Java version to run on
    #[arg(long, default_value_t = 17)]
    jdk: u32,
    /// Do not build the tools: use those built last
    #[arg(long)]
    no_build: bool,
    /// Only run commands that read the trace once, for traces that take minutes to read
    #[arg(long, conflicts_with = "made")]
    brief: bool,
    /// Also make a report; and the life table on one core, and on all from records rather than by blocks (needs taskset)
    #[arg(long, conflicts_with = "made")]
    compare: bool,
    /// Measure instead what is made from a trace: the life table, the report, Parquet tables, and DuckDB queries on these
    #[arg(long)]
    made: bool,
    /// Keep the traces, and read those kept by an earlier call, to compare before and after a change
    #[arg(long)]
    keep: bool,
    /// Also write the table to this file
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// The measured commands.
const COMMANDS: [&[&str]; 9] = [
    &["summary", "--deaths", "none"],
    &["summary", "--no-lives"],
    &["validate", "--no-lives"],
    &["text", "--deaths", "none"],
    &["text", "--no-lives"],
    &["text", "--dialect", "oracle", "--no-lives"],
    // Creates the life table, which the following commands use.
    &["text", "--dialect", "oracle"],
    &["summary"],
    &["summary", "--top", "4"],
];

/// The commands measured with `--brief`. The second creates the life table, which the following ones use.
const BRIEF: [&[&str]; 4] = [&["summary", "--deaths", "none"], &["summary"], &["validate"], &["summary", "--top", "4"]];

/// A measured command, and its name in the table.
struct Step {
    shown: String,
    command: Command,
    /// Whether the life table is removed before it.
    is_first: bool,
}

impl Step {
    fn new(shown: String, command: Command) -> Self {
        Self { shown, command, is_first: false }
    }

    /// A command whose last option takes an output path.
    fn into_file(tools: &Tools, shown: &str, output: &Path, trace: &Path) -> Self {
        let mut command = Command::new(tools.et_trace());
        command.args(shown.split(' ')).args([output, trace]);
        Self::new(shown.to_owned(), command)
    }

    /// The first `summary` of a trace: on one core, without and with deaths; from records.
    fn compared(et_trace: &Path, trace: &Path) -> [Self; 3] {
        let on_one_core = |arguments: &[&str]| {
            let mut command = Command::new("taskset");
            command.args(["-c", "0"]).arg(et_trace).args(arguments).arg(trace);
            command
        };
        let mut by_records = Command::new(et_trace);
        by_records.arg("summary").arg(trace).env("ET_LIVES_BY_RECORDS", "1");
        let all = [
            ("summary --deaths none, one core", on_one_core(&["summary", "--deaths", "none"])),
            ("summary, one core", on_one_core(&["summary"])),
            ("summary, from records", by_records),
        ];
        all.map(|(shown, command)| Self { shown: shown.to_owned(), command, is_first: true })
    }
}

/// The commands, and the files that they create.
struct Steps {
    all: Vec<Step>,
    made: Vec<PathBuf>,
}

impl Steps {
    fn of(layout: &Layout, tools: &Tools, options: &Options, trace: &Path) -> Result<Self> {
        if options.made {
            return Self::that_make(layout, tools, trace);
        }
        let commands: &[&[&str]] = if options.brief { &BRIEF } else { &COMMANDS };
        let step = |arguments: &&[&str]| {
            let mut command = Command::new(tools.et_trace());
            // Includes the cost of writing the output, but not of the disk.
            command
                .args(*arguments)
                .args((arguments[0] == "text").then_some(["-o", "/dev/null"]).into_iter().flatten());
            command.arg(trace);
            Step::new(arguments.join(" "), command)
        };
        let mut all: Vec<_> = commands.iter().map(step).collect();
        let mut made = Vec::new();
        if options.compare {
            let page = trace.with_extension("html");
            all.push(Step::into_file(tools, "report -o", &page, trace));
            all.extend(Step::compared(&tools.et_trace(), trace));
            made.push(page);
        }
        Ok(Self { all, made })
    }

    fn that_make(layout: &Layout, tools: &Tools, trace: &Path) -> Result<Self> {
        let (page, tables) = (trace.with_extension("html"), trace.with_extension("tables"));
        let mut summary = Command::new(tools.et_trace());
        summary.arg("summary").arg(trace);
        let mut all = vec![
            Step::new("summary".to_owned(), summary),
            Step::into_file(tools, "report -o", &page, trace),
            Step::into_file(tools, "tables -o", &tables, trace),
        ];
        let duckdb = python::path(&[python::fetched(layout, python::DUCKDB)?])?;
        let mut queries: Vec<String> = fs::read_dir(layout.repo.join("queries"))?
            .filter_map(|file| file.ok()?.file_name().into_string().ok()?.strip_suffix(".sql").map(str::to_owned))
            .collect();
        queries.sort_unstable();
        for query in queries {
            let mut command = Command::new(tools.et_trace());
            command.arg("sql").arg(&tables).args(["--query", &query]).env("PYTHONPATH", &duckdb);
            all.push(Step::new(format!("sql --query {query}"), command));
        }
        Ok(Self { all, made: vec![page, tables] })
    }

    fn remove_made(&self) {
        for path in &self.made {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// Size of a file, or of all files in a folder, in bytes.
fn size(path: &Path) -> u64 {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| size(&entry.path())).sum(),
        Err(_) => path.metadata().map_or(0, |file| file.len()),
    }
}

/// A trace, and the cost of each command on it.
struct Measured {
    scale: u32,
    records: u64,
    objects: u64,
    trace_bytes: u64,
    /// Largest size of the program's heap after a collection, if there was one.
    heap: Option<u64>,
    /// The cost, or why the command failed.
    costs: Vec<(String, Result<Cost, String>)>,
    /// Files created, and their sizes in bytes.
    made: Vec<(String, u64)>,
}

/// Measures and prints the table.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    setup::programs(layout)?;
    let workload = Workload::named(&options.program)?;
    let tools = build::unless(layout, options.no_build)?;
    let compiler = jdks::compiler(layout)?;
    let jdk = jdks::of_feature(layout, options.jdk).with_context(|| jdks::missing(options.jdk))?;
    let traced = InstrumentedJdk::of(&tools, &jdk, &[])?;
    let folder = layout.target.join("reading");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut measured = Vec::new();
    for &scale in &options.scale {
        let trace = folder.join(format!("{}-{scale}.ettrace", workload.name));
        if options.keep && trace.exists() {
            measured.push(read(&tools, &trace, scale, &folder, Steps::of(layout, &tools, options, &trace)?)?);
            continue;
        }
        let runner = Runner::new(layout, &folder, scale, &compiler, &jdk)?;
        if let Some(obstacle) = runner.obstacle(&workload, &jdk) {
            anyhow::bail!("{}: {obstacle}", workload.name);
        }
        runner.prepare(&workload, &jdk.java())?;
        let parts = runner.instrument(&workload, &tools, &folder.join("rewritten"), &[])?;
        let _ = fs::remove_file(&trace);
        eprintln!("{}: tracing at scale {scale}", workload.name);
        cost::of(&runner.rewritten(&workload, &traced.java(), &parts, &traced.options(&trace)), &folder)?;
        let read = read(&tools, &trace, scale, &folder, Steps::of(layout, &tools, options, &trace)?);
        if !options.keep {
            fs::remove_file(&trace)?;
        }
        measured.push(read?);
    }
    let text = table(options, &jdk.version, &measured);
    println!("{text}");
    if let Some(path) = &options.markdown {
        markdown::write(path, &text)?;
    }
    Ok(())
}

fn read(tools: &Tools, trace: &Path, scale: u32, folder: &Path, steps: Steps) -> Result<Measured> {
    let lives = et_system::files::lives_of(trace);
    let _ = fs::remove_dir_all(&lives);
    steps.remove_made();
    let measured = read_all(tools, trace, scale, folder, &steps);
    steps.remove_made();
    let _ = fs::remove_dir_all(&lives);
    measured
}

fn read_all(tools: &Tools, trace: &Path, scale: u32, folder: &Path, steps: &Steps) -> Result<Measured> {
    let mut costs = Vec::new();
    for Step { shown, command, is_first } in &steps.all {
        if *is_first {
            let _ = fs::remove_dir_all(et_system::files::lives_of(trace));
        }
        let cost = cost::of(command, folder).map_err(|error| format!("{error:#}"));
        // Shown immediately: all commands together take hours.
        match &cost {
            Ok(Cost { seconds, processor, .. }) => eprintln!("et-trace {shown}: {seconds:.1} s, {processor:.1} CPU s"),
            Err(error) => eprintln!("et-trace {shown}: {error}"),
        }
        costs.push((shown.clone(), cost));
    }
    ensure!(costs.iter().any(|(_, cost)| cost.is_ok()), "nothing can read {}", trace.display());
    // One of the commands has created the life table.
    let summary = instrumented::summary(tools, trace, 1)?;
    let number = |value: &Value| value.as_u64().context("the summary lacks a number");
    let of_kind = |kind: &str| summary["records"][kind].as_u64().unwrap_or(0);
    let heaps = summary["gcs"].as_array().into_iter().flatten().filter_map(|gc| gc["heapUsedBytes"].as_u64());
    let records = number(&summary["records"]["total"])?;
    ensure!(records > 0, "the trace is empty");
    Ok(Measured {
        scale,
        records,
        objects: ["A", "I", "N", "P", "V"].into_iter().map(of_kind).sum(),
        trace_bytes: number(&summary["traceBytes"])?,
        heap: heaps.max(),
        costs,
        made: steps.made.iter().flat_map(|path| parts(path)).collect(),
    })
}

/// A file with its size, or the folders in a folder, largest first.
fn parts(path: &Path) -> Vec<(String, u64)> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut all = vec![(name(path), size(path))];
    if let Ok(entries) = fs::read_dir(path) {
        let mut inside: Vec<_> = entries.flatten().map(|entry| (name(&entry.path()), size(&entry.path()))).collect();
        inside.sort_unstable_by_key(|(_, size)| std::cmp::Reverse(*size));
        all.append(&mut inside);
    }
    all
}

fn table(options: &Options, version: &str, measured: &[Measured]) -> String {
    let scales: Vec<String> = options.scale.iter().map(u32::to_string).collect();
    let mut text = format!(
        "`cargo xtask reading --program {} --scale {} --jdk {}{}{}`, JDK {version}.\n",
        options.program,
        scales.join(","),
        options.jdk,
        if options.brief {
            " --brief"
        } else if options.made {
            " --made"
        } else {
            ""
        },
        if options.compare { " --compare" } else { "" }
    );
    for Measured { scale, records, objects, trace_bytes, heap, costs, made } in measured {
        let millions = *records as f64 / 1e6;
        let heap = heap.map_or("no garbage collection".to_owned(), |heap| {
            format!("at most {:.0} MB of the program's heap were in use after a collection", heap as f64 / 1e6)
        });
        text += &format!(
            "\nScale {scale}: {millions:.1} million records, {:.2} million objects, a trace of {:.0} MB; {heap}.\n\n\
             | et-trace | s | CPU s | cores | M records/s | peak MB |\n|---|--:|--:|--:|--:|--:|\n",
            *objects as f64 / 1e6,
            *trace_bytes as f64 / 1e6
        );
        for (shown, cost) in costs {
            text += &match cost {
                Ok(Cost { seconds, processor, resident }) => format!(
                    "| `{shown}` | {seconds:.1} | {processor:.1} | {:.2} | {:.1} | {:.0} |\n",
                    processor / seconds,
                    millions / seconds,
                    resident / 1e6
                ),
                Err(error) => format!("| `{shown}` | failed: {} | | | | |\n", error.lines().last().unwrap_or_default()),
            };
        }
        let made: Vec<_> = made.iter().map(|(name, size)| format!("{name} {:.1} MB", *size as f64 / 1e6)).collect();
        if !made.is_empty() {
            text += &format!("\n{}.\n", made.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_command() {
        let options = Options {
            program: "h2".into(),
            scale: vec![6],
            jdk: 17,
            no_build: true,
            brief: false,
            made: true,
            compare: false,
            markdown: None,
            keep: false,
        };
        let cost = Cost { seconds: 10.0, processor: 15.0, resident: 2e8 };
        let costs = vec![("report -o".into(), Ok(cost)), ("sql --query x".into(), Err("a\nno room".into()))];
        let measured = [Measured {
            scale: 6,
            records: 100_000_000,
            objects: 2_500_000,
            trace_bytes: 110_000_000,
            heap: Some(50_000_000),
            costs,
            made: vec![("h2-6.html".into(), 2_300_000)],
        }];
        let text = table(&options, "17.0.1", &measured);
        assert!(text.contains("Scale 6: 100.0 million records, 2.50 million objects, a trace of 110 MB"), "{text}");
        assert!(text.contains("| `report -o` | 10.0 | 15.0 | 1.50 | 10.0 | 200 |"), "{text}");
        assert!(text.contains("| `sql --query x` | failed: no room | | | | |"), "{text}");
        assert!(text.contains("\nh2-6.html 2.3 MB.\n"), "{text}");
    }
}
