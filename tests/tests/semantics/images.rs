//! Images that `jlink` made, instrumented afterwards.

use std::process::Command;

use anyhow::{Context, Result};
use et_tests::lab::{self, Lab};
use et_tests::plain_and_traced::{Prepared, same};
use et_tests::program::run_java;
use libtest_mimic::Trial;
use xtask::command;
use xtask::jdks::Jdk;

pub fn trials() -> Vec<Trial> {
    let no_jlink = |_: &Lab, jdk: &Jdk| {
        jdk.jlink().is_none().then(|| format!("JDK {} has no jlink that has something to link", jdk.feature))
    };
    let mut trials = Vec::new();
    for (name, options) in
        [("linked_image", &[][..]), ("linked_image_compressed", &["--compress=2", "--strip-debug"][..])]
    {
        trials.extend(lab::on_some_jdks_unless(name, no_jlink, move |lab, jdk| linked(lab, jdk, name, options)));
    }
    trials
}

fn linked(lab: &Lab, jdk: &Jdk, name: &str, options: &[&str]) -> Result<()> {
    let prepared = Prepared::new(lab, jdk, &format!("semantics-{name}"), "Callers")?;
    let (image, rewritten) = (prepared.folder.join("image"), prepared.folder.join("image-et"));
    let mut jlink = Command::new(jdk.home.join("bin/jlink"));
    jlink.args(["--add-modules", "java.base,java.logging", "--output"]).arg(&image).args(options);
    command::quiet(&mut jlink)?;
    let mut instrument = Command::new(lab.tools.et_instrument());
    command::quiet(instrument.arg("jdk").arg("--java-home").arg(&image).arg("-o").arg(&rewritten))?;

    let mut java = Command::new(image.join("bin/java"));
    let plain = run_java(java.arg("-cp").arg(prepared.plain()).arg("Callers"))?;
    let trace = prepared.folder.join("image.ettrace");
    let mut java = Command::new(rewritten.join("bin/java"));
    java.arg(format!("@{}", rewritten.join("et.args").display()));
    java.arg(format!("-Det.traceFile={}", trace.display()));
    let traced = run_java(java.arg("-cp").arg(prepared.rewritten()).arg("Callers"))?;
    same(&plain, &prepared.as_if_plain(&traced)).with_context(|| command::shown(&java))?;
    prepared.validate(&trace)?;
    prepared.clean()
}
