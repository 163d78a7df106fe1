//! Tracing that begins after the program and ends before it: initial objects, what is reported, and what is not any
//! more.

use std::fs;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{Run, Setup, programs};
use et_tests::record::{ObjectId, What};
use et_tests::window::Trace;
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let cases: [(&str, lab::Case); 5] = [
        ("from_method_to_method", from_method_to_method),
        ("among_threads_that_run", among_threads_that_run),
        ("from_file_to_file", from_file_to_file),
        ("in_loops_that_were_compiled", in_loops_that_were_compiled),
        ("what_never_comes", what_never_comes),
    ];
    let trials = cases.into_iter().flat_map(|(name, case)| lab::on_one_jdk(name, case));
    lab::run(trials.collect()).exit_code()
}

const PROGRAM: &str = "facts/Phases";
const METHODS: [&str; 2] = ["-Det.start=method:Phases.during", "-Det.stop=method:Phases.after"];

/// How many objects of a nested class there are, by letter.
fn born(trace: &Trace, class: &str) -> Vec<(char, usize)> {
    let descriptor = format!("LPhases${class};");
    let mut counts: Vec<(char, usize)> = Vec::new();
    for record in &trace.records.all {
        if let What::Born { kind, descriptor: found, .. } = &record.what
            && **found == *descriptor
        {
            match counts.iter_mut().find(|(letter, _)| letter == kind) {
                Some((_, count)) => *count += 1,
                None => counts.push((*kind, 1)),
            }
        }
    }
    counts
}

/// The phase is completely in the trace, with its initial objects, and nothing else of the main thread.
fn check_phase(lab: &Lab, run: &Run) -> Result<Trace> {
    let trace = run.read(lab)?;
    // The ten that are kept; the ten others are garbage that must not appear.
    let before = born(&trace, "Before");
    ensure!(matches!(before[..], [('I', 10..=20)]), "{before:?}");
    ensure!(born(&trace, "During") == [('N', 11)], "{:?}", born(&trace, "During"));
    ensure!(born(&trace, "After").is_empty(), "{:?}", born(&trace, "After"));
    let calls = trace.calls("during");
    ensure!(calls.len() == 4, "{} calls of during", calls.len());
    ensure!(trace.calls("before").is_empty() && trace.calls("after").is_empty());
    // The kept objects refer to initial arrays: the first store to each element replaces one.
    let stores = trace.records.all.iter().filter(|record| match &record.what {
        What::Update { field, old, .. } => {
            let field = trace.names.fields.get(field);
            field.is_some_and(|field| *field.class == *"Phases$Before") && *old != ObjectId::NULL
        }
        _ => false,
    });
    ensure!(stores.count() == 10, "old targets of what was there are not known");
    let summary = run.summary(lab)?;
    ensure!(summary["complete"] == true, "{}", summary["cutOff"]);
    Ok(trace)
}

fn from_method_to_method(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::with(lab, jdk, "control-methods", PROGRAM, Setup { traced: &METHODS, ..Setup::default() })?;
    check_phase(lab, &run)?;
    run.clean()
}

fn among_threads_that_run(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup { both: &["-Dthreads=3"], traced: &METHODS, ..Setup::default() };
    let run = Run::with(lab, jdk, "control-threads", PROGRAM, setup)?;
    let trace = check_phase(lab, &run)?;
    let kinds: Vec<char> = born(&trace, "Steady").into_iter().map(|(kind, _)| kind).collect();
    ensure!(kinds.iter().all(|kind| "IN".contains(*kind)) && kinds.contains(&'N'), "{kinds:?}");
    run.clean()
}

fn from_file_to_file(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup {
        both: &["-Dthreads=1", "-Dbegin=begin", "-Dend=end"],
        traced: &["-Det.start=file:begin", "-Det.stop=file:end"],
        ..Setup::default()
    };
    let run = Run::with(lab, jdk, "control-files", PROGRAM, setup)?;
    check_phase(lab, &run)?;
    run.clean()
}

/// Loops that were compiled before hooks were enabled report their later iterations.
fn in_loops_that_were_compiled(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup { traced: &["-Det.start=method:Compiled.begin"], ..Setup::default() };
    let run = Run::with(lab, jdk, "control-compiled", "facts/Compiled", setup)?;
    let trace = run.read(lab)?;
    let of = |field: &u64| trace.names.fields.get(field).is_some_and(|field| *field.class == *"Compiled$Node");
    let (mut stores, mut made) = (0, 0);
    for record in &trace.records.all {
        match &record.what {
            What::Update { field, .. } => stores += usize::from(of(field)),
            What::Born { kind: 'N', descriptor, .. } => made += usize::from(**descriptor == *"LCompiled$Made;"),
            _ => {}
        }
    }
    let told = [("stores", stores), ("objects", made), ("calls", trace.calls("callee").len())];
    // Each loop makes a thousand iterations after the start, some of which may still run without reporting.
    ensure!(told.iter().all(|(_, count)| *count > 500), "{told:?}");
    run.clean()
}

fn what_never_comes(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let options = ["-Det.start=method:Phases.nothing", "-Xlog:class+init=info:file=init.log"];
    let says = "elephant-tracks: tracing did not begin: start=method:Phases.nothing did not happen \
                (class Phases has no method nothing)\n";
    let run = Run::with(lab, jdk, "control-never", PROGRAM, Setup { traced: &options, says, ..Setup::default() })?;
    // All threads reach their first hook at once. If a class of the hooks had to be linked then, they could deadlock.
    let log = fs::read_to_string(run.folder.join("init.log"))?;
    let classes = programs(lab).join("../../runtime-java/src");
    for folder in ["common", "modules"] {
        for class in fs::read_dir(classes.join(folder).join("java/lang"))? {
            let class = class?.file_name().to_string_lossy().replace(".java", "");
            ensure!(
                log.contains(&format!("'java/lang/{class}'")),
                "{class} is not initialised before the hooks are on"
            );
        }
    }
    let summary = run.summary(lab)?;
    let problems = summary["problems"].to_string();
    ensure!(problems.contains("tracing did not begin"), "{problems}");
    ensure!(summary["records"]["M"] == 0, "{}", summary["records"]);
    run.clean()
}
