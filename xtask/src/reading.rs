//! `cargo xtask reading`: what et-trace takes to read a large trace, time and memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cost::{self, Cost};
use crate::instrumented::{self, InstrumentedJdk};
use crate::jdks;
use crate::layout::{Layout, Tools};
use crate::workloads::{Runner, Workload};
use crate::{build, markdown, setup};

/// Options of `cargo xtask reading`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The workload that is traced, by name
    #[arg(long, default_value = "h2")]
    program: String,
    /// Sizes of its work in per cent: a trace each
    #[arg(long, value_delimiter = ',', default_value = "1,6")]
    scale: Vec<u32>,
    /// Java version to run on
    #[arg(long, default_value_t = 17)]
    jdk: u32,
    /// Use the tools as they were built last
    #[arg(long)]
    no_build: bool,
    /// Only what reads the whole trace once: for traces that take minutes to read
    #[arg(long)]
    brief: bool,
    /// Keep the traces, and read those that an earlier call kept: before and after a change
    #[arg(long)]
    keep: bool,
    /// Where to write the table as well
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// What is measured.
const COMMANDS: [&[&str]; 9] = [
    &["summary", "--deaths", "none"],
    &["summary", "--no-lives"],
    &["validate", "--no-lives"],
    &["text", "--deaths", "none"],
    &["text", "--no-lives"],
    &["text", "--dialect", "oracle", "--no-lives"],
    // Makes the life table; then it is there.
    &["text", "--dialect", "oracle"],
    &["summary"],
    &["summary", "--top", "4"],
];

/// What is measured of large traces. The second makes the life table, which those behind it use.
const BRIEF: [&[&str]; 4] = [&["summary", "--deaths", "none"], &["summary"], &["validate"], &["summary", "--top", "4"]];

impl Options {
    fn commands(&self) -> &'static [&'static [&'static str]] {
        if self.brief { &BRIEF } else { &COMMANDS }
    }
}

/// A trace, and what each command took to read it.
struct Measured {
    scale: u32,
    records: u64,
    objects: u64,
    trace_bytes: u64,
    /// The most that the program's heap held behind a collection.
    heap: u64,
    costs: Vec<Cost>,
}

/// Measures and prints the table.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    setup::programs(layout)?;
    let workload = Workload::named(&options.program)?;
    let tools = build::unless(layout, options.no_build)?;
    let compiler = jdks::compiler(layout)?;
    let jdk = jdks::of_feature(layout, options.jdk).with_context(|| jdks::missing(options.jdk))?;
    let traced = InstrumentedJdk::of(layout, &tools, &jdk, &[])?;
    let folder = layout.target.join("reading");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut measured = Vec::new();
    for &scale in &options.scale {
        let trace = folder.join(format!("{}-{scale}.ettrace", workload.name));
        if options.keep && trace.exists() {
            measured.push(read(&tools, &trace, scale, &folder, options.commands())?);
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
        let read = read(&tools, &trace, scale, &folder, options.commands());
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

fn read(tools: &Tools, trace: &Path, scale: u32, folder: &Path, commands: &[&[&str]]) -> Result<Measured> {
    let lives = et_files::lives_of(trace);
    let _ = fs::remove_dir_all(&lives);
    let measured = read_all(tools, trace, scale, folder, commands);
    let _ = fs::remove_dir_all(&lives);
    measured
}

fn read_all(tools: &Tools, trace: &Path, scale: u32, folder: &Path, commands: &[&[&str]]) -> Result<Measured> {
    let mut costs = Vec::new();
    for arguments in commands {
        let shown = arguments.join(" ");
        eprintln!("et-trace {shown}");
        let mut command = Command::new(tools.et_trace());
        command.args(*arguments);
        // What is written costs as well, but no disk.
        command.args((arguments[0] == "text").then_some(["-o", "/dev/null"]).into_iter().flatten()).arg(trace);
        costs.push(cost::of(&command, folder).with_context(|| shown)?);
    }
    // Now that the life table is there, which some command has made.
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
        heap: heaps.max().unwrap_or(0),
        costs,
    })
}

fn table(options: &Options, version: &str, measured: &[Measured]) -> String {
    let scales: Vec<String> = options.scale.iter().map(u32::to_string).collect();
    let mut text = format!(
        "`cargo xtask reading --program {} --scale {} --jdk {}{}`, JDK {version}.\n",
        options.program,
        scales.join(","),
        options.jdk,
        if options.brief { " --brief" } else { "" }
    );
    for Measured { scale, records, objects, trace_bytes, heap, costs } in measured {
        let millions = *records as f64 / 1e6;
        text += &format!(
            "\nScale {scale}: {millions:.1} million records, {:.2} million objects, a trace of {:.0} MB; the program's heap held {:.0} MB \
             behind a collection at most.\n\n\
             | et-trace | s | CPU s | cores | M records/s | peak MB |\n|---|--:|--:|--:|--:|--:|\n",
            *objects as f64 / 1e6,
            *trace_bytes as f64 / 1e6,
            *heap as f64 / 1e6
        );
        for (arguments, Cost { seconds, processor, resident }) in options.commands().iter().zip(costs) {
            text += &format!(
                "| `{}` | {seconds:.1} | {processor:.1} | {:.2} | {:.1} | {:.0} |\n",
                arguments.join(" "),
                processor / seconds,
                millions / seconds,
                resident / 1e6
            );
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
            markdown: None,
            keep: false,
        };
        let costs = vec![Cost { seconds: 10.0, processor: 15.0, resident: 2e8 }; COMMANDS.len()];
        let measured = [Measured {
            scale: 6,
            records: 100_000_000,
            objects: 2_500_000,
            trace_bytes: 110_000_000,
            heap: 50_000_000,
            costs,
        }];
        let text = table(&options, "17.0.1", &measured);
        assert!(text.contains("Scale 6: 100.0 million records, 2.50 million objects, a trace of 110 MB"), "{text}");
        assert!(text.contains("| `text --dialect oracle` | 10.0 | 15.0 | 1.50 | 10.0 | 200 |"), "{text}");
    }
}
