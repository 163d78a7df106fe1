//! Real programs, rewritten together with the JDK they run on: same output, valid trace, nothing lost.

use std::fs;
use std::process::ExitCode;

use anyhow::Result;
use et_tests::lab::{self, Lab};
use xtask::jdks::Jdk;
use xtask::programs::Stage;
use xtask::test::JDKS;
use xtask::workloads::{self, Runner, Workload};

fn main() -> ExitCode {
    let trials = JDKS.into_iter().flat_map(|feature| {
        workloads::in_tests(feature).into_iter().map(move |workload| {
            let obstacle = move |lab: &Lab, jdk: &Jdk| runner(lab, jdk).ok()?.obstacle(&workload, jdk);
            lab::on_jdk_unless(feature, workload.name, obstacle, move |lab, jdk| runs_as_before(lab, jdk, &workload))
        })
    });
    // They are large: one at a time.
    lab::run_in_turn(trials.collect()).exit_code()
}

fn runner(lab: &Lab, jdk: &Jdk) -> Result<Runner> {
    Runner::new(&lab.layout, &lab.layout.target.join("e2e/workloads"), workloads::TEST_SCALE, &lab.compiler, jdk)
}

fn runs_as_before(lab: &Lab, jdk: &Jdk, workload: &Workload) -> Result<()> {
    let folder = lab.folder(jdk, workload.name)?;
    let (runner, traced_jdk) = (runner(lab, jdk)?, lab.instrumented(jdk)?);
    let stage = Stage { runner: &runner, tools: &lab.tools, jdk, traced_jdk: &traced_jdk };
    stage.runs_as_before(workload, &folder)?;
    if !lab::keep_traces() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(())
}
