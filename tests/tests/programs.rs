//! Real programs, rewritten together with the JDK they run on: same output, valid trace, nothing lost.

use std::fs;
use std::process::ExitCode;

use anyhow::Result;
use et_tests::lab::{self, Lab};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;
use xtask::programs::Stage;
use xtask::test::JDKS;
use xtask::workloads::{self, Runner, Workload};

/// Runs with witnesses, which leave records of every use of every object.
const WITNESSED: [(&str, &str); 2] = [("h2", "all"), ("xalan", "refs")];

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
    stage.runs_as_before(workload, &folder)?;
    if !lab::keep_traces() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(())
}
