//! `cargo xtask collectors`: runs random programs on MMTk's collectors, checking the heap after each collection, or measures real programs
//! on them, in heaps of several sizes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use xtask::layout::{Layout, Tools};
use xtask::programs::Stage;
use xtask::workloads::Workload;
use xtask::{build, command};

use crate::markdown;
use crate::tour::{Tour, TourOptions};

/// Options of `cargo xtask collectors`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Measure real programs, each with the size of its work in percent, instead of checking random ones
    #[arg(long, value_name = "NAME:SCALE", value_delimiter = ',')]
    programs: Vec<Program>,
    /// MMTk's plans to use [default: all that collect]
    #[arg(long, value_name = "NAMES", requires = "programs")]
    plan: Option<String>,
    /// Java version to run the programs on
    #[arg(long, default_value_t = 17, requires = "programs")]
    jdk: u32,
    /// Do not build the tools: use those built last
    #[arg(long, requires = "programs")]
    no_build: bool,
    /// Also write the tables to this file
    #[arg(long, requires = "programs")]
    markdown: Option<PathBuf>,
    /// Keep traces and operations files
    #[arg(long, requires = "programs")]
    keep: bool,
}

/// A program and the size of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    name: String,
    scale: u32,
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, scale) = text.split_once(':').ok_or("a program is NAME:SCALE, as in h2:50")?;
        let scale = scale.parse().ok().filter(|&scale| scale > 0).ok_or("the scale is a percentage")?;
        Ok(Self { name: name.to_owned(), scale })
    }
}

/// Heap sizes in the table, as multiples of the smallest heap of each plan.
const SHOWN: [f64; 4] = [1.5, 2.0, 3.0, 6.0];
/// Minimum number of records per second that plans should replay unless they slide objects.
const RECORDS: f64 = 30e6;
/// Heap size of the simulated collectors. For programs with many large arrays, mark-sweep needs nine times the live
/// size.
const SIMULATED: &str = "16x";
/// Plans that slide objects, which is slower.
const SLIDING: [&str; 2] = ["MarkCompact", "Compressor"];

/// Checks random programs, or measures real ones.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    if options.programs.is_empty() {
        // Tests that `cargo xtask test` leaves out because they take long to compile.
        for (folder, features) in [
            ("tools/et-collect", vec![]),
            ("tools/et-collect", vec!["--features", "faults"]),
            ("tools/et-allocate", vec![]),
        ] {
            let mut lints = build::cargo_apart(layout, folder, "clippy");
            command::run(lints.arg("--all-targets").args(features).args(["--", "-D", "warnings"]))?;
        }
        let mut tests = build::cargo_apart(layout, "tools/et-collect", "test");
        command::run(tests.args(["--features", "faults"]))?;
        build::all(layout)?;
        return [("replay", "alive"), ("errors", "replay")].into_iter().try_for_each(|(test, case)| {
            let mut tests = command::cargo(&layout.repo);
            tests.args(["test", "--workspace", "--locked", "--test", test, "--", case]);
            command::run(tests.env("ET_COLLECT", "1"))
        });
    }
    if !options.no_build {
        build::all(layout)?;
    }
    let mut tables = String::new();
    let mut failed = Vec::new();
    for Program { name, scale } in &options.programs {
        let touring = TourOptions { scale: *scale, jdk: vec![options.jdk], no_build: true, markdown: None };
        let tour = Tour::new(layout, "collectors", std::slice::from_ref(name), &touring, options.keep)?;
        let notes = tour.run(|stage, workload, title, folder| {
            let replays = Replays { tools: stage.tools, ops: folder.join("app.ops") };
            prepare(stage, workload, folder, &replays.ops, options.keep)?;
            let page = layout.target.join(format!("collectors/{name}-{scale}.html"));
            tables += &replays.table(&format!("{title}, scale {scale}"), options.plan.as_deref(), &page)?;
            eprintln!("{title}: curves in {}", page.display());
            Ok(())
        })?;
        notes.lines.iter().for_each(|line| _ = writeln!(tables, "{line}\n"));
        failed.extend(notes.check().is_err().then_some(&**name));
        // Shown immediately: all programs together can take hours.
        if let Some(path) = &options.markdown {
            markdown::write(path, &tables)?;
        }
    }
    println!("{tables}");
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Creates an operations file from a run of the program.
fn prepare(stage: &Stage<'_>, workload: &Workload, folder: &Path, ops: &Path, keep: bool) -> Result<()> {
    let trace = stage.trace(workload, folder, &[])?;
    let mut prepare = Command::new(stage.tools.et_replay());
    command::quiet(prepare.args(["prepare", "--no-lives"]).arg(&trace).arg("-o").arg(ops))?;
    if !keep {
        fs::remove_file(&trace).with_context(|| format!("cannot remove {}", trace.display()))?;
    }
    Ok(())
}

struct Replays<'a> {
    tools: &'a Tools,
    ops: PathBuf,
}

impl Replays<'_> {
    /// The output as JSON, and the messages about collectors that were left out.
    fn json(&self, args: &[&str]) -> Result<(Value, String)> {
        let mut replay = Command::new(self.tools.et_replay());
        replay.arg(args[0]).arg(&self.ops).args(&args[1..]).arg("--json");
        let output = replay.output().context("cannot start et-replay")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match serde_json::from_slice(&output.stdout) {
            Ok(shown) => Ok((shown, said)),
            Err(_) => bail!("et-replay {}: {}: {}", args.join(" "), output.status, said.trim_end()),
        }
    }

    /// Compares the plans; fails if one of them does not end with the live objects of the trace.
    fn table(&self, title: &str, plans: Option<&str>, page: &Path) -> Result<String> {
        let page = page.to_str().context("the path of the target folder is not UTF-8")?;
        let mut args = vec!["collect", "--curve", page, "--force"];
        args.extend(plans.iter().flat_map(|plans| ["--plan", plans]));
        let (shown, said) = self.json(&args)?;
        let (simulated, _) = self.json(&["simulate", "--heap", SIMULATED, "--backup-trace"])?;
        simulators_agree(&simulated, &shown["aliveAtEnd"])?;
        let mut text = table(title, &shown)?;
        said.lines().for_each(|line| _ = writeln!(text, "{}\n", line.trim_start_matches("et-replay: ")));
        Ok(text)
    }
}

