//! Real programs, rewritten together with the JDK they run on: same output, valid trace, nothing lost.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::flight;
use et_tests::lab::{self, Lab, SOME_JDKS};
use libtest_mimic::Trial;
use xtask::jdks::{self, Jdk};
use xtask::programs::Stage;
use xtask::test::JDKS;
use xtask::workloads::{self, Runner, Workload};
use xtask::{command, instrumented};

/// Runs with witnesses, which leave records of every use of every object.
const WITNESSED: [(&str, &str); 2] = [("h2", "all"), ("xalan", "refs")];

/// Of this one there is a recording as well: a program, and the JDK that it runs on.
const RECORDED: (&str, u32) = ("h2", 17);
/// A larger recording is a nuisance in the tools that open it.
const MOST_BYTES: u64 = 100_000_000;

fn main() -> Result<ExitCode> {
    let mut trials = Vec::new();
    for feature in JDKS {
        trials.extend(workloads::in_tests(feature).into_iter().map(|workload| trial(feature, workload, "none")));
    }
    // They take longer than all else, and hooks are the same on all releases.
    for (name, witness) in WITNESSED {
        trials.push(trial(25, Workload::named(name)?, witness));
    }
    // They are large: one at a time.
    Ok(lab::run_in_turn(trials).exit_code())
}

fn trial(feature: u32, workload: Workload, witness: &'static str) -> Trial {
    let obstacle = move |lab: &Lab, jdk: &Jdk| runner(lab, jdk).ok()?.obstacle(&workload, jdk);
    let (name, options) = match witness {
        "none" => (workload.name.to_owned(), vec![]),
        _ => (format!("{}_witness_{witness}", workload.name), vec!["--witness", witness]),
    };
    lab::on_jdk_unless(feature, &name.clone(), obstacle, move |lab, jdk| {
        runs_as_before(lab, jdk, &name, &workload, &options)
    })
}

fn runner(lab: &Lab, jdk: &Jdk) -> Result<Runner> {
    Runner::new(&lab.layout, &lab.layout.target.join("e2e/workloads"), workloads::TEST_SCALE, &lab.compiler, jdk)
}

fn runs_as_before(lab: &Lab, jdk: &Jdk, name: &str, workload: &Workload, options: &[&str]) -> Result<()> {
    let folder = lab.folder(jdk, name)?;
    let (runner, traced_jdk) = (runner(lab, jdk)?, lab.instrumented_with(jdk, options)?);
    let stage = Stage { runner: &runner, tools: &lab.tools, jdk, traced_jdk: &traced_jdk, options };
    let passed = stage.runs_as_before(workload, &folder)?;
    if (name, jdk.feature) == RECORDED {
        recording(lab, &passed.trace)?;
    }
    if !lab::keep_traces() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(())
}

/// A recording for JDK Mission Control has all that the program allocated, and is opened by the `jfr` of several JDKs.
fn recording(lab: &Lab, trace: &Path) -> Result<()> {
    let file = trace.with_extension("jfr");
    let mut export = Command::new(lab.tools.et_trace());
    command::quiet(export.args(["export", "--to", "jfr", "-o"]).arg(&file).arg(trace))?;
    let bytes = fs::metadata(&file)?.len();
    ensure!(bytes < MOST_BYTES, "the recording has {bytes} bytes");
    let summary = instrumented::summary(&lab.tools, trace, 10)?;
    let mut readers = 0;
    for reader in SOME_JDKS.iter().filter_map(|&feature| jdks::of_feature(&lab.layout, feature)) {
        let Some(jfr) = flight::reader(&reader) else {
            lab.not_tested("recordings of real programs", &format!("no jfr in {}", reader.home.display()));
            continue;
        };
        let overview = command::quiet(Command::new(jfr).arg("summary").arg(&file))?;
        let overview = String::from_utf8_lossy(&overview.stdout).into_owned();
        ensure!(overview.contains("jdk.OldObjectSample"), "{overview}");
        let sums = flight::sums_are_those_of(&summary, &reader, &file)
            .with_context(|| format!("read by the jfr of {}", reader.home.display()))?;
        ensure!(sums.with_callers * 2 > sums.events, "most events have no stack: {sums:?}");
        readers += 1;
    }
    ensure!(readers > 0, "no JDK has jfr");
    Ok(())
}
