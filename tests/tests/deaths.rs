//! Every program of `tests/java/deaths`: where its objects die, as its comments say, on every JDK; with witnesses on one, and without
//! calls as far as the heap tells.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::fate::{self, Witness};
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Run, Setup};
use libtest_mimic::Trial;
use serde_json::Value;
use xtask::command;
use xtask::jdks::Jdk;
use xtask::layout::Layout;

fn main() -> Result<ExitCode> {
    let names = program::in_folder(&Layout::find()?, "deaths")?;
    let mut trials: Vec<Trial> = Vec::new();
    for name in names {
        let own = name.clone();
        let obstacle = move |lab: &Lab, jdk: &Jdk| program::obstacle(lab, jdk, &own);
        let case = |witness| {
            let name = name.clone();
            move |lab: &Lab, jdk: &Jdk| check(lab, jdk, &name, witness)
        };
        trials.extend(lab::on_some_jdks_unless(&name, &obstacle, case(Witness::None)));
        for witness in [Witness::Refs, Witness::All] {
            let test = format!("{name}_{}", witness.name());
            trials.extend(lab::on_one_jdk_unless(&test, &obstacle, case(witness)));
        }
    }
    trials.extend(lab::on_one_jdk("Heap_without_calls", without_calls));
    Ok(lab::run(trials).exit_code())
}

const HEAP: &str = "deaths/Heap";

/// Of what the heap holds, deaths are the same without calls.
fn without_calls(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let events: &[&str] = &["--events", "alloc,update,stacks"];
    let setup = Setup { jdk: events, program: events, traced: &["-Det.deaths=gc"], ..Setup::default() };
    let run = Run::with(lab, jdk, "deaths_heap_without_calls", HEAP, setup)?;
    let text = fs::read_to_string(program::programs(lab).join(format!("{HEAP}.java")))?;
    let fates = fate::parse(&text)?;
    let fates: Vec<_> =
        fate::that_hold(&fates, jdk.feature, Witness::None).into_iter().filter(|fate| fate.is_of_heap()).collect();
    ensure!(fates.len() > 10, "only {} objects die by the heap", fates.len());
    let wrong = fate::differences(&run.read_with_deaths(lab)?, &fates);
    ensure!(
        wrong.is_empty(),
        "{} of {}\n{}\ntrace: {}",
        wrong.len(),
        fates.len(),
        wrong.join("\n"),
        run.trace.display()
    );
    let et_trace =
        |arguments: &[&str]| command::read(Command::new(lab.tools.et_trace()).args(arguments).arg(&run.trace));
    // The collector frees nothing that the trace holds.
    let compared: Value = serde_json::from_str(&et_trace(&["compare-deaths", "--json"])?)?;
    ensure!(compared["errors"] == Value::Array(Vec::new()), "{compared}");
    let summary: Value = serde_json::from_str(&et_trace(&["summary", "--json"])?)?;
    let says = summary["warnings"].to_string();
    ensure!(says.contains("deaths are those of the heap"), "not said: {says}");
    ensure!(summary["ticks"] == summary["allocated"]["bytes"], "{} ticks", summary["ticks"]);
    // Allocations have their stacks, and moments count bytes.
    let stacks = et_trace(&["export", "--to", "collapsed"])?;
    ensure!(
        stacks.lines().any(|line| line.contains("Heap.main:") && line.contains(";Heap.statics:")),
        "no lines: {stacks}"
    );
    let half: Value = serde_json::from_str(&et_trace(&["heap", "--at", "50%", "--dominators", "--json"])?)?;
    let (at, whole) = (half["heap"]["allocatedBytes"].as_u64(), summary["ticks"].as_u64());
    ensure!(at.zip(whole).is_some_and(|(at, whole)| at.abs_diff(whole / 2) < whole / 4), "{at:?} of {whole:?}");
    let refused = Command::new(lab.tools.et_trace()).arg("escape").arg(&run.trace).output()?;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(!refused.status.success() && why.contains("needs calls"), "{why}");
    run.clean()?;
    // The same in a trace with calls.
    let run = Run::with(lab, jdk, "deaths_heap_with_calls", HEAP, Setup::default())?;
    let compare = ["compare-deaths", "--by-heap", "--json"];
    let found: Value =
        serde_json::from_str(&command::read(Command::new(lab.tools.et_trace()).args(compare).arg(&run.trace))?)?;
    ensure!(found["later"]["objects"] == 0 && found["made"]["objects"].as_u64() > Some(100), "{found}");
    run.clean()
}

fn check(lab: &Lab, jdk: &Jdk, name: &str, witness: Witness) -> Result<()> {
    let options: &[&str] = if witness == Witness::None { &[] } else { &["--witness", witness.name()] };
    let setup = Setup { jdk: options, program: options, ..Setup::default() };
    let run = Run::with(lab, jdk, &format!("{}_{}", name.replace('/', "_"), witness.name()), name, setup)?;
    let source = program::programs(lab).join(format!("{name}.java"));
    let text = fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let fates = fate::parse(&text).with_context(|| format!("{}", source.display()))?;
    let fates = fate::that_hold(&fates, jdk.feature, witness);
    ensure!(!fates.is_empty(), "{} says of no object where it dies", source.display());
    let wrong = fate::differences(&run.read_with_deaths(lab)?, &fates);
    ensure!(
        wrong.is_empty(),
        "{} of {} objects of {name}\n{}\ntrace: {}",
        wrong.len(),
        fates.len(),
        wrong.join("\n"),
        run.trace.display()
    );
    run.clean()
}
