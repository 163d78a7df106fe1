//! Agents of JVMPI driven from traces: they see what they see in a VM that runs the program, and under each collector what it does.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::compiled;
use et_tests::jvmpi::{Report, Tier, agent, conform, host, java, leaves_out};
use et_tests::lab::{self, Lab};
use et_tests::program::Run;
use xtask::command;
use xtask::jdks::Jdk;

/// Events in a trace, with stacks.
const ALL: &str = "alloc,trace,methods,entry2";
const COLLECTORS: [&str; 5] = ["mark-sweep", "mark-compact", "copying", "generational", "reference-counting"];

fn main() -> ExitCode {
    let mut trials = Vec::new();
    trials.extend(lab::on_one_jdk_unless("counts_are_the_vms", leaves_out, counts));
    trials.extend(lab::on_one_jdk_unless("sites_are_the_vms", leaves_out, sites));
    trials.extend(lab::on_one_jdk("collectors", collectors));
    trials.push(lab::on_jdk_unless(25, "virtual_threads", |_, _| None, virtual_threads));
    trials.push(lab::on_jdk_unless(17, "agents_threads", |_, _| None, agents_threads));
    trials.push(lab::on_jdk_unless(17, "run_with_an_agent", |_, _| None, run_with_an_agent));
    trials.push(lab::on_jdk_unless(17, "a_trace_and_jvmpi_exclude_each_other", |_, _| None, excluded));
    lab::run(trials).exit_code()
}

fn et_jvmpi(lab: &Lab, run: &Run, agent: &str, more: &[&str]) -> Result<()> {
    let mut replay = Command::new(lab.tools.et_jvmpi());
    replay.args(["replay", "trace.ettrace", "--agent", agent]).args(more).current_dir(&run.folder);
    command::quiet(&mut replay).map(drop)
}

/// A replay to the conformance agent, which must not complain.
fn replayed(lab: &Lab, run: &Run, options: &str, more: &[&str]) -> Result<Report> {
    let library = agent(lab, "tests/jvmpi/conform.c")?;
    let file = run.folder.join("replayed.txt");
    let _ = fs::remove_file(&file);
    et_jvmpi(lab, run, &format!("{}:file={},{options}", library.display(), file.display()), more)?;
    Report::read(&file).with_context(|| format!("{options} {more:?}"))
}

/// Lines of the report about the program's own classes.
fn of_program<'a>(report: &'a Report, program: &str) -> Vec<&'a str> {
    let starts = [format!("allocated {program}"), format!("method {program}")];
    // Names of lambdas' classes have addresses in them.
    let is_meant =
        |line: &&str| starts.iter().any(|start| line.starts_with(start.as_str())) && !line.contains("$$Lambda");
    let mut lines: Vec<&str> = report.0.lines().filter(is_meant).collect();
    lines.sort_unstable();
    lines
}

/// Allocations by class, entries and exits by method.
fn counts(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "jvmpi_replayed_counts", "jvmpi/Counted")?;
    let report = replayed(lab, &run, ALL, &[])?;
    let live = conform(lab, jdk, Tier::Jvmti, "beside_replay", ALL, &[], "Counted")?;
    ensure!(live.number("classes without objects")? == 0, "{}", live.0);
    let (replay, live) = (of_program(&report, "Counted"), of_program(&live, "Counted"));
    ensure!(replay.len() > 8 && replay == live, "replayed {replay:#?}, live {live:#?}");
    // Classes are objects: each one reported has exactly one object, and no separate mirror.
    let (told, made) = (report.number("event 42")?, report.number("allocated java.lang.Class")?);
    ensure!(told > 300 && made >= told - 1, "{told} classes are {made} objects");
    ensure!(report.number("classes without objects")? == 0 && report.number("event 4")? > made, "{}", report.0);
    run.clean()
}

/// The example, by the sites of its program's class.
fn sites(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "jvmpi_replayed_sites", "jvmpi/Sites")?;
    let library = agent(lab, "examples/jvmpi/heapprof.c")?;
    let (live, replay) = (run.folder.join("live.txt"), run.folder.join("replayed.txt"));
    let option = format!("{}={}:{}", host()?, library.display(), live.display());
    let output = java(lab, jdk, Tier::Jvmti, &[option], "Sites", 11)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    et_jvmpi(lab, &run, &format!("{}:{}", library.display(), replay.display()), &[])?;
    let item = |file: &Path| -> Result<Vec<String>> {
        let text = fs::read_to_string(file).with_context(|| format!("no {}", file.display()))?;
        let from = text.lines().skip_while(|line| !line.starts_with("Sites$Item ")).take(3);
        Ok(from.map(str::to_owned).collect())
    };
    let (live, replay) = (item(&live)?, item(&replay)?);
    // The trace has the lines of allocations, and not those of calls.
    let known: Vec<String> = live.iter().map(|line| line.replace("Sites.main line 15", "Sites.main line -1")).collect();
    ensure!(live.len() == 3 && known == replay, "live {live:#?}, replayed {replay:#?}");
    run.clean()
}

