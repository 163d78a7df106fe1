//! Measures the speed of et-instrument.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use xtask::command;
use xtask::jdks::Jdk;
use xtask::layout::Tools;
use xtask::workloads::Workload;

/// Megabytes of class files, and the seconds that et-instrument took.
#[derive(Default)]
pub struct Rewriting {
    pub what: String,
    pub classes: u64,
    pub megabytes: f64,
    pub seconds: f64,
}

impl Rewriting {
    fn of(what: String) -> Self {
        Self { what, ..Self::default() }
    }

    /// Adds a run: the sizes from its report, the wall time including the start of the process.
    fn add(&mut self, rewrite: &mut Command) -> Result<()> {
        let start = Instant::now();
        let output = command::quiet(rewrite.args(["--report", "json", "--quiet"]))?;
        self.seconds += start.elapsed().as_secs_f64();
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("et-instrument --report json did not print JSON")?;
        for artifact in report["artifacts"].as_array().into_iter().flatten() {
            self.classes += artifact["classes"].as_u64().unwrap_or_default();
            self.megabytes += artifact["classBytesIn"].as_f64().unwrap_or_default() / 1e6;
        }
        Ok(())
    }
}

/// A whole copy of a JDK.
pub fn jdk(tools: &Tools, jdk: &Jdk, folder: &Path) -> Result<Rewriting> {
    let out = folder.join("jdk-rewritten");
    let _ = fs::remove_dir_all(&out);
    let mut rewriting = Rewriting::of(format!("JDK {}: a whole instrumented copy", jdk.version));
    rewriting
        .add(Command::new(tools.et_instrument()).arg("jdk").arg("--java-home").arg(&jdk.home).arg("-o").arg(&out))?;
    fs::remove_dir_all(&out)?;
    Ok(rewriting)
}

/// The jars of a program, if it has any.
pub fn jars(tools: &Tools, workload: &Workload, folder: &Path) -> Result<Option<Rewriting>> {
    let jars = workload.installed_jars();
    if jars.is_empty() {
        return Ok(None);
    }
    let mut rewriting = Rewriting::of(format!("{}'s jars, one by one", workload.name));
    let out = folder.join("rewritten.jar");
    for jar in &jars {
        let _ = fs::remove_file(&out);
        rewriting.add(Command::new(tools.et_instrument()).arg(jar).arg("-o").arg(&out))?;
    }
    let _ = fs::remove_file(&out);
    Ok(Some(rewriting))
}
