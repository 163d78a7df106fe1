//! JVMPI agents written in C, and the JVM options that report methods to them through hooks.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::jdks::Jdk;
use crate::layout::{JVMPI_PROXY_JAR, Layout, Tools};

/// Runs the C compiler with the headers of JVMPI and of a JDK on its include path.
pub fn compile(layout: &Layout, jdk: &Jdk, arguments: &[&str], source: &Path, to: &Path) -> Result<()> {
    let include = jdk.home.join("include");
    let is_cxx = source.extension().is_some_and(|extension| extension == "cc");
    let mut cc = Command::new(if is_cxx { "c++" } else { "cc" });
    cc.args(["-Wall", "-Wextra", "-Werror"]).args(arguments);
    for folder in [layout.repo.join("examples/jvmpi"), include.join("linux"), include] {
        cc.arg("-I").arg(folder);
    }
    command::quiet(cc.arg(source).arg("-o").arg(to)).map(drop)
}

/// JVM options for an instrumented JDK, so that its hooks report methods to the agent.
pub fn hooks(tools: &Tools) -> [String; 2] {
    let proxy = tools.lib().join(JVMPI_PROXY_JAR);
    [format!("--patch-module=java.base={}", proxy.display()), "-XX:-DontCompileHugeMethods".to_owned()]
}
