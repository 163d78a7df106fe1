//! Agents of JVMPI: in C, compiled for the tests.

use std::fs;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use xtask::jdks::Jdk;

use crate::compiled;
use crate::lab::Lab;
use crate::program::ended;

/// Why exact counts of allocations cannot be had there: with G1, HotSpot 11 leaves some out (docs/jvmpi.md).
pub fn leaves_out(_: &Lab, jdk: &Jdk) -> Option<String> {
    (jdk.feature < 17).then(|| format!("Java {} leaves out allocations in thread-local buffers", jdk.feature))
}

/// An agent of the tests or the example, compiled once.
pub fn agent(lab: &Lab, source: &str) -> Result<PathBuf> {
    agent_with(lab, source, &[])
}

/// As [`agent`], with options of the linker.
pub fn agent_with(lab: &Lab, source: &str, options: &[&str]) -> Result<PathBuf> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let source = lab.layout.repo.join(source);
    let name = source.file_stem().context("no name")?.to_string_lossy().into_owned();
    let folder = lab.layout.target.join("e2e/jvmpi");
    fs::create_dir_all(&folder)?;
    let library = folder.join(format!("lib{name}{}-{}.so", options.concat(), std::process::id()));
    if !library.exists() {
        let options = [&["-shared", "-fPIC", "-O1"], options].concat();
        xtask::jvmpi::compile(&lab.layout, &lab.compiler, &options, &source, &library)?;
    }
    Ok(library)
}

/// Cargo builds it beside the tests that depend on it.
pub fn host() -> Result<String> {
    Ok(format!("-agentpath:{}", std::env::current_exe()?.with_file_name("libet_jvmpi.so").display()))
}

/// How the host gets method events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// By JVMTI, on a JDK as it is.
    Jvmti,
    /// By hooks, on an instrumented one.
    Hooks,
}

impl Tier {
    /// Both tiers.
    pub const ALL: [Self; 2] = [Self::Jvmti, Self::Hooks];

    /// Suffix in the names of tests.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Jvmti => "",
            Self::Hooks => "_by_hooks",
        }
    }

    /// The launcher to run, and the options that it needs.
    fn java(self, lab: &Lab, jdk: &Jdk) -> Result<(PathBuf, Vec<String>)> {
        if self == Self::Jvmti {
            return Ok((jdk.java(), Vec::new()));
        }
        Ok((lab.instrumented(jdk)?.java(), xtask::jvmpi::hooks(&lab.tools).into()))
    }
}

/// Runs a program of `tests/java/jvmpi`, for no longer than five minutes. What it says goes to files: a pipe that is full would stop it.
pub fn java(lab: &Lab, jdk: &Jdk, tier: Tier, options: &[String], program: &str, release: u32) -> Result<Output> {
    let source = lab.layout.repo.join(format!("tests/java/jvmpi/{program}.java"));
    let classes = compiled::classes(lab, &source, release)?;
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let (launcher, of_tier) = tier.java(lab, jdk)?;
    let mut java = Command::new(launcher);
    java.args(of_tier).args(options).arg("-cp").arg(classes).arg(program);
    let mut child = java.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
    let status = ended(&mut child, Duration::from_secs(300))?;
    let status = status.with_context(|| format!("{program} with {options:?} does not come to an end"))?;
    let mut output = Output { status, stdout: Vec::new(), stderr: Vec::new() };
    for (file, bytes) in [(&mut stdout, &mut output.stdout), (&mut stderr, &mut output.stderr)] {
        file.rewind()?;
        file.read_to_end(bytes)?;
    }
    Ok(output)
}

/// The output of the conformance agent.
#[derive(Debug)]
pub struct Report(pub String);

impl Report {
    /// Reads one, which must have no complaints.
    pub fn read(file: &Path) -> Result<Self> {
        let report = Self(fs::read_to_string(file).with_context(|| format!("no {}", file.display()))?);
        ensure!(report.0.starts_with("complaints 0\n"), "{}", report.0.lines().take(22).collect::<Vec<_>>().join("\n"));
        Ok(report)
    }

    /// The rest of the first line with this prefix.
    pub fn line(&self, start: &str) -> Result<&str> {
        let found = self.0.lines().find_map(|line| line.strip_prefix(start)?.strip_prefix(' '));
        found.with_context(|| format!("no {start} in {}", self.0))
    }

    /// The same as a number.
    pub fn number(&self, start: &str) -> Result<u64> {
        Ok(self.line(start)?.parse()?)
    }
}

/// A run with the conformance agent, which must not complain.
pub fn conform(
    lab: &Lab,
    jdk: &Jdk,
    tier: Tier,
    test: &str,
    options: &str,
    java_options: &[&str],
    program: &str,
) -> Result<Report> {
    let file = lab.folder(jdk, &format!("jvmpi_{test}{}", tier.suffix()))?.join("conform.txt");
    let library = agent(lab, "tests/jvmpi/conform.c")?;
    let mut all = vec![format!("{}={}:file={},{options}", host()?, library.display(), file.display())];
    all.extend(java_options.iter().map(|option| (*option).to_owned()));
    let release = if program == "Virtual" { 21 } else { 11 };
    let output = java(lab, jdk, tier, &all, program, release)?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{program}: {}\n{stdout}{stderr}", output.status);
    ensure!(unexpected(jdk, &stderr).is_empty() && stdout.lines().count() == 1, "{program} says\n{stdout}{stderr}");
    Report::read(&file)
}

/// Message of the host if the VM does not report all allocations: Java 11 with G1 and thread-local buffers.
pub const NOT_ALL: &str = "jvmpi: Java 11 with G1 does not report all allocations: ";

/// End of the message of the host if a batch did not wait for a thread inside the agent: on a machine with other work, that may take a second.
const IMPATIENT: &str = " batches of deaths that went on without a thread inside the agent";

/// The lines of what was said that neither this JDK nor a slow machine gives a reason for.
pub fn unexpected(jdk: &Jdk, said: &str) -> String {
    let is_impatient = |line: &str| {
        let count = line.strip_prefix("jvmpi: left out: ").and_then(|line| line.strip_suffix(IMPATIENT));
        count.is_some_and(|count| count.parse::<u64>().is_ok())
    };
    said.lines().filter(|line| !is_impatient(line) && (jdk.feature != 11 || !line.starts_with(NOT_ALL))).collect()
}
