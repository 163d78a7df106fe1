//! Paths of the repository, cargo's target folder, and the built tools.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command;

/// Folders used by all tasks.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Root of the repository.
    pub repo: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
}

/// Variable with the target folder, for the tests that `cargo xtask test` starts: each is a process of its own, and need not
/// ask cargo.
pub const TARGET: &str = "ET_TARGET_FOLDER";

impl Layout {
    /// Asks cargo, which evaluates `CARGO_TARGET_DIR` and config files, unless `cargo xtask test` has done so.
    pub fn find() -> Result<Self> {
        // Not the folder where this was compiled: a checkout can be moved, and a target folder copied or shared.
        let started =
            [env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from), env::current_dir().ok(), env::current_exe().ok()];
        let repo = started.iter().flatten().find_map(|path| repository_of(path));
        let repo = repo.context("not in a checkout of Elephant Tracks: run cargo xtask in its folder")?;
        if let Some(target) = env::var_os(TARGET) {
            return Ok(Self { repo, target: target.into() });
        }
        let metadata = command::read(command::cargo(&repo).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: serde_json::Value =
            serde_json::from_str(&metadata).context("cargo metadata did not print JSON")?;
        let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?.into();
        Ok(Self { repo, target })
    }

    /// The built tools, laid out as installed.
    pub fn tools(&self) -> Tools {
        Tools { root: self.target.join("et") }
    }
}

/// The checkout that contains a path.
fn repository_of(path: &Path) -> Option<PathBuf> {
    let is_ours = |folder: &&Path| folder.join("xtask/Cargo.toml").is_file() && folder.join("Cargo.lock").is_file();
    path.ancestors().find(is_ours).map(Path::to_path_buf)
}

/// The folders `bin/` and `lib/` of an installation.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The folder that contains `bin` and `lib`.
    pub root: PathBuf,
}

impl Tools {
    /// The rewriter.
    pub fn et_instrument(&self) -> PathBuf {
        self.root.join("bin/et-instrument")
    }

    /// The reader of traces.
    pub fn et_trace(&self) -> PathBuf {
        self.root.join("bin/et-trace")
    }

    /// The replayer of traces.
    pub fn et_replay(&self) -> PathBuf {
        self.root.join("bin/et-replay")
    }

    /// The monitor of running VMs.
    pub fn et_monitor(&self) -> PathBuf {
        self.root.join("bin/et-monitor")
    }

    /// Runs JVMPI agents on a trace.
    pub fn et_jvmpi(&self) -> PathBuf {
        self.root.join("bin/et-jvmpi")
    }

    /// MMTk's collectors, which `et-replay collect` starts.
    pub fn et_collect(&self) -> PathBuf {
        self.root.join("bin/et-collect")
    }

    /// Allocators, which `et-replay allocate` starts.
    pub fn et_allocate(&self) -> PathBuf {
        self.root.join("bin/et-allocate")
    }

    /// The native half of the runtime and the Java half's jars.
    pub fn lib(&self) -> PathBuf {
        self.root.join("lib/elephant-tracks")
    }

    /// Every file that the content of an instrumented JDK depends on.
    pub fn rewriter_files(&self) -> Vec<PathBuf> {
        let libraries = [RUNTIME_LIBRARY, MONITOR_LIBRARY].map(|name| self.lib().join(name));
        let mut files: Vec<PathBuf> = std::iter::once(self.et_instrument()).chain(libraries).collect();
        files.extend(HEAP_PROXY_JARS.iter().map(|jar| self.lib().join(jar)));
        files
    }
}

/// File name of the native half.
pub const RUNTIME_LIBRARY: &str = "libet_runtime.so";

/// File name of the host for JVMPI agents.
pub const JVMPI_LIBRARY: &str = "libet_jvmpi.so";

/// File name of the agent for monitors.
pub const MONITOR_LIBRARY: &str = "libet_monitor.so";

/// The library for programs that send their own chunks to a monitor.
pub const DDM_JAR: &str = "et-ddm.jar";

/// The library with which tests count allocations.
pub const TEST_JAR: &str = "et-test.jar";

/// The Java half, one jar for each range of Java versions.
pub const HEAP_PROXY_JARS: [&str; 4] =
    ["heap-proxy-8.jar", "heap-proxy-11.jar", "heap-proxy-12.jar", "heap-proxy-21.jar"];

/// The Java half for runs with a JVMPI profiler.
pub const JVMPI_PROXY_JAR: &str = "heap-proxy-jvmpi.jar";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_is_where_the_program_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().join("moved");
        std::fs::create_dir_all(repo.join("xtask/src")).unwrap();
        std::fs::create_dir_all(repo.join("target/debug")).unwrap();
        assert_eq!(repository_of(&repo), None);
        std::fs::write(repo.join("xtask/Cargo.toml"), "").unwrap();
        std::fs::write(repo.join("Cargo.lock"), "").unwrap();
        for inside in ["", "xtask", "xtask/src", "target/debug/xtask"] {
            assert_eq!(repository_of(&repo.join(inside)).as_ref(), Some(&repo), "{inside}");
        }
        assert_eq!(repository_of(folder.path()), None);
    }
}
