//! Every program of `tests/java` that says in its comments which records it leaves, on several JDKs; on some also with hooks for
//! entry and exit of all methods.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use et_tests::expect::View;
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Run, Setup};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;
use xtask::layout::Layout;

/// Entry and exit have a hook each.
const APART: &[&str] = &["--no-leaves"];

fn main() -> Result<ExitCode> {
    let names = program::in_folder(&Layout::find()?, "")?;
    let mut trials = checked_native_code();
    trials.extend(names.into_iter().flat_map(|name| {
        let (own, other) = (name.clone(), name.clone());
        let obstacle = move |lab: &Lab, jdk: &Jdk| program::obstacle(lab, jdk, &own);
        // Leaves are the same on all: one JDK has each program twice.
        lab::on_some_jdks_unless(&name, obstacle, move |lab, jdk| {
            match lab::has_all_jdks() && jdk.feature != lab::SOME_JDKS[0] {
                true => program::check(lab, jdk, &other),
                false => check_leaves(lab, jdk, &other),
            }
        })
    }));
    Ok(lab::run(trials).exit_code())
}

/// Where the VM checks each call of native code, the records are the same. Of our calls it has nothing to say: there
/// are no more warnings than those that the program's own native code gets in the plain run.
fn checked_native_code() -> Vec<Trial> {
    let trials = ["JniCalls", "MadeByVm", "Updates"].into_iter().flat_map(|name| {
        let test = format!("{name}_checked");
        lab::on_some_jdks(&test.clone(), move |lab, jdk| {
            // JDK 11 goes through all local references after each call.
            let setup = Setup { both: &["-Xcheck:jni", "-Dmany=1000"], ..Setup::default() };
            program::check_with(lab, jdk, &test, name, setup)
        })
    });
    trials.collect()
}

/// As [`program::check`]; and methods that leave one event for entry and exit (leaves) have the records that they have with a
/// hook for each: the program and the JDK are rewritten both ways, and all that its methods did is compared.
fn check_leaves(lab: &Lab, jdk: &Jdk, name: &str) -> Result<()> {
    // The lengths of paths show in the records.
    let (together, one) = program::checked(lab, jdk, &format!("leaves-joined/{name}"), name, Setup::default())?;
    let setup = Setup { jdk: APART, program: APART, ..Setup::default() };
    let apart = Run::with(lab, jdk, &format!("leaves-parted/{name}"), name, setup)?;
    let other = apart.read(lab)?;
    for expectation in &one.source.expectations {
        let shown = |trace: &et_tests::window::Trace| -> Result<Vec<String>> {
            let calls = trace.calls(&expectation.method);
            let call = if expectation.first { calls.first() } else { calls.last() };
            let call = call.with_context(|| format!("{name}.{} does not show", expectation.method))?;
            // Where classes are loaded, the JDK's records show how large they are.
            Ok(trace.show(call, View { own: expectation.view.own, ..View::default() }))
        };
        let (one, other) = (shown(&one)?, shown(&other)?);
        let differs = one.iter().zip(&other).position(|(one, other)| one != other);
        let at = differs.unwrap_or(one.len().min(other.len()));
        ensure!(
            one == other,
            "{name}.{} differs after {at} records: {:?} with leaves, {:?} without\ntraces: {} {}",
            expectation.method,
            one.get(at),
            other.get(at),
            together.trace.display(),
            apart.trace.display()
        );
    }
    let (fewer, more) = (events(lab, &together)?, events(lab, &apart)?);
    // How deep a stack may be is chance.
    ensure!(fewer < more || name == "Overflow", "{fewer} events with leaves, {more} without");
    together.clean()?;
    apart.clean()
}

/// How many events the trace has.
fn events(lab: &Lab, run: &Run) -> Result<u64> {
    let mut info = std::process::Command::new(lab.tools.et_trace());
    let output = info.args(["info", "--json"]).arg(&run.trace).output()?;
    let info: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    info["events"].as_u64().context("info does not say how many events there are")
}
