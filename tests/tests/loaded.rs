//! A trace has the names of the classes that the program loaded, and of all if it has virtual threads.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Run};
use xtask::command;
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let mut trials = lab::on_one_jdk("classes_of_the_program", of_the_program);
    trials.extend(lab::on_some_jdks_unless(
        "virtual_threads",
        |lab, jdk| program::obstacle(lab, jdk, VIRTUAL),
        with_virtual_threads,
    ));
    lab::run(trials).exit_code()
}

const VIRTUAL: &str = "semantics/VirtualThreads";

/// How many classes of the JDK have names in the trace, and how many it has.
fn of_the_jdk(lab: &Lab, run: &Run) -> Result<(usize, usize)> {
    let info = command::quiet(Command::new(lab.tools.et_trace()).arg("info").arg(&run.trace))?;
    let text = String::from_utf8(info.stdout)?;
    let line = text.lines().find(|line| line.contains(", ids 0x1 to ")).with_context(|| format!("no JDK in {text}"))?;
    let counts = line.split(", ").find(|part| part.ends_with(" classes")).context("no number of classes")?;
    let counts = counts.trim_end_matches(" classes").replace(',', "");
    let (here, all) = counts.split_once(" of ").unwrap_or((&counts, &counts));
    Ok((here.parse()?, all.parse()?))
}

fn of_the_program(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "loaded", "Objects")?;
    let (here, all) = of_the_jdk(lab, &run)?;
    // Classes that a VM loads before any program.
    ensure!((300..2000).contains(&here) && here * 3 < all, "{here} of {all} classes");
    let trace = run.read(lab)?;
    let leaf = trace.names.methods.values().find(|method| &*method.class == "Objects$Leaf");
    ensure!(leaf.is_some(), "the program's own class has no names");
    run.clean()
}

fn with_virtual_threads(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "loaded_virtual", VIRTUAL)?;
    let (here, all) = of_the_jdk(lab, &run)?;
    ensure!(here == all, "{here} of {all} classes");
    run.clean()
}
