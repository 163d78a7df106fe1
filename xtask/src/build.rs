//! `cargo xtask build`: everything a user needs, laid out under `target/et`.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::jdks::{self, Jdk};
use crate::layout::{
    DDM_JAR, HEAP_PROXY_JARS, JVMPI_LIBRARY, JVMPI_PROXY_JAR, Layout, MONITOR_LIBRARY, RUNTIME_LIBRARY, TEST_JAR, Tools,
};
use crate::plugins;
use crate::runtime_java;

/// Options of `cargo xtask build`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Options {
    /// Build the tools together with the tests, in cargo's dev profile: faster to build, slower to run. Leaves out
    /// MMTk's collectors and the allocators in C and C++
    #[arg(long)]
    dev: bool,
}

/// Builds what the options ask for.
pub fn with(layout: &Layout, options: Options) -> Result<Tools> {
    if options.dev { for_tests(layout) } else { all(layout) }
}

/// A way to build the tools: the arguments of cargo, and the folder of the results.
struct Build {
    /// Arguments of `cargo build`.
    arguments: &'static [&'static str],
    /// Folder below `target`.
    folder: &'static str,
    /// The tools to lay out.
    parts: Parts,
}

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    All,
    /// The tools for tracing a program and reading the trace: `et-instrument`, `et-trace` and both halves of the
    /// runtime.
    Tracing,
}

impl Parts {
    /// Commands and libraries, by file name.
    fn files(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::All => (
                &["et-instrument", "et-trace", "et-replay", "et-monitor", "et-jvmpi"],
                &[RUNTIME_LIBRARY, JVMPI_LIBRARY, MONITOR_LIBRARY],
            ),
            Self::Tracing => (&["et-instrument", "et-trace"], &[RUNTIME_LIBRARY]),
        }
    }
}

/// The tools as shipped.
const RELEASE: Build = Build {
    arguments: &[
        "--release",
        "--package=et-instrument",
        "--package=et-trace",
        "--package=et-replay",
        "--package=et-runtime-native",
        "--package=et-jvmpi-host",
        "--package=et-monitor",
        "--package=et-monitor-agent",
        "--package=et-jvmpi",
    ],
    folder: "release",
    parts: Parts::All,
};

/// The tools and all tests. Cargo unifies the features of all targets of one command: if tools and tests were built by
/// two commands, most crates would be compiled twice.
const WITH_TESTS: Build = Build { arguments: &["--workspace", "--all-targets"], folder: "debug", parts: Parts::All };

/// The tools for tracing, with the features of unit tests: the features of all tests apply as soon as one test is
/// among the targets.
const FOR_SMOKE_TEST: Build = Build {
    arguments: &["--profile=quick", "--workspace", "--lib", "--bin=et-instrument", "--bin=et-trace", "--test=locks"],
    folder: "quick",
    parts: Parts::Tracing,
};

/// Only the tools for tracing.
const FOR_DEMO: Build = Build {
    arguments: &["--profile=quick", "--package=et-instrument", "--package=et-trace", "--package=et-runtime-native"],
    folder: "quick",
    parts: Parts::Tracing,
};

/// Builds the tools as shipped and returns their places.
pub fn run(layout: &Layout) -> Result<Tools> {
    tools(layout, &RELEASE, layout.tools())
}

/// Builds the tools and the tests that use them.
pub fn for_tests(layout: &Layout) -> Result<Tools> {
    tools(layout, &WITH_TESTS, layout.tools())
}

/// Builds the tools for a smoke test, in a separate place: other tools would be missing or outdated there.
pub fn for_smoke_test(layout: &Layout) -> Result<Tools> {
    tools(layout, &FOR_SMOKE_TEST, Tools { root: layout.target.join("smoke-test/et") })
}

/// Builds the tools for the demo, in a separate place.
pub fn for_demo(layout: &Layout) -> Result<Tools> {
    tools(layout, &FOR_DEMO, Tools { root: layout.target.join("demo/et") })
}

/// If two builds start in one checkout, the second waits: cargo locks its own files, but not those that are laid out
/// here.
fn tools(layout: &Layout, build: &Build, tools: Tools) -> Result<Tools> {
    let _alone = lock(&layout.target, || eprintln!("waiting for another cargo xtask build in this checkout"))?;
    let compiler = jdks::compiler(layout)?;
    command::run(command::cargo(&layout.repo).args(["build", "--locked"]).args(build.arguments))?;
    let built = layout.target.join(build.folder);
    let (bin, lib) = (tools.root.join("bin"), tools.lib());
    for folder in [&bin, &lib] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let (commands, libraries) = build.parts.files();
    commands.iter().try_for_each(|name| place(&built.join(name), &bin.join(name)))?;
    libraries.iter().try_for_each(|name| place(&built.join(name), &lib.join(name)))?;
    heap_proxy(layout, &compiler, &tools)?;
    if build.parts == Parts::All {
        ddm_jar(layout, &compiler, &tools)?;
        test_library(layout, &compiler, &tools)?;
        plugins::build(layout, &compiler, &tools)?;
    }
    eprintln!("built {}", tools.root.display());
    Ok(tools)
}

