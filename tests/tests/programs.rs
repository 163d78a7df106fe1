//! Real programs, rewritten together with the JDK they run on: same output, valid trace, nothing lost.

use std::fs;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program;
use xtask::command;
use xtask::jdks::Jdk;
use xtask::workloads::{self, Runner, Workload};

fn main() -> ExitCode {
    let trials = workloads::ALL.into_iter().flat_map(|workload| {
        lab::on_each_jdk_unless(
            workload.name,
            move |lab, jdk| runner(lab, jdk).ok()?.obstacle(&workload, jdk),
            move |lab, jdk| runs_as_before(lab, jdk, &workload),
        )
    });
    // They are large: one at a time.
    lab::run_in_turn(trials.collect()).exit_code()
}

fn runner(lab: &Lab, jdk: &Jdk) -> Result<Runner> {
    Runner::new(&lab.layout, &lab.layout.target.join("e2e/workloads"), workloads::TEST_SCALE, &lab.compiler, jdk)
}

fn runs_as_before(lab: &Lab, jdk: &Jdk, workload: &Workload) -> Result<()> {
    let folder = lab.folder(jdk, workload.name)?;
    let runner = runner(lab, jdk)?;
    runner.prepare(workload, &jdk.java())?;
    let plain = command::quiet(&mut runner.plain(workload, &jdk.java()))?;
    let plain_files = runner.written(workload)?;
    ensure!(!plain.stdout.is_empty(), "{} printed nothing", workload.name);

    let parts = runner.instrument(workload, &lab.tools, &folder.join("rewritten"), &[])?;
    let traced_jdk = lab.instrumented(jdk)?;
    let trace = folder.join("trace.ettrace");
    let options = traced_jdk.options(&trace);
    let rewritten = command::quiet(&mut runner.rewritten(workload, &traced_jdk.java(), &parts, &options))?;
    if plain.stdout != rewritten.stdout {
        let (plain, rewritten) = (String::from_utf8_lossy(&plain.stdout), String::from_utf8_lossy(&rewritten.stdout));
        bail!("{} printed something else\nplain:\n{plain}\nrewritten:\n{rewritten}", workload.name);
    }
    ensure!(plain_files == runner.written(workload)?, "{} wrote other files than before", workload.name);
    program::validate(lab, &trace)?;
    if !lab::keep_traces() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(())
}