/// Checks that simulated collectors also end with the live objects of the trace.
fn simulators_agree(shown: &Value, alive: &Value) -> Result<()> {
    let all = shown["simulations"].as_array().context("no simulations")?;
    ensure!(all.len() == 5, "{} of 5 simulations", all.len());
    for one in all {
        ensure!(one["atEnd"] == *alive, "{}: {} is left, and {alive} is alive", one["collector"], one["atEnd"]);
    }
    Ok(())
}

fn table(title: &str, shown: &Value) -> Result<String> {
    let curves = shown["curves"].as_array().context("no curves")?;
    ensure!(!curves.is_empty(), "no plan has a smallest heap");
    let mebi = |value: &Value| format!("{:.1} MiB", value.as_f64().unwrap_or_default() / f64::from(1 << 20));
    let mut text = format!(
        "{title}: {} objects and {} at most alive at a time\n\n\
         | plan | smallest heap | 1.5 times | 2 times | 3 times | 6 times | M records/s, least |\n|---|--:|--:|--:|--:|--:|--:|\n",
        shown["peakObjects"],
        mebi(&shown["peakBytes"]),
    );
    for curve in curves {
        let plan = curve["plan"].as_str().context("a plan without a name")?;
        let points = curve["points"].as_array().context("no points")?;
        for point in points {
            let end = &point["report"]["atEnd"];
            let agree = end["alive"] == shown["aliveAtEnd"] && end["reached"] == end["alive"];
            ensure!(agree, "{plan}: {end}, and {} is alive in the trace", shown["aliveAtEnd"]);
        }
        _ = write!(text, "| `{plan}` | {} |", mebi(&curve["smallest"]));
        for times in SHOWN {
            let report = points.iter().find(|point| point["times"] == times).map(|point| &point["report"]);
            text += &report.map_or(" left out |".to_owned(), cell);
        }
        let speeds = points.iter().map(|point| speed(&point["report"]));
        let least = speeds.fold(f64::INFINITY, f64::min);
        let is_slow = least < RECORDS && !SLIDING.contains(&plan);
        let mark = if is_slow { "**" } else { "" };
        _ = writeln!(text, " {mark}{:.0}{mark} |", least / 1e6);
    }
    text.push('\n');
    Ok(text)
}

/// Number of pauses, the longest pause, and the total time.
fn cell(report: &Value) -> String {
    let longest = report["pauses"]["max"].as_f64().unwrap_or_default() / 1e6;
    let total = report["seconds"].as_f64().unwrap_or_default();
    format!(" {}, {longest:.0} ms, {total:.1} s |", report["collections"])
}

fn speed(report: &Value) -> f64 {
    report["records"].as_f64().unwrap_or_default() / report["seconds"].as_f64().unwrap_or_default().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn programs_have_a_size() {
        let parsed = |text: &str| text.parse::<Program>().map(|program| (program.name, program.scale)).ok();
        assert_eq!(parsed("h2:50"), Some(("h2".to_owned(), 50)));
        assert_eq!(["h2", "h2:", "h2:0", "h2:x"].map(parsed), [None, None, None, None]);
    }

    fn shown(reached: u64) -> Value {
        let alive = json!({ "objects": 7, "bytes": 200 });
        let report = json!({
            "collections": 12, "pauses": { "max": 16_200_000 }, "seconds": 1.5, "records": 60_000_000,
            "atEnd": { "alive": alive, "reached": { "objects": reached, "bytes": 200 } },
        });
        let points: Vec<Value> =
            [1.25, 1.5, 3.0, 6.0].into_iter().map(|times| json!({ "times": times, "report": report })).collect();
        json!({
            "peakBytes": 10 << 20, "peakObjects": 9, "aliveAtEnd": alive,
            "curves": [{ "plan": "Immix", "smallest": 12 << 20, "points": points }],
        })
    }

    #[test]
    fn a_table_shows_heaps_and_refuses_what_was_lost() {
        let text = table("t", &shown(7)).unwrap();
        let cell = "12, 16 ms, 1.5 s";
        assert!(
            text.ends_with(&format!("| `Immix` | 12.0 MiB | {cell} | left out | {cell} | {cell} | 40 |\n\n")),
            "{text}"
        );
        assert!(table("t", &shown(6)).unwrap_err().to_string().contains("Immix"));
    }

    #[test]
    fn simulators_must_leave_what_is_alive() {
        let alive = json!({ "objects": 7, "bytes": 200 });
        let all = |last: &Value| {
            json!({ "simulations": [
            { "atEnd": alive }, { "atEnd": alive }, { "atEnd": alive }, { "atEnd": alive }, { "atEnd": last },
        ] })
        };
        simulators_agree(&all(&alive), &alive).unwrap();
        assert!(simulators_agree(&all(&json!({ "objects": 8, "bytes": 216 })), &alive).is_err());
        assert!(simulators_agree(&json!({ "simulations": [] }), &alive).is_err());
    }
}
