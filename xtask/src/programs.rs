//! Runs real programs plain, and instrumented together with their JDK; both runs must have the same result.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use crate::command;
use crate::instrumented::InstrumentedJdk;
use crate::jdks::Jdk;
use crate::layout::Tools;
use crate::workloads::{Runner, Workload};

/// A program that ran plain and traced, with the same result.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Seconds of the plain run.
    pub plain: f64,
    /// Seconds of the traced run.
    pub traced: f64,
    /// Path of its trace, which is valid.
    pub trace: PathBuf,
}

/// Output and duration of a run.
struct Ran {
    stdout: Vec<u8>,
    seconds: f64,
}

fn ran(command: &mut Command) -> Result<Ran> {
    let start = Instant::now();
    let stdout = command::quiet(command)?.stdout;
    Ok(Ran { stdout, seconds: start.elapsed().as_secs_f64() })
}

/// Programs on one JDK, and on its instrumented copy.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Runs the programs with their inputs.
    pub runner: &'a Runner,
    /// The tools under test.
    pub tools: &'a Tools,
    /// The plain JDK.
    pub jdk: &'a Jdk,
    /// Its instrumented copy.
    pub traced_jdk: &'a InstrumentedJdk,
    /// Options of et-instrument for the programs; the copy was made with its own.
    pub options: &'a [&'a str],
}

impl Stage<'_> {
    /// Runs a program plain and traced: output and files must be the same, the trace valid and complete. The trace
    /// stays in `folder`.
    pub fn runs_as_before(&self, workload: &Workload, folder: &Path) -> Result<Passed> {
        self.runner.prepare(workload, &self.jdk.java())?;
        let plain = ran(&mut self.runner.plain(workload, &self.jdk.java()))?;
        let plain_files = self.runner.written(workload)?;
        ensure!(!plain.stdout.is_empty(), "{} printed nothing", workload.name);
        let trace = folder.join("trace.ettrace");
        let traced = self.rewritten(workload, folder, &trace, &[])?;
        if plain.stdout != traced.stdout {
            let (plain, traced) = (String::from_utf8_lossy(&plain.stdout), String::from_utf8_lossy(&traced.stdout));
            bail!("{} printed something else when traced\nplain:\n{plain}\nrewritten:\n{traced}", workload.name);
        }
        ensure!(plain_files == self.runner.written(workload)?, "{} wrote other files than before", workload.name);
        let validate = if workload.long_start { validate_without_deaths } else { validate };
        validate(self.tools, &trace)?;
        Ok(Passed { plain: plain.seconds, traced: traced.seconds, trace })
    }

    /// Runs a program traced only, with additional JVM options.
    pub fn trace(&self, workload: &Workload, folder: &Path, jvm_options: &[String]) -> Result<PathBuf> {
        self.runner.prepare(workload, &self.jdk.java())?;
        let trace = folder.join("trace.ettrace");
        self.rewritten(workload, folder, &trace, jvm_options)?;
        Ok(trace)
    }

    /// Puts `jvm_options` before the options for tracing.
    fn rewritten(&self, workload: &Workload, folder: &Path, trace: &Path, jvm_options: &[String]) -> Result<Ran> {
        let parts = self.runner.instrument(workload, self.tools, &folder.join("rewritten"), self.options)?;
        let _ = fs::remove_file(trace);
        let options = [jvm_options, &self.traced_jdk.options(trace)].concat();
        ran(&mut self.runner.rewritten(workload, &self.traced_jdk.java(), &parts, &options))
    }
}

/// Checks that `et-trace validate` finds nothing wrong, lost events included.
pub fn validate(tools: &Tools, trace: &Path) -> Result<()> {
    command::quiet(Command::new(tools.et_trace()).args(["validate", "--no-lives"]).arg(trace)).map(drop)
}

/// As [`validate`], but without deaths, which take most of the time with large traces.
pub fn validate_without_deaths(tools: &Tools, trace: &Path) -> Result<()> {
    command::quiet(Command::new(tools.et_trace()).args(["validate", "--deaths", "none"]).arg(trace)).map(drop)
}
