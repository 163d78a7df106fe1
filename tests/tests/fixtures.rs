//! Every program of `tests/java` that says in its comments which records it leaves, on every JDK.

use std::process::ExitCode;

use anyhow::Result;
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Setup};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;
use xtask::layout::Layout;

fn main() -> Result<ExitCode> {
    let names = program::in_folder(&Layout::find()?, "")?;
    let mut trials = checked_native_code();
    trials.extend(names.into_iter().flat_map(|name| {
        let (own, other) = (name.clone(), name.clone());
        let obstacle = move |lab: &Lab, jdk: &Jdk| program::obstacle(lab, jdk, &own);
        lab::on_each_jdk_unless(&name, obstacle, move |lab, jdk| program::check(lab, jdk, &other))
    }));
    Ok(lab::run(trials).exit_code())
}

/// Where the VM checks each call of native code, the records are the same. Of our calls it has nothing to say: there
/// are no more warnings than those that the program's own native code gets in the plain run.
fn checked_native_code() -> Vec<Trial> {
    let trials = ["JniCalls", "MadeByVm", "Updates"].into_iter().flat_map(|name| {
        let test = format!("{name}_checked");
        lab::on_each_jdk(&test.clone(), move |lab, jdk| {
            // JDK 11 goes through all local references after each call.
            let setup = Setup { both: &["-Xcheck:jni", "-Dmany=1000"], ..Setup::default() };
            program::check_with(lab, jdk, &test, name, setup)
        })
    });
    trials.collect()
}
