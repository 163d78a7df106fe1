//! Every program of `tests/java/deaths`: where its objects die, as its comments say, on every JDK; with witnesses on some.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use et_tests::fate::{self, Witness};
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Run, Setup};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;
use xtask::layout::Layout;

fn main() -> Result<ExitCode> {
    let names = program::in_folder(&Layout::find()?, "deaths")?;
    let mut trials: Vec<Trial> = Vec::new();
    for name in names {
        let own = name.clone();
        let obstacle = move |lab: &Lab, jdk: &Jdk| program::obstacle(lab, jdk, &own);
        let case = |witness| {
            let name = name.clone();
            move |lab: &Lab, jdk: &Jdk| check(lab, jdk, &name, witness)
        };
        trials.extend(lab::on_each_jdk_unless(&name, &obstacle, case(Witness::None)));
        for witness in [Witness::Refs, Witness::All] {
            let test = format!("{name}_{}", witness.name());
            trials.extend(lab::SOME_JDKS.map(|feature| lab::on_jdk_unless(feature, &test, &obstacle, case(witness))));
        }
    }
    Ok(lab::run(trials).exit_code())
}

fn check(lab: &Lab, jdk: &Jdk, name: &str, witness: Witness) -> Result<()> {
    let options: &[&str] = if witness == Witness::None { &[] } else { &["--witness", witness.name()] };
    let setup = Setup { jdk: options, program: options, ..Setup::default() };
    let run = Run::with(lab, jdk, &format!("{}_{}", name.replace('/', "_"), witness.name()), name, setup)?;
    let source = program::programs(lab).join(format!("{name}.java"));
    let text = fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let fates = fate::parse(&text).with_context(|| format!("{}", source.display()))?;
    let fates = fate::that_hold(&fates, jdk.feature, witness);
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
