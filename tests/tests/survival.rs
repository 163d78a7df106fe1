//! Which collections objects survive (`survival=5`): objects that a program keeps through known collections, with each
//! collector, and what a full trace of the same run says of their deaths.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{Run, Setup};
use serde_json::Value;
use xtask::command;
use xtask::jdks::Jdk;

const EVENTS: &[&str] = &["--events", "alloc,stacks"];
const PROGRAM: &str = "survival/Survivors";
/// So many are made of each class in a round.
const EACH: usize = 200;
const ROUNDS: usize = 6;

/// Name, the Java version that has it first, options, and whether the program is stopped while it collects.
const COLLECTORS: [(&str, u32, &[&str], bool); 6] = [
    ("serial", 11, &["-XX:+UseSerialGC"], true),
    ("parallel", 11, &["-XX:+UseParallelGC"], true),
    ("g1", 11, &["-XX:+UseG1GC"], true),
    ("z", 15, &["-XX:+UseZGC"], false),
    ("shenandoah", 15, &["-XX:+UseShenandoahGC"], false),
    ("compact_headers", 25, &["-XX:+UseCompactObjectHeaders"], true),
];

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for (name, since, options, stops) in COLLECTORS {
        trials.extend(lab::on_each_jdk_unless(
            name,
            move |lab, jdk| match jdk.feature < since {
                true => Some(format!("Java {} has no {}", jdk.feature, options.join(" "))),
                false => lab.refusal(jdk, options),
            },
            move |lab, jdk| survived(lab, jdk, name, options, &[], stops),
        ));
    }
    for (name, options) in [("hashes_of_the_vm", "-Det.ids=hash"), ("tags", "-Det.ids=tags")] {
        trials.push(lab::on_jdk_unless(
            17,
            name,
            |_, _| None,
            move |lab, jdk| survived(lab, jdk, name, &["-XX:+UseSerialGC"], &[options], true),
        ));
    }
    trials.extend(lab::on_some_jdks("a_full_trace_agrees", full_trace_agrees));
    trials.extend(lab::on_some_jdks("a_leak_is_at_its_line", leak));
    lab::run(trials).exit_code()
}

fn et_trace(lab: &Lab, arguments: &[&str], run: &Run) -> Result<String> {
    command::read(Command::new(lab.tools.et_trace()).args(arguments).arg(&run.trace))
}

/// What walks say of all objects of a class.
#[derive(Debug)]
struct Survived {
    collections: u64,
    at_most: u64,
    is_gone: bool,
}

fn objects(lab: &Lab, run: &Run, class: &str) -> Result<Vec<Survived>> {
    let class = format!("Survivors${class}");
    let found = et_trace(lab, &["objects", "--json", "--top", "100000", "--sort", "birth", "--class", &class], run)?;
    let found: Value = serde_json::from_str(&found)?;
    let objects = found["objects"].as_array().context("no objects")?;
    let survived = |object: &Value| {
        let survival = &object["survival"];
        ensure!(survival["isUncertain"] == false, "uncertain: {object}");
        Ok(Survived {
            collections: survival["collections"].as_u64().context("not judged")?,
            at_most: survival["atMost"].as_u64().context("not judged")?,
            is_gone: !survival["goneBy"].is_null(),
        })
    };
    objects.iter().map(survived).collect()
}

