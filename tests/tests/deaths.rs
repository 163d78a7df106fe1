//! Every program of `tests/java/deaths`: where its objects die, as its comments say, on every JDK.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use et_tests::fate;
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Run};
use xtask::jdks::Jdk;
use xtask::layout::Layout;

fn main() -> Result<ExitCode> {
    let trials = program::in_folder(&Layout::find()?, "deaths")?.into_iter().flat_map(|name| {
        let (own, other) = (name.clone(), name.clone());
        let obstacle = move |lab: &Lab, jdk: &Jdk| program::obstacle(lab, jdk, &own);
        lab::on_each_jdk_unless(&name, obstacle, move |lab, jdk| check(lab, jdk, &other))
    });
    Ok(lab::run(trials.collect()).exit_code())
}

fn check(lab: &Lab, jdk: &Jdk, name: &str) -> Result<()> {
    let run = Run::of(lab, jdk, &name.replace('/', "_"), name)?;
    let source = program::programs(lab).join(format!("{name}.java"));
    let text = fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let fates = fate::parse(&text).with_context(|| format!("{}", source.display()))?;
    let fates = fate::of_jdk(&fates, jdk.feature);
    ensure!(!fates.is_empty(), "{} says of no object where it dies", source.display());
    let wrong = fate::differences(&run.read_with_deaths(lab)?, &fates);
    ensure!(
        wrong.is_empty(),
        "{} of {} objects of {name}\n{}\ntrace: {}",
        wrong.len(),
        fates.len(),
        wrong.join("\n"),
        run.trace.display()
    );
    run.clean()
}