/// As [`run`], and in addition builds what takes long to compile and no other tool needs: MMTk's collectors for
/// `et-replay collect`, and allocators in C and C++ for `et-replay allocate`.
pub fn all(layout: &Layout) -> Result<Tools> {
    let tools = run(layout)?;
    let _alone = lock(&layout.target, || eprintln!("waiting for another cargo xtask build in this checkout"))?;
    let apart = |folder: &str, program: &Path, lacks: &str| {
        let name = program.file_name().unwrap_or_default();
        let built = command::run(&mut cargo_apart(layout, folder, "build"))
            .and_then(|()| place(&layout.target.join("release").join(name), program));
        if let Err(error) = built {
            let name = name.display();
            eprintln!("{name} was not built, so {lacks} is not available; everything else is: {error:#}");
        }
    };
    apart("tools/et-collect", &tools.et_collect(), "et-replay collect");
    if command::exists("c++") {
        apart("tools/et-allocate", &tools.et_allocate(), "et-replay allocate --allocator jemalloc,mimalloc,snmalloc");
    } else {
        eprintln!("no C++ compiler (c++) found: et-allocate was not built; everything else was");
    }
    Ok(tools)
}

/// A cargo command for a crate with a separate workspace.
pub fn cargo_apart(layout: &Layout, folder: &str, verb: &str) -> Command {
    let mut cargo = command::cargo(&layout.repo);
    cargo.args([verb, "--release", "--locked", "--manifest-path"]).arg(format!("{folder}/Cargo.toml"));
    cargo.arg("--target-dir").arg(&layout.target);
    cargo
}

/// Takes the lock of a folder. Calls `waiting` if another process holds it.
fn lock(folder: &Path, waiting: impl FnOnce()) -> Result<File> {
    let path = folder.join("xtask-build.lock");
    let fail = || format!("cannot lock {}", path.display());
    fs::create_dir_all(folder).with_context(fail)?;
    let file = File::options().write(true).create(true).truncate(false).open(&path).with_context(fail)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            waiting();
            file.lock().with_context(fail)?;
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(fail),
    }
    Ok(file)
}

/// Builds the tools, or returns those built last: sources may change during a long measurement.
pub fn unless(layout: &Layout, no_build: bool) -> Result<Tools> {
    if no_build { Ok(layout.tools()) } else { run(layout) }
}

fn heap_proxy(layout: &Layout, compiler: &Jdk, tools: &Tools) -> Result<()> {
    let fresh = layout.target.join("heap-proxy");
    fs::create_dir_all(&fresh).context("cannot make target/heap-proxy")?;
    runtime_java::build(&compiler.home, &layout.repo, &fresh)?;
    HEAP_PROXY_JARS.iter().chain([&JVMPI_PROXY_JAR]).try_for_each(|jar| place(&fresh.join(jar), &tools.lib().join(jar)))
}

fn ddm_jar(layout: &Layout, compiler: &Jdk, tools: &Tools) -> Result<()> {
    let fresh = layout.target.join("ddm-java");
    fs::create_dir_all(&fresh).context("cannot make target/ddm-java")?;
    let jar = runtime_java::ddm(&compiler.home, &layout.repo, &fresh)?;
    place(&jar, &tools.lib().join(DDM_JAR))
}

fn test_library(layout: &Layout, compiler: &Jdk, tools: &Tools) -> Result<()> {
    let fresh = layout.target.join("test-library");
    fs::create_dir_all(&fresh).context("cannot make target/test-library")?;
    let jar = runtime_java::test_library(&compiler.home, &layout.repo, &fresh)?;
    place(&jar, &tools.lib().join(TEST_JAR))
}

/// Copies a file to its place unless it is there with the same content: instrumented JDKs are cached by the sizes and
/// times of these files, and a running program may have the old one mapped.
fn place(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("{} was not built", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let part = to.with_extension("part");
    fs::copy(from, &part).with_context(|| format!("cannot write {}", part.display()))?;
    fs::rename(&part, to).with_context(|| format!("cannot write {}", to.display()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn of_two_builds_one_waits_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path(), || panic!("no other build is running")).unwrap();
        let (waits, waiting) = channel();
        let path = folder.path().to_owned();
        let second = std::thread::spawn(move || lock(&path, || waits.send(()).unwrap()).unwrap());
        waiting.recv().unwrap();
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap();
    }
}
