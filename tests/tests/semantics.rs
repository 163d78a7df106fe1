//! Programs keep their behaviour: each program of `tests/java/semantics` prints the same with and without tracing, in
//! all ways of running a JVM; debuggers, agents and recorders work as well.

#[path = "semantics/beside.rs"]
mod beside;
#[path = "semantics/images.rs"]
mod images;

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use et_tests::compiled::compiler;
use et_tests::lab::{self, Lab};
use et_tests::plain_and_traced::{Head, Prepared, source};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;
use xtask::layout::Layout;

fn main() -> ExitCode {
    let mut trials = programs();
    trials.extend(modes());
    trials.extend(beside::trials());
    trials.extend(images::trials());
    lab::run(trials).exit_code()
}

/// One test for each program.
fn programs() -> Vec<Trial> {
    let folder = Layout::find().map(|layout| layout.repo.join("tests/java/semantics"));
    let mut names: Vec<String> = folder
        .ok()
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".java").map(str::to_owned))
        .collect();
    names.sort();
    let trials = names.into_iter().flat_map(|name| {
        let program = name.clone();
        lab::on_each_jdk_unless(&name, older_than(&program), move |lab, jdk| compare(lab, jdk, &program))
    });
    trials.collect()
}

/// A program for a later JDK is skipped.
fn older_than(program: &str) -> impl Fn(&Lab, &Jdk) -> Option<String> + Clone + use<> {
    let program = program.to_owned();
    move |lab, jdk| {
        let head = Head::parse(&fs::read_to_string(source(lab, &program)).ok()?).ok()?;
        if head.release > jdk.feature {
            return Some(format!("it needs JDK {}", head.release));
        }
        compiler(lab, head.release).is_none().then(|| format!("it needs javac of JDK {}", head.release))
    }
}

fn compare(lab: &Lab, jdk: &Jdk, name: &str) -> Result<()> {
    let mut prepared = Prepared::new(lab, jdk, &format!("semantics-{name}"), name)?;
    for options in prepared.head.runs.clone() {
        prepared.compare(&options)?;
    }
    prepared.clean()
}

/// Ways to run a JVM: name, options, and the releases that know them.
const MODES: [(&str, &str, std::ops::RangeInclusive<u32>); 13] = [
    ("interpreter", "-Xint", 8..=99),
    ("first_compiler", "-XX:TieredStopAtLevel=1", 8..=99),
    ("compiled_at_once", "-Xcomp -XX:TieredStopAtLevel=1", 8..=99),
    ("second_compiler_only", "-XX:-TieredCompilation", 8..=99),
    ("serial", "-XX:+UseSerialGC", 8..=99),
    ("parallel", "-XX:+UseParallelGC", 8..=99),
    ("g1", "-XX:+UseG1GC -XX:G1HeapRegionSize=1m", 8..=99),
    ("z", "-XX:+UseZGC", 15..=99),
    ("shenandoah", "-XX:+UseShenandoahGC", 15..=99),
    ("no_compressed_references", "-XX:-UseCompressedOops", 8..=99),
    ("compact_headers", "-XX:+UseCompactObjectHeaders", 25..=99),
    ("checked_jni", "-Xcheck:jni", 8..=99),
    (
        "verification",
        "-Xshare:off -XX:+UnlockDiagnosticVMOptions -XX:+BytecodeVerificationLocal -XX:+BytecodeVerificationRemote",
        8..=99,
    ),
];

/// A program with threads, locks and garbage, in each of the ways.
fn modes() -> Vec<Trial> {
    let trials = MODES.into_iter().flat_map(|(mode, options, releases)| {
        let unknown = move |lab: &Lab, jdk: &Jdk| match releases.contains(&jdk.feature) {
            false => Some(format!("JDK {} has no {options}", jdk.feature)),
            true => OF_SOME_BUILDS.contains(&mode).then(|| refused(lab, jdk, mode, options)).flatten(),
        };
        lab::on_each_jdk_unless(&format!("mode_{mode}"), unknown, move |lab, jdk| {
            let mut prepared = Prepared::new(lab, jdk, &format!("semantics-mode-{mode}"), "Monitors")?;
            let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
            prepared.compare(&options).with_context(|| format!("with {options:?}"))?;
            prepared.clean()
        })
    });
    trials.collect()
}

/// Collectors that not every build of a JDK has. With all other modes each of them must start.
const OF_SOME_BUILDS: [&str; 2] = ["z", "shenandoah"];

/// Error message of this build for the options of a mode, if it does not start with them. Cached, since each test is a
/// separate process that lists all tests.
fn refused(lab: &Lab, jdk: &Jdk, mode: &str, options: &str) -> Option<String> {
    let known = lab.layout.target.join("e2e/modes").join(format!("{}-{}-{mode}", jdk.feature, jdk.version));
    if let Ok(known) = fs::read_to_string(&known) {
        return (!known.is_empty()).then_some(known);
    }
    // Whatever keeps it from starting at all, the test itself says.
    let output = Command::new(jdk.java()).args(options.split_whitespace()).arg("-version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let refusal = said.lines().find(|line| line.contains("not supported")).map(str::trim);
    let reason = match (output.status.success(), refusal) {
        (false, Some(line)) => format!("this build of JDK {} has it not: {line}", jdk.feature),
        _ => String::new(),
    };
    let _ = known.parent().map(fs::create_dir_all);
    let _ = fs::write(&known, &reason);
    (!reason.is_empty()).then_some(reason)
}