fn survived(lab: &Lab, jdk: &Jdk, name: &str, options: &[&str], ids: &[&str], stops: bool) -> Result<()> {
    let traced = [ids, &["-Det.survival=50"]].concat();
    let setup = Setup { jdk: EVENTS, program: EVENTS, both: options, traced: &traced, ..Setup::default() };
    let run = Run::with(lab, jdk, &format!("survival_{name}"), PROGRAM, setup)?;
    let summary = run.summary(lab)?;
    let survival = &summary["survival"];
    ensure!(survival["reachesTheEnd"] == true && survival["isExactAtTheEnd"] == true, "{survival}");
    ensure!(survival["uncertain"]["objects"] == 0, "{survival}");
    let collections = survival["collections"].as_u64().context("no number of collections")?;
    ensure!(collections >= ROUNDS as u64, "{collections} collections");
    // On a busy machine a walk may come too late for one.
    let is_complete = survival["notLookedAt"] == 0;
    let one = |class: &str, rounds: usize| {
        let all = objects(lab, &run, class)?;
        ensure!(all.len() == EACH * rounds, "{} of {class}", all.len());
        Ok(all)
    };
    for object in one("Of0", ROUNDS)? {
        ensure!(object.is_gone && (object.collections == 0 || !stops), "{object:?}");
    }
    // Each group, and how many collections it goes through. There is one more at the end.
    let is_expected = |object: &Survived, expected: usize| {
        let expected = expected as u64;
        let fits = object.collections <= expected && expected <= object.at_most;
        // Concurrent collectors stop the program several times for a collection.
        !stops || (fits && (!is_complete || object.collections == expected))
    };
    for object in one("Of1", ROUNDS)? {
        ensure!(object.is_gone && is_expected(&object, 1), "{object:?}");
    }
    for (at, object) in one("Of3", ROUNDS)?.iter().enumerate() {
        let round = at / EACH;
        ensure!(object.is_gone == (round < ROUNDS - 2), "{object:?} of round {round}");
        ensure!(is_expected(object, (ROUNDS - round + 1).min(3)), "{object:?} of round {round}");
    }
    for (at, object) in one("Always", ROUNDS)?.iter().enumerate() {
        ensure!(!object.is_gone && is_expected(object, ROUNDS - at / EACH + 1), "{object:?}");
    }
    let locked = objects(lab, &run, "Locked")?;
    ensure!(locked.len() == 10 && locked.iter().all(|object| !object.is_gone), "{locked:?}");
    what_is_shown(lab, &run)?;
    run.clean()
}

/// The heaviest stack by what survived is that of what is kept.
fn what_is_shown(lab: &Lab, run: &Run) -> Result<()> {
    let survived = et_trace(lab, &["export", "--to", "collapsed", "--weight", "survived-objects"], run)?;
    let of = |class: &str| -> u64 {
        let of_class = survived.lines().filter(|line| line.contains(&format!(";Survivors${class} ")));
        of_class.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
    };
    ensure!(of("Always") == (EACH * ROUNDS) as u64, "{} of them survived", of("Always"));
    let text = et_trace(lab, &["summary"], run)?;
    ensure!(text.contains("Collections survived") && text.contains("survival: "), "{text}");
    Ok(())
}

/// The heaviest stack of what is there at the end of a service that leaks leads to the line that does.
fn leak(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let traced = ["-Det.survival=5"];
    let setup = Setup { jdk: EVENTS, program: EVENTS, traced: &traced, ..Setup::default() };
    let run = Run::with(lab, jdk, "survival_leak", "explorer/Service", setup)?;
    let alive = et_trace(lab, &["export", "--to", "collapsed", "--weight", "alive-bytes"], &run)?;
    let weights = alive.lines().filter_map(|line| {
        let (stack, weight) = line.rsplit_once(' ')?;
        Some((weight.parse::<u64>().ok()?, stack))
    });
    let (bytes, stack) = weights.max().context("nothing is alive")?;
    ensure!(bytes >= 12_000 * 200 && stack.ends_with(";byte[]"), "{bytes} bytes: {stack}");
    let frame = stack.split(';').find_map(|frame| frame.strip_prefix("Service.open:"));
    let line: usize = frame.with_context(|| format!("not in Service.open: {stack}"))?.parse()?;
    let source = fs::read_to_string(lab.layout.repo.join("tests/java/explorer/Service.java"))?;
    let text = source.lines().nth(line - 1).unwrap_or_default();
    ensure!(text.contains("new Session("), "line {line}: {text}");
    // The flame graph of the report has the same frame, with its line, and the summary the site.
    let report = et_trace(lab, &["report", "--json"], &run)?;
    ensure!(report.contains(&format!("Service.open:{line}")), "no line {line} in the report");
    ensure!(et_trace(lab, &["summary"], &run)?.contains("Service$Session.<init>"), "no site in the summary");
    run.clean()
}

/// What a walk lacks is dead in a full trace, with the exceptions that deaths have by definition.
fn full_trace_agrees(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup { traced: &["-Det.survival=50"], ..Setup::default() };
    let run = Run::with(lab, jdk, "survival_full", PROGRAM, setup)?;
    let compared: Value = serde_json::from_str(&et_trace(lab, &["compare-deaths", "--json"], &run)?)?;
    let number = |key: &str| compared[key].as_u64().unwrap_or(0);
    ensure!(compared["errors"] == Value::Array(Vec::new()), "{compared}");
    ensure!(number("collections") > 1 && compared["askedAtEnd"] == true, "{compared}");
    ensure!(number("freedAtOnce") >= (EACH * ROUNDS) as u64, "{compared}");
    ensure!(!et_trace(lab, &["summary"], &run)?.contains("Collections survived"), "deaths tell more");
    run.clean()
}
