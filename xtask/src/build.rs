//! `cargo xtask build`: everything a user needs, laid out under `target/et`.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::jdks::{self, Jdk};
use crate::layout::{HEAP_PROXY_JARS, Layout, RUNTIME_LIBRARY, Tools};
use crate::plugins;
use crate::runtime_java;

/// Builds all and returns where it is. Of builds that are started at the same time in a checkout one waits for the other:
/// cargo sees to its own files, and nobody to the rest.
pub fn run(layout: &Layout) -> Result<Tools> {
    let _alone = lock(&layout.target, || eprintln!("another cargo xtask build runs here, waiting"))?;
    let compiler = jdks::compiler(layout)?;
    let tools = layout.tools();
    cargo_build(layout)?;
    let release = layout.target.join("release");
    fs::create_dir_all(tools.root.join("bin")).context("cannot make target/et/bin")?;
    fs::create_dir_all(tools.lib()).context("cannot make target/et/lib")?;
    place(&release.join("et-instrument"), &tools.et_instrument())?;
    place(&release.join("et-trace"), &tools.et_trace())?;
    place(&release.join(RUNTIME_LIBRARY), &tools.lib().join(RUNTIME_LIBRARY))?;
    heap_proxy(layout, &compiler, &tools)?;
    plugins::build(layout, &compiler, &tools)?;
    eprintln!("built {}", tools.root.display());
    Ok(tools)
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

fn cargo_build(layout: &Layout) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--locked", "-p", "et-instrument", "-p", "et-trace-cli", "-p", "et-runtime"]);
    command::run(build.current_dir(&layout.repo))
}

fn heap_proxy(layout: &Layout, compiler: &Jdk, tools: &Tools) -> Result<()> {
    let fresh = layout.target.join("heap-proxy");
    fs::create_dir_all(&fresh).context("cannot make target/heap-proxy")?;
    runtime_java::build(&compiler.home, &layout.repo, &fresh)?;
    HEAP_PROXY_JARS.iter().try_for_each(|jar| place(&fresh.join(jar), &tools.lib().join(jar)))
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
