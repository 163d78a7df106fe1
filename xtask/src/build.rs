//! `cargo xtask build`: everything a user needs, laid out under `target/et`.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::jdks::{self, Jdk};
use crate::layout::{
    DDM_JAR, HEAP_PROXY_JARS, JVMPI_LIBRARY, JVMPI_PROXY_JAR, Layout, MONITOR_LIBRARY, RUNTIME_LIBRARY, Tools,
};
use crate::plugins;
use crate::runtime_java;

/// Options of `cargo xtask build`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Options {
    /// Build with cargo's dev profile, which the tests are compiled with as well: quick to build, slower to run. Leaves out
    /// MMTk's collectors and the allocators in C and C++
    #[arg(long)]
    dev: bool,
}

/// Builds what the options ask for.
pub fn with(layout: &Layout, options: Options) -> Result<Tools> {
    if options.dev { tools(layout, Profile::Dev) } else { all(layout) }
}

/// Cargo's profile for the tools.
#[derive(Clone, Copy)]
enum Profile {
    Release,
    Dev,
}

impl Profile {
    /// Its name, and its folder below `target`.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Release => ("release", "release"),
            Self::Dev => ("dev", "debug"),
        }
    }
}

/// Builds the tools as they are shipped, and returns where they are.
pub fn run(layout: &Layout) -> Result<Tools> {
    tools(layout, Profile::Release)
}

/// Of builds that are started at the same time in a checkout one waits for the other: cargo sees to its own files, and
/// nobody to the rest.
fn tools(layout: &Layout, profile: Profile) -> Result<Tools> {
    let _alone = lock(&layout.target, || eprintln!("another cargo xtask build runs here, waiting"))?;
    let compiler = jdks::compiler(layout)?;
    let tools = layout.tools();
    cargo_build(layout, profile)?;
    let built = layout.target.join(profile.names().1);
    fs::create_dir_all(tools.root.join("bin")).context("cannot make target/et/bin")?;
    fs::create_dir_all(tools.lib()).context("cannot make target/et/lib")?;
    place(&built.join("et-instrument"), &tools.et_instrument())?;
    place(&built.join("et-trace"), &tools.et_trace())?;
    place(&built.join("et-replay"), &tools.et_replay())?;
    place(&built.join("et-monitor"), &tools.et_monitor())?;
    place(&built.join("et-jvmpi"), &tools.et_jvmpi())?;
    place(&built.join(RUNTIME_LIBRARY), &tools.lib().join(RUNTIME_LIBRARY))?;
    place(&built.join(JVMPI_LIBRARY), &tools.lib().join(JVMPI_LIBRARY))?;
    place(&built.join(MONITOR_LIBRARY), &tools.lib().join(MONITOR_LIBRARY))?;
    heap_proxy(layout, &compiler, &tools)?;
    ddm_jar(layout, &compiler, &tools)?;
    plugins::build(layout, &compiler, &tools)?;
    eprintln!("built {}", tools.root.display());
    Ok(tools)
}

/// As [`run`], and last what takes long to compile and what no other tool needs: MMTk's collectors for `et-replay collect`, and allocators in C
/// and C++ for `et-replay allocate`.
pub fn all(layout: &Layout) -> Result<Tools> {
    let tools = run(layout)?;
    let _alone = lock(&layout.target, || eprintln!("another cargo xtask build runs here, waiting"))?;
    let apart = |folder: &str, program: &Path, lacks: &str| {
        let name = program.file_name().unwrap_or_default();
        let built = command::run(&mut cargo_apart(layout, folder, "build"))
            .and_then(|()| place(&layout.target.join("release").join(name), program));
        if let Err(error) = built {
            let name = name.display();
            eprintln!("{name} was not built, so there is no {lacks}; all else is complete: {error:#}");
        }
    };
    apart("tools/et-collect", &tools.et_collect(), "et-replay collect");
    if command::exists("c++") {
        apart("tools/et-allocate", &tools.et_allocate(), "et-replay allocate --allocator jemalloc,mimalloc,snmalloc");
    } else {
        eprintln!("there is no C++ compiler (c++): et-allocate was not built, all else is complete");
    }
    Ok(tools)
}

/// A command of cargo's for a crate that is a workspace of its own.
pub fn cargo_apart(layout: &Layout, folder: &str, verb: &str) -> Command {
    let mut cargo = command::cargo(&layout.repo);
    cargo.args([verb, "--release", "--locked", "--manifest-path"]).arg(format!("{folder}/Cargo.toml"));
    cargo.arg("--target-dir").arg(&layout.target);
    cargo
}

/// Nobody else has this at the same time. `waiting` is called if somebody has it now.
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

/// Builds all, or takes what there is: long measurements outlive changes of the sources.
pub fn unless(layout: &Layout, no_build: bool) -> Result<Tools> {
    if no_build { Ok(layout.tools()) } else { run(layout) }
}

fn cargo_build(layout: &Layout, profile: Profile) -> Result<()> {
    let mut build = command::cargo(&layout.repo);
    build.args(["build", "--profile", profile.names().0, "--locked"]);
    build.args([
        "-p",
        "et-instrument",
        "-p",
        "et-trace",
        "-p",
        "et-replay",
        "-p",
        "et-runtime-native",
        "-p",
        "et-jvmpi-host",
    ]);
    build.args(["-p", "et-monitor", "-p", "et-monitor-agent", "-p", "et-jvmpi"]);
    command::run(&mut build)
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

/// Copies a file to its place unless the same bytes are there already: instrumented JDKs are cached by what
/// these files hold, and a running program may have the old one mapped.
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
        let first = lock(folder.path(), || panic!("nobody else is here")).unwrap();
        let (waits, waiting) = channel();
        let path = folder.path().to_owned();
        let second = std::thread::spawn(move || lock(&path, || waits.send(()).unwrap()).unwrap());
        waiting.recv().unwrap();
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap();
    }
}
