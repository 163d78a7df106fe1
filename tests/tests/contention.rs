//! `-Det.monitors=on`: a traced program of known contention and waits, and what the JDK's Flight Recorder says of the same run. And what
//! the viewers of TPTP get of a trace.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use et_tests::flight::{self, Stop};
use et_tests::lab::{self, Lab};
use et_tests::program::{Run, Setup};
use et_tests::{compiled, program, trcxml};
use serde_json::Value;
use xtask::instrumented;
use xtask::jdks::Jdk;

/// Milliseconds that two clocks may differ by, on a machine with other work.
const SLACK: f64 = 10.0;
/// The threads of `Contended`; its `main` may also have to wait for others.
const THREADS: [&str; 3] = ["waiter <&\">", "timed", "notified"];

fn main() -> ExitCode {
    let mut trials = lab::on_one_jdk("contention", contention);
    trials.extend(lab::on_one_jdk("dialect_tptp", tptp));
    lab::run(trials).exit_code()
}

/// Runs `Contended` traced, lets it go on at once; where the trace is, and its folder.
fn traced(lab: &Lab, jdk: &Jdk, test: &str, options: &[String]) -> Result<(PathBuf, PathBuf, Vec<String>)> {
    let folder = lab.folder(jdk, test)?;
    let trace = folder.join("trace.ettrace");
    let classes = compiled::classes(lab, &program::programs(lab).join("monitor/Contended.java"), 11)?;
    let instrumented = lab.instrumented(jdk)?;
    let mut command = Command::new(instrumented.java());
    command.args(options).args(instrumented.options(&trace)).arg("-cp").arg(classes).arg("Contended");
    command.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start java")?;
    child.stdin.take().context("no input")?.write_all(b"\n\n")?;
    let lines = BufReader::new(child.stdout.take().context("no output")?).lines().collect::<Result<Vec<_>, _>>()?;
    let status = child.wait()?;
    ensure!(status.success() && lines.iter().any(|line| line == "done"), "{status}: {lines:?}");
    xtask::programs::validate(&lab.tools, &trace)?;
    Ok((trace, folder, lines))
}

