//! Every program of `tests/java` that says in its comments which records it leaves, on every JDK.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use et_tests::lab::{self, Lab};
use et_tests::program;
use xtask::jdks::Jdk;
use xtask::layout::Layout;

fn main() -> Result<ExitCode> {
    let folder = Layout::find()?.repo.join("tests/java");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "java") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    let trials = names.into_iter().flat_map(|name| {
        let (own, other) = (name.clone(), name.clone());
        let obstacle = move |lab: &Lab, jdk: &Jdk| program::obstacle(lab, jdk, &own);
        lab::on_each_jdk_unless(&name, obstacle, move |lab, jdk| program::check(lab, jdk, &other))
    });
    Ok(lab::run(trials.collect()).exit_code())
}
