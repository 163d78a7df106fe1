//! Instrumented copies of JDKs, created once per JDK and build of the tools.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::jdks::Jdk;
use crate::layout::{Layout, MONITOR_LIBRARY, Tools};

/// File in the copy with the report of et-instrument.
const REPORT: &str = "et-instrument.json";

/// An instrumented JDK and how to start programs on it.
#[derive(Clone, Debug)]
pub struct InstrumentedJdk {
    /// Its Java home.
    pub home: PathBuf,
}

impl InstrumentedJdk {
    /// Creates a copy with the given options of et-instrument, or returns that of an earlier run. Concurrent processes
    /// share one copy.
    pub fn of(tools: &Tools, jdk: &Jdk, options: &[&str]) -> Result<Self> {
        // Beside the tools, so that each build of the tools keeps its own copies: `target/instrumented` for
        // `target/et`.
        let cache = tools.root.with_file_name("instrumented");
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let words: String = options.iter().flat_map(|option| [option.trim_start_matches('-'), "-"]).collect();
        let prefix = format!("jdk-{}-{words}", jdk.version.replace('-', "."));
        let home = cache.join(format!("{prefix}{:016x}", content_hash(tools, jdk)?));
        let lock_path = cache.join(format!("{prefix}lock"));
        let lock = File::create(&lock_path).with_context(|| format!("cannot write {}", lock_path.display()))?;
        lock.lock().with_context(|| format!("cannot lock {}", lock_path.display()))?;
        if !home.join(REPORT).is_file() {
            remove_outdated(&cache, &prefix)?;
            let mut instrument = Command::new(tools.et_instrument());
            instrument.arg("jdk").arg("--java-home").arg(&jdk.home).arg("-o").arg(&home).args(options);
            instrument.args(["--report", "json", "--quiet"]);
            eprintln!("instrumenting JDK {} ({})", jdk.version, jdk.home.display());
            let report = command::quiet(&mut instrument)?.stdout;
            fs::write(home.join(REPORT), report).with_context(|| format!("cannot write {}", home.display()))?;
        }
        Ok(Self { home })
    }

    /// The launcher.
    pub fn java(&self) -> PathBuf {
        self.home.join("bin/java")
    }

    /// The report of et-instrument on the copy.
    pub fn report(&self) -> Result<serde_json::Value> {
        let path = self.home.join(REPORT);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is no JSON", path.display()))
    }

    /// JVM options that start the trace and name its file.
    pub fn options(&self, trace: &Path) -> Vec<String> {
        vec![format!("@{}", self.home.join("et.args").display()), format!("-Det.traceFile={}", trace.display())]
    }
}

/// The cache of `et-instrument run` in tests: one per build of the tools, so that tests never clear a cache in use.
/// Caches of earlier builds are removed.
pub fn run_cache(layout: &Layout, tools: &Tools) -> Result<PathBuf> {
    let caches = layout.target.join("e2e/run-cache");
    let name = format!("{:016x}", tools_hash(tools)?.finish());
    let cache = caches.join(&name);
    if !cache.is_dir() {
        for old in fs::read_dir(&caches).into_iter().flatten().flatten().filter(|old| old.file_name() != name.as_str())
        {
            // Another process may be removing it, too.
            let _ = fs::remove_dir_all(old.path());
        }
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    }
    Ok(cache)
}

fn remove_outdated(cache: &Path, prefix: &str) -> Result<()> {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Names of copies made with other options have more words before their hash.
        let outdated = name.strip_prefix(prefix).is_some_and(|rest| !rest.contains('-') && rest != "lock");
        if outdated {
            fs::remove_dir_all(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// A hash of the tools. Each test asks for it, and the files have fifty megabytes: their sizes and times stand for their
/// content. A build leaves files as they are whose content has not changed.
fn tools_hash(tools: &Tools) -> Result<DefaultHasher> {
    let mut hasher = DefaultHasher::new();
    for file in tools.rewriter_files() {
        // Optional: a copy gets the monitor agent only if it was built.
        if file.ends_with(MONITOR_LIBRARY) && !file.exists() {
            continue;
        }
        stamp(&file, &mut hasher).with_context(|| format!("{} is missing: run cargo xtask build", file.display()))?;
    }
    Ok(hasher)
}

/// A hash of the tools and of the JDK, whose image never changes in place.
fn content_hash(tools: &Tools, jdk: &Jdk) -> Result<u64> {
    let mut hasher = tools_hash(tools)?;
    jdk.home.hash(&mut hasher);
    stamp(&jdk.home.join("lib/modules"), &mut hasher)
        .with_context(|| format!("{} has no lib/modules", jdk.home.display()))?;
    Ok(hasher.finish())
}

fn stamp(file: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let file = fs::metadata(file)?;
    file.len().hash(hasher);
    file.modified()?.hash(hasher);
    Ok(())
}

/// The output of `et-trace info --json`, even if the trace is incomplete.
pub fn sizes(tools: &Tools, trace: &Path) -> Result<serde_json::Value> {
    let mut command = Command::new(tools.et_trace());
    let output = command.args(["info", "--json"]).arg(trace).output().context("cannot start et-trace")?;
    serde_json::from_slice(&output.stdout).context("et-trace info --json did not print JSON")
}

/// The output of `et-trace summary --json` without deaths; lists have at most `top` entries.
pub fn summary(tools: &Tools, trace: &Path, top: usize) -> Result<serde_json::Value> {
    let mut command = Command::new(tools.et_trace());
    let output =
        command::quiet(command.args(["summary", "--json", "--deaths", "none", "--top", &top.to_string()]).arg(trace))?;
    serde_json::from_slice(&output.stdout).context("et-trace summary --json did not print JSON")
}

/// The number of records in a trace.
pub fn records(tools: &Tools, trace: &Path) -> Result<u64> {
    summary(tools, trace, 1)?["records"]["total"].as_u64().context("the summary has no total of records")
}