/// The number after a name in the program's output.
fn number(lines: &[String], name: &str) -> Result<f64> {
    let start = format!("{name}=");
    let mut words = lines.iter().flat_map(|line| line.split(' '));
    let word = words.find_map(|word| word.strip_prefix(&start));
    Ok(word.with_context(|| format!("no {name} in {lines:?}"))?.parse()?)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn stops(summary: &Value) -> Result<Vec<Stop>> {
    let lines = summary["contention"]["longest"].as_array().context("no contention in the summary")?;
    let stop = |line: &Value| Stop {
        is_wait: line["isWait"] == true,
        class: text(&line["class"]),
        thread: text(&line["thread"]),
        owner: line["owner"].as_str().map(str::to_owned),
        millis: line["seconds"].as_f64().unwrap_or_default() * 1000.0,
        is_timed_out: line["isTimedOut"] == true,
    };
    Ok(lines.iter().map(stop).collect())
}

fn contention(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let recording = lab.folder(jdk, "contention_recording")?.join("run.jfr");
    let mut options = vec!["-Det.monitors=on".to_owned()];
    let judge = flight::reader(jdk);
    options.extend(judge.iter().map(|_| flight::option(&recording)));
    let (trace, folder, lines) = traced(lab, jdk, "contention", &options)?;
    let summary = instrumented::summary(&lab.tools, &trace, 1000)?;
    let ours = stops(&summary)?;
    let find = |thread: &str| ours.iter().find(|stop| stop.thread == thread && stop.class == "Contended$Lock");
    let waiter = find(THREADS[0]).with_context(|| format!("no contention in {ours:?}"))?;
    ensure!(!waiter.is_wait && waiter.owner.as_deref() == Some("holder"), "{waiter:?}");
    let timed = find("timed").context("no timed wait")?;
    let notified = find("notified").context("no other wait")?;
    ensure!(
        timed.is_wait && timed.is_timed_out && notified.is_wait && !notified.is_timed_out,
        "{timed:?} {notified:?}"
    );
    for (stop, millis) in [
        (waiter, number(&lines, "held_ms")?),
        (timed, number(&lines, "timed_us")? / 1000.0),
        (notified, number(&lines, "notified_us")? / 1000.0),
    ] {
        ensure!((stop.millis - millis).abs() <= SLACK, "{stop:?} instead of {millis} ms");
    }
    // Places, owners and waiters.
    let contention = &summary["contention"];
    let sites = contention["sites"].as_array().context("no sites")?;
    ensure!(sites.iter().any(|line| text(&line["site"]).starts_with("Contended.enter:")), "{sites:?}");
    ensure!(sites.iter().any(|line| text(&line["site"]).starts_with("Contended.timedWait:")), "{sites:?}");
    let owners = contention["owners"].as_array().context("no owners")?;
    ensure!(owners.iter().any(|line| line["owner"] == "holder" && line["waiter"] == THREADS[0]), "{owners:?}");
    match judge {
        Some(_) => flight::compare(&ours, &flight::stops(jdk, &recording)?, &THREADS, SLACK)?,
        None => {
            lab.not_tested(&format!("jdk{}::contention against Flight Recorder", jdk.feature), "the JDK has no jfr")
        }
    }
    // As events for the viewers of TPTP: of a run without the recorder, which makes millions of records.
    let (trace, plain, _) = traced(lab, jdk, "contention_plain", &["-Det.monitors=on".to_owned()])?;
    let elements = written(lab, &trace, &plain.join("run.trcxml"))?;
    ensure!(elements.count("monContendedEnter") > 0 && elements.count("monWaited") > 0, "{elements:?}");
    if !lab::keep_traces() {
        fs::remove_dir_all(&folder)?;
        fs::remove_dir_all(&plain)?;
        fs::remove_file(&recording).ok();
    }
    Ok(())
}

/// How often each element was written.
#[derive(Debug)]
struct Counts(std::collections::BTreeMap<String, u64>);

impl Counts {
    fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// Writes the XML of a trace, and looks whether each use has its definition before it.
fn written(lab: &Lab, trace: &Path, file: &Path) -> Result<Counts> {
    let mut command = Command::new(lab.tools.et_trace());
    let output = command.args(["text", "--dialect", "tptp", "-o"]).arg(file).arg(trace).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(file)?;
    let elements = trcxml::elements(&text)?;
    trcxml::check_definitions(&elements)?;
    let mut counts = Counts(Default::default());
    for element in &elements {
        *counts.0.entry(element.name.to_owned()).or_default() += 1;
    }
    Ok(counts)
}

fn tptp(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::with(lab, jdk, "dialect_tptp", "Exceptions", Setup::default())?;
    let file = run.folder.join("run.trcxml");
    let counts = written(lab, &run.trace, &file)?;
    // With deaths, which other tests do without.
    let output = Command::new(lab.tools.et_trace()).args(["summary", "--json"]).arg(&run.trace).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout)?;
    let records = &summary["records"];
    let of = |letters: &str| -> u64 {
        letters.chars().map(|letter| records[letter.to_string()].as_u64().unwrap_or_default()).sum()
    };
    for (name, letters) in [
        ("objAlloc", "ANV"),
        ("objDef", "IP"),
        ("objFree", "D"),
        ("methodEntry", "M"),
        ("methodExit", "EX"),
        ("throw", "T"),
        ("catch", "H"),
        ("traceStart", ""),
    ] {
        let expected = if letters.is_empty() { 1 } else { of(letters) };
        ensure!(counts.count(name) == expected && expected > 0, "{} {name}, not {expected}", counts.count(name));
    }
    trcxml::validate(lab, &file)?;
    run.clean()
}