fn collectors(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "jvmpi_collectors", "jvmpi/Counted")?;
    let plain = replayed(lab, &run, ALL, &[])?;
    let at_end = plain.number("objects")?;
    ensure!(plain.number("moves")? == 0 && plain.number("event 5")? > 0, "{}", plain.0);
    for collector in COLLECTORS {
        // No collections, no pauses for frees.
        let options = if collector == "reference-counting" { format!("{ALL},counting") } else { ALL.to_owned() };
        let report = replayed(lab, &run, &options, &["--collector", collector, "--heap", "2.5x"])?;
        let (seen, known) = (of_program(&report, "Counted"), of_program(&plain, "Counted"));
        ensure!(seen == known, "{collector}: {seen:#?}, not {known:#?}");
        for event in ["event 1", "event 2", "event 3", "event 4"] {
            ensure!(report.line(event).ok() == plain.line(event).ok(), "{collector}: {event}: {}", report.0);
        }
        let number = |event: &str| report.number(event).unwrap_or(0);
        let (moves, frees, deleted) = (number("moves"), number("event 5"), number("event 49"));
        let as_expected = match collector {
            "mark-sweep" => moves == 0 && frees > 0 && deleted == 0,
            "mark-compact" => moves > 0 && frees > 0 && deleted == 0,
            "copying" => moves > 0 && frees == 0 && deleted > 1,
            "generational" => moves > 0 && deleted > 1,
            _ => moves == 0 && frees > 0 && number("event 60") == 0,
        };
        ensure!(as_expected, "{collector}: {moves} moves, {frees} frees, {deleted} arenas deleted");
        // Cycles are garbage that reference counting does not find.
        let left = report.number("objects")?;
        let is_all = if collector == "reference-counting" { left >= at_end } else { left == at_end };
        ensure!(is_all, "{collector}: {left} objects at the end, not {at_end}");
    }
    run.clean()
}

/// The stack of each virtual thread is a thread.
fn virtual_threads(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "jvmpi_replayed_virtual", "jvmpi/Virtual")?;
    let report = replayed(lab, &run, "methods,trace", &["--collector", "copying"])?;
    ensure!(report.line("method Virtual.deep(I)I")?.starts_with("3000 3000"), "{}", report.0);
    run.clean()
}

/// The agent's own thread asks for dumps and collections, and suspends threads, meanwhile.
fn agents_threads(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "jvmpi_replayed_threads", "jvmpi/Counted")?;
    let report = replayed(lab, &run, &format!("{ALL},suspend,gc"), &["--collector", "generational"])?;
    let told = report.line("monitor dumps")?;
    let suspensions = told.split(' ').skip_while(|word| *word != "suspensions").nth(1);
    ensure!(suspensions.and_then(|count| count.parse::<u64>().ok()).is_some_and(|count| count > 0), "{told}");
    run.clean()
}

/// `et-instrument run --jvmpi`: no trace.
fn run_with_an_agent(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "jvmpi_run")?;
    let classes = compiled::classes(lab, &lab.layout.repo.join("tests/java/jvmpi/Sites.java"), 11)?;
    fs::copy(agent(lab, "examples/jvmpi/heapprof.c")?, folder.join("libheapprof.so"))?;
    let mut run = Command::new(lab.tools.et_instrument());
    run.args(["run", "--jvmpi", "libheapprof.so:sites.txt", "--"]).arg(jdk.java()).arg("-cp").arg(classes).arg("Sites");
    let said = command::quiet(run.current_dir(&folder))?;
    ensure!(said.stdout == b"done\n" && said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
    let told = fs::read_to_string(folder.join("sites.txt")).context("no sites.txt")?;
    ensure!(told.contains("Sites$Item live 100 (17600 bytes) made 2000 (352000 bytes)\n"), "{told}");
    ensure!(fs::read_dir(&folder)?.count() == 2, "something is left behind");
    Ok(())
}

fn excluded(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "jvmpi_and_trace")?;
    let traced = lab.instrumented(jdk)?;
    let library = agent(lab, "examples/jvmpi/heapprof.c")?;
    let mut options = traced.options(&folder.join("trace.ettrace"));
    options.push(format!("{}={}:{}", host()?, library.display(), folder.join("sites.txt").display()));
    let both = Jdk { home: traced.home.clone(), ..jdk.clone() };
    let output = java(lab, &both, Tier::Jvmti, &options, "Sites", 11)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let line = "jvmpi: this run is traced (libet_runtime.so): a trace and JVMPI exclude each other, load one of them";
    ensure!(!output.status.success() && said.lines().any(|said| said == line), "{}: {said}", output.status);
    Ok(())
}
